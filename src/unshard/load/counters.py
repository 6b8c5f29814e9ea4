"""The AUTO_INCREMENT counters of the target's tables."""

from __future__ import annotations

from typing import Any

from unshard.load.contents import Contents
from unshard.load.creation import Route, named_lock
from unshard.model.table import TableName
from unshard.mysql.connection import rows
from unshard.source.snapshot import next_counter


def raise_counters(connection: Any, contents: Contents, route: Route) -> None:
    """Raise each target's AUTO_INCREMENT counter to the largest of its sources, never lower than it is. Idempotent."""
    wanted: dict[TableName, int] = {}
    for table in contents.tables:
        if table.counter:
            target = route(table.name)
            wanted[target] = max(wanted.get(target, 0), table.counter)
    for target, counter in wanted.items():
        raise_counter(connection, target, counter)


def raise_counter(connection: Any, target: TableName, counter: int) -> None:
    """Raise a table's AUTO_INCREMENT counter, never lower than it is. Idempotent.

    A named lock keeps the sources of one target from setting it back between reading and writing.
    """
    if (next_counter(connection, target) or 0) >= counter:
        return
    with named_lock(connection, f"unshard:{target}"[:64]):
        if (next_counter(connection, target) or 0) < counter:
            rows(connection, f"ALTER TABLE {target.quoted} AUTO_INCREMENT = {counter}")
