"""Confirmation of the positions that snapshots of a MariaDB report.

A position is exact if the snapshot has all transactions before it and none after it. The server moves the position
under the lock under which a group of transactions becomes visible, and then it is exact. But it also moves it, without
regard to transactions that are written and not visible yet, when it has written what belongs to no transaction:

* A new file begins. The last group of the old file becomes visible only when the index file is on disk; with
  semi-synchronous replication (AFTER_SYNC), when a replica has acknowledged it.
* A `Binlog_checkpoint` event is written, some time after a new file began.
* A transaction that waited for its acknowledgement while a new file began sets its offset in the old file beside the
  name of the new one.

So a position is exact if a transaction ends there. At another one (nobody has written since a new file began) it must
be certain that no commit is under way.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from time import monotonic, sleep
from typing import Any

import MySQLdb

from unshard.errors import DumpError, SourceError
from unshard.model.position import Location, Position
from unshard.mysql.connection import rows
from unshard.mysql.failures import ends_connection

_HEAD = 4
_MOST_EVENTS = 10_000
_ENDS = frozenset({"Xid", "Query", "XA_prepare"})
"""The kinds of events that end a transaction, as SHOW BINLOG EVENTS names them."""

_GROUPS = 3
"""So many groups of transactions in a file are one that is visible: one may wait for an acknowledgement, and one more
for that one."""

_GROUP = re.compile(r"cid=(\d+)")
FILE, OFFSET, XA_COMMITS = "binlog_snapshot_file", "binlog_snapshot_position", "com_xa_commit"
_COMMITS, _WAITING = "binlog_commits", "rpl_semi_sync_master_wait_sessions"
_NAMES = ", ".join(f"'{name}'" for name in (FILE, OFFSET, XA_COMMITS, _COMMITS, _WAITING))
_STATUS = f"SHOW GLOBAL STATUS WHERE Variable_name IN ({_NAMES})"

_SEMI_SYNC = "SHOW GLOBAL STATUS WHERE Variable_name IN ({})".format(
    ", ".join(
        f"'Rpl_semi_sync_{side}_{name}'"
        for side in ("master", "source")
        for name in ("wait_sessions", "yes_tx", "no_tx")
    )
)
PATIENCE_SECONDS = 20.0
GRACE_SECONDS = 0.5


@dataclass(frozen=True, slots=True)
class Moment:
    """The end of the log, and how many commits have become visible, wait for a replica, and are XA COMMITs."""

    end: Position
    commits: int
    waiting: int
    xa_commits: str


def moment(plain: Any) -> Moment:
    """Return the present moment. Waits until a commit that writes to the log, or begins a new file, has done so.

    Raises SourceError SOURCE-020 if the server writes no binlog.
    """
    status = rows(plain, "SHOW MASTER STATUS")
    if not status:
        raise SourceError("SOURCE-020")
    end, counts = Position(str(status[0][0]), int(status[0][1])), read_status(plain)
    return Moment(end, int(counts.get(_COMMITS, 0)), int(counts.get(_WAITING, 0)), counts[XA_COMMITS])


def read_status(connection: Any) -> dict[str, str]:
    """Return the status variables of a snapshot by name in lower case. The binlog's are absent without a binlog."""
    return {_text(name).lower(): _text(value) for name, value in rows(connection, _STATUS)}


def _text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)


def await_commits(connection: Any, patience: float = PATIENCE_SECONDS, grace: float = GRACE_SECONDS) -> None:
    """Wait until all rows are visible that the log of a MySQL or MariaDB has now.

    A commit that is written waits for a replica, with semi-synchronous replication, at most one group of commits after
    another. So it is over where no commit waits, or where more have ended than were under way.
    Raises DumpError DUMP-015 after `patience` seconds.
    """
    deadline = monotonic() + patience
    waited_first, ended_first = waiting, ended = _acknowledged(connection)
    while True:
        sleep(grace)
        before, (waiting, ended) = waiting, _acknowledged(connection)
        if not (before or waiting) or ended - ended_first > waited_first + _GROUPS:
            return
        if monotonic() >= deadline:
            raise DumpError("DUMP-015", values={"seconds": f"{patience:g}"})


def _acknowledged(connection: Any) -> tuple[int, int]:
    """Return how many commits wait for a replica, and how many have ceased to."""
    status = {str(name).lower().rpartition("sync_")[2]: int(value) for name, value in rows(connection, _SEMI_SYNC)}
    waiting = sum(count for name, count in status.items() if name.endswith("wait_sessions"))
    return waiting, sum(status.values()) - waiting


