"""Decides whether the rows of one table keep every value in another, column by column. Pure.

| source | fits into |
|---|---|
| integer, any width and sign | integer (a value out of range stops the load when it comes) |
| float | float, double; with (m,d) no fewer digits after the point |
| double | the same |
| decimal | decimal (digits that it has no room for stop the load when they come) |
| date; time, datetime, timestamp | the same, with no fewer fraction digits |
| char; varchar, text, JSON of MariaDB | char, varchar, text; varchar, text, JSON |
| binary(n); varbinary, blob | binary(n), varbinary, blob; varbinary, blob |
| bit(n) | bit(m), m ≥ n |
| enum, set | the same, with all of its members; an ENUM with an empty member only where the source's has it |
| uuid, inet6, inet4 | the same; char and text with room for all of their characters |
| any other | the same |
| generated | generated, or none: its values are not written, so a plain column would not get them |
| nullable | not AUTO_INCREMENT, nor TIMESTAMP NOT NULL: the server makes a value of its own of NULL there |

The target's table must also have an engine with transactions: without them, changes of a transaction that is rolled
back remain, and would be applied twice.
"""

from __future__ import annotations

import math
import re
from dataclasses import replace

from unshard.model.table import Column, Table

_INTEGERS = frozenset({"tinyint", "smallint", "mediumint", "int", "bigint"})
_TEXTS = frozenset({"varchar", "tinytext", "text", "mediumtext", "longtext", "json"})
_BLOBS = frozenset({"varbinary", "tinyblob", "blob", "mediumblob", "longblob"})
_TIMES = frozenset({"time", "datetime", "timestamp"})
_SHOWN = {"uuid": 36, "inet6": 39, "inet4": 15}
"""The number of characters in the longest text of a value of that type."""

_RENAMED = {"geomcollection": "geometrycollection"}
"""By name, the older name of a type: earlier versions recorded structures with either."""

NO_TRANSACTIONS = "MyISAM|Aria|MEMORY|CSV|ARCHIVE|MRG_MyISAM|BLACKHOLE"
"""Engines without transactions."""

WITHOUT = re.compile(rf"\n\) ENGINE=({NO_TRANSACTIONS})\b", re.IGNORECASE)
"""Finds an engine without transactions in the table options of SHOW CREATE TABLE."""

_MADE_UP = "my_row_id"
_POINT = re.compile(r"\(\d+,(\d+)\)")


def misfits(source: Table, target: Table) -> list[str]:
    """Return the reasons why rows of `source` don't fit into `target`, each naming both sides; empty if they fit."""
    there = {column.name.lower(): column for column in target.columns}
    found = []
    for column in source.columns:
        other = there.pop(column.name.lower(), None)
        if column.generated:
            if other is not None and not other.generated:
                found.append(f"column {column.name} is generated in the source and a plain one in the target")
            continue
        if other is None:
            found.append(f"column {column.name} {column.definition} is missing in the target")
        elif other.generated:
            found.append(f"column {column.name} {column.definition} is a generated one in the target")
        elif column.nullable and not other.nullable and (other.auto_increment or other.type == "timestamp"):
            found.append(
                f"column {column.name} may be NULL in the source; the target's is {other.definition} NOT NULL, which"
                " makes a value of its own of it"
            )
        elif not _fits(column, other):
            found.append(f"column {column.name} is {column.definition}, in the target {other.definition}")
    for extra in there.values():
        if not (extra.nullable or extra.has_default or extra.generated):
            found.append(f"column {extra.name} {extra.definition} of the target has no default")
    if engine := WITHOUT.search(target.create_sql):
        found.append(
            f"the target's engine {engine[1]} has no transactions, so what is applied could come twice: ALTER TABLE"
            f" {target.name.quoted} ENGINE=InnoDB"
        )
    return found


def without_made_up_key(target: Table, source: Table) -> Table:
    """Return the target's table without the primary key that MySQL generated for it.

    The server did so under `sql_generate_invisible_primary_key`. If `source` has that key too, it stays: its values
    come with the rows.
    """
    names = {column.name.lower() for column in source.columns}
    columns = tuple(c for c in target.columns if not _made_up(c) or c.name.lower() in names)
    left = {column.name for column in target.columns} - {column.name for column in columns}
    return replace(target, columns=columns, indexes=tuple(i for i in target.indexes if left.isdisjoint(i.columns)))


def _made_up(column: Column) -> bool:
    return column.name.lower() == _MADE_UP and column.invisible and column.auto_increment


def _fits(source: Column, target: Column) -> bool:
    if source.type in _INTEGERS:
        return target.type in _INTEGERS
    if source.type in ("float", "double"):
        wide = target.type in ("float", "double") if source.type == "float" else target.type == "double"
        return wide and _digits(source) <= _digits(target)
    if source.type == "char":
        return target.type == "char" or target.type in _TEXTS
    if source.type in _TEXTS:
        return target.type in _TEXTS
    if source.type == "binary":
        return target.type in _BLOBS or (target.type == "binary" and target.length == source.length)
    if source.type in _BLOBS:
        return target.type in _BLOBS
    if source.type in _TIMES:
        return target.type == source.type and target.fsp >= source.fsp
    if source.type in _SHOWN and (target.type == "char" or target.type in _TEXTS):
        return target.length >= _SHOWN[source.type]
    if source.type == "bit":
        return target.type == "bit" and target.precision >= source.precision
    if source.type in ("enum", "set"):
        # the number 0 of an ENUM is written as an empty text, which must not be a member there only
        told_apart = source.type == "set" or "" in source.members or "" not in target.members
        return target.type == source.type and set(source.members) <= set(target.members) and told_apart
    return _RENAMED.get(target.type, target.type) == _RENAMED.get(source.type, source.type)


def _digits(column: Column) -> float:
    """Return d of a FLOAT(m,d) or DOUBLE(m,d), to which the server rounds without a warning; infinity without (m,d)."""
    found = _POINT.search(column.definition)
    return int(found[1]) if found else math.inf
