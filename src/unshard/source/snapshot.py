"""Consistent snapshots of a source, each with its binlog location.

MariaDB reports a snapshot's binlog position from within it (`binlog_snapshot_file`, `binlog_snapshot_position`), so no
writer is blocked. On MySQL the position is only certain while a lock blocks writers. See ADR 0003.
"""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import MySQLdb

from unshard.errors import DumpError, SourceError
from unshard.model.position import Location, Position
from unshard.model.table import TableName, quote_name
from unshard.mysql.connection import READ_SECONDS, Endpoint, connect
from unshard.mysql.failures import lacks_user_locks
from unshard.mysql.flavour import Flavour, current_location, flavour_of, identify, version_of
from unshard.mysql.structure import IS_TABLE, NO_SUCH_TABLE
from unshard.source.exact_positions import (
    FILE,
    GRACE_SECONDS,
    OFFSET,
    PATIENCE_SECONDS,
    XA_COMMITS,
    ExactPositions,
    moment,
    read_status,
)

_PATIENT_SECONDS = 28_800
_LOCK_WAIT_SECONDS = 60
_LISTING = f"SELECT TABLE_SCHEMA, TABLE_NAME FROM information_schema.TABLES WHERE {IS_TABLE}"
_TURN = "unshard snapshot"
"""The name of the server's user lock (GET_LOCK) of which only one of Unshard's snapshots at a time has hold."""

_TURN_SECONDS = 10
"""The longest wait for it: a process that is frozen may hold it for hours."""

_EQUAL_READS = 3
_MOST_READS = 1000
_MOST_TRIES = 20
_SINCE = {
    Flavour.MARIADB: (
        ("max_statement_time", "0", (10, 1, 1)),
        ("system_versioning_asof", "DEFAULT", (10, 3, 4)),  # current rows, whatever the server's global setting is
        ("idle_transaction_timeout", "0", (10, 3, 0)),
        ("idle_readonly_transaction_timeout", "0", (10, 3, 0)),
        ("idle_write_transaction_timeout", "0", (10, 3, 0)),
    ),
    Flavour.MYSQL: (
        ("max_execution_time", "0", (5, 7, 8)),
        ("information_schema_stats_expiry", "0", (8, 0, 3)),
    ),
}
"""Further session variables of a reader, by flavour, each with the first version that knows it."""
_COUNTER = re.compile(r" AUTO_INCREMENT=(\d+)")


def open_reader(endpoint: Endpoint, *, text: bool) -> Any:
    """Return a connection for dumping: UTC, REPEATABLE READ and an empty sql_mode, whatever the user's variables are.

    With an empty sql_mode, SHOW CREATE TABLE uses backticks and CHAR values have no padding, as in the binlog. Limits
    on the time of statements, on idle streams and on idle transactions are lifted for this session.
    """
    connection = connect(endpoint, "source", text=text, patience_seconds=READ_SECONDS)
    settings = {
        "time_zone": "'+00:00'",
        "sql_mode": "''",
        "net_write_timeout": str(_PATIENT_SECONDS),
        "wait_timeout": str(_PATIENT_SECONDS),
        "lock_wait_timeout": str(_LOCK_WAIT_SECONDS),
    }
    ((version,),) = ask(connection, "SELECT VERSION()")
    settings |= {name: value for name, value, since in _SINCE[flavour_of(version)] if version_of(version) >= since}
    assignments = ", ".join(f"@@session.{name} = {value}" for name, value in settings.items())
    ask(connection, f"SET {assignments}")
    ask(connection, "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ")
    return connection


def ask(connection: Any, statement: str) -> list[list[str]]:
    """Return all rows of a statement with a small result as text, on either kind of connection.

    NULL becomes "". Raises MySQLdb.Error.
    """
    with connection.cursor() as cursor:
        cursor.execute(statement)
        return [[_text(value) for value in row] for row in cursor.fetchall()]


def start_snapshot(connection: Any) -> None:
    """Start a consistent snapshot of all InnoDB tables on the connection. A snapshot that is open on it ends."""
    ask(connection, "START TRANSACTION WITH CONSISTENT SNAPSHOT")


def tells_positions(connection: Any) -> bool:
    """Return whether a snapshot on this server has just the transactions before the position that it tells.

    Only a MariaDB tells one. With `binlog_optimize_thread_scheduling=OFF` the position moves for a whole group of
    commits, whose rows become visible one transaction after the other: of 1,664 snapshots beside 16 writers, 82 lacked
    transactions that lay before their position. Raises MySQLdb.Error.
    """
    if identify(connection).flavour is not Flavour.MARIADB:
        return False
    found = ask(connection, "SHOW GLOBAL VARIABLES LIKE 'binlog_optimize_thread_scheduling'")
    return all(value == "ON" for _, value in found)  # later servers, which deprecate it, may not have it


