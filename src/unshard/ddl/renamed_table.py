"""A target table as a source would define it: under another name, and without the columns that a route fills. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import replace

from unshard.model.table import Index, Table, TableName, quote_name

_PARTITIONS = re.compile(r"\n?\s*(?:/\*!\d+\s*)?\s*PARTITION\s+BY\b", re.IGNORECASE)
_COLUMN = re.compile(r"\s*`((?:[^`]|``)+)`\s")
_KEY = re.compile(r"\s*(?:PRIMARY |UNIQUE |FULLTEXT |SPATIAL |VECTOR )?KEY\b[^(]*\((.*)\)")
_PART = re.compile(r"`(?:[^`]|``)+`(?:\(\d+\))?(?: (?:ASC|DESC))?|\((?:[^()]|\([^()]*\))*\)")


def without_columns(table: Table, names: Collection[str]) -> Table:
    """Return the table without the named columns, in its keys too. Pure.

    `create_sql` must be as SHOW CREATE TABLE writes it, with a line for each column and key. A PARTITION BY that names
    one of the columns is removed.
    """
    gone = {name.lower() for name in names}
    columns = tuple(column for column in table.columns if column.name.lower() not in gone)
    if len(columns) == len(table.columns):
        return table
    indexes = tuple(kept for index in table.indexes if (kept := _shortened(index, gone)).columns)
    return replace(table, columns=columns, indexes=indexes, create_sql=_text(table.create_sql, gone))


def renamed(table: Table, name: TableName) -> Table:
    """Return the table under another name, in its `create_sql` too, where a server may have another case. Pure."""
    start = f"CREATE TABLE {quote_name(table.name.table)} "
    if table.create_sql[: len(start)].lower() != start.lower():
        raise ValueError(f"not what SHOW CREATE TABLE writes of {table.name}: {table.create_sql[:80]}")
    create_sql = f"CREATE TABLE {quote_name(name.table)} {table.create_sql[len(start) :]}"
    return replace(table, name=name, create_sql=create_sql)


def _shortened(index: Index, gone: Collection[str]) -> Index:
    pairs = zip(index.columns, index.prefixes, strict=True)
    kept = [(column, prefix) for column, prefix in pairs if (column or "").lower() not in gone]
    return replace(index, columns=tuple(c for c, _ in kept), prefixes=tuple(p for _, p in kept))


def _text(create_sql: str, gone: Collection[str]) -> str:
    head, *lines = create_sql.split("\n")
    close = next(place for place, line in enumerate(lines) if line.startswith(")"))
    kept = [line for text in lines[:close] if (line := _line(text.removesuffix(","), gone))]
    rest = "\n".join(lines[close:])
    options = _PARTITIONS.search(rest)
    if options and any(quote_name(name) in rest[options.start() :].lower() for name in gone):
        rest = rest[: options.start()]
    return "\n".join([head, ",\n".join(kept), rest])


def _line(text: str, gone: Collection[str]) -> str:
    """Return a line of the body without those columns; empty where nothing is left of it."""
    column = _COLUMN.match(text)
    if column is not None:
        return "" if column[1].replace("``", "`").lower() in gone else text
    key = _KEY.match(text)
    if key is None:
        return text
    start, end = key.start(1), _list_end(text, key.start(1))
    parts = [part[0] for part in _PART.finditer(text[start:end])]
    left = [part for part in parts if _name_of(part) not in gone]
    if len(left) == len(parts):
        return text
    return text[:start] + ",".join(left) + text[end:] if left else ""


def _list_end(text: str, start: int) -> int:
    """Return the index of the bracket that closes the one just before `start`; quoted names are skipped."""
    depth, place = 1, start
    while place < len(text):
        if text[place] == "`":
            place = text.index("`", place + 1)
        elif text[place] == "(":
            depth += 1
        elif text[place] == ")":
            depth -= 1
            if not depth:
                return place
        place += 1
    return len(text)


def _name_of(part: str) -> str:
    found = re.match(r"`((?:[^`]|``)+)`", part)
    return found[1].replace("``", "`").lower() if found else ""
