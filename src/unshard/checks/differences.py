"""Differences between a table of the source and the table that the target already has for it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from unshard.checks.facts import SourceFacts, TaskFacts
from unshard.checks.result import Finding
from unshard.errors import ConfigError, Where
from unshard.model.shape import misfits
from unshard.model.table import Column, Index, Table, TableName, quote_name
from unshard.transform.extract import constants, with_constants

_GOES_ON = (
    "nothing, as long as the statement for it is still to be followed or waits for other tables: `query-status` tells; "
    "else alter the target's table"
)


def differences(source: SourceFacts, task: TaskFacts, table: Table, there: Table, *, merged: bool) -> Iterator[Finding]:
    """Report columns, collations and keys in which a source's table and its existing target table differ.

    Columns that don't fit are a failure while a load is to come, which they would stop. Later they are a warning,
    because the statement that changes the target's table may still be to come. Keys are compared only for a table that
    is not merged.
    """
    try:
        filled = constants(source.extracted[table.name], table, there.name, there, Where(source.name, str(table.name)))
    except ConfigError as error:
        yield unfilled(error, table, there.name)
        return
    for fault in misfits(with_constants(table, filled), there):
        yield Finding(
            "fail" if source.fresh and source.config.mode != "incremental" and not source.copying else "warn",
            f"table {table.name} does not fit into {there.name}: {fault}",
            _mend_column(table, there, fault) if source.fresh else _GOES_ON,
            str(table.name),
            str(there.name),
        )
    yield from _other_text(table, there, task)
    if not merged:
        yield from _other_keys(table, there)


def unfilled(error: ConfigError, table: Table, target: TableName) -> Finding:
    """Return the finding for an error CONFIG-017.

    The target table lacks a column that a route fills, or refuses the column's values.
    """
    return Finding("fail", f"{error.code}: {error.message}", f"{error.values['mend']};", str(table.name), str(target))


def _mend_column(table: Table, there: Table, fault: str) -> str:
    """Return the statement that fixes a column of the target.

    It has the source's definition without the default, which rows don't need.
    """
    column = _named(table, fault)
    if column is not None and not column.generated and "is missing" in fault:
        return f"ALTER TABLE {there.name.quoted} ADD COLUMN {quote_name(column.name)} {_form(column)};"
    if column is not None and not column.generated and ", in the target " in fault:
        return f"ALTER TABLE {there.name.quoted} MODIFY COLUMN {quote_name(column.name)} {_form(column)};"
    extra = _named(there, fault)
    if extra is not None and "has no default" in fault:
        return f"ALTER TABLE {there.name.quoted} MODIFY COLUMN {quote_name(extra.name)} {extra.definition} NULL;"
    return f"give {there.name} that column as the source has it, or route the source's table to another one"


def _named(table: Table, fault: str) -> Column | None:
    """Return the column whose name the text of a fault begins with. Names may contain spaces."""
    named = [column for column in table.columns if fault.startswith(f"column {column.name} ")]
    return max(named, key=lambda column: len(column.name), default=None)


def _form(column: Column) -> str:
    text = f" CHARACTER SET {column.charset} COLLATE {column.collation}" if column.collation else ""
    return f"{column.definition}{text} {'NULL' if column.nullable else 'NOT NULL'}"


def _other_text(table: Table, there: Table, task: TaskFacts) -> Iterator[Finding]:
    """Warn of columns with another collation that the target knows.

    Text itself is converted; which texts are equal may change.
    """
    known = task.target.collations if task.target is not None else frozenset()
    by_name = {column.name.lower(): column for column in there.columns}
    pairs = [(column, by_name[column.name.lower()]) for column in table.columns if column.name.lower() in by_name]
    differing = [
        (mine, other)
        for mine, other in pairs
        if mine.collation and other.collation and mine.collation != other.collation and mine.collation in known
    ]
    if not differing:
        return
    mine, other = differing[0]
    more = f", and {len(differing) - 1} more columns" if len(differing) > 1 else ""
    used = Counter((column.charset, column.collation) for column in table.columns if column.collation)
    (charset, collation), _ = used.most_common(1)[0]
    if len(used) == 1:
        mend = f"ALTER TABLE {there.name.quoted} CONVERT TO CHARACTER SET {charset} COLLATE {collation};"
    else:
        changes = (f"MODIFY COLUMN {quote_name(there_.name)} {_form(mine_)}" for mine_, there_ in differing)
        mend = f"ALTER TABLE {there.name.quoted} {', '.join(changes)};"
    yield Finding(
        "warn",
        f"column {mine.name} of {table.name} has collation {mine.collation}, in {there.name} {other.collation}{more}:"
        " a unique key may take other texts for equal",
        mend,
        str(table.name),
        str(there.name),
    )


def _other_keys(table: Table, there: Table) -> Iterator[Finding]:
    """Warn of primary and unique keys that only one side has, compared by columns.

    A key that only the target has may refuse rows.
    """
    mine = {_columns(key): key for key in table.unique_keys}
    others = {_columns(key): key for key in there.unique_keys}
    missing = [key for columns, key in mine.items() if columns not in others]
    beyond = [key for columns, key in others.items() if columns not in mine]
    if not missing and not beyond:
        return
    told = [f"{_shown(key)} is missing in the target" for key in missing]
    told += [f"{_shown(key)} is in the target alone" for key in beyond]
    drops = ["DROP PRIMARY KEY" if key.primary else f"DROP INDEX {quote_name(key.name)}" for key in beyond]
    adds = [_added(key) for key in missing]
    yield Finding(
        "warn",
        f"keys of {table.name} and {there.name} differ: {'; '.join(told)}",
        f"ALTER TABLE {there.name.quoted} {', '.join(drops + adds)};",
        str(table.name),
        str(there.name),
    )


def _columns(key: Index) -> tuple[bool, tuple[str, ...], tuple[int, ...]]:
    return key.primary, tuple((name or "").lower() for name in key.columns), key.prefixes


def _shown(key: Index) -> str:
    names = ", ".join(name or "an expression" for name in key.columns)
    return f"the {'primary key' if key.primary else f'unique key {key.name}'} ({names})"


def _added(key: Index) -> str:
    parts = ", ".join(
        quote_name(name) + (f"({prefix})" if prefix else "")
        for name, prefix in zip(key.columns, key.prefixes, strict=True)
    )
    return f"ADD PRIMARY KEY ({parts})" if key.primary else f"ADD UNIQUE KEY {quote_name(key.name)} ({parts})"
