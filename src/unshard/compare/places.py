"""Reads the positions for a comparison: the end of each source's binlog, and the task's checkpoint in the target."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import MySQLdb

from unshard.compare.executor.rows import asked_again
from unshard.compare.sides import SourceSide
from unshard.dump.files import table_of_file
from unshard.errors import UnshardError
from unshard.load.checkpoint import INIT, LoadTables
from unshard.model.position import Position
from unshard.model.table import TableName
from unshard.mysql.connection import Endpoint, rows, session
from unshard.mysql.flavour import identify, status_statement
from unshard.source.log_since import is_without_changes
from unshard.target.checkpoint import load_checkpoint
from unshard.target.meta import MetaTables
from unshard.target.upstream import load_upstream

_ABSENT = frozenset({1049, 1146})
_LOOK_SECONDS = 0.2


@dataclass(frozen=True, slots=True)
class LogPlace:
    """A position in the binlog of one server."""

    server: str
    position: Position

    def to_dict(self) -> dict[str, str]:
        """Return the JSON form, which `from_dict` reads."""
        return {"server": self.server, "position": str(self.position)}

    @classmethod
    def from_dict(cls, form: Mapping[str, str]) -> LogPlace:
        """Read the form of `to_dict`."""
        return cls(form["server"], Position.parse(form["position"]))


@dataclass(frozen=True, slots=True)
class SourceWatch:
    """The reader of one source's positions: the end of its binlog, and how far the target has applied it.

    Each call opens its own connection.
    """

    side: SourceSide
    target: Endpoint
    meta: MetaTables | None

    @property
    def followed(self) -> bool:
        """True if the target is known to follow the source."""
        return self.side.follows and self.meta is not None

    def newest(self) -> LogPlace | None:
        """Return the end of the source's binlog; all commits seen before the call lie before it.

        None: the source has no binlog, or is not followed and can't be asked. Raises SourceError.
        """
        try:
            return asked_again(self._newest)
        except UnshardError:
            if self.followed:
                raise
            return None

    def _newest(self) -> LogPlace | None:
        with session(self.side.endpoint, "source") as connection:
            server = identify(connection)
            found = rows(connection, status_statement(server))
        return LogPlace(server.uuid, Position(str(found[0][0]), int(found[0][1]))) if found else None

    def applied(self) -> LogPlace | None:
        """Return the position up to which all changes are in the target; None without a record. Raises TargetError."""
        return asked_again(self._applied) if self.meta is not None else None

    def _applied(self) -> LogPlace | None:
        assert self.meta is not None
        with session(self.target, "target") as connection:
            try:
                server = load_upstream(connection, self.meta, self.side.source)
                checkpoint = load_checkpoint(connection, self.meta, self.side.source, tables_too=False)
            except MySQLdb.Error as error:
                if error.args[0] in _ABSENT:
                    return None
                raise
        if server is None or checkpoint is None:
            return None
        return LogPlace(server, (checkpoint.held or checkpoint.location).position)

    def unchanged(self, before: LogPlace | None, after: LogPlace | None) -> bool:
        """Return whether the source's binlog has nothing of the task's between two places.

        New binlog files and rows of tables that the task does not take are nothing. False where the events between
        can't be read. Raises SourceError where the source is out of reach.
        """
        if before is None or after is None or before.server != after.server:
            return False
        try:
            return before == after or asked_again(partial(self._without_changes, before.position, after.position))
        except UnshardError as error:
            if error.retryable:
                raise
            return False

    def _without_changes(self, before: Position, after: Position) -> bool:
        with session(self.side.endpoint, "source") as connection:
            return is_without_changes(connection, before, after, self.side.takes)

    def has_passed(self, place: LogPlace | None) -> bool:
        """Return whether the target has all up to there; True for a source that is not followed."""
        return not self.followed or (place is not None and _reaches(self.applied(), place))

    def left_for_another(self, place: LogPlace | None) -> LogPlace | None:
        """Return the end of the binlog of the server that the task follows now, if it is another one than the place's.

        None: the same server, or the source is not followed. Raises SourceError, TargetError.
        """
        if not self.followed or place is None:
            return None
        applied = self.applied()
        if applied is None or applied.server == place.server:
            return None
        newest = self.newest()
        return newest if newest is not None and newest.server == applied.server else None


def _reaches(applied: LogPlace | None, place: LogPlace) -> bool:
    return applied is not None and applied.server == place.server and applied.position >= place.position


def recorded_tables(target: Endpoint, meta: MetaTables, source: str) -> frozenset[TableName] | None:
    """Return the tables of the source's checkpoint; None where there is no checkpoint. Raises TargetError."""
    with session(target, "target") as connection:
        try:
            found = load_checkpoint(connection, meta, source)
        except MySQLdb.Error as error:
            if error.args[0] in _ABSENT:
                return None
            raise
    return frozenset(name for name in found.tables if name.table) if found is not None else None


def loaded_tables(target: Endpoint, meta: MetaTables, source: str) -> frozenset[TableName] | None:
    """Return the tables of a source whose rows were loaded; None where no load is on record. Raises TargetError."""
    load = LoadTables(meta.schema, meta.task, source)
    with session(target, "target") as connection:
        if not load.exist(connection) or load.read_status(connection) == INIT:
            return None
        return frozenset(name for file in load.states(connection) if (name := table_of_file(file)) is not None)


def newest_places(watches: Sequence[SourceWatch]) -> dict[str, LogPlace | None]:
    """Return the end of each source's binlog. Raises SourceError."""
    return {watch.side.source: watch.newest() for watch in watches}


def wait_until_passed(
    watches: Sequence[SourceWatch],
    places: Mapping[str, LogPlace | None],
    deadline: float,
    stopped: Callable[[], bool],
) -> frozenset[str]:
    """Wait until the target has all up to these places. Return the sources that were in time.

    Where a source fails over meanwhile, the end of the new server's binlog takes the place of its own: the task never
    comes to a position of the old one. Raises SourceError, TargetError.
    """
    passed: set[str] = set()
    wanted = dict(places)
    while True:
        for watch in watches:
            source = watch.side.source
            if source in passed:
                continue
            if watch.has_passed(wanted[source]):
                passed.add(source)
            else:
                wanted[source] = watch.left_for_another(wanted[source]) or wanted[source]
        if len(passed) == len(watches) or time.monotonic() >= deadline or stopped():
            return frozenset(passed)
        time.sleep(_LOOK_SECONDS)
