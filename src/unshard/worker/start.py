"""The start point of a subtask: its checkpoint in the target, its dump on disk, or `meta` of the instance."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event
from typing import Any

from unshard.dump.metadata import header_of_attempt, read_records
from unshard.errors import LoadError, RelayError, Where
from unshard.load.checkpoint import FINISHED, LoadTables
from unshard.model.position import Location, Position
from unshard.model.table import TableName
from unshard.mysql.connection import Endpoint, session
from unshard.mysql.flavour import Server, current_location, identify
from unshard.relay.start import file_with_gtids
from unshard.source.requirements import check_holds
from unshard.sync.checkpoint.safe_mode import DUMP, TAKEOVER, read_together
from unshard.sync.source_log.reader import Work, WrittenLog
from unshard.sync.source_log.seek import gtids_at, head_gtids, holds, last_held, seek
from unshard.target.checkpoint import Checkpoint, ExitPoint, TableCheckpoint, load_checkpoint
from unshard.target.meta import MetaTables
from unshard.target.prepared_xa import load_prepared
from unshard.target.unfinished_dm import refuse_unfinished_load
from unshard.target.upstream import load_upstream, open_batch_gtid, save_upstream

LOOK_SECONDS = 0.2
OTHER_DUMP = "LOAD-008"


@dataclass(frozen=True, slots=True)
class StartPoint:
    """The start point of one source's subtask, read from both servers and the disk.

    `meta_start` is the location that the user gave. `route` gives the targets of tables whose load overwrites rows;
    None: a second row of a key stops the load. `attempt`: as in `SubtaskConfig`; a dump of an earlier one is none.
    """

    source: str
    upstream: Endpoint = field(repr=False)
    target: Endpoint = field(repr=False)
    meta: MetaTables
    load_tables: LoadTables
    dump_directory: Path
    meta_start: Location | None
    keep_dump: bool
    route: Callable[[TableName], TableName] | None = None
    attempt: str = ""

    def checkpoint(self, *, tables_too: bool = False) -> Checkpoint | None:
        """Return the checkpoint in the target, by default without its tables.

        Creates the meta tables that are missing.
        """
        with session(self.target, "target") as connection:
            self.meta.create(connection)
            return load_checkpoint(connection, self.meta, self.source, tables_too=tables_too)

    def check_upstream(self, connection: Any, server: Server, *, by_gtid: bool) -> bool:
        """Return whether the recorded binlog names are of `server`, which answers on `connection` now.

        Where no server is recorded yet, this one is. Raises RelayError where another one is: 008 without `by_gtid`, 032
        where no GTIDs give the position, 030 where the server lacks transactions that the target has.
        """
        reached = self._reached()
        with session(self.target, "target") as here:
            known = load_upstream(here, self.meta, self.source)
            if known is None or not reached:
                with here.cursor() as cursor:
                    save_upstream(cursor, self.meta, self.source, server.uuid)
                return True
        if known == server.uuid:
            return True
        where, values = Where(source=self.source), {"expected": known, "found": server.uuid}
        if not by_gtid:
            raise RelayError("RELAY-008", where, values=values)
        for gtid in reached:
            if not gtid:
                raise RelayError("RELAY-032", where, values=values)
            check_holds(connection, server, gtid, self.source)
        return False

    def _reached(self) -> frozenset[str]:
        """Return the GTID sets up to which the target, or the dump, has or may have changes; "" for an unknown one.

        Empty where nothing is on record at all.
        """
        checkpoint = self.checkpoint(tables_too=True)
        with session(self.target, "target") as connection:
            applied = open_batch_gtid(connection, self.meta, self.source)
        if checkpoint is None:
            header = header_of_attempt(self.dump_directory, self.attempt)
            if header is None:
                return frozenset()
            if not header.finished:
                return frozenset([""])  # its tables would be of two servers
            checkpoint = self.copied()
        exit_point = checkpoint.exit_point
        places = [checkpoint.location, *(state.location for state in checkpoint.tables.values())]
        places += [exit_point.location] if exit_point is not None else []
        return frozenset([place.gtid for place in places if place is not None] + ([applied] if applied else []))

    def relay_start(self) -> Location | None:
        """Return the oldest location that this subtask will read; None for the upstream's present one.

        That is the checkpoint's, or that of an XA transaction which was prepared before it and isn't committed yet, or
        of a sharding DDL that is not resolved.
        """
        checkpoint = self.checkpoint()
        if checkpoint is not None:
            with session(self.target, "target") as connection:
                prepared = load_prepared(connection, self.meta, self.source)
            first = checkpoint.held or checkpoint.location
            return min([first, *(one.begin for one in prepared.values())], key=_place)
        header = header_of_attempt(self.dump_directory, self.attempt)
        return header.begin if header is not None else self._meta_location()

    def check_dump(self) -> None:
        """Raise LoadError LOAD-008 where the target has rows of a dump that is not in the folder.

        Another dump, of another moment, is of no use then, and is not begun.
        """
        header = header_of_attempt(self.dump_directory, self.attempt)
        if header is not None and header.finished:
            return
        with session(self.target, "target") as connection:
            begun = self.load_tables.begun(connection)
        if begun:
            fault = f"{begun} of it was begun, and {self.dump_directory} has no finished dump"
            raise LoadError(OTHER_DUMP, Where(self.source), values={"fault": fault})

    def gtid_start(self) -> Location:
        """Return the location for a server with other binlog names: a GTID set without a file.

        A prepared transaction without a GTID was found by looking back from its commit, and is found so again.
        """
        start = self.relay_start()
        assert start is not None, "what is on record begins somewhere"
        checkpoint = self.checkpoint()
        if not start.gtid and checkpoint is not None:
            start = checkpoint.held or checkpoint.location
        return Location(Position(""), start.gtid)

    def from_meta(self, relay: WrittenLog, stop: Event) -> Checkpoint | None:
        """Return the checkpoint at which an incremental task begins: by `meta`, or else the source's present end.

        Structures: see `worker.first_structures`. For a GTID set alone the relay log is searched for the position
        after it, for a position alone for its GTID set: a fail-over needs both. None when `stop` came first.
        """
        if self.meta_start is None:
            with session(self.upstream, "source") as connection:
                now = current_location(connection, identify(connection))
            return Checkpoint(now) if now is not None else None
        if self.meta_start.position.file:
            return self._with_gtids(self.meta_start, relay, stop)
        first = self._meta_location()
        assert first is not None, "meta with a GTID set has a file that it begins in"
        with session(self.upstream, "source") as connection:
            now = current_location(connection, identify(connection))
        end = now.position if now is not None else first.position
        while not stop.is_set():
            relay.check()
            if relay.wait_for(first.position, LOOK_SECONDS):
                found = _after_set(first, end, relay, self.source)
                if found is not None:
                    return found
                stop.wait(LOOK_SECONDS)
        return None

    def _with_gtids(self, start: Location, relay: WrittenLog, stop: Event) -> Checkpoint | None:
        while not start.gtid and not stop.is_set():
            relay.check()
            if relay.wait_for(start.position, LOOK_SECONDS):
                return Checkpoint(Location(start.position, gtids_at(relay.log, start.position, self.source)))
        return Checkpoint(start) if start.gtid else None

    def _meta_location(self) -> Location | None:
        """Return `meta` with the binlog file that has the position after its GTID set, where it names none itself."""
        start = self.meta_start
        if start is None or start.position.file:
            return start
        with session(self.upstream, "source") as connection:
            file = file_with_gtids(connection, identify(connection), start.gtid, self.source)
        return Location(Position(file), start.gtid)

    def check_load(self) -> None:
        """Raise SyncError SYNC-046 where DM has begun to load and did not finish. Runs before anything is written."""
        with session(self.target, "target") as connection:
            refuse_unfinished_load(connection, self.meta, self.source)

    def is_copied(self) -> bool:
        """Return whether an earlier run has loaded all of this source."""
        with session(self.target, "target") as connection:
            self.load_tables.create(connection)
            return self.load_tables.read_status(connection) == FINISHED

    def after_load(self) -> Checkpoint:
        """Return the checkpoint after a full copy that is loaded. Raises as `copied`."""
        found = self.copied()
        return found if self.route is None else read_together(found, self.route)

    def copied(self) -> Checkpoint:
        """Return the checkpoint of a full copy: each table with the structure and location of its own snapshot.

        Raises LoadError LOAD-020 when the dump that was loaded does not exist any more: only it knows the place to go
        on from.
        """
        header = header_of_attempt(self.dump_directory, self.attempt)
        if header is None or not header.finished:
            raise LoadError("LOAD-020", Where(self.source, file=str(self.dump_directory)))
        records = read_records(self.dump_directory, header)
        tables = {name: TableCheckpoint(record.table, record.location) for name, record in records.items()}
        exit_point = ExitPoint(header.end, DUMP) if header.end is not None else None
        return Checkpoint(header.begin, tables, exit_point)

    def forget_dump(self) -> None:
        """Delete the dump once the checkpoint is in the target, unless the user keeps it. Idempotent."""
        if not self.keep_dump:
            shutil.rmtree(self.dump_directory, ignore_errors=True)


def _after_set(first: Location, end: Position, relay: WrittenLog, source: str) -> Checkpoint | None:
    """Return the start after the GTID set of `first`, whose file has its end; None while more of the log is needed.

    The set is usually that of a replica, which may have applied transactions in another order than the source has them
    in. The start is before the first one that the set lacks. Others of the set may follow, up to `end`, the source's
    present end; until they have passed, the target may have changes already, and safe mode is on.
    """
    file, gtid, written = first.position.file, first.gtid, relay.written
    passed = str(head_gtids(relay.log, file, written) or "")

    def note(work: Work) -> None:
        nonlocal passed
        passed = work.end.gtid

    found = seek(relay.log, file, gtid, written, source, before=passed, note=note)
    if found is None or (passed and holds(passed, gtid)):
        return Checkpoint(found) if found is not None else None
    if written < end:
        return None
    last = last_held(relay.log, Location(found.position, passed), end, gtid, source)
    return Checkpoint(found, exit_point=ExitPoint(last, TAKEOVER) if last is not None else None)


def _place(location: Location) -> Position:
    return location.position
