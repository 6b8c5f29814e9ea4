"""Dumps without a lock: tables from several snapshots. The binlog location of a table's snapshot is in its record."""

from __future__ import annotations

import pickle
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import MySQLdb

from unshard.dump.files import data_name
from unshard.dump.metadata import DumpedFile, Record, parts_folder, read_record, write_record
from unshard.dump.plan import TRANSACTIONAL, key_ranges
from unshard.dump.ranges import RANGES_A_READER, read_ranges
from unshard.dump.read import read_rows
from unshard.dump.true_defaults import with_true_defaults
from unshard.dump.write import FileLimits, raw_names, remove_parts, write_files
from unshard.errors import DumpError, UnshardError, Where, enclose
from unshard.model.position import Location, Position
from unshard.model.table import Table, TableName
from unshard.mysql.connection import Endpoint, server_error
from unshard.mysql.structure import NO_SUCH_TABLE, read_table
from unshard.retry import retrying
from unshard.source.exact_positions import ExactPositions
from unshard.source.snapshot import ask, next_counter, open_reader, snapshots_apart_from_xa

_CHANGED_SINCE_SNAPSHOT = 1412
_LOCK_WAIT = 1205
_DDL_WAIT = "SET STATEMENT lock_wait_timeout = 1 FOR "
"""Begins a statement that waits for a DDL for a second at most."""
_VIEW_OF_NOTHING = 1356
_SEQUENCE = re.compile(r"\n\) ENGINE=\w+ SEQUENCE=1")
_ENGINE = re.compile(r"\n\) ENGINE=(\w+)")


@dataclass(frozen=True, slots=True)
class TableWork:
    """The tables that one Spark task dumps, one after another, into the run's folder.

    Those of a group have one snapshot; unless `together`, only if no DDL comes between. `where` is a condition on the
    rows, "" for none. `readers` is how many connections read a table side by side. No snapshot may lack what
    lies before `begin`.
    """

    endpoint: Endpoint
    directory: Path
    run: str
    groups: tuple[tuple[TableName, ...], ...]
    where: str
    limits: FileLimits
    begin: Position
    together: bool = False
    readers: int = 1


def dump_tables(payload: bytes) -> bytes:
    """Spark task: dump each table of a pickled TableWork that has no record yet; the number of tables as outcome.

    Safe to run again and at the same time as another attempt: the first record of a table stays.
    """
    work: TableWork = pickle.loads(payload)
    readers = _Readers(work.endpoint, work.readers, work.begin)
    try:
        return enclose(lambda: sum(_dump_group(work, names, readers) for names in work.groups))
    finally:
        readers.close()


def _dump_group(work: TableWork, names: tuple[TableName, ...], readers: _Readers) -> int:
    left = tuple(name for name in names if read_record(work.directory, work.run, name) is None)
    if len(left) > 1 and not work.together:
        _dump_unless_ddl(work, left, readers)
    elif left:
        _dump_snapshot(work, names if work.together else left, readers)
    return len(names)


def _dump_unless_ddl(work: TableWork, names: tuple[TableName, ...], readers: _Readers) -> None:
    """Dump several tables from one snapshot; each from its own where a DDL on one of them, or a failure, prevents it.

    Else a DDL on one table would hold up the others, and the tables that are held then would hold up other DDLs.
    """
    try:
        _write(work, readers.with_all(partial(_snapshot_tables, work, names, wait=_DDL_WAIT)))
    except UnshardError as error:
        if not _again(error):
            raise
        for name in names:
            _dump_snapshot(work, (name,), readers)


def _dump_snapshot(work: TableWork, names: tuple[TableName, ...], readers: _Readers) -> None:
    """Dump tables from one snapshot, which is taken again after a DDL and after failures that pass."""
    _write(work, retrying(lambda: readers.with_all(partial(_snapshot_tables, work, names)), _again))


def _write(work: TableWork, records: Sequence[Record]) -> None:
    for record in records:
        if not write_record(work.directory, work.run, record):
            remove_parts(parts_folder(work.directory, work.run), record.files)


