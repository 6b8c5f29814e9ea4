"""Dumps whose snapshots all start under one lock (`lock`), and dumps without a common snapshot (`none`).

The steps of a locked dump, in which `wait` is the barrier of all tasks:

    task 0: take the lock        all: wait
    all: start a snapshot, touch each of their tables, read those that are not transactional
    task 0: read the location    all: wait
    task 0: unlock               all: read their chunks

A task that fails before a barrier leaves a mark in the run's folder. The others end behind that barrier without reading
rows, with an empty share; the failed one tells why.
"""

from __future__ import annotations

import pickle
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import MySQLdb

from unshard.dump.lock_free import has_snapshots, reader, touch
from unshard.dump.metadata import DumpedFile, failure_mark, location_form, location_from, parts_folder
from unshard.dump.plan import Resolved, TableChunk, fits
from unshard.dump.read import read_rows
from unshard.dump.true_defaults import with_true_defaults
from unshard.dump.write import FileLimits, raw_names, write_files
from unshard.errors import DumpError, Where, enclose
from unshard.model.position import Location
from unshard.model.table import Table, TableName, name_form, name_of
from unshard.mysql.connection import Endpoint
from unshard.mysql.failures import ends_connection
from unshard.mysql.structure import NO_SUCH_TABLE, SYSTEM_SCHEMAS, read_table
from unshard.source.snapshot import ask, list_names, locate, next_counter, start_snapshot
from unshard.transform.source_rules import TableSelection

LOCK_IDLE_SECONDS = 60
"""The longest time that writers wait for a dump whose machine died, or whose network broke without notice."""

_SIGNS = 4  # signs of life in that time

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class ChunkWork:
    """The chunks that one Spark task dumps, and the tables whose structure it reads (`tables`).

    `all_tables` are those of the dump, which `selection` has selected. `index` numbers the tasks; task 0 takes the
    lock. `run` names the run's folder in `directory`. `where` is a condition on the rows, "" for none; `wait` is the
    barrier.
    """

    index: int
    endpoint: Endpoint
    directory: Path
    run: str
    consistency: Resolved
    chunks: tuple[TableChunk, ...]
    tables: tuple[TableName, ...]
    all_tables: tuple[TableName, ...]
    selection: TableSelection
    where: str
    limits: FileLimits
    wait: Callable[[], None]

    @property
    def failed(self) -> Path:
        """The file that tells that a task of the run has failed."""
        return failure_mark(self.directory, self.run)


