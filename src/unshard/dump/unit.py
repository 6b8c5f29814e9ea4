"""The dump unit: a source's tables into a folder, with the binlog location from which to go on."""

from __future__ import annotations

import os
import pickle
import time
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from unshard.ddl.sandbox import show_create_database
from unshard.dump.folder import begin, go_on, header_to_resume, publish, refuse_lacking, wipe
from unshard.dump.lock_free import TableWork, dump_tables, named
from unshard.dump.locked import ChunkWork, Share, dump_locked, dump_unlocked
from unshard.dump.metadata import (
    Dump,
    DumpedFile,
    DumpHeader,
    DumpResult,
    FinishedFiles,
    Record,
    drop_record,
    failure_mark,
    finish,
    parts_folder,
    read_dump,
    read_header,
    read_record,
    read_records,
    too_early,
    write_header,
    write_record,
)
from unshard.dump.plan import Listed, TableChunk, readers_of, shares, snapshot_groups, split, whole
from unshard.dump.progress import table_progress
from unshard.dump.settings import DumpSettings
from unshard.dump.write import remove_parts
from unshard.errors import DumpError, SourceError, UnshardError, Where, disclose
from unshard.log import logger
from unshard.model.position import Location
from unshard.model.progress import Progress, TableProgress
from unshard.model.table import TableName
from unshard.mysql.connection import READ_SECONDS, Endpoint, rows, session
from unshard.mysql.structure import cascading_families, read_table, table_names
from unshard.retry import ATTEMPTS, retrying
from unshard.run_tasks import RunTasks
from unshard.source.snapshot import locate
from unshard.transform.source_rules import TableSelection

LOST = "DUMP-012"
_RESTARTS = 3

Crossed = Callable[[DumpResult], frozenset[TableName] | None]
"""Returns the tables of a dump that are named by a statement of the log between their snapshots; None: stopped."""


