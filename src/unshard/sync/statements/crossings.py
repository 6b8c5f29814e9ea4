"""Finds statements of the log that lie between the snapshots of the tables that they name.

In a copy without a lock not all tables have one snapshot. The copy of a table has a statement if the table's
snapshot comes after it; if the snapshot comes before it, the statement is run. For a statement on tables of both kinds
neither is right where it moves rows or a structure from one to the other: `RENAME TABLE a TO x, b TO a, x TO b` moves
rows to b that no copy has any more. Such tables are copied again, from one snapshot for all of them, before anything is
loaded; then all their snapshots lie on one side of the statement. A name that no table has counts too: the table is
absent in that snapshot.

DROP of several tables, or of a schema, moves nothing: it is run for the tables whose snapshot comes before it.

A statement on a table that the copy does not have at all shows that the table was not listed when the dump began:
MariaDB does not list a table in the moment in which a statement changes its files, and logs the statement after that.
Such a table is copied too.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from threading import Event
from typing import NamedTuple

from unshard.ddl.online import OnlineDdl
from unshard.ddl.rewrite import renames
from unshard.ddl.statement import Ddl, StatementKind
from unshard.model.position import Location, Position
from unshard.model.table import TableName
from unshard.sync.source_log.failover import ANY, IDLE_SECONDS
from unshard.sync.source_log.reader import LoggedDdl, Relay, next_work

_BUDGET = 64 << 20


class Crossing(NamedTuple):
    """The followed tables that a statement names, and those that must be copied from one snapshot because of it."""

    names: frozenset[TableName] = frozenset()
    together: frozenset[TableName] = frozenset()


def concerned(parsed: Ddl, online: OnlineDdl, allows: Callable[[TableName], bool]) -> frozenset[TableName]:
    """Return the followed tables that a statement changes, without names that a RENAME uses only in between."""
    if parsed.kind in (StatementKind.TEMPORARY_TABLE, StatementKind.SEQUENCE):
        return frozenset()
    names = set(parsed.tables)
    if parsed.kind is StatementKind.RENAME_TABLE:
        first, there = set[TableName](), set[TableName]()
        for old, new in renames(parsed):
            if old not in there:
                first.add(old)
            there = there - {old} | {new}
        names = first | there
    return frozenset(name for name in names if online.tables.is_real(name) and allows(name))


def unlisted(parsed: Ddl, names: frozenset[TableName], known: Collection[TableName]) -> frozenset[TableName]:
    """Return which of the followed tables `names` must have existed before a statement, and are not `known`."""
    if parsed.kind in (StatementKind.DROP_TABLE, StatementKind.TEMPORARY_TABLE):
        return frozenset()
    return frozenset(name for name in parsed.needed if name in names and name not in known)


def across(names: frozenset[TableName], parsed: Ddl, after: Mapping[TableName, Position], at: Position) -> bool:
    """Return whether a statement that begins `at` lies between the snapshots of `names`, or of its LIKE table."""

    def is_copied(name: TableName) -> bool:
        return after.get(name, at) > at

    if parsed.kind is StatementKind.DROP_TABLE or not names:
        return False
    copied = {name for name in names if is_copied(name)}
    like = parsed.like
    return (bool(copied) and copied != names) or (not copied and like is not None and is_copied(like))


def crossed(
    begin: Location,
    places: Mapping[TableName, Location],
    crossing: Callable[[LoggedDdl, Mapping[TableName, Position], Collection[TableName]], Crossing],
    relay: Relay,
    upstream: str | None,
    source: str,
    stop: Event,
) -> frozenset[TableName] | None:
    """Return the tables of a copy that some statement crosses, and those that the copy lacks.

    `crossing` returns what one statement means for the copy, by the tables that are known before it.

    Waits until the relay log reaches the last snapshot; None when `stop` came first.
    """
    after = {name: place.position for name, place in places.items() if place.position > begin.position}
    if not after:
        return frozenset()
    if not awaited(relay, ANY, stop):
        return None
    found, known, at, end = set[TableName](), set(places), begin, max(after.values())
    if relay.upstream != upstream:
        return frozenset()  # the log is another server's: the load stops with an error
    if not awaited(relay, end, stop):
        return None
    while at.position < end and (work := next_work(relay.log, at, end, _BUDGET, source)) is not None:
        if isinstance(work, LoggedDdl):
            one = crossing(work, after, known)
            found |= one.together
            known |= one.names
        at = work.end
    return frozenset(found)


def altered(
    begin: Position,
    end: Position,
    named: Callable[[LoggedDdl], frozenset[TableName] | None],
    relay: Relay,
    upstream: str | None,
    source: str,
    stop: Event,
) -> Callable[[TableName], bool] | None:
    """Return whether a table may have another structure at `begin` of the log than at `end`, for any table.

    `named` returns the tables that a statement may give another structure; None where it can't be read, and may do so
    to all. Waits until the relay log reaches `end`; None when `stop` came first.
    """
    if not awaited(relay, begin, stop):
        return None
    if relay.upstream != upstream:
        return lambda name: True  # the log is another server's
    if not awaited(relay, end, stop):
        return None
    found, at = set[TableName](), Location(begin)
    while at.position < end and (work := next_work(relay.log, at, end, _BUDGET, source)) is not None:
        if isinstance(work, LoggedDdl):
            names = named(work)
            if names is None:
                return lambda name: True
            found |= names
        at = work.end
    return found.__contains__


def awaited(relay: Relay, position: Position, stop: Event) -> bool:
    """Wait until the relay log is known and reaches `position`. Return False if `stop` is set first.

    Raises the error that stopped the relay.
    """
    while not relay.wait_for(position, IDLE_SECONDS):
        relay.check()
        if stop.is_set():
            return False
    return True
