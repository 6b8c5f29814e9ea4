"""Columns of a target that are filled from a source's names: `extract-table`, `extract-schema`, `extract-source`.

A value is all capture groups of the rule's expression, concatenated. It is the same for every row of a source table, so
it is computed once, in the form that the target's column has, and added to the rows as a constant.

| column of the target | value |
|---|---|
| CHAR, VARCHAR, TEXT | the text, not longer than the column |
| BINARY, VARBINARY, BLOB | its bytes in UTF-8 |
| TINYINT to BIGINT | the number, `007` is 7 |
| ENUM | one of its members |
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from unshard.errors import ConfigError, Where
from unshard.model.table import Column, Index, Table, TableName, quote_name
from unshard.mysql.types import BYTES, CHARACTERS, INTEGERS, arrow_type

_BITS = {"tinyint": 8, "smallint": 16, "mediumint": 24, "int": 32, "bigint": 64}
_NEW_COLUMN = "VARCHAR(64) NOT NULL"

_CLUSTERED = "/*T![clustered_index] CLUSTERED */"
_NAME = "`(?:[^`]|``)+`"
_PART = rf"{_NAME}(?:\(\d+\))?(?: ASC| DESC)?"
_COLUMNS = re.compile(rf"CREATE TABLE {_NAME} \((?:\n  `[^\n]*[^\n,],?(?=\n))*?\n  `[^\n]*[^\n,](?=,?\n(?!  `))")
"""SHOW CREATE TABLE from its beginning to the last column, without the comma after it."""

_UNIQUE = re.compile(rf"(?<=\n)  (?:PRIMARY KEY|UNIQUE KEY {_NAME}) \({_PART}(?:,{_PART})*(?=\))")
"""A line of SHOW CREATE TABLE with a unique key of columns, from its beginning to the last of them."""


@dataclass(frozen=True, slots=True)
class Extracted:
    """The value of a target column that route `rule` extracts from the names of one source table."""

    rule: str
    column: str
    value: str


@dataclass(frozen=True, slots=True)
class Constant:
    """A column of the target that has one value in all new rows of a source table.

    `kept`: older rows may have other values, and an UPDATE leaves these as they are.
    """

    column: Column
    value: str | int | float | bytes | None
    kept: bool = False

    def values(self, rows: int) -> pa.Array:
        """Return the value once for each row."""
        return pa.repeat(pa.scalar(self.value, arrow_type(self.column)), rows)


def constants(
    extracted: Sequence[Extracted], upstream: Table | None, name: TableName, target: Table | None, where: Where
) -> tuple[Constant, ...]:
    """Return the constants of the rows of `upstream` (None: not known yet) in `target` (None: missing), called `name`.

    Raises ConfigError CONFIG-017 where the target lacks the columns or doesn't take the values; it holds the statements
    that correct this.
    """
    if not extracted:
        return ()
    there = {column.name.lower(): column for column in target.columns} if target is not None else {}
    own = {column.name.lower() for column in upstream.columns} if upstream is not None else set()
    faults = ["there is no such table"] if target is None else []
    found: list[Constant] = []
    for one in extracted:
        column = there.get(one.column.lower())
        if one.column.lower() in own:
            faults.append(f"column {one.column} is one of the source's own")
        elif column is None:
            faults += [f"it has no column {one.column}"] if target is not None else []
        else:
            value, fault = _fitting(column, one.value)
            faults += [fault] if fault else []
            found.append(Constant(replace(column, auto_increment=False), value))
    if faults:
        missing = [one.column for one in extracted if one.column.lower() not in there]
        values = {"rule": extracted[0].rule, "target": str(name), "faults": "; ".join(faults)}
        mend = mending(target, upstream, name, missing)
        raise ConfigError("CONFIG-017", where, values={**values, "mend": mend})
    return tuple(found)


def with_constants(table: Table, added: Sequence[Constant]) -> Table:
    """Return the structure of rows to which `append_constants` has added columns."""
    return replace(table, columns=(*table.columns, *(one.column for one in added))) if added else table


def append_constants(batch: pa.RecordBatch, added: Sequence[Constant]) -> pa.RecordBatch:
    """Return the batch with each constant as one more column, by the column's name."""
    for one in added:
        batch = batch.append_column(one.column.name, one.values(batch.num_rows))
    return batch


