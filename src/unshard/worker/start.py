"""Where a subtask begins: its checkpoint in the target, its dump on disk, or `meta` of the instance."""

from __future__ import annotations

import shutil
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event

from unshard.dump.metadata import read_header, read_records
from unshard.errors import LoadError, Where
from unshard.load.checkpoint import FINISHED, LoadTables
from unshard.model.position import Location, Position
from unshard.mysql.connection import Endpoint, session
from unshard.mysql.flavour import current_location, identify
from unshard.relay.beginning import file_with_gtids
from unshard.relay.unit import RelayUnit
from unshard.sync.safe_mode import DUMP
from unshard.sync.seek import seek
from unshard.target.checkpoint import Checkpoint, ExitPoint, TableCheckpoint, load_checkpoint
from unshard.target.meta import MetaTables
from unshard.target.prepared_xa import load_prepared
from unshard.target.takeover import refuse_unfinished_load

LOOK_SECONDS = 0.2


@dataclass(frozen=True, slots=True)
class Beginning:
    """Reads, on both servers and on disk, where one source's subtask stands. `meta_start` is what the user gave."""

    source: str
    upstream: Endpoint = field(repr=False)
    target: Endpoint = field(repr=False)
    meta: MetaTables
    load_tables: LoadTables
    dump_directory: Path
    meta_start: Location | None
    keep_dump: bool

    def checkpoint(self) -> Checkpoint | None:
        """The checkpoint in the target; creates the meta tables where they are missing."""
        with session(self.target, "target") as connection:
            self.meta.create(connection)
            return load_checkpoint(connection, self.meta, self.source)

    def relay_start(self) -> Location | None:
        """The oldest location that this subtask will read; None for the upstream's present one.

        That is the checkpoint's, or that of an XA transaction which was prepared before it and isn't committed yet.
        """
        checkpoint = self.checkpoint()
        if checkpoint is not None:
            with session(self.target, "target") as connection:
                prepared = load_prepared(connection, self.meta, self.source)
            return min([checkpoint.location, *(one.begin for one in prepared.values())], key=_place)
        header = read_header(self.dump_directory)
        return header.begin if header is not None else self._meta_location()

    def from_meta(self, relay: RelayUnit, stop: Event) -> Checkpoint | None:
        """The beginning of an incremental task: what `meta` says, or the source's present end where it says nothing.

        Structures come from the target as they are met. With a GTID set alone the relay log is searched for the
        place behind it; None when `stop` came first.
        """
        if self.meta_start is None:
            with session(self.upstream, "source") as connection:
                now = current_location(connection, identify(connection))
            return Checkpoint(now) if now is not None else None
        if self.meta_start.position.file:
            return Checkpoint(self.meta_start)
        first = self._meta_location()
        assert first is not None, "meta with a GTID set has a file that it begins in"
        while not stop.is_set():
            relay.check()
            if relay.wait_for(first.position, LOOK_SECONDS):
                found = seek(relay.log, first.position.file, first.gtid, relay.written, self.source)
                if found is not None:
                    return Checkpoint(found)
                stop.wait(LOOK_SECONDS)
        return None

    def _meta_location(self) -> Location | None:
        """`meta` with the binlog file that holds the place behind its GTID set, where it names none itself."""
        start = self.meta_start
        if start is None or start.position.file:
            return start
        with session(self.upstream, "source") as connection:
            file = file_with_gtids(connection, identify(connection), start.gtid, self.source)
        return Location(Position(file), start.gtid)

    def check_load(self) -> None:
        """Raises SyncError SYNC-046 where DM has begun to load and did not finish. Runs before anything is written."""
        with session(self.target, "target") as connection:
            refuse_unfinished_load(connection, self.meta, self.source)

    def is_copied(self) -> bool:
        """Whether an earlier run has loaded all of this source."""
        with session(self.target, "target") as connection:
            self.load_tables.create(connection)
            return self.load_tables.read_status(connection) == FINISHED

    def after_load(self) -> Checkpoint:
        """The beginning behind a full copy: each table with the structure and location of its own snapshot.

        Raises LoadError LOAD-020 when the dump that was loaded is gone: only it knows the place to go on from.
        """
        header = read_header(self.dump_directory)
        if header is None or not header.finished:
            raise LoadError("LOAD-020", Where(self.source, file=str(self.dump_directory)))
        records = read_records(self.dump_directory, header)
        tables = {name: TableCheckpoint(record.table, record.location) for name, record in records.items()}
        exit_point = ExitPoint(header.end, DUMP) if header.end is not None else None
        return Checkpoint(header.begin, tables, exit_point)

    def forget_dump(self) -> None:
        """Delete the dump once the checkpoint stands in the target, unless the user keeps it. Idempotent."""
        if not self.keep_dump:
            shutil.rmtree(self.dump_directory, ignore_errors=True)


def _place(location: Location) -> Position:
    return location.position