def snapshots_apart_from_xa(
    snapshots: Sequence[Any],
    plain: Any,
    exact: ExactPositions | None = None,
    patience: float = PATIENCE_SECONDS,
    grace: float = GRACE_SECONDS,
) -> tuple[Location, int]:
    """Start a snapshot on MariaDB connections while no XA COMMIT is in progress, with an exact position.

    Return its location, and how many of the connections have it, the first ones: all of them, whose snapshots have one
    position, or one where transactions are committed so often that their positions differed `_MOST_TRIES` times, or for
    half of `patience`. The other connections then have no snapshot.

    The server writes XA COMMIT to the binlog first and makes the rows visible afterwards, so a snapshot taken in
    between has a location after rows that it does not contain. Therefore no XA COMMIT may begin while the snapshot is
    taken (its counter does not change), and the XA transactions that were prepared before must still be prepared
    `grace` seconds after it. Tries again for `patience` seconds. `plain` is another connection to the same server,
    `exact` what is known from earlier snapshots of these connections.
    Raises DumpError DUMP-011 if the source is never that quiet, DUMP-013, DUMP-015 if no position was confirmed,
    SourceError SOURCE-020.
    """
    exact = exact if exact is not None else ExactPositions()
    begun_at = time.monotonic()
    deadline = begun_at + patience
    tries = 0
    while True:
        confirmed = True
        with _turn(plain) as alone:
            before = moment(plain)
            prepared = _prepared_xids(plain)
            for one in snapshots:
                start_snapshot(one)
            reads = [_read_position(one, _EQUAL_READS if alone else 2 * _EQUAL_READS) for one in snapshots]
        position, ended = reads[0][0], reads[-1][1]
        if any(other != position for other, _ in reads):
            tries += 1
            if tries == _MOST_TRIES or time.monotonic() >= begun_at + patience / 2:
                for one in snapshots[1:]:
                    ask(one, "ROLLBACK")
                snapshots = snapshots[:1]
        elif ended == before.xa_commits:
            location = exact.confirm(plain, position, before, grace)
            confirmed = location is not None
            if prepared and confirmed:
                time.sleep(grace)
            if location is not None and prepared <= _prepared_xids(plain):
                return location, len(snapshots)
        if time.monotonic() >= deadline:
            raise DumpError("DUMP-011" if confirmed else "DUMP-015", values={"seconds": f"{patience:g}"})


@contextmanager
def _turn(connection: Any) -> Iterator[bool]:
    """Take the server's user lock that separates Unshard's snapshots. Yields whether it was taken.

    It is not taken after `_TURN_SECONDS`, nor on a Galera cluster that has no user locks (MariaDB 10.6.13, for
    example).
    """
    try:
        held = ask(connection, f"SELECT GET_LOCK('{_TURN}', {_TURN_SECONDS})") == [["1"]]
    except MySQLdb.Error as error:
        if not lacks_user_locks(error):
            raise
        held = False
    try:
        yield held
    finally:
        if held:
            ask(connection, f"SELECT RELEASE_LOCK('{_TURN}')")


def _read_position(snapshot: Any, wanted: int) -> tuple[Position, str]:
    """Return the binlog position of a MariaDB connection's open snapshot, and the number of XA COMMITs begun by now.

    The server keeps the position that a SHOW STATUS is about to return in memory that all sessions share. So a SHOW
    STATUS of another session at the same instant can put its own position in place of this one, with which changes
    would be lost: MariaDB 10.11 did so in up to 1 of 100 reads while three sessions read its status all the time. It
    is only believed when the `wanted` number of reads in a row agree. Raises DumpError DUMP-013 if they don't,
    SourceError SOURCE-020 if the server writes no binlog.
    """
    last, equal = ("", ""), 0
    for _ in range(_MOST_READS):
        status = read_status(snapshot)
        found = status.get(FILE, ""), status.get(OFFSET, "")
        if not found[0]:
            raise SourceError("SOURCE-020")
        last, equal = found, equal + 1 if found == last else 1
        if equal == wanted:
            return Position(found[0], int(found[1])), status[XA_COMMITS]
    raise DumpError("DUMP-013", values={"reads": _MOST_READS})


def _prepared_xids(connection: Any) -> Counter[tuple[str, ...]]:
    """Return the prepared XA transactions. A transaction that is being committed is listed until it is done.

    Before 10.3.3 the server sends the bytes of an xid as text, with a question mark for bytes that are not text, so two
    xids may look the same.
    """
    return Counter(tuple(row) for row in ask(connection, "XA RECOVER /*M!100303 FORMAT='SQL' */"))


def locate(connection: Any) -> Location:
    """Return the current end of the source's binlog. Raises SourceError SOURCE-020 if the server writes none."""
    location = current_location(connection, identify(connection))
    if location is None:
        raise SourceError("SOURCE-020")
    return location


def next_counter(connection: Any, table: TableName) -> int | None:
    """Return the table's next AUTO_INCREMENT value; None if it has no such column, or its counter was never used."""
    ((_, statement),) = ask(connection, f"SHOW CREATE TABLE {table.quoted}")
    return counter_of(statement)


def counter_of(create_sql: str) -> int | None:
    """Return the AUTO_INCREMENT option after the column list of a CREATE TABLE statement; None if there is none."""
    found = _COUNTER.search(create_sql, create_sql.rindex("\n)") if "\n)" in create_sql else 0)
    return int(found[1]) if found else None


def list_names(connection: Any) -> tuple[TableName, ...]:
    """Return the names of all base tables that the server has now, those of system schemas included."""
    return tuple(sorted(TableName(schema, table) for schema, table in ask(connection, _LISTING)))


def create_database_statement(connection: Any, schema: str) -> str | None:
    """Return the output of SHOW CREATE DATABASE; None for a schema that is not there, maybe since a moment ago."""
    try:
        ((_, statement),) = ask(connection, f"SHOW CREATE DATABASE {quote_name(schema)}")
    except MySQLdb.Error as error:
        if error.args[0] in NO_SUCH_TABLE:
            return None
        raise
    return str(statement)


def _text(value: Any) -> str:
    if value is None:
        return ""
    return value.decode() if isinstance(value, bytes) else str(value)
