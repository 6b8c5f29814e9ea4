"""The store's connections: SQLite, or a database that speaks the MySQL protocol.

A master that is frozen in the middle of a transaction holds the leader's row. A MySQL-protocol server ends its silent
session after about a lease and rolls back: another master leads then, and the frozen one's commit fails when it wakes
up. The lock of a SQLite file is its process's, which nobody can take away: until that one wakes up or is killed,
whoever wants the file gets CLUSTER-003.
"""

from __future__ import annotations

import math
from typing import Any

from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, NoSuchModuleError
from sqlalchemy.pool import QueuePool

from unshard.errors import ClusterError

SILENT_SECONDS = 4.0
_DRIVER = "mysql+mysqldb"
_READ_SECONDS = 10
_LOCK_SECONDS = 5
"""Less than a read may take: the server says that a lock is held, before we hang up on it without a word."""
_MOST_CONNECTIONS = 15


def engine_of(url: str, password: str, silent_seconds: float) -> Engine:
    """Connections of the store at `url`, which begin their transactions as the election needs it.

    `silent_seconds`: how long a master that stops in the middle of a transaction keeps others from theirs, rounded up
    to whole ones; a lease is right. Raises ClusterError CLUSTER-004.
    """
    try:
        parsed = make_url(url)
        if parsed.drivername in ("mysql", "mariadb"):
            parsed = parsed.set(drivername=_DRIVER)
        if password:
            parsed = parsed.set(password=password)
        if parsed.get_backend_name() == "sqlite":
            return _sqlite(parsed)
        if parsed.get_backend_name() not in ("mysql", "mariadb") or not parsed.database:
            raise ArgumentError("only sqlite:///FILE and mysql://USER@HOST:PORT/DATABASE are taken")
        return _server(parsed, math.ceil(silent_seconds))
    except (ArgumentError, NoSuchModuleError, ValueError) as error:
        raise ClusterError("CLUSTER-004", cause=str(error).replace(url, "…")) from None


def _server(url: URL, silent_seconds: int) -> Engine:
    """One connection is kept, which the steps of the election keep awake; further ones end with their use.

    So the server's log tells of no session that it had to end, but that of a master that was frozen.
    """
    session = {
        "wait_timeout": silent_seconds,
        "innodb_lock_wait_timeout": _LOCK_SECONDS,
        "lock_wait_timeout": _LOCK_SECONDS,
    }
    waits = {"connect_timeout": 3, "read_timeout": _READ_SECONDS, "write_timeout": _READ_SECONDS}
    begin = "SET SESSION " + ", ".join(f"{name} = {seconds}" for name, seconds in session.items())
    return create_engine(
        url,
        pool_pre_ping=True,
        pool_size=1,
        max_overflow=_MOST_CONNECTIONS - 1,
        isolation_level="READ COMMITTED",
        connect_args={**waits, "charset": "utf8mb4", "init_command": begin},
    )


def _sqlite(url: URL) -> Engine:
    """Without a file it lives in one connection, which those who need it take in turns."""
    options = {} if url.database else {"poolclass": QueuePool, "pool_size": 1, "max_overflow": 0}
    engine = create_engine(url, connect_args={"timeout": _READ_SECONDS, "check_same_thread": False}, **options)

    @event.listens_for(engine, "connect")
    def _connected(connection: Any, _record: Any) -> None:
        connection.isolation_level = None  # else the driver begins transactions later than we do
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA synchronous=FULL")

    @event.listens_for(engine, "begin")
    def _begun(connection: Connection) -> None:
        connection.exec_driver_sql("BEGIN IMMEDIATE")  # reads before writes must not fail at the write

    return engine
