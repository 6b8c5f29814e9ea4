"""Checks that tables and values fit the limits of the target: columns and keys of a table, bytes of a row, TIME.

The limits of TiDB are those of https://docs.pingcap.com/tidb/stable/tidb-limitations; a cluster may have set others.
Counting values requires reading a whole table, so tables of many rows are examined only if the user asks for it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import MySQLdb

from unshard.checks.facts import End, SourceFacts, TaskFacts
from unshard.checks.losses import kind_of_target
from unshard.checks.result import Finding
from unshard.model.table import Column, Table, TableName, quote_name
from unshard.mysql.altered_values import TargetKind, times
from unshard.mysql.connection import rows, session
from unshard.transform.latest_time import LATEST_TIME

MANY_ROWS = 100_000
"""By the server's estimate. A table with more is examined only if the user asks for it."""

_LONG = frozenset({"mediumtext", "longtext", "mediumblob", "longblob", "json"})
"""Types with room for a value that is longer than a row of TiDB."""

_LEAVE_OUT = "leave the table out (`ignore-tables` under `block-allow-list:`), or change that in the source"
_SETTINGS = ("table-column-count-limit", "index-limit", "performance.txn-entry-size-limit")
_DEFAULTS = {"table-column-count-limit": 1017, "index-limit": 64, "performance.txn-entry-size-limit": 6 << 20}


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of one TiDB cluster: columns and keys of a table, and bytes of a row."""

    columns: int
    keys: int
    row_bytes: int


_LOWEST = Limits(*_DEFAULTS.values())
"""No cluster has lower limits than the defaults."""


def limits_of(connection: Any) -> Limits:
    """Return the limits of the cluster; the defaults where the account may not read its configuration."""
    found = dict(_DEFAULTS)
    names = ", ".join(map(repr, _SETTINGS))
    with suppress(MySQLdb.Error):  # SHOW CONFIG takes the privilege CONFIG, which no task needs
        asked = f"SHOW CONFIG WHERE type = 'tidb' AND name IN ({names})"
        found |= {str(name): int(value) for *_, name, value in rows(connection, asked) if str(value).isdigit()}
    with suppress(MySQLdb.Error):  # since TiDB 7.6 a variable goes before the configuration, where it is not 0
        ((size,),) = rows(connection, "SELECT @@global.tidb_txn_entry_size_limit")
        found["performance.txn-entry-size-limit"] = int(size) or found["performance.txn-entry-size-limit"]
    return Limits(*(found[name] for name in _SETTINGS))


def parts_of_tables(source: SourceFacts, task: TaskFacts) -> Iterator[Finding]:
    """Report tables to create that have more columns or keys than the TiDB cluster takes."""
    if task.target is None:
        return
    limits: Limits | None = None
    for name, table in source.tables.items():
        if source.targets[name] in task.there:
            continue
        if (
            len(table.columns) <= _DEFAULTS["table-column-count-limit"]
            and len(table.indexes) <= _DEFAULTS["index-limit"]
        ):
            continue  # no cluster has lower limits: the defaults are the lowest
        limits = limits or _asked(task.target)
        for what, count, most, setting, highest in (
            ("columns", len(table.columns), limits.columns, "table-column-count-limit", 4096),
            ("keys", len(table.indexes), limits.keys, "index-limit", 512),
        ):
            if count > most:
                yield Finding(
                    "fail",
                    f"table {name} has {count:,} {what}, and this TiDB takes {most:,}",
                    f"set `{setting}` of TiDB to {count} or more (it takes up to {highest}), or {_LEAVE_OUT}",
                    str(name),
                    str(source.targets[name]),
                )


def values(source: SourceFacts, task: TaskFacts) -> Iterator[Finding]:
    """Count the values of smaller tables that the target has no room for."""
    yield from _examined(source, task, large=False)


def values_of_large_tables(source: SourceFacts, task: TaskFacts) -> Iterator[Finding]:
    """Count them in the tables of more than `MANY_ROWS` rows."""
    yield from _examined(source, task, large=True)


def _examined(source: SourceFacts, task: TaskFacts, *, large: bool) -> Iterator[Finding]:
    end = task.target
    if end is None:
        return
    sizes = {listed.name: listed.rows for listed in source.listed}
    chosen = {name: table for name, table in source.tables.items() if (sizes.get(name, 0) > MANY_ROWS) == large}
    kind = kind_of_target(source, end)
    as_text = source.copies and source.config.dumper.format == "sql"
    wanted: dict[TableName, tuple[_Examined, ...]] = {}
    for name, table in chosen.items():
        may_be_clamped = () if as_text else times(table, task.there.get(source.targets[name]), kind)
        wanted[name] = _conditions(table, end, kind, may_be_clamped)
    if not any(wanted.values()):
        return
    row_bytes = _asked(end).row_bytes if end.is_tidb else 0
    with session(source.end.endpoint, "source") as connection:
        for name, conditions in wanted.items():
            for rule in conditions:
                yield from _counted(connection, source, name, rule, row_bytes)


@dataclass(frozen=True, slots=True)
class _Examined:
    """The rows that a table is examined for: what is told of them, their condition, whether `clamp` lets them pass."""

    told: str
    condition: str
    may_be_clamped: bool = False


def _conditions(table: Table, end: End, kind: TargetKind, may_be_clamped: Collection[Column]) -> tuple[_Examined, ...]:
    """Return what is counted in a table."""
    short = kind.json and not kind.from_mysql  # the target's TIME ends before the source's
    found: list[_Examined] = []
    stored = [column for column in table.columns if not column.generated]
    for column in stored if short else ():
        if column.type == "time" and column.fsp:
            quoted = quote_name(column.name)
            told = f"a TIME beyond {LATEST_TIME} in column {column.name}, which the target has not"
            condition = f"{quoted} > '{LATEST_TIME}' OR {quoted} < '-{LATEST_TIME}'"
            found.append(_Examined(told, condition, column in may_be_clamped))
    if end.is_tidb and any(column.type in _LONG for column in stored):
        size = " + ".join(f"COALESCE(LENGTH({quote_name(column.name)}), 0)" for column in stored if _is_text(column))
        longest = ", ".join(column.name for column in stored if column.type in _LONG)
        found.append(_Examined(f"more bytes than a row of this TiDB takes ({longest})", f"{size} > {{row_bytes}}"))
    return tuple(found)


def _is_text(column: Column) -> bool:
    return column.charset is not None or column.type in _LONG or column.type.endswith(("blob", "binary"))


def _counted(
    connection: Any, source: SourceFacts, name: TableName, rule: _Examined, row_bytes: int
) -> Iterator[Finding]:
    asked = f"SELECT COUNT(*) FROM {name.quoted} WHERE {rule.condition.format(row_bytes=row_bytes)}"
    ((count,),) = rows(connection, asked)
    if not count:
        return
    told = f"table {name}: {count:,} row{'s have' if count > 1 else ' has'} {rule.told}"
    shows = f"{asked.replace('COUNT(*)', '*')}; at the source shows them"
    names = str(name), str(source.targets[name])
    if rule.may_be_clamped and source.config.time_values == "clamp":
        effect = f"{LATEST_TIME} or -{LATEST_TIME} is stored in its place, and the key of the row is recorded"
        yield Finding("warn", f"{told}: {effect}", f"{shows}; nothing, where that will do", *names)
        return
    clamp = ", put `time-values: clamp` into the task's file" if rule.may_be_clamped else ""
    yield Finding(
        "fail",
        f"{told}: the task would stop there",
        f"{shows}: change these values{clamp}, or leave the table out (`ignore-tables` under `block-allow-list:`)",
        *names,
    )


def _asked(end: End) -> Limits:
    with session(end.endpoint, "target") as connection:
        return limits_of(connection)
