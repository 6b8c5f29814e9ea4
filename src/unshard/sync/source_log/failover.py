"""A source that has failed over: each location in the old server's binlog is translated to the new one's, by GTID.

| record | its location in the new log |
|---|---|
| the checkpoint | after exactly the transactions of its GTID set |
| a table's own later snapshot | the same, by its own set; none where the checkpoint includes it already |
| the exit point of safe mode | the same |
| a prepared XA transaction | where the new log prepares the same xid |
| statements and window edges of an unresolved sharding group | after exactly the transactions of their sets |

An open batch is finished first, from the old server's files (`Relay.earlier`), so that none is open here. If the
process dies before `CheckpointStore.cross` commits, the old names stay, and all locations are searched for again. After
the commit the new names are on record.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from threading import Event

from unshard.errors import RelayError, SyncError, Where
from unshard.model.gtid import GtidSet, MariadbGtidSet, MysqlGtidSet
from unshard.model.position import Location, Position
from unshard.shard.group import ShardingGroup
from unshard.sync.batch.stored_plan import RowsRecord
from unshard.sync.source_log.reader import Prepare, RelayFiles, Work, WrittenLog
from unshard.sync.source_log.seek import head_gtids, holds, is_anonymous, seek
from unshard.target.checkpoint import Checkpoint, TableCheckpoint
from unshard.target.prepared_xa import PreparedXa
from unshard.target.receipts import OpenBatch

IDLE_SECONDS = 0.25
ANY = Position("any.000000", 0)
"""A position before all that a log has."""


@dataclass(frozen=True, slots=True)
class RecordedNames:
    """All records of a source that contain binlog names.

    `checkpoint` includes the tables that have a location of their own. `prepared`: the prepared XA transactions by xid.
    `groups`: the sharding groups that have tables.
    """

    checkpoint: Checkpoint
    prepared: dict[str, PreparedXa]
    groups: tuple[ShardingGroup, ...] = ()


def needed_by(batch: OpenBatch, prepared: dict[str, PreparedXa]) -> tuple[Position, ...]:
    """Return the positions up to which the log has to be on disk to finish an open batch of rows."""
    kept = prepared.get(batch.plan.get("xid") or "")
    if kept is not None:
        return Position(kept.begin.position.file, kept.end), batch.end
    last = max(one.end for one in RowsRecord.of(batch).ranges)
    return (Position(batch.begin.file, last),)


def translate(names: RecordedNames, before: str, relay: WrittenLog, source: str, stop: Event) -> RecordedNames | None:
    """Translate the recorded names from server `before` to another server's log, waiting for it. None: stopped first.

    Reads files only. Raises SyncError SYNC-061 where no location is after exactly the transactions of a set, SYNC-062
    where a prepared transaction isn't prepared in the new log; RelayError 032 for a location that has no GTIDs, and
    where transactions without a GTID follow a set, of which nobody knows whether they are applied.
    """
    old, prepares = names.checkpoint, dict[str, PreparedXa]()
    places: dict[str, Location] = {}
    for location in (*_locations(old), *(place for group in names.groups for place in group.places)):
        if not location.gtid:
            values = {"expected": before, "found": relay.upstream}
            raise RelayError("RELAY-032", Where(source=source, position=str(location.position)), values=values)
        if location.gtid not in places:
            found = _await_place(location, before, relay, source, stop, {} if places else prepares)
            if found is None:
                return None
            places[location.gtid] = found
    if lost := sorted(names.prepared.keys() - prepares.keys()):
        raise SyncError("SYNC-062", Where(source=source), values={"xid": ", ".join(lost)})
    tables = {
        name: replace(state, location=places[state.location.gtid] if _is_later(state, old) else None)
        for name, state in old.tables.items()
        if state.location is not None
    }
    end = old.exit_point
    exit_point = replace(end, location=places[end.location.gtid]) if end is not None else None
    checkpoint = replace(old, location=places[old.location.gtid], tables=tables, exit_point=exit_point)
    groups = tuple(group.moved(lambda place: places[place.gtid]) for group in names.groups)
    return RecordedNames(checkpoint, {xid: prepares[xid] for xid in names.prepared}, groups)


def _locations(checkpoint: Checkpoint) -> Iterator[Location]:
    """Yield the locations to translate, the checkpoint's first."""
    yield checkpoint.location
    if checkpoint.exit_point is not None:
        yield checkpoint.exit_point.location
    for state in checkpoint.tables.values():
        if state.location is not None and _is_later(state, checkpoint):
            yield state.location


def _is_later(state: TableCheckpoint, checkpoint: Checkpoint) -> bool:
    return state.location is not None and state.location.position > checkpoint.location.position


def _await_place(
    old: Location, server: str, relay: WrittenLog, source: str, stop: Event, prepares: dict[str, PreparedXa]
) -> Location | None:
    unknown = {"expected": server, "found": relay.upstream}
    while not stop.is_set():
        relay.check()
        written = relay.written
        found = _place(old, relay.log, written, source, prepares, unknown)
        if found is not None:
            return found
        relay.wait_for(Position(written.file, written.offset + 1), IDLE_SECONDS)
    return None


def _place(
    old: Location,
    log: RelayFiles,
    written: Position,
    source: str,
    prepares: dict[str, PreparedXa],
    unknown: dict[str, str],
) -> Location | None:
    """Return the location after exactly the transactions of `old.gtid`; None while more of the log is needed.

    `prepares` gets the XA transactions that are prepared before it. `unknown` are the values of RELAY-032.
    """
    first = log.files()[0]
    before = head_gtids(log, first, written)
    if before is None:
        return None
    passed = str(before)

    def note(work: Work) -> None:
        nonlocal passed
        if isinstance(work, Prepare):
            place = Location(work.begin, passed)
            prepares[work.prepared.xid] = PreparedXa(work.prepared.xid, place, work.prepared.end)
        if is_anonymous(work) and passed and holds(passed, old.gtid):
            raise RelayError("RELAY-032", Where(source=source, position=str(work.begin)), values=unknown)
        if _is_of_its_own(passed, work.end.gtid):
            values = {"known": old.gtid, "passed": work.end.gtid}
            raise SyncError("SYNC-061", Where(source=source, position=str(work.end.position)), values=values)
        passed = work.end.gtid

    found = seek(log, first, old.gtid, written, source, before=passed, note=note)
    if found is None:
        return None
    if _parsed(passed) != _parsed(old.gtid):
        values = {"known": old.gtid, "passed": passed or "nothing"}
        raise SyncError("SYNC-061", Where(source=source, position=str(found.position)), values=values)
    return found


def _is_of_its_own(before: str, after: str) -> bool:
    """Return whether the next transaction of a MariaDB domain has a number that is not larger than the one before.

    One of the two then was written on this server while it was a replica: with `gtid_strict_mode` off it takes the
    number of the transaction that comes next from the primary. A set has only the last numbers, so it can't tell.
    """
    if ":" in after:
        return False
    known = {domain: (server, number) for domain, server, number in MariadbGtidSet.parse(before).last}
    last = MariadbGtidSet.parse(after).last
    return any(
        domain in known and known[domain] != (server, number) and number <= known[domain][1]
        for domain, server, number in last
    )


def _parsed(gtid: str) -> GtidSet:
    return (MysqlGtidSet if ":" in gtid else MariadbGtidSet).parse(gtid)