def mending(target: Table | None, upstream: Table | None, name: TableName, missing: Sequence[str]) -> str:
    """Return statements that add the columns to the target and to each of its unique keys.

    A clustered primary key of TiDB can't be dropped: such a table is renamed with its rows, and made anew.
    """
    if not missing:
        return "ALTER TABLE … MODIFY the columns that are named above, or correct the rule's expression"
    if target is None:
        made = _created(upstream, name, missing)
        return f"CREATE DATABASE IF NOT EXISTS {quote_name(name.schema)}; {made}"
    if _CLUSTERED in target.create_sql:
        aside = TableName(name.schema, f"{name.table[:50]}_without_extract")
        return f"RENAME TABLE {name.quoted} TO {aside.quoted}; {_created(target, name, missing)}"
    parts = [f"ADD COLUMN {quote_name(column)} {_NEW_COLUMN}" for column in missing]
    for index in target.unique_keys:
        parts += _widened(index, missing)
    return f"ALTER TABLE {name.quoted} {', '.join(parts)}"


def _created(like: Table | None, name: TableName, missing: Sequence[str]) -> str:
    """Return a CREATE TABLE with the columns, also in the unique keys, except for keys over an expression."""
    columns = "".join(f",\n  {quote_name(column)} {_NEW_COLUMN}" for column in missing)
    start = f"CREATE TABLE {quote_name(like.name.table)} " if like is not None else ""
    found = _COLUMNS.match(like.create_sql) if like is not None and like.create_sql.startswith(start) else None
    if like is None or found is None:
        return f"CREATE TABLE {name.quoted} with the source's columns{columns} and these in each of its unique keys"
    keys = _UNIQUE.sub(lambda key: f"{key[0]},{','.join(map(quote_name, missing))}", like.create_sql[found.end() :])
    return f"CREATE TABLE {name.quoted} {found[0][len(start) :]}{columns}{keys}"


def _widened(index: Index, missing: Sequence[str]) -> list[str]:
    if any(column is None for column in index.columns):
        return []  # a key over an expression: only its owner knows how
    pairs = zip(index.columns, index.prefixes, strict=True)
    listed = [quote_name(column) + (f"({prefix})" if prefix else "") for column, prefix in pairs]
    text = ", ".join([*listed, *map(quote_name, missing)])
    if index.primary:
        return ["DROP PRIMARY KEY", f"ADD PRIMARY KEY ({text})"]
    return [f"DROP INDEX {quote_name(index.name)}", f"ADD UNIQUE {quote_name(index.name)} ({text})"]


def _fitting(column: Column, text: str) -> tuple[str | int | bytes, str]:
    """Return the value as the column has it, and the reason why it doesn't fit, "" where it fits."""
    told = f"column {column.name} is {column.definition}"
    if column.generated:
        return text, f"column {column.name} is a generated one"
    if column.type in INTEGERS:
        return _whole(column, text, told)
    if column.type == "enum":
        return text, "" if text in column.members else f"{told}, which has no member '{text}'"
    if column.type in CHARACTERS and column.charset != "binary":
        return text, f"{told}, '{text}' is longer" if len(text) > column.length else ""
    if column.type in (BYTES - {"bit", "vector"}) | CHARACTERS:
        size = len(text.encode())
        value = text.encode().ljust(column.length, b"\0") if column.type == "binary" else text.encode()
        return value, f"{told}, '{text}' is longer" if size > column.length else ""
    return text, f"{told}; a text, an integer, bytes or an ENUM is needed"


def _whole(column: Column, text: str, told: str) -> tuple[int, str]:
    if re.fullmatch("[0-9]+", text) is None:
        return 0, f"{told}, '{text}' is no number"
    limit = (1 << _BITS[column.type] - (not column.unsigned)) - 1
    return int(text), f"{told}, {text} is larger" if int(text) > limit else ""
