"""Dumping from snapshots that start together under a lock, and dumping with no common snapshot at all.

The steps of a locked dump, in which `wait` is the barrier of all tasks:

    task 0: take the lock        all: wait
    all: start the snapshot, touch every table of theirs, read what is not transactional
    task 0: read the location    all: wait
    task 0: unlock               all: read their chunks
"""

from __future__ import annotations

import pickle
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import MySQLdb

from unshard.dump.lock_free import reader
from unshard.dump.metadata import DumpedFile, location_form, location_from, parts_folder
from unshard.dump.outcome import enclose
from unshard.dump.plan import Chunk, Resolved
from unshard.dump.read import read_rows
from unshard.dump.write import FileLimits, write_files
from unshard.errors import DumpError, Where
from unshard.model.position import Location
from unshard.model.table import Table, TableName
from unshard.mysql.connection import Endpoint
from unshard.mysql.structure import read_table
from unshard.source.snapshot import ask, list_names, locate, next_counter, start_snapshot


@dataclass(frozen=True, slots=True)
class ChunkWork:
    """One task's chunks. `tables` are those whose structure this task reads, `all_tables` those of the dump."""

    index: int
    endpoint: Endpoint
    directory: Path
    run: str
    consistency: Resolved
    chunks: tuple[Chunk, ...]
    tables: tuple[TableName, ...]
    all_tables: tuple[TableName, ...]
    where: str
    limits: FileLimits
    wait: Callable[[], None]


@dataclass(frozen=True, slots=True)
class ChunkFiles:
    """What a chunk has become."""

    table: TableName
    number: int
    files: tuple[DumpedFile, ...]


@dataclass(frozen=True, slots=True)
class Share:
    """What a task gives back. `location` and `listed` come from task 0: the source under the lock."""

    files: tuple[ChunkFiles, ...]
    tables: tuple[tuple[Table, int | None], ...]
    location: Location | None = None
    listed: tuple[TableName, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        return {
            "files": [asdict(chunk) for chunk in self.files],
            "tables": [[table.to_dict(), counter] for table, counter in self.tables],
            "location": location_form(self.location) if self.location else None,
            "listed": [asdict(name) for name in self.listed],
        }

    @classmethod
    def from_dict(cls, form: dict[str, Any]) -> Share:
        return cls(
            tuple(
                ChunkFiles(TableName(**c["table"]), c["number"], tuple(DumpedFile(**f) for f in c["files"]))
                for c in form["files"]
            ),
            tuple((Table.from_dict(table), counter) for table, counter in form["tables"]),
            location_from(form["location"]) if form["location"] else None,
            tuple(TableName(**name) for name in form["listed"]),
        )


def dump_locked(payload: bytes) -> bytes:
    """Spark barrier task: dump the chunks of a pickled ChunkWork; a Share as outcome."""
    work: ChunkWork = pickle.loads(payload)
    return enclose(lambda: _dump_locked(work).to_dict())


def dump_unlocked(payload: bytes) -> bytes:
    """Spark task for `none`: each chunk as it is when it is read; a Share as outcome."""
    work: ChunkWork = pickle.loads(payload)
    return enclose(lambda: _dump_unlocked(work).to_dict())


def _dump_locked(work: ChunkWork) -> Share:
    """Every task passes the barrier twice, also one that has failed: otherwise the others would wait for ever."""
    passed = 0

    def wait() -> None:
        nonlocal passed
        passed += 1
        work.wait()

    try:
        with ExitStack() as open_connections:
            return _steps(work, open_connections, wait)
    finally:
        while passed < 2:
            wait()


def _steps(work: ChunkWork, stack: ExitStack, wait: Callable[[], None]) -> Share:
    plain = stack.enter_context(reader(work.endpoint, text=True))
    bulk = stack.enter_context(reader(work.endpoint, text=False))
    lock = stack.enter_context(reader(work.endpoint, text=True)) if work.index == 0 else None
    if lock is not None:
        _lock(lock, work)
    wait()
    start_snapshot(bulk)
    for name in sorted({chunk.table for chunk in work.chunks}.union(work.tables)):
        ask(bulk, f"SELECT 1 FROM {name.quoted} LIMIT 1")
    structures = _Structures(plain)
    files = [_dump_chunk(work, bulk, structures, chunk) for chunk in work.chunks if not chunk.transactional]
    location: Location | None = None
    listed: tuple[TableName, ...] = ()
    if lock is not None:
        location, listed = locate(lock), list_names(lock)
    wait()
    if lock is not None:
        ask(lock, "UNLOCK TABLES")
    files += [_dump_chunk(work, bulk, structures, chunk) for chunk in work.chunks if chunk.transactional]
    tables = tuple((structures.of(name), next_counter(plain, name)) for name in work.tables)
    return Share(tuple(files), tables, location, listed)


def _dump_unlocked(work: ChunkWork) -> Share:
    with reader(work.endpoint, text=True) as plain, reader(work.endpoint, text=False) as bulk:
        structures = _Structures(plain)
        files = [_dump_chunk(work, bulk, structures, chunk) for chunk in work.chunks]
        tables = tuple((structures.of(name), next_counter(plain, name)) for name in work.tables)
    return Share(tuple(files), tables)


def _lock(connection: Any, work: ChunkWork) -> None:
    """Hold writers back. Raises DumpError DUMP-004 when the server doesn't grant it in time or at all."""
    statement = "FLUSH TABLES WITH READ LOCK"
    if work.consistency == "lock":
        statement = "LOCK TABLES " + ", ".join(f"{name.quoted} READ" for name in work.all_tables)
    try:
        ask(connection, statement)
    except MySQLdb.Error as error:
        cause = f"{error.args[0]}: {error.args[-1]}"
        raise DumpError("DUMP-004", cause=cause, values={"statement": statement[:200]}) from error


class _Structures:
    """Structures read once a table and task."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection
        self._known: dict[TableName, Table] = {}

    def of(self, name: TableName) -> Table:
        """The structure as the server has it. Raises DumpError DUMP-001 when the table is gone."""
        if name not in self._known:
            table = read_table(self._connection, name)
            if table is None:
                raise DumpError("DUMP-001", Where(table=str(name)))
            self._known[name] = table
        return self._known[name]


def _dump_chunk(work: ChunkWork, bulk: Any, structures: _Structures, chunk: Chunk) -> ChunkFiles:
    table = structures.of(chunk.table)
    batches = read_rows(bulk, table, (work.where, chunk.condition))
    files = write_files(parts_folder(work.directory, work.run), table, batches, work.limits)
    return ChunkFiles(chunk.table, chunk.number, tuple(files))
