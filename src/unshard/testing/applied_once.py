"""Checks that each change of the sources was applied exactly once, by the target's history: a binlog or row versions.

For tables whose key is their first column, and which have the target's names in the logs (see `binlog_count.moved`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from contextlib import closing

from unshard.model.table import TableName
from unshard.mysql.connection import rows
from unshard.testing.binlog_count import Image, RowEvent, as_applied, exactly_once, row_events
from unshard.testing.throwaway_server import ThrowawayServer
from unshard.testing.tidb_history import changed, receipts, versions, walks
from unshard.testing.tidb_server import TidbServer

_SHOWN = 20


def not_once(
    log: Iterable[RowEvent],
    target: ThrowawayServer,
    tables: Sequence[TableName],
    *,
    copied: bool = False,
    passed_over: Collection[str] = (),
) -> list[str]:
    """Return the first twenty pieces of evidence that a change was not applied exactly once; empty if there is none.

    `log` has the changes of the sources; those of one row must be in order. For runs without compaction and without
    safe mode. With `copied`, a row may have been copied at any moment, including the changes before that; otherwise
    each change must be found. Rows with a key in `passed_over` are ignored. Nothing may write during the check.
    """

    def looked_at(event: RowEvent) -> bool:
        return _key(event) not in passed_over

    log = list(filter(looked_at, as_applied(log)))
    if isinstance(target, TidbServer):
        return _by_versions(log, target, tables, copied=copied, passed_over=passed_over)[:_SHOWN]
    downstream = Counter(filter(looked_at, as_applied(row_events(target, tables).elements())))
    return _more_often(Counter(log), downstream) if copied else exactly_once(Counter(log), downstream)


def ddl_statements(target: ThrowawayServer) -> list[str]:
    """Return the DDL that took effect in the target, in order, without our comments in front of it."""
    if isinstance(target, TidbServer):
        jobs = target.query(
            "SELECT QUERY FROM information_schema.DDL_JOBS WHERE STATE = 'synced' AND JOB_TYPE NOT LIKE '%%subjob%%'"
            " ORDER BY JOB_ID"
        )
        return [str(text).partition("*/")[2].strip() if str(text).startswith("/*") else str(text) for (text,) in jobs]
    with closing(target.connection()) as connection:
        # Statements may be of any character set. The client reads each byte of latin5 as a character; not so of latin1.
        connection.set_character_set("latin5")
        events = [
            event
            for log, *_ in rows(connection, "SHOW BINARY LOGS")
            for event in rows(connection, f"SHOW BINLOG EVENTS IN '{log}'")
        ]
    return [str(event[5]) for event in events if event[2] == "Query"]


def _more_often(upstream: Counter[RowEvent], downstream: Counter[RowEvent]) -> list[str]:
    """Return changes that were applied too often.

    They are UPDATEs and DELETEs that were applied more often than upstream, and INSERTs that the copy doesn't explain.
    """
    against = []
    for event, times in downstream.items():
        most = max(upstream[event], 1) if event.kind == "INSERT" else upstream[event]
        if times > most:
            against.append(f"{times - most} times more: {event}")
    return against[:_SHOWN]


def _by_versions(
    log: Sequence[RowEvent],
    target: TidbServer,
    tables: Sequence[TableName],
    *,
    copied: bool,
    passed_over: Collection[str],
) -> list[str]:
    """Check that each row went through the states of the log, in transactions that moved one receipt each, none twice.

    A table without a key is skipped: a change that is applied to it twice shows in its rows.
    """
    states: dict[tuple[TableName, str], list[Image | None]] = {}
    for event in log:
        states.setdefault((event.table, _key(event)), []).append(event.after or None)
    moved, against = receipts(target)
    for table in filter(lambda table: _has_key(target, table), tables):
        target.run(f"ADMIN CHECK TABLE {table.quoted}")
        for key, history in versions(target, table, (key for name, key in states if name == table)).items():
            if key in passed_over:
                continue
            if why := walks(history, states.get((table, key), ()), copied=copied):
                against.append(f"{table} {key}: {why}")
            against += [
                f"{table} {key}: written with {len(moved.get(one.transaction, ()))} receipts: {one}"
                for one in changed(history)
                if len(moved.get(one.transaction, ())) != 1
            ]
    return against


def _key(event: RowEvent) -> str:
    """Return the key's value, for which a log may show two readings."""
    return (event.after or event.before)[0].partition(" ")[0]


def _has_key(target: TidbServer, table: TableName) -> bool:
    asked = "SELECT 1 FROM information_schema.TABLE_CONSTRAINTS WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s"
    return bool(target.query(f"{asked} AND CONSTRAINT_TYPE = 'PRIMARY KEY'", (table.schema, table.table)))