class ExactPositions:
    """The positions of one server's log that snapshots of one task have confirmed. Other connections begin anew."""

    def __init__(self, begin: Position | None = None) -> None:
        """`begin`: a position that the log had before. Snapshots that lack what lies before it are of no use."""
        self._begin = begin
        self._confirmed: tuple[Position, Location] | None = None
        self._seen: Position | None = None
        self._sure = False

    def confirm(self, plain: Any, position: Position, before: Moment, grace: float) -> Location | None:
        """Return the location of snapshots that report `position`; None where it is not certain. Then start new ones.

        `before` is a moment before the first of the snapshots was started. `plain` is another connection. `grace`: the
        seconds for which no commit may become visible where no transaction ends at `position`.
        """
        if self._confirmed is not None and self._confirmed[0] == position:
            return self._confirmed[1]
        reaches = self._begin is None or position >= self._begin
        if reaches and self._ends_transaction(plain, position):
            found = _location_at(plain, position)
        else:
            found = _quiet_location(plain, before, grace)
        if found is not None:
            self._seen, self._sure = found.position, True
            # an offset of another file is no position: it may be reached by other transactions
            self._confirmed = (position, found) if position <= found.position else None
        return found

    def _ends_transaction(self, plain: Any, position: Position) -> bool:
        """Return whether the log shows that a transaction ends at `position`, and that it is visible.

        The events are read from a position that was seen before in this file. An offset of another file may be the end
        of a transaction by chance; so either all before the first event is known to be visible, or there are several
        groups.
        """
        seen = self._seen
        if seen is None or seen.file != position.file:
            seen = self._seen = Position(position.file, _HEAD)
            self._sure = False
        if seen.offset >= position.offset:
            return False
        events = _events(plain, seen, position)
        if not events or int(events[-1][4]) != position.offset:
            self._seen, self._sure = position, False
            return False
        if events[-1][2] not in _ENDS:
            return False
        groups = {_group(event) for event in events if event[2] == "Gtid"}
        return self._sure or len(groups) >= _GROUPS


def _group(event: tuple[Any, ...]) -> str:
    found = _GROUP.search(str(event[5]))
    return found[0] if found else str(event[1])


def _events(plain: Any, after: Position, until: Position) -> list[tuple[Any, ...]]:
    """Return the events from `after` on up to the offset of `until`, at most `_MOST_EVENTS`; none from a wrong one.

    Later servers show 0 as the end of an event inside of a transaction.
    """
    statement = f"SHOW BINLOG EVENTS IN '{after.file}' FROM {after.offset} LIMIT {_MOST_EVENTS}"
    try:
        try:
            found = rows(plain, statement)
        except UnicodeDecodeError:  # the last column has texts of statements as they are in the log
            found = _undecoded(plain, statement)
    except MySQLdb.Error as error:
        if ends_connection(error):
            raise
        return []
    return [event for event in found if int(event[1]) < until.offset]


def _undecoded(plain: Any, statement: str) -> list[tuple[Any, ...]]:
    """Return the rows of a statement with columns in several character sets, read as Latin-1."""
    converter, plain.converter = plain.converter, {}
    try:
        plain.query(statement)
        found = plain.store_result().fetch_row(0)
    finally:
        plain.converter = converter
    return [tuple(value.decode("latin-1") if value is not None else "" for value in row) for row in found]


def _quiet_location(plain: Any, before: Moment, grace: float) -> Location | None:
    """Return the log's end, where nothing has been committed or written since `before`, nor is going to be visible.

    Whoever writes to the log holds a lock for which `moment` waits. After that a commit waits only for a replica, which
    is counted, until its rows are visible.
    """
    if moment(plain) != before or before.waiting:
        return None
    sleep(grace)
    ((gtid,),) = rows(plain, "SELECT @@global.gtid_binlog_pos")
    return Location(before.end, str(gtid or "")) if moment(plain) == before else None


def _location_at(plain: Any, position: Position) -> Location | None:
    """Return the location of an exact position; None where the server knows no GTID set of it.

    BINLOG_GTID_POS reads the binlog file from its start, so it is used only if the binlog has grown since the
    snapshot. While the binlog's end is still the snapshot's position, the server's current GTID set, read before the
    end, is that of the snapshot.
    """
    ((executed,),) = rows(plain, "SELECT @@global.gtid_binlog_pos")
    end = rows(plain, "SHOW MASTER STATUS")[0]
    if Position(str(end[0]), int(end[1])) == position:
        return Location(position, str(executed or ""))
    ((gtid,),) = rows(plain, f"SELECT BINLOG_GTID_POS('{position.file}', {position.offset})")
    return Location(position, str(gtid)) if gtid is not None else None