def _again(error: Exception) -> bool:
    return isinstance(error, UnshardError) and (error.retryable or error.code == "DUMP-010")


class _Readers:
    """The connections of a task, which are kept from table to table: a plain one and those for the snapshots."""

    def __init__(self, endpoint: Endpoint, count: int, begin: Position | None = None) -> None:
        self._endpoint = endpoint
        self._begin = begin
        self._count = count
        self._open = ExitStack()
        self._all: tuple[Any, tuple[Any, ...], ExactPositions] | None = None

    def with_all(
        self, operation: Callable[[Any, tuple[Any, ...], ExactPositions], tuple[Record, ...]]
    ) -> tuple[Record, ...]:
        """Return the result of `operation(plain, bulks, exact)`. After any failure all are in doubt and are closed."""
        try:
            if self._all is None:
                plain = self._open.enter_context(reader(self._endpoint, text=True))
                bulks = [self._open.enter_context(reader(self._endpoint, text=False)) for _ in range(self._count)]
                self._all = plain, tuple(bulks), ExactPositions(self._begin)
            records = operation(*self._all)
            self._end_snapshots(self._all[1])
            return records
        except MySQLdb.Error as error:
            self.close()
            raise _translated(error, self._endpoint) from error
        except BaseException:
            self.close()
            raise

    def _end_snapshots(self, bulks: tuple[Any, ...]) -> None:
        """End the transactions, whose metadata locks would hold up a DDL; or all connections, if one is lost by now."""
        try:
            for bulk in bulks:
                ask(bulk, "ROLLBACK")
        except MySQLdb.Error:  # it may have had nothing to read for long, and all rows are read
            self.close()

    def close(self) -> None:
        """Close the open connections. Idempotent."""
        self._all = None
        self._open.close()


def _snapshot_tables(
    work: TableWork,
    names: tuple[TableName, ...],
    plain: Any,
    bulks: tuple[Any, ...],
    exact: ExactPositions,
    wait: str = "",
) -> tuple[Record, ...]:
    tables, location, same = _open_snapshot(plain, bulks, names, wait, exact)
    # before the first row: `plain` may have idled for too long afterwards
    counters = {table.name: next_counter(plain, table.name) for table in tables if not table.is_absent}
    records, parts = [], parts_folder(work.directory, work.run)
    for table in tables:
        if table.is_absent:
            records.append(Record(table, location, ()))
            continue
        # asked of a session that has the table's metadata lock: another one would queue behind a DDL that waits for it
        ranges = key_ranges(bulks[0], table, RANGES_A_READER * same) if same > 1 else [""]
        if len(ranges) > 1:
            files = read_ranges(bulks[:same], table, work.where, ranges, parts, work.limits)
        else:
            batches = read_rows(bulks[0], table, (work.where,), raw=raw_names(table, work.limits.format))
            files = write_files(parts, table, batches, work.limits)
        records.append(Record(table, location, named(table, files, work.limits), counters[table.name]))
    return tuple(records)


