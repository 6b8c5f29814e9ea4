"""The master's store: SQLite by default, or a MySQL-protocol database that several masters share.

Every change is one transaction that begins by reading the leader's row under lock: a master that has lost the lease
changes nothing, whatever clocks say (`Store.writing`).

A master that is frozen in the middle of a transaction holds the leader's row. A MySQL-protocol server ends its silent
session after about a lease and rolls back: another master leads then, and the frozen one's commit fails when it wakes
up. The lock of a SQLite file belongs to its process, from which nobody can take it: until that process wakes up or is
killed, others that use the file get CLUSTER-003.
"""

from __future__ import annotations

import math
import os
import secrets
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict
from typing import Any

from sqlalchemy import Connection, Engine, Table, bindparam, create_engine, event, insert, select, text, update
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, NoSuchModuleError, SQLAlchemyError
from sqlalchemy.pool import QueuePool
from sqlalchemy.schema import CreateTable

from unshard.api.heartbeat import SubtaskBrief
from unshard.api.status import Stage
from unshard.errors import ClusterError
from unshard.master import tables
from unshard.master.state import Bound, SourceRow, State, SubtaskRow, TaskRow, WorkerRow
from unshard.retry import retrying

SILENT_SECONDS = 4.0
_DRIVER = "mysql+mysqldb"
_READ_SECONDS = 10
_LOCK_SECONDS = 5
"""Less than a read may take: the server then reports the lock before the connection times out without an answer."""
_MOST_CONNECTIONS = 15


def engine_of(url: str, password: str, silent_seconds: float) -> Engine:
    """Return connections to the store at `url`, which begin their transactions as the election needs it.

    `silent_seconds`: how long a master that stops in the middle of a transaction keeps others from theirs, rounded up
    to whole seconds; a lease is right. Raises ClusterError CLUSTER-004.
    """
    try:
        parsed = make_url(url)
        if "@" in (parsed.host or ""):
            raise ArgumentError("a password with @ in it goes into `store-password`, or has %40 in its place")
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
    """Return connections to a server. One is kept, which the election's steps keep awake; others end after their use.

    So the only sessions that the server's log reports as ended by the server are those of a master that was frozen.
    """
    session = {
        "wait_timeout": silent_seconds,
        "innodb_lock_wait_timeout": _LOCK_SECONDS,
        "lock_wait_timeout": _LOCK_SECONDS,
        "sql_select_limit": (1 << 64) - 1,
        "completion_type": 0,
        "time_zone": "'+00:00'",  # the clock is read as local time, which jumps where there is summer time
    }
    waits = {"connect_timeout": 3, "read_timeout": _READ_SECONDS, "write_timeout": _READ_SECONDS}
    begin = "SET SESSION " + ", ".join(f"{name} = {value}" for name, value in session.items())
    return create_engine(
        url,
        pool_pre_ping=True,
        pool_size=1,
        max_overflow=_MOST_CONNECTIONS - 1,
        isolation_level="READ COMMITTED",
        connect_args={**waits, "charset": "utf8mb4", "init_command": begin},
    )


def _sqlite(url: URL) -> Engine:
    """Return connections to SQLite. Without a file the database is in one connection, which its users take in turns."""
    options = {} if url.database else {"poolclass": QueuePool, "pool_size": 1, "max_overflow": 0}
    if url.database and not url.database.startswith("file:"):
        _keep_private(url.database)
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


def _keep_private(file: str) -> None:
    """Make the file of a store, and those beside it, readable by its user only. SQLite makes the latter like the first.

    A file that can't be made or changed is left to SQLite, which tells why it can't be used.
    """
    with suppress(OSError):
        os.close(os.open(file, os.O_RDWR | os.O_CREAT, 0o600))
    for name in (file, f"{file}-wal", f"{file}-shm"):
        with suppress(OSError):
            os.chmod(name, 0o600)


_CLOCK = {"sqlite": "SELECT (julianday('now') - 2440587.5) * 86400.0", "": "SELECT UNIX_TIMESTAMP(SYSDATE(6))"}
_OPEN_ATTEMPTS = 5
IN_MEMORY = "sqlite://"


