"""The AUTO_INCREMENT counters of the target at a cut-over: no id that a source has given out is given out again.

A row that was inserted and deleted may never have come to the target, so its counter may be lower than the source's.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any

import MySQLdb

from unshard.compare.executor.rows import asked_again
from unshard.compare.plan import ComparisonPlan
from unshard.compare.ranges import bits_of, is_text_mapped
from unshard.compare.tables import ComparedShard, ComparedTable
from unshard.load.counters import raise_counter
from unshard.model.table import TableName, quote_name
from unshard.mysql.connection import Endpoint, rows, server_error, session
from unshard.mysql.failures import is_transient
from unshard.source.snapshot import next_counter
from unshard.transform.column_mapping import ID_LIMIT


def raise_target_counters(plan: ComparisonPlan) -> tuple[str, ...]:
    """Raise each target table's counter to the largest of its sources, never lower than it is. Idempotent.

    An id that `partition id` maps is raised to the mapped one. Return what was raised, and what the target refuses, in
    words. Raises SourceError, TargetError.
    """
    counted = [(table, name) for table in plan.tables if (name := _counted(table)) is not None]
    wanted = asked_again(lambda: _sources(counted))
    names = {str(table.name): name for table, name in counted}
    told = (asked_again(partial(_raise, table, names[str(table.name)], counter)) for table, counter in wanted)
    return tuple(line for line in told if line)


def _counted(table: ComparedTable) -> str | None:
    """Return the AUTO_INCREMENT column of the target; None where the sources have no such column."""
    return next((column.name for column in table.read.columns if column.auto_increment), None)


def _sources(counted: Iterable[tuple[ComparedTable, str]]) -> list[tuple[ComparedTable, int]]:
    """Return the next value of each table, as the target should have it. 0: no source has a counter."""
    shards: dict[Endpoint, list[tuple[ComparedTable, str, ComparedShard]]] = {}
    found: dict[str, tuple[ComparedTable, int]] = {}
    for table, name in counted:
        found[str(table.name)] = table, 0
        for shard in table.shards:
            shards.setdefault(shard.endpoint, []).append((table, name, shard))
    for endpoint, its in shards.items():
        with session(endpoint, "source") as connection:
            for table, name, shard in its:
                try:
                    counter = _next(connection, shard, name)
                except MySQLdb.Error as error:
                    place = {"source": shard.source, "table": str(shard.table.name)}
                    raise server_error(error, endpoint, "source", "reading a counter").at(**place) from error
                found[str(table.name)] = table, max(counter, found[str(table.name)][1])
    return list(found.values())


def _next(connection: Any, shard: ComparedShard, name: str) -> int:
    """Return the next value that the source gives out, as the target would have it; 0 for none."""
    mapped = shard.mapping.source_column if shard.mapping is not None and bits_of(shard, name) is not None else name
    own = next((column for column in shard.table.columns if column.auto_increment), None)
    if own is None or own.name.lower() != mapped.lower() or is_text_mapped(shard, name):
        return 0
    counter = next_counter(connection, shard.table.name) or 0
    bits = bits_of(shard, name)
    return counter if bits is None else bits | counter if counter <= ID_LIMIT else 0


def _raise(table: ComparedTable, name: str, counter: int) -> str:
    """Raise the counter of a table. Return it in words; "" where it is as large."""
    endpoint = table.endpoint
    try:
        with session(endpoint, "target") as connection:
            before = _given_out_next(connection, table, name)
            if before >= counter:
                return ""
            try:
                raise_it = _raise_on_tidb if table.tidb else raise_counter
                raise_it(connection, table.name, counter)
            except MySQLdb.Error as error:
                if is_transient(error):
                    raise
                return (
                    f"{table.name}: the target refuses to raise AUTO_INCREMENT from {before} to {counter}, so it would"
                    f" give out ids that a source has given out ({error.args[-1]}). Before you let the writers write"
                    f" there, run with an account that may: ALTER TABLE {table.name.quoted} AUTO_INCREMENT = {counter}"
                )
    except MySQLdb.Error as error:
        raise server_error(error, endpoint, "target", "raising a counter").at(table=str(table.name)) from error
    return f"{table.name}: AUTO_INCREMENT raised from {before} to {counter}, the next value of the sources"


def _given_out_next(connection: Any, table: ComparedTable, name: str) -> int:
    """Return the value that the target may give out next.

    TiDB's SHOW CREATE TABLE has the end of the values that its servers have in their caches. The one that wrote the
    rows gives out what follows the largest of them.
    """
    if not table.tidb:
        return next_counter(connection, table.name) or 1
    ((last,),) = rows(connection, f"SELECT MAX({quote_name(name)}) FROM {table.name.quoted}")
    return int(last or 0) + 1


def _raise_on_tidb(connection: Any, name: TableName, counter: int) -> None:
    """Let all servers of a TiDB give out values from `counter` on, or from behind their caches, which they forget."""
    most = max(counter, next_counter(connection, name) or 0)
    rows(connection, f"ALTER TABLE {name.quoted} AUTO_INCREMENT = {most}")