def _open_snapshot(
    plain: Any,
    bulks: tuple[Any, ...],
    names: tuple[TableName, ...],
    wait: str = "",
    exact: ExactPositions | None = None,
) -> tuple[list[Table], Location, int]:
    """Start a snapshot on `bulks`; return the tables' structures in it, its location, and how many of `bulks` have it.

    Touching a table takes its metadata lock until the transaction ends, so that no DDL can change it from then on.
    `plain` touches the tables before the snapshot and `bulks` after it, so the name belongs to one table all the time:
    a snapshot reads what has the name now, and a table that has got the name since then may have the same structure. A
    DDL that waits between the two lets them wait too, and they give up. A name without a table is returned as absent,
    which is a valid structure: the log has its DROP or RENAME. So is the name of a view or of a sequence, which a
    statement of the log may have named. `wait`: how long `plain` waits for a DDL, as `touch` takes it.
    `exact`: what is known of the log from earlier snapshots of these connections.

    Raises DumpError DUMP-001 for a table that has no snapshots, DUMP-010 when a table was changed just now, DUMP-011
    when XA transactions are committed all the time, DUMP-015 when no position was confirmed.
    """
    ask(plain, "START TRANSACTION")
    there = [_is_there(plain, name, wait) for name in names]
    location, same = snapshots_apart_from_xa(bulks, plain, exact)
    for bulk in bulks[:same]:
        for name, was_there in zip(names, there, strict=True):
            if _is_there(bulk, name, _DDL_WAIT) != was_there:
                raise DumpError("DUMP-010", Where(table=str(name)))
    ask(plain, "COMMIT")
    found = [read_table(plain, name) if was_there else None for name, was_there in zip(names, there, strict=True)]
    tables = [table if table is not None and _is_table(table) else None for table in found]
    for table in tables:
        if table is not None and not has_snapshots(table):
            raise DumpError("DUMP-001", Where(table=str(table.name)))
    tables = [with_true_defaults(bulks[0], table) if table is not None else None for table in tables]
    return [table or Table.absent(name) for name, table in zip(names, tables, strict=True)], location, same


def _is_there(connection: Any, name: TableName, wait: str) -> bool:
    """Touch a table. Raises DumpError DUMP-010 where a DDL keeps it for longer than `wait` allows."""
    try:
        return touch(connection, name, wait)
    except MySQLdb.Error as error:
        if not wait or error.args[0] != _LOCK_WAIT:
            raise
        raise DumpError("DUMP-010", Where(table=str(name)), cause=str(error.args[-1])) from error


def touch(connection: Any, name: TableName, settings: str = "") -> bool:
    """Take a table's metadata lock until the transaction ends; return whether there is such a table.

    `settings`: MariaDB's SET STATEMENT … FOR, or nothing.
    """
    try:
        ask(connection, f"{settings}SELECT 1 FROM {name.quoted} LIMIT 1")
    except MySQLdb.Error as error:
        if error.args[0] not in (*NO_SUCH_TABLE, _VIEW_OF_NOTHING):
            raise
        return False
    return True


def _is_table(table: Table) -> bool:
    """Return whether it is a base table, and no view or sequence, which can be selected from too."""
    return table.create_sql.startswith("CREATE TABLE") and not _SEQUENCE.search(table.create_sql)


def has_snapshots(table: Table) -> bool:
    """Return whether the table still has an engine with snapshots: an ALTER or a RENAME may have changed that.

    The answer comes from the table's own statement: a list of tables opens all of them, and may wait for a DDL that
    waits for this snapshot.
    """
    engine = _ENGINE.search(table.create_sql)
    return engine is not None and engine[1].lower() == TRANSACTIONAL


@contextmanager
def reader(endpoint: Endpoint, *, text: bool) -> Iterator[Any]:
    """Open a dumping connection, closed at the end; the driver's errors become ours."""
    connection = None
    try:
        connection = open_reader(endpoint, text=text)
        yield connection
    except MySQLdb.Error as error:
        raise _translated(error, endpoint) from error
    finally:
        if connection is not None:
            connection.close()


def _translated(error: MySQLdb.Error, endpoint: Endpoint) -> UnshardError:
    number = error.args[0] if error.args else 0
    if number in NO_SUCH_TABLE:
        return DumpError("DUMP-001", cause=str(error.args[-1]))
    if number == _CHANGED_SINCE_SNAPSHOT:
        return DumpError("DUMP-010", cause=str(error.args[-1]))
    return server_error(error, endpoint, "source", "reading a table")


def named(table: Table, files: Sequence[DumpedFile], limits: FileLimits) -> tuple[DumpedFile, ...]:
    """Return the files with their final names, numbered from 1."""
    return tuple(
        replace(file, name=data_name(table.name, number, limits.format)) for number, file in enumerate(files, 1)
    )