class Store:
    """The database of the cluster's state. Safe in threads; each call is a transaction of its own."""

    def __init__(self, url: str, password: str = "", silent_seconds: float = SILENT_SECONDS) -> None:
        """Take `url`: `sqlite:///FILE`, `sqlite://` (in memory), or `mysql://USER@HOST:PORT/DATABASE`.

        `silent_seconds`: see `engine_of`. Raises ClusterError CLUSTER-004.
        """
        self._passing = url == IN_MEMORY
        self._engine = engine_of(url, password, silent_seconds)

    def open(self) -> None:
        """Create or upgrade the tables. Raises ClusterError CLUSTER-003, CLUSTER-005 for tables of a later version."""
        retrying(self._open, attempts=_OPEN_ATTEMPTS)

    def _open(self) -> None:
        """Create or upgrade. Masters of one store may do so at once: the loser of a race tries again, finds it done."""
        with self.transaction() as connection:
            for table in tables.METADATA.sorted_tables:
                connection.execute(CreateTable(table, if_not_exists=True))
        with self.transaction() as connection:
            found = value_of(connection, "version")
            if found > tables.VERSION:
                raise ClusterError("CLUSTER-005", values={"found": found, "known": tables.VERSION})
            for version in range(found or tables.VERSION, tables.VERSION):
                tables.UPGRADES[version](connection)
            set_value(connection, "version", tables.VERSION)
            if not self._passing and not value_of(connection, "cluster"):
                set_value(connection, "cluster", secrets.randbits(62) + 1)

    def close(self) -> None:
        """Close all connections to the database."""
        self._engine.dispose()

    @contextmanager
    def transaction(self) -> Iterator[Connection]:
        """Run a transaction. Raises ClusterError CLUSTER-003 where the database fails; nothing is changed then."""
        try:
            with self._engine.begin() as connection:
                yield connection
        except SQLAlchemyError as error:
            raise ClusterError("CLUSTER-003", cause=_told(error)) from None

    @contextmanager
    def writing(self, epoch: int) -> Iterator[Writing]:
        """Make changes as the leader of `epoch`, all or none. Raises ClusterError CLUSTER-002 if another one leads."""
        with self.transaction() as connection:
            leading = connection.execute(
                select(tables.LEADER.c.epoch).where(tables.LEADER.c.id == 1).with_for_update()
            ).scalar()
            if leading != epoch:
                raise ClusterError("CLUSTER-002")
            yield Writing(connection)

    def read(self) -> State:
        """Return the whole state, in one transaction. Raises ClusterError CLUSTER-003."""
        with self.transaction() as connection:
            return read_state(connection)


class Writing:
    """A transaction in which a leader changes the state; `state` includes its changes."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection

    @property
    def state(self) -> State:
        """State as it is within the transaction. Read from the database at each use."""
        return read_state(self.connection)

    def put_worker(self, row: WorkerRow) -> None:
        """Insert or replace a worker."""
        self._put(tables.WORKERS, asdict(row))

    def drop_worker(self, name: str) -> None:
        """Remove a worker, where it exists."""
        self._drop(tables.WORKERS, name=name)

    def drop_master(self, name: str) -> None:
        """Remove a master, where it exists."""
        self._drop(tables.MASTERS, name=name)

    def put_source(self, row: SourceRow) -> None:
        """Insert or replace a source."""
        self._put(tables.SOURCES, {**asdict(row), "relay_stage": row.relay_stage.value})

    def drop_source(self, name: str) -> None:
        """Remove a source and its binding to a worker."""
        self._drop(tables.SOURCES, name=name)
        self._drop(tables.BOUNDS, source=name)

    def bind(self, source: str, worker: str) -> None:
        """Assign the source to the worker, with a new epoch; former assignments of both end.

        The epoch is above all that were given before, also by a store that was lost since and is restored from a
        backup.
        """
        epoch = max(value_of(self.connection, "epoch") + 1, int(clock(self.connection)))
        set_value(self.connection, "epoch", epoch)
        self._drop(tables.BOUNDS, worker=worker)
        self._put(tables.BOUNDS, {"source": source, "worker": worker, "epoch": epoch})
        changed = update(tables.SOURCES).where(tables.SOURCES.c.name == source).values(last_worker=worker)
        self.connection.execute(changed)

    def unbind(self, source: str) -> None:
        """Remove the binding of a source to its worker."""
        self._drop(tables.BOUNDS, source=source)

    def put_task(self, row: TaskRow) -> None:
        """Insert or replace a task's file."""
        self._put(tables.TASKS, asdict(row))

    def drop_task(self, name: str) -> None:
        """Remove a task's file."""
        self._drop(tables.TASKS, name=name)

    def put_subtask(self, row: SubtaskRow) -> None:
        """Insert or replace a subtask, with its last report."""
        brief = row.brief.model_dump_json(by_alias=True) if row.brief is not None else ""
        form = {"task": row.task, "source": row.source, "revision": row.revision, "start": row.start}
        self._put(tables.SUBTASKS, {**form, "stage": row.stage.value, "brief": brief})

    def put_briefs(self, source: str, briefs: Iterable[SubtaskBrief]) -> None:
        """Store a worker's last reports of subtasks, where these still exist."""
        rows = tables.SUBTASKS.c
        changed = update(tables.SUBTASKS).where(rows.task == bindparam("of_task"), rows.source == source)
        said = [{"of_task": brief.task, "said": brief.model_dump_json(by_alias=True)} for brief in briefs]
        self.connection.execute(changed.values(brief=bindparam("said")), said)

    @property
    def first_revision(self) -> int:
        """The revision with which a new subtask begins.

        It is above those of all dropped subtasks, which a worker that was cut off may still report.
        """
        return value_of(self.connection, "revision") + 1

    def drop_subtask(self, task: str, source: str) -> None:
        """Remove a subtask. Revisions of later subtasks stay above its revision."""
        rows = tables.SUBTASKS.c
        asked = select(rows.revision).where(rows.task == task, rows.source == source)
        revision = int(self.connection.execute(asked).scalar() or 0)
        set_value(self.connection, "revision", max(revision, value_of(self.connection, "revision")))
        self._drop(tables.SUBTASKS, task=task, source=source)

    def put_template(self, row: TaskRow) -> None:
        """Insert or replace a template."""
        self._put(tables.TEMPLATES, asdict(row))

    def drop_template(self, name: str) -> None:
        """Remove a template, where it exists."""
        self._drop(tables.TEMPLATES, name=name)

    def put_text(self, name: str, content: str) -> None:
        """Insert or replace a named text."""
        self._put(tables.TEXTS, {"name": name, "text": content})

    def _put(self, table: Table, form: dict[str, Any]) -> None:
        put(self.connection, table, form)

    def _drop(self, table: Table, **key: str) -> None:
        self.connection.execute(table.delete().where(*(table.c[name] == value for name, value in key.items())))


