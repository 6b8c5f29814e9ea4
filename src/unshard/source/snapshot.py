"""Consistent views of a source and the binlog location that belongs to each.

MariaDB tells the binlog position of a snapshot from inside it (`binlog_snapshot_file`, `binlog_snapshot_position`), so
no lock is needed there; MySQL's position is only sure while a lock holds writers back. See ADR 0003.
"""

from __future__ import annotations

import re
import time
from collections import Counter
from typing import Any

from unshard.errors import DumpError, SourceError
from unshard.model.position import Location, Position
from unshard.model.table import TableName, quote_name
from unshard.mysql.connection import READ_SECONDS, Endpoint, connect
from unshard.mysql.flavour import Flavour, current_location, flavour_of, gtid_at, identify, version_of

_PATIENT_SECONDS = 28_800
_LOCK_WAIT_SECONDS = 60
_KINDS = "TABLE_TYPE IN ('BASE TABLE', 'SYSTEM VERSIONED')"
_LISTING = f"SELECT TABLE_SCHEMA, TABLE_NAME FROM information_schema.TABLES WHERE {_KINDS}"
_XA_PATIENCE_SECONDS = 20.0
_XA_GRACE_SECONDS = 0.5
_SINCE = {
    Flavour.MARIADB: (
        ("max_statement_time", "0", (10, 1, 1)),
        ("system_versioning_asof", "DEFAULT", (10, 3, 4)),  # the rows of now, whatever the source shows others
    ),
    Flavour.MYSQL: (
        ("max_execution_time", "0", (5, 7, 8)),
        ("information_schema_stats_expiry", "0", (8, 0, 3)),
    ),
}
"""What else a reader sets, by flavour, and the first version that knows the variable."""
_COUNTER = re.compile(r" AUTO_INCREMENT=(\d+)")


def open_reader(endpoint: Endpoint, *, text: bool) -> Any:
    """A connection for dumping: UTC, REPEATABLE READ, empty sql_mode whatever the user's session says.

    An empty sql_mode gives SHOW CREATE TABLE in backticks and CHAR values without padding, as the binlog has
    them. Time limits on statements and idle streams are lifted for this session.
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
    """All rows of a small statement as text, on either kind of connection; NULL is "". Raises MySQLdb.Error."""
    with connection.cursor() as cursor:
        cursor.execute(statement)
        return [[_text(value) for value in row] for row in cursor.fetchall()]


def start_snapshot(connection: Any) -> None:
    """Fix the connection's view of all InnoDB tables at this moment; a snapshot that was open ends."""
    ask(connection, "START TRANSACTION WITH CONSISTENT SNAPSHOT")


def snapshot_apart_from_xa(
    snapshot: Any, plain: Any, patience: float = _XA_PATIENCE_SECONDS, grace: float = _XA_GRACE_SECONDS
) -> Location:
    """Start a snapshot of a MariaDB connection at a moment when no XA COMMIT is under way; where it stands.

    The server writes XA COMMIT to the binlog first and makes the rows visible then: a snapshot between both stands
    behind rows that it doesn't hold. So none may begin while the snapshot is taken (its counter stands still), and
    what was prepared before must still be so `grace` seconds after it. Tried again for `patience` seconds.

    Raises DumpError DUMP-011 where the source is never that quiet, SourceError SOURCE-020.
    """
    deadline = time.monotonic() + patience
    while True:
        begun, prepared = _xa_commits(plain), _prepared_xids(plain)
        start_snapshot(snapshot)
        location = snapshot_location(snapshot, plain)
        if prepared:
            time.sleep(grace)
        if prepared <= _prepared_xids(plain) and _xa_commits(plain) == begun:
            return location
        if time.monotonic() >= deadline:
            raise DumpError("DUMP-011", values={"seconds": f"{patience:g}"})


def _xa_commits(connection: Any) -> str:
    """How many XA COMMIT statements have begun on the server."""
    return ask(connection, "SHOW GLOBAL STATUS LIKE 'Com_xa_commit'")[0][1]


def _prepared_xids(connection: Any) -> Counter[tuple[str, ...]]:
    """The XA transactions that are prepared; one that is being committed is among them until it is done.

    Before 10.3.3 the server sends the bytes of an xid as text, with a question mark for those that are none: two xids
    may look the same.
    """
    return Counter(tuple(row) for row in ask(connection, "XA RECOVER /*M!100303 FORMAT='SQL' */"))


def snapshot_location(snapshot: Any, plain: Any) -> Location:
    """Where the open snapshot of a MariaDB connection stands in the binlog; `plain` asks for its GTID set.

    BINLOG_GTID_POS reads the binlog file from its start, so it is only asked when the binlog has grown since: while
    its end is still at the snapshot, the set in memory, read before looking at the end, is that of the snapshot.
    Raises SourceError SOURCE-020 where the server writes no binlog.
    """
    status = {name.lower(): value for name, value in ask(snapshot, "SHOW STATUS LIKE 'binlog_snapshot_%'")}
    file = status.get("binlog_snapshot_file", "")
    if not file:
        raise SourceError("SOURCE-020")
    position = Position(file, int(status["binlog_snapshot_position"]))
    executed = ask(plain, "SELECT @@global.gtid_binlog_pos")[0][0]
    end = ask(plain, "SHOW MASTER STATUS")[0]
    at_end = Position(end[0], int(end[1])) == position
    return Location(position, executed if at_end else gtid_at(plain, position))


def locate(connection: Any) -> Location:
    """The end of the source's binlog now. Raises SourceError SOURCE-020 where the server writes none."""
    location = current_location(connection, identify(connection))
    if location is None:
        raise SourceError("SOURCE-020")
    return location


def next_counter(connection: Any, table: TableName) -> int | None:
    """The table's next AUTO_INCREMENT value, or None while it has none or has never counted."""
    ((_, statement),) = ask(connection, f"SHOW CREATE TABLE {table.quoted}")
    return counter_of(statement)


def counter_of(create_sql: str) -> int | None:
    """The AUTO_INCREMENT option behind the column list of a CREATE TABLE statement."""
    found = _COUNTER.search(create_sql, create_sql.rindex("\n)") if "\n)" in create_sql else 0)
    return int(found[1]) if found else None


def list_names(connection: Any) -> tuple[TableName, ...]:
    """The names of all base tables that the server has now, system schemas included."""
    return tuple(sorted(TableName(schema, table) for schema, table in ask(connection, _LISTING)))


def create_database_statement(connection: Any, schema: str) -> str:
    """SHOW CREATE DATABASE."""
    ((_, statement),) = ask(connection, f"SHOW CREATE DATABASE {quote_name(schema)}")
    return statement


def _text(value: Any) -> str:
    if value is None:
        return ""
    return value.decode() if isinstance(value, bytes) else str(value)
