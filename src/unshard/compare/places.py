"""How far a source has written its binlog, and how far the target is on record to have it."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import MySQLdb

from unshard.compare.executor.rows import ATTEMPTS
from unshard.compare.sides import SourceSide
from unshard.errors import UnshardError
from unshard.model.position import Position
from unshard.model.table import TableName
from unshard.mysql.connection import Endpoint, rows, session
from unshard.mysql.flavour import identify, status_statement
from unshard.retry import retrying
from unshard.target.checkpoint import load_checkpoint, load_upstream
from unshard.target.meta import MetaTables

_ABSENT = frozenset({1049, 1146})
_LOOK_SECONDS = 0.2


@dataclass(frozen=True, slots=True)
class LogPlace:
    """A place in the binlog of one server."""

    server: str
    position: Position


@dataclass(frozen=True, slots=True)
class SourceWatch:
    """Tells the places of one source; on connections of their own, opened for each question."""

    side: SourceSide
    target: Endpoint
    meta: MetaTables | None

    @property
    def followed(self) -> bool:
        return self.side.follows and self.meta is not None

    def newest(self) -> LogPlace | None:
        """Where the source writes now: all that was to be seen there before the call lies before it. None: nowhere.

        Raises SourceError. Of a source that is not followed nobody needs to know: None where it does not tell.
        """
        try:
            return retrying(self._newest, attempts=ATTEMPTS)
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
        """Up to where all changes are in the target; None where that is not on record. Raises TargetError."""
        return retrying(self._applied, attempts=ATTEMPTS) if self.meta is not None else None

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

    def has_passed(self, place: LogPlace | None) -> bool:
        """Whether the target has all up to there. A source that is not followed has nothing to wait for."""
        if not self.followed or place is None:
            return not self.followed
        applied = self.applied()
        return applied is not None and applied.server == place.server and applied.position >= place.position


def recorded_tables(target: Endpoint, meta: MetaTables, source: str) -> frozenset[TableName] | None:
    """The tables of a source that the checkpoint has; None where there is no checkpoint. Raises TargetError."""
    with session(target, "target") as connection:
        try:
            found = load_checkpoint(connection, meta, source)
        except MySQLdb.Error as error:
            if error.args[0] in _ABSENT:
                return None
            raise
    return frozenset(name for name in found.tables if name.table) if found is not None else None


def newest_places(watches: Sequence[SourceWatch]) -> dict[str, LogPlace | None]:
    """By source, where it writes now. Raises SourceError."""
    return {watch.side.source: watch.newest() for watch in watches}


def wait_until_passed(
    watches: Sequence[SourceWatch],
    places: Mapping[str, LogPlace | None],
    deadline: float,
    stopped: Callable[[], bool],
) -> frozenset[str]:
    """Wait until the target has all up to these places; the sources that it was in time for. Raises TargetError."""
    passed: set[str] = set()
    while True:
        passed.update(
            w.side.source for w in watches if w.side.source not in passed and w.has_passed(places[w.side.source])
        )
        if len(passed) == len(watches) or time.monotonic() >= deadline or stopped():
            return frozenset(passed)
        time.sleep(_LOOK_SECONDS)