@dataclass(frozen=True, slots=True)
class ChunkFiles:
    """The data files of one chunk."""

    table: TableName
    number: int
    files: tuple[DumpedFile, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form, which `from_dict` reads."""
        files = [file.to_dict() for file in self.files]
        return {"table": name_form(self.table), "number": self.number, "files": files}

    @classmethod
    def from_dict(cls, form: Mapping[str, Any]) -> ChunkFiles:
        """Read the form of `to_dict`."""
        return cls(name_of(form["table"]), form["number"], tuple(map(DumpedFile.from_dict, form["files"])))


@dataclass(frozen=True, slots=True)
class Share:
    """The result of one task of a dump under a lock.

    `tables` are structures, each with its next AUTO_INCREMENT value, without tables that did not exist under the lock.
    `location` and `listed` (the selected tables of the source under the lock) come from task 0.
    """

    files: tuple[ChunkFiles, ...]
    tables: tuple[tuple[Table, int | None], ...]
    location: Location | None = None
    listed: tuple[TableName, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form, which `from_dict` reads."""
        return {
            "files": [chunk.to_dict() for chunk in self.files],
            "tables": [[table.to_dict(), counter] for table, counter in self.tables],
            "location": location_form(self.location) if self.location else None,
            "listed": list(map(name_form, self.listed)),
        }

    @classmethod
    def from_dict(cls, form: dict[str, Any]) -> Share:
        """Read the form of `to_dict`."""
        return cls(
            tuple(map(ChunkFiles.from_dict, form["files"])),
            tuple((Table.from_dict(table), counter) for table, counter in form["tables"]),
            location_from(form["location"]) if form["location"] else None,
            tuple(map(name_of, form["listed"])),
        )


def dump_locked(payload: bytes) -> bytes:
    """Spark barrier task: dump the chunks of a pickled ChunkWork; the outcome is a Share."""
    work: ChunkWork = pickle.loads(payload)
    return enclose(lambda: _dump_locked(work).to_dict())


def dump_unlocked(payload: bytes) -> bytes:
    """Spark task for `none`: dump each chunk as it is when it is read; the outcome is a Share."""
    work: ChunkWork = pickle.loads(payload)
    return enclose(lambda: _dump_unlocked(work).to_dict())


def _dump_locked(work: ChunkWork) -> Share:
    """Run the steps. Each task passes the barrier twice, even if it has failed: else the others would wait for ever."""
    passed = 0
    own = True

    def wait() -> bool:
        nonlocal passed, own
        passed += 1
        own = False  # a barrier that fails ends the stage, which Spark runs again
        work.wait()
        own = True
        return not work.failed.exists()

    try:
        with ExitStack() as open_connections:
            return _steps(work, open_connections, wait)
    except BaseException:
        if own:
            with suppress(OSError):
                work.failed.touch()
        raise
    finally:
        while passed < 2:
            wait()


def _steps(work: ChunkWork, stack: ExitStack, wait: Callable[[], bool]) -> Share:
    """Return the task's share; an empty one where `wait` tells that another task has failed."""
    plain = stack.enter_context(reader(work.endpoint, text=True))
    bulk = stack.enter_context(reader(work.endpoint, text=False))
    lock = None
    if work.index == 0:
        holder = stack.enter_context(reader(work.endpoint, text=True))
        _lock(holder, work)
        lock = stack.enter_context(_signs_of_life(holder))
    if not wait():
        return Share((), ())
    start_snapshot(bulk)
    there = {name for name in sorted({c.table for c in work.chunks}.union(work.tables)) if touch(bulk, name)}
    chunks = [chunk for chunk in work.chunks if chunk.table in there]
    structures = _Structures(lambda: nullcontext(plain), bulk)
    files = [_dump_chunk(work, bulk, structures, chunk) for chunk in chunks if not chunk.transactional]
    location: Location | None = None
    listed: tuple[TableName, ...] = ()
    if lock is not None:
        location, listed = lock(locate), _selected(lock(list_names), work.selection)
        if made := set(listed).difference(work.all_tables):
            raise DumpError("DUMP-001", Where(table=", ".join(map(str, sorted(made)))))
    if not wait():
        return Share((), ())
    if lock is not None:
        lock(lambda holder: ask(holder, "UNLOCK TABLES"))
    for name in there:  # all before the first row: `plain` may have idled for too long afterwards
        structures.of(name)
    files += [_dump_chunk(work, bulk, structures, chunk) for chunk in chunks if chunk.transactional]
    tables = tuple(structures.with_counter(name) for name in work.tables if name in there)
    return Share(tuple(files), tables, location, listed)


def _selected(names: Iterable[TableName], selection: TableSelection) -> tuple[TableName, ...]:
    takes = selection.takes()
    return tuple(name for name in names if name.schema.lower() not in SYSTEM_SCHEMAS and takes(name))


def _dump_unlocked(work: ChunkWork) -> Share:
    with reader(work.endpoint, text=False) as bulk:
        structures = _Structures(partial(reader, work.endpoint, text=True), bulk)
        files = [_dump_chunk(work, bulk, structures, chunk) for chunk in work.chunks]
        tables = tuple(map(structures.with_counter, work.tables))
    return Share(tuple(files), tables)


def _lock(connection: Any, work: ChunkWork) -> None:
    """Lock writers out; the source releases the lock when it hears nothing from us for LOCK_IDLE_SECONDS.

    Raises DumpError DUMP-004 when the server doesn't grant it in time or at all.
    """
    statement = "FLUSH TABLES WITH READ LOCK"
    if work.consistency == "lock":
        statement = "LOCK TABLES " + ", ".join(f"{name.quoted} READ" for name in work.all_tables)
    try:
        ask(connection, f"SET @@session.wait_timeout = {LOCK_IDLE_SECONDS}")
        ask(connection, statement)
    except MySQLdb.Error as error:
        if ends_connection(error) or error.args[0] in NO_SUCH_TABLE:
            raise
        cause = f"{error.args[0]}: {error.args[-1]}"
        raise DumpError("DUMP-004", cause=cause, values={"statement": statement[:200]}) from error


@contextmanager
def _signs_of_life(connection: Any) -> Iterator[Callable[[Callable[[Any], Result]], Result]]:
    """Keep the connection that holds the lock from idling, however long the other tasks read under it.

    Yields a function that calls another one with the connection. A lost connection fails the next such call: the
    location is of no use unless the lock lasted until it was released.
    """
    in_use, ended = threading.Lock(), threading.Event()

    def call(operation: Callable[[Any], Result]) -> Result:
        with in_use:
            return operation(connection)

    def signal() -> None:
        with suppress(MySQLdb.Error):
            while not ended.wait(LOCK_IDLE_SECONDS / _SIGNS):
                call(lambda holder: ask(holder, "DO 0"))

    thread = threading.Thread(target=signal, name="lock", daemon=True)
    thread.start()
    try:
        yield call
    finally:
        ended.set()
        thread.join()


class _Structures:
    """The structures and counters of tables, each of which is read once in a task; `bulk` is what reads rows.

    `plain` opens the connection that they are read from, for each table: it would idle while rows are read.
    """

    def __init__(self, plain: Callable[[], AbstractContextManager[Any]], bulk: Any) -> None:
        self._plain, self._bulk = plain, bulk
        self._known: dict[TableName, tuple[Table, int | None]] = {}

    def of(self, name: TableName) -> Table:
        """Return the structure as the server has it. Raises DumpError DUMP-001 when the table does not exist."""
        return self.with_counter(name)[0]

    def with_counter(self, name: TableName) -> tuple[Table, int | None]:
        """Return the structure, and the next AUTO_INCREMENT value as it was then. Raises as `of`."""
        if name not in self._known:
            with self._plain() as connection:
                table = read_table(connection, name)
                if table is None:
                    raise DumpError("DUMP-001", Where(table=str(name)))
                self._known[name] = with_true_defaults(self._bulk, table), next_counter(connection, name)
        return self._known[name]


def _dump_chunk(work: ChunkWork, bulk: Any, structures: _Structures, chunk: TableChunk) -> ChunkFiles:
    """Dump a chunk. Raises DumpError DUMP-001 where the table is not as it was when the dump was planned.

    In a dump under a lock the table has been touched, so it is as it was under the lock. One without snapshots that was
    planned as one with them would be read after the lock, and a range misses rows whose key may be NULL by now.
    """
    table = structures.of(chunk.table)
    if not fits(chunk, table) or (chunk.transactional and not has_snapshots(table)):
        raise DumpError("DUMP-001", Where(table=str(chunk.table)))
    raw = raw_names(table, work.limits.format)
    batches = read_rows(bulk, table, (work.where, chunk.condition), raw=raw)
    files = write_files(parts_folder(work.directory, work.run), table, batches, work.limits)
    return ChunkFiles(chunk.table, chunk.number, tuple(files))
