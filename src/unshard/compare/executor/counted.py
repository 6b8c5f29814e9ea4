"""Spark task: counts the target's rows in ranges that an earlier process has compared."""

from __future__ import annotations

import pickle
from dataclasses import dataclass
from functools import partial

from unshard.compare.executor.rows import SideConnections, asked_again, reading_target
from unshard.compare.ranges import KeyRange, target_condition
from unshard.compare.tables import ComparedTable
from unshard.errors import enclose
from unshard.source.snapshot import ask


@dataclass(frozen=True, slots=True)
class CountOrder:
    """The ranges of a table whose rows a Spark task is to count."""

    table: ComparedTable
    parts: tuple[KeyRange, ...]


def count_ranges(payload: bytes) -> bytes:
    """Spark task: count the rows of each range of a pickled CountOrder; a list of numbers. Safe to run again."""
    order: CountOrder = pickle.loads(payload)
    return enclose(lambda: asked_again(partial(_counted, order)))


def _counted(order: CountOrder) -> list[int]:
    with SideConnections() as connections:
        connection = connections.get(order.table.endpoint, "target")
        with reading_target(order.table):
            return [int(ask(connection, _statement(order.table, part))[0][0]) for part in order.parts]


def _statement(table: ComparedTable, part: KeyRange) -> str:
    condition = target_condition(table, part)
    return f"SELECT COUNT(*) FROM {table.name.quoted}{f' WHERE {condition}' if condition else ''}"
