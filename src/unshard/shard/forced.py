"""Computes the structure in which the target takes a shard's rows after a user has left out the shard's DDL. Pure.

It is the shard's own structure, except for what can't be joined with those of the target and the other shards:

| in the shard | in the structure |
|---|---|
| a column whose type has none in common with the target's | none: the shard's rows get the rule |
| the same, where the target's column has no rule, or is part of a unique key | the target's column |
| a column with other attributes than the target's, such as its character set | the target's column |
| a column that another shard lacks, and that has no rule | a nullable one, with the rule NULL |
| a generated column that another shard lacks | none |
| one whose members the server may show with other letters, and that another shard lacks | none |
| no column where the target has one without a rule | the target's column, which may be NULL and has no default |
| the same, where that is AUTO_INCREMENT or generated, and where it is one of a unique key | the target's column |
| a plain key of other columns than the target's of that name | none |
| a unique key over a column that another shard lacks | none |

So nothing is narrowed, and no row of another shard changes. The shard's rows are written without the columns that the
structure lacks, and have the target's default in the columns that it has and the shard lacks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from unshard.schema.definition import ColumnDefinition, KeyDefinition, KeyKind, TableDefinition
from unshard.shard.join import (
    IncompatibleError,
    fill_of,
    joined_column,
    joined_keys,
    joined_type,
    plain_keys,
    takes_alike,
)
from unshard.shard.merged_parts import names_of
from unshard.shard.shown_text import has_certain_members


def fitted(structure: TableDefinition, there: TableDefinition, others: Sequence[TableDefinition]) -> TableDefinition:
    """Return the structure that takes the shard's place in the join. `there` is the target's, `others` the shards'."""
    own = names_of(structure)
    needed = frozenset(name for key in there.keys if key.kind.unique for name in key.columns)
    found = [_fitted(column, there, others, needed) for column in structure.columns]
    found += [
        column if column.name.lower() in needed else _empty(column, others)
        for column in there.columns
        if column.name.lower() not in own and (fill_of(column) is None or column.name.lower() in needed)
    ]
    columns = tuple(column for column in found if column is not None)
    return _with_keys(replace(structure, columns=columns), there, others)


def _fitted(
    column: ColumnDefinition, there: TableDefinition, others: Sequence[TableDefinition], needed: frozenset[str]
) -> ColumnDefinition | None:
    having = [one for table in others if (one := table.column(column.name)) is not None]
    target = there.column(column.name)
    lacking = len(having) < len(others)
    if target is None and lacking and (column.generated is not None or not has_certain_members(column)):
        return None
    if target is None and lacking and fill_of(column) is None:
        plain = ColumnDefinition(column.name, column.type, column.charset, column.collation, nullable=True)
        return replace(plain, comment=column.comment)
    try:
        joined_column((column, *having), None, target)
    except IncompatibleError:
        other = target or having[0]
        written = fill_of(other) is None or column.name.lower() in needed or _joins(column, other)
        return other if written else None
    return column


def _empty(column: ColumnDefinition, others: Sequence[TableDefinition]) -> ColumnDefinition:
    """Return the target's column as one that is NULL by default; unchanged where it can't be that."""
    if column.auto_increment or column.generated is not None or column.period:
        return column
    empty = replace(column, nullable=True, default=None)
    try:
        joined_column((empty, *(one for table in others if (one := table.column(column.name)))), None, column)
    except IncompatibleError:
        return column
    return empty


def _joins(column: ColumnDefinition, other: ColumnDefinition) -> bool:
    try:
        joined_type(column.type, other.type)
    except IncompatibleError:
        return False
    return True


def _with_keys(
    structure: TableDefinition, there: TableDefinition, others: Sequence[TableDefinition]
) -> TableDefinition:
    everywhere = names_of(there).intersection(*map(names_of, others)) if others else names_of(structure)
    kept = []
    for key in structure.keys:
        if key.kind.unique and there.key(key.name) != key and not everywhere.issuperset(key.columns):
            continue
        if key.kind is KeyKind.PLAIN:
            try:
                joined_keys([replace(structure, keys=(key,)), there, *others])
            except IncompatibleError:
                continue
        kept.append(key)
    return replace(structure, keys=tuple(kept))


def as_it_is(
    column: ColumnDefinition, before: TableDefinition, there: TableDefinition | None
) -> ColumnDefinition | None:
    """Return a column as the target has it where nothing is run that makes it of `before`'s; None: it has none."""
    old, real = before.column(column.name), there.column(column.name) if there is not None else column
    if old is None:
        return column if real is not None else None
    return old if real is not None and takes_alike(old, real) else column


def keys_left(
    before: TableDefinition, after: TableDefinition, there: TableDefinition | None
) -> tuple[KeyDefinition, ...]:
    """Return the keys after a statement that is left out. Plain keys are those of before, or as they are `there`."""
    rest, old, new = (key for key in after.keys if key.kind is not KeyKind.PLAIN), plain_keys(before), plain_keys(after)
    if there is not None:
        old = {name: key for name, key in {**old, **new}.items() if there.key(name) is not None}
    return (*rest, *old.values())