def put(connection: Connection, table: Table, form: dict[str, Any]) -> None:
    """Write a whole row, replacing the one with its key if there is one."""
    key = {column.name: form[column.name] for column in table.primary_key.columns}
    connection.execute(table.delete().where(*(table.c[name] == value for name, value in key.items())))
    connection.execute(insert(table).values(form))


def value_of(connection: Connection, name: str) -> int:
    """Return a number of `VALUES`, locked for this transaction; 0 where there is none."""
    asked = select(tables.VALUES.c.value).where(tables.VALUES.c.name == name).with_for_update()
    return int(connection.execute(asked).scalar() or 0)


def set_value(connection: Connection, name: str, value: int) -> None:
    """Store a named number."""
    put(connection, tables.VALUES, {"name": name, "value": value})


def clock(connection: Connection) -> float:
    """Return seconds of Unix time by the database's clock, the only one that all masters share."""
    asked = _CLOCK.get(connection.dialect.name, _CLOCK[""])
    return float(connection.execute(text(asked)).scalar_one())


def read_state(connection: Connection) -> State:
    """Return everything that the store has but the lease, in the caller's transaction."""

    def rows(table: Table) -> list[dict[str, Any]]:
        found = connection.execute(select(table).order_by(*table.primary_key.columns)).mappings()
        return [dict(row) for row in found]

    sources = [SourceRow(**{**row, "relay_stage": Stage(row["relay_stage"])}) for row in rows(tables.SOURCES)]
    return State(
        {row.name: row for row in sources},
        {row["name"]: WorkerRow(**row) for row in rows(tables.WORKERS)},
        {row["source"]: Bound(**row) for row in rows(tables.BOUNDS)},
        {row["name"]: TaskRow(**row) for row in rows(tables.TASKS)},
        {(row["task"], row["source"]): _subtask(row) for row in rows(tables.SUBTASKS)},
        {row["name"]: TaskRow(**row) for row in rows(tables.TEMPLATES)},
        {row["name"]: row["text"] for row in rows(tables.TEXTS)},
        connection.execute(select(tables.VALUES.c.value).where(tables.VALUES.c.name == "cluster")).scalar() or 0,
    )


def _subtask(row: dict[str, Any]) -> SubtaskRow:
    brief = SubtaskBrief.model_validate_json(row["brief"]) if row["brief"] else None
    return SubtaskRow(**{**row, "stage": Stage(row["stage"]), "brief": brief})


def _told(error: SQLAlchemyError) -> str:
    """Return the driver's message, without statement and values."""
    return str(getattr(error, "orig", None) or type(error).__name__)