class DumpUnit:
    """One source's dump.

    `selection` says which tables belong to it. `slots` is how many tasks Spark can run at once: a barrier stage must
    not have more. `barrier_wait` is called in tasks of a barrier stage and must pickle by name.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        source: str,
        settings: DumpSettings,
        selection: TableSelection,
        run_tasks: RunTasks,
        barrier_wait: Callable[[], None],
        *,
        slots: int,
    ) -> None:
        self._endpoint = endpoint
        self._source = source
        self._settings = settings
        self._directory = settings.directory
        self._selection = selection
        self._allows = selection.takes()
        self._run_tasks = run_tasks
        self._barrier_wait = barrier_wait
        self._slots = slots
        self._finished = FinishedFiles()
        self._rows_before: int | None = None
        self._begun = 0.0

    def run(self) -> DumpResult:
        """Dump what is not dumped yet; blocks until all of it is durable. Raises as `run_apart_from`."""
        found = self.run_apart_from(lambda _: frozenset())
        assert found is not None, "nothing has stopped it"
        return found

    def run_apart_from(self, crossed: Crossed) -> DumpResult | None:
        """Dump what is not dumped yet; blocks until all of it is durable. Raises DumpError or SourceError.

        A finished dump is only read back, and refused where the rules select tables that it lacks (DUMP-014).

        `crossed` is called for a lock-free dump before it is finished: the tables that it returns are dumped again,
        from one snapshot for all of them. Where it returns None (stopped), the dump stays unfinished and None is
        returned.

        May be called again after any crash, with the same settings: a lock-free dump goes on with the tables that are
        not finished, any other starts from nothing. It does so itself when the set of tables changes, and when
        connections are lost, under the one retry policy.
        """
        self._rows_before = None
        for restart in range(_RESTARTS + 1):
            try:
                return retrying(partial(self._run, crossed), _is_lost)
            except UnshardError as error:
                if error.code != "DUMP-001" or restart == _RESTARTS:
                    raise error.at(source=self._source) from error
                self._rows_before = 0
                wipe(self._directory)
        raise AssertionError("the last restart returns or raises")

    def progress(self) -> Progress:
        """Return how far the dump is, from the folder alone: cheap, from any thread, at any time."""
        header = read_header(self._directory)
        if header is None:
            return Progress()
        records = self._finished.of(self._directory, header.run)
        files = [file for files in records.values() for file in files]
        size = sum(file.size for file in files)
        rows = sum(file.rows for file in files)
        return Progress(
            tables_done=len(records),
            tables_total=len(header.tables),
            rows_done=rows,
            rows_total_estimate=rows if header.finished else max(rows, header.rows_estimate),
            bytes_done=size + _growing(parts_folder(self._directory, header.run), {file.part for file in files}),
            bytes_total=size if header.finished else 0,
            rows_before=rows if self._rows_before is None else self._rows_before,
        )

    def tables(self) -> tuple[TableProgress, ...]:
        """Return each table's progress, from the folder alone. Any thread may ask: it lists two folders with sizes.

        Rows of a table count when one of its files is whole.
        """
        header = read_header(self._directory)
        if header is None:
            return ()
        records = self._finished.of(self._directory, header.run)
        return table_progress(header, records, parts_folder(self._directory, header.run), self._begun)

    def _run(self, crossed: Crossed) -> DumpResult | None:
        self._begun = time.time()
        header = header_to_resume(self._settings, self._source)
        if self._rows_before is None:
            self._rows_before = self.progress().rows_done
        if header is None or not header.finished:
            header, listed, chunks = self._begin(header)
            if header.consistency == "lock-free":
                settled = self._dump_lock_free(header, listed, crossed)
                if settled is None:
                    return None
                header = settled
            else:
                header = self._dump_chunks(header, listed, chunks)
            publish(self._directory, header)
            finish(self._directory, header)
        elif header.selection != self._selection.to_dict():
            self._refuse_lacking(header)
        return read_dump(self._directory).result

    def _begin(self, header: DumpHeader | None) -> tuple[DumpHeader, Sequence[Listed], list[TableChunk]]:
        """Return the plan of the dump.

        The connection ends here: a long dump would let it idle past the source's timeout.
        """
        try:
            with session(self._endpoint, "source", patience_seconds=READ_SECONDS) as connection:
                if header is None:
                    header, listed = begin(connection, self._settings, self._source, self._selection)
                else:
                    header, listed = go_on(connection, self._settings, header, self._selection)
                return header, listed, [] if header.consistency == "lock-free" else self._chunks(connection, listed)
        except SourceError as error:
            raise _lost(error) from error

    def _refuse_lacking(self, header: DumpHeader) -> None:
        """Raise DumpError DUMP-014 where the finished dump lacks tables that the present rules select."""
        try:
            with session(self._endpoint, "source") as connection:
                refuse_lacking(connection, self._directory, header, self._selection)
        except SourceError as error:
            raise _lost(error) from error

    def _dump_lock_free(self, header: DumpHeader, listed: Sequence[Listed], crossed: Crossed) -> DumpHeader | None:
        """Dump the tables from several snapshots, then again, from one snapshot, the tables that a statement crosses.

        Tables that cascading foreign keys connect have one snapshot: MariaDB does not log the rows that a cascade
        changes. A DELETE of a parent row that lies between the snapshots of two such tables would be run in the target
        for a child that has its rows of a later moment, or not be run for one that has those of an earlier moment.

        The tables are listed once more after the first have been dumped, and those that are new are dumped too: MariaDB
        does not list a table in the moment in which ALTER TABLE, RENAME TABLE or CREATE OR REPLACE changes its files.

        All tables that were ever crossed stay together: each time there are more of them, and at most all tables.
        Returns the header, which may have more tables by then; None where `crossed` was stopped.
        """
        self._dump_missing(header, listed)
        header = self._with_tables(header)
        self._dump_missing(header, listed)
        together: frozenset[TableName] = frozenset()
        while names := crossed(Dump(self._directory, header, read_records(self._directory, header)).result):
            together |= self._with_families(header, names)
            words = {"tables": len(together), "first": ", ".join(map(str, sorted(together)[:3]))}
            logger("dump", source=self._source).info("a statement crosses snapshots: copied again together", **words)
            header = self._with_tables(header, together)
            self._forget(header, together)
            self._dump_works([self._work(header, [sorted(together)], together=True)])
        assert not too_early(read_records(self._directory, header), header), "what lies before is not followed"
        return None if names is None else header

    def _dump_missing(self, header: DumpHeader, listed: Sequence[Listed]) -> None:
        """Dump the tables that have no record: large ones by several ranges, small ones several from a snapshot."""
        sizes = {table.name: table.size for table in listed}
        self._forget(header, too_early(read_records(self._directory, header), header))
        done = read_records(self._directory, header)
        families = {
            family
            for family in self._families(header)
            if not family <= done.keys() or len({done[name].location for name in family}) > 1
        }
        self._forget(header, done.keys() & frozenset().union(*families))
        apart = set(header.tables).difference(done, *families)
        readers = readers_of([table for table in listed if table.name in apart], self._settings.threads)
        most = 1 if self._settings.follows else self._settings.threads
        works = [self._work(header, [sorted(family)], together=True, readers=most) for family in families]
        works += [self._work(header, [(name,)], readers=count) for name, count in readers.items()]
        others = sorted(apart.difference(readers))
        threads = max(1, self._settings.threads - sum(readers.values()))
        dealt = shares(others, [sizes.get(name, 0) for name in others], threads)
        self._dump_works(works + [self._work(header, snapshot_groups(names, sizes)) for names in dealt])

    def _families(self, header: DumpHeader) -> set[frozenset[TableName]]:
        """Return the tables that must have one snapshot, several at a time: those that cascading foreign keys connect.

        All of them where no log is followed afterwards, which would bring them to one moment.
        """
        if not self._settings.follows:
            return {frozenset(header.tables)} if len(header.tables) > 1 else set()
        try:
            with session(self._endpoint, "source", patience_seconds=READ_SECONDS) as connection:
                known = cascading_families(connection)
        except SourceError as error:
            raise _lost(error) from error
        found: dict[TableName, set[TableName]] = {}
        for name in known.keys() & set(header.tables):
            found.setdefault(known[name], set()).add(name)
        return {frozenset(names) for names in found.values() if len(names) > 1}

    def _with_families(self, header: DumpHeader, names: frozenset[TableName]) -> frozenset[TableName]:
        return names.union(*(family for family in self._families(header) if family & names))

    def _forget(self, header: DumpHeader, names: Collection[TableName]) -> None:
        """Remove what is dumped of these tables, also what an earlier attempt has published. Idempotent."""
        for name in names:
            record = read_record(self._directory, header.run, name)
            if record is not None:
                remove_parts(parts_folder(self._directory, header.run), record.files)
                for file in record.files:
                    (self._directory / file.name).unlink(missing_ok=True)
            drop_record(self._directory, header.run, name)
        self._finished = FinishedFiles()

    def _work(
        self, header: DumpHeader, groups: Sequence[Sequence[TableName]], *, together: bool = False, readers: int = 1
    ) -> TableWork:
        where, limits, named = self._settings.where, self._settings.limits, tuple(map(tuple, groups))
        dump = self._endpoint, self._directory, header.run
        return TableWork(*dump, named, where, limits, header.begin.position, together, readers)

    def _dump_works(self, works: Sequence[TableWork]) -> None:
        for outcome in self._run_tasks([pickle.dumps(work) for work in works], dump_tables):
            disclose(outcome)

    def _with_tables(self, header: DumpHeader, names: Collection[TableName] | None = None) -> DumpHeader:
        """Write the header with tables that were not listed when the dump began, and with their schemas; return it.

        They are `names`, or the tables that are listed now.
        """
        try:
            with session(self._endpoint, "source") as connection:
                listed = {name for name in table_names(connection) if self._allows(name)}
                names = listed if names is None else names
                schemas = {name.schema for name in listed.intersection(names)}.difference(header.databases)
                made = {schema: show_create_database(connection, schema) for schema in schemas}
        except SourceError as error:
            raise _lost(error) from error
        found = {schema: statement for schema, statement in made.items() if statement is not None}
        tables = tuple(sorted({*header.tables, *names}))
        if len(tables) > len(header.tables):
            header = replace(header, tables=tables, databases=header.databases | found)
            write_header(self._directory, header)
        return header

    def _dump_chunks(self, header: DumpHeader, listed: Sequence[Listed], chunks: Sequence[TableChunk]) -> DumpHeader:
        """Dump by chunks; return the header with the location that was found."""
        works = self._chunk_works(header, chunks, {t.name: t.rows for t in listed})
        payloads = [pickle.dumps(work) for work in works]
        if header.consistency == "none":
            outcomes = self._run_tasks(payloads, dump_unlocked)
            header = replace(header, end=retrying(self._newest))
        else:
            failure_mark(self._directory, header.run).unlink(missing_ok=True)
            outcomes = self._run_tasks(payloads, dump_locked, barrier=True)
        try:
            found = [Share.from_dict(disclose(outcome)) for outcome in outcomes]
        except SourceError as error:
            raise _lost(error) from error
        if header.consistency != "none" and found:
            there = {table.name for share in found for table, _ in share.tables}
            header = replace(header, tables=tuple(name for name in header.tables if name in there))
            header = self._located(header, found[0])
        _write_records(self._directory, header, found, self._settings)
        return header

    def _newest(self) -> Location:
        with session(self._endpoint, "source") as connection:
            return locate(connection)

    def _chunks(self, connection: Any, listed: Sequence[Listed]) -> list[TableChunk]:
        """Cut the tables into chunks. The session then has the sql_mode of the sessions that read the rows."""
        rows(connection, "SET @@session.sql_mode = ''")  # bounds are written with backslashes, and may be zero dates
        chunks: list[TableChunk] = []
        limit = self._settings.limits.rows
        for table in listed:
            structure = read_table(connection, table.name) if table.rows > limit else None
            chunks += [whole(table)] if structure is None else split(connection, table, structure, limit)
        return chunks

    def _chunk_works(
        self, header: DumpHeader, chunks: Sequence[TableChunk], rows: dict[TableName, int]
    ) -> list[ChunkWork]:
        most = 2 * self._settings.limits.rows  # a range may hold more rows than was estimated
        limits = replace(self._settings.limits, rows=most, first_rows=0)
        counts = Counter(chunk.table for chunk in chunks)
        weights = [rows[chunk.table] // counts[chunk.table] for chunk in chunks]
        tasks = min(self._settings.threads, self._slots)
        return [
            ChunkWork(
                index=index,
                endpoint=self._endpoint,
                directory=self._directory,
                run=header.run,
                consistency=header.consistency,
                chunks=tuple(share),
                tables=tuple(chunk.table for chunk in share if chunk.number == 0),
                all_tables=header.tables,
                selection=self._selection,
                where=self._settings.where,
                limits=limits,
                wait=self._barrier_wait,
            )
            for index, share in enumerate(shares(chunks, weights, tasks))
        ]

    def _located(self, header: DumpHeader, first: Share) -> DumpHeader:
        """Return the header with the location under the lock. Raises DumpError DUMP-001 if the tables were others."""
        if (changed := set(first.listed).symmetric_difference(header.tables)) or first.location is None:
            raise DumpError("DUMP-001", Where(table=", ".join(map(str, sorted(changed)))))
        return replace(header, begin=first.location)


def _lost(error: SourceError) -> UnshardError:
    """Return the error for a dump that can't go on in the middle: where it may help, one on which it starts over."""
    return DumpError(LOST, error.where, cause=str(error), values={"attempts": ATTEMPTS}) if error.retryable else error


def _is_lost(error: Exception) -> bool:
    return isinstance(error, DumpError) and error.code == LOST


def _write_records(directory: Path, header: DumpHeader, found: Sequence[Share], settings: DumpSettings) -> None:
    files: dict[TableName, list[DumpedFile]] = {}
    for chunk in sorted((c for share in found for c in share.files), key=lambda c: (c.table, c.number)):
        files.setdefault(chunk.table, []).extend(chunk.files)
    for share in found:
        for table, counter in share.tables:
            record = Record(table, header.begin, named(table, files.get(table.name, ()), settings.limits), counter)
            write_record(directory, header.run, record)


def _growing(parts: Path, finished: set[str]) -> int:
    """Return the number of bytes in files that belong to no finished table yet."""
    size = 0
    with suppress(FileNotFoundError):  # the folder is made anew when a dump starts over
        for name in set(os.listdir(parts)) - finished:
            with suppress(FileNotFoundError):  # renamed or removed between listing and looking
                size += (parts / name).stat().st_size
    return size
