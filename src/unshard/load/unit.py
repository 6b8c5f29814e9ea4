"""The load unit: a dump folder into the target, every row once, however often the process is killed."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from unshard.crash_point import reach
from unshard.ddl.in_snapshot import DdlInSnapshot
from unshard.ddl.session import copied_tables, printed_collations
from unshard.dump.files import table_of_file
from unshard.dump.metadata import STATE, read_dump
from unshard.dump.plan import shares
from unshard.errors import LoadError, UnshardError, Where, disclose
from unshard.load.checkpoint import FINISHED, RUNNING, FileState, LoadTables
from unshard.load.contents import Contents, allowed, contents_of
from unshard.load.counters import raise_counters
from unshard.load.creation import Route, creation_for
from unshard.load.deferred_keys import DeferredKeys
from unshard.load.mydumper import read_foreign
from unshard.load.seen_states import SeenStates, rows_in_all, rows_of, table_progress
from unshard.load.structure import LoadRules, Way, prepare
from unshard.load.task import FileWork, LoadWork, load_files
from unshard.load.unlike_keys import unlike_keys
from unshard.load.write import SESSION, OnDuplicate
from unshard.log import logger
from unshard.model.progress import Progress, TableProgress
from unshard.model.table import TableName
from unshard.mysql.connection import STATEMENT_SECONDS, Endpoint, rows, session
from unshard.mysql.tidb import is_tidb
from unshard.mysql.types import read_by_number
from unshard.retry import retrying
from unshard.run_tasks import RunTasks
from unshard.target.clamped_values import create as create_clamped
from unshard.target.filled import FilledTables
from unshard.target.rate_limiter import RateLimiter
from unshard.transform.block_allow import BlockAllowList
from unshard.transform.column_mapping import ColumnMapping
from unshard.transform.extract import Extracted

CONNECTIONS_OF_A_TASK = 4
"""A TiDB is mostly some milliseconds away: while one connection waits for its answer, others work.

Each has a piece of a file in memory.
"""
_NAMED = 3
"""The most tables that the status names."""


@dataclass(frozen=True, slots=True)
class LoadSettings:
    """The user's settings (`loaders.<name>`), with the limits of the target.

    Args:
        pool_size: the most connections over which files are loaded at a time.
        tasks: how many files Spark loads at a time; into TiDB each task uses several connections, up to `pool_size`.
        on_duplicate: what happens to a row whose key the target has.
        gate: the limits of the target.
        incremental_import: a target table may hold rows before the copy begins.
        in_utc: values of TIMESTAMP are in UTC where the files of another tool don't say it.
        escape_backslash: whether another tool was told to escape by backslashes; None if that is not known.
    """

    directory: Path
    pool_size: int = 16
    on_duplicate: OnDuplicate = "error"
    gate: RateLimiter | None = None
    tasks: int = 16
    incremental_import: bool = False
    in_utc: bool = False
    escape_backslash: bool | None = None


@dataclass(frozen=True, slots=True)
class LoadResult:
    """The numbers of files and rows that were loaded, over all attempts."""

    files: int
    rows: int


def open_contents(directory: Path) -> Contents:
    """Read the contents of a finished dump folder: ours, mydumper's or dumpling's. Raises LoadError or DumpError."""
    if not directory.is_dir():
        raise LoadError("LOAD-001", Where(file=str(directory)), values={"fault": "there is no such folder"})
    if (directory / STATE).exists():
        return contents_of(read_dump(directory))
    return read_foreign(directory)


class LoadUnit:
    """One source's load.

    `route` gives a source table's name in the target, `mapping_for` its column mapping, `extracted` its extracted
    columns. Files of tables that `allow` keeps out are skipped. `alike`: as in `load.structure.LoadRules`. `collations`
    maps collations to those that a TiDB target is to have in their place. `clamps`: a TIME beyond the range of the
    target is clamped. `zone` gives the time zone of the source's sessions, "" where it can't be asked.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        tables: LoadTables,
        settings: LoadSettings,
        route: Route,
        mapping_for: Callable[[TableName], ColumnMapping | None],
        run_tasks: RunTasks,
        extracted: Callable[[TableName], tuple[Extracted, ...]] = lambda name: (),
        allow: BlockAllowList | None = None,
        alike: bool = False,
        collations: Mapping[str, str] | None = None,
        *,
        clamps: bool = False,
        zone: Callable[[], str] = lambda: "",
    ) -> None:
        self._endpoint = endpoint
        self._tables = tables
        self._settings = settings
        self._rules = LoadRules(route, mapping_for, extracted, alike, clamps=clamps, zone=zone)
        self._run_tasks = run_tasks
        self._allow = allow or BlockAllowList()
        self._collations = collations or {}
        self._contents: Contents | None = None
        self._files: dict[TableName, list[str]] = {}
        self._rows_of: dict[TableName, int | None] = {}
        self._seen = SeenStates(tables, endpoint)
        self._rows_before: int | None = None
        self._is_tidb = False
        self.note = ""
        """The long step after the rows, in words for the status; "" where `run` is not in it. Read by any thread."""
        self._keys: DeferredKeys | None = None

    def run(self, copied: DdlInSnapshot | None = None, prepared: Callable[[], None] = lambda: None) -> LoadResult:
        """Load what is not loaded yet; blocks until the target holds all. Raises LoadError, TargetError or ShardError.

        May be called again after any crash, on the same folder: a finished load is only read back. A call takes the
        load over from any process that is still loading. `copied`: as in `load.structure.LoadRules`. `prepared` is
        called when the target has the tables.
        """
        self._rules, self._rows_before = replace(self._rules, copied=copied or DdlInSnapshot()), None
        self.note = ""
        begun = retrying(self._begin)
        self._seen.forget()
        prepared()
        if begun is not None:
            with self._seen.looking():
                self._load(*begun)
        result = retrying(self._finish)
        self._seen.forget()
        with suppress(UnshardError):  # what is shown of the load lacks its end then
            self._seen.look()
        return result

    def progress(self, *, asks: bool = True) -> Progress:
        """Return how far the load is, from its checkpoint in the target; from any thread. Bytes are those of the files.

        Tables are counted once `run` has read the folder. Unless it `asks`, what `run` has seen last is told. Raises
        TargetError, soon.
        """
        states = self._taken(self._seen.look() if asks else self._seen.last)
        finished = {name for name, state in states.items() if state.finished}
        size = sum(state.size for state in states.values())
        size_done = sum(states[name].size for name in finished)
        rows_done = sum(state.done_rows for state in states.values())
        return Progress(
            tables_done=sum(finished.issuperset(files) for files in self._files.values()),
            tables_total=len(self._files),
            rows_done=rows_done,
            rows_total_estimate=rows_in_all(self._rows_of.values(), states),
            bytes_done=size_done + sum(min(s.offset, s.size) for s in states.values() if not s.finished),
            bytes_total=size,
            rows_before=rows_done if self._rows_before is None else self._rows_before,
        )

    def tables(self) -> tuple[TableProgress, ...]:
        """Return each table's progress, as `run` has seen it last. No server is asked."""
        states = self._seen.last
        return tuple(table_progress(name, files, states, self._rows_of[name]) for name, files in self._files.items())

    def _begin(self) -> tuple[Contents, dict[TableName, Way], int, frozenset[str]] | None:
        """Make schemas and tables and claim the load; None when it is finished. May be repeated.

        Returns the dump's contents, how each table is written, the epoch, and the files that are not loaded yet.
        """
        with session(self._endpoint, "target") as connection:
            _prepare_session(connection)
            self._tables.create(connection)
            if self._tables.read_status(connection) == FINISHED:
                return None
            contents = allowed(open_contents(self._settings.directory), self._allow)
            self._files = {table.name: [file.name for file in table.files] for table in contents.tables}
            self._rows_of = {table.name: rows_of(table) for table in contents.tables}
            self._is_tidb = is_tidb(connection)
            source = self._tables.source
            if self._rules.clamps:
                create_clamped(connection, self._tables.meta)
            most = self._settings.pool_size
            creation = creation_for(connection, self._tables.schema, source, self._collations, most)
            filled = FilledTables(self._tables.schema, self._tables.task)
            filled.claim(
                connection,
                source,
                (self._rules.route(table.name) for table in contents.tables),
                merges=self._settings.incremental_import,
                adopts=self._tables.begun(connection, any_source=True) != "",
            )
            making = partial(self._creating, contents)
            if not self._is_tidb:
                self._keys = DeferredKeys(self._tables.schema, self._tables.task, source)
                self._keys.create(connection)
            ways = prepare(making, contents, self._rules, creation, source, filled, self._keys)
            self._tables.write_status(connection, RUNNING)
            escaped = self._escape_backslash(contents) is not False
            rules = {name: way.fingerprint(escaped=escaped) for name, way in ways.items()}
            files = [(file.name, file.size, rules[table.name]) for table in contents.tables for file in table.files]
            self._contents = contents
            _tell_lost(contents, ways, source, self._settings.escape_backslash)
            epoch = self._tables.take_over(connection, contents.identity, files)
            states = self._tables.states(connection)
            _tell_left_out(states.keys() - self._taken(states).keys(), source)
            self._rows_before = _loaded(states).rows
            left = frozenset(name for name, state in states.items() if not state.finished)
            return contents, ways, epoch, left

    def _escape_backslash(self, contents: Contents) -> bool | None:
        """Return the setting for another tool's dump. Unshard's own always escapes."""
        return self._settings.escape_backslash if contents.foreign else True

    def _builds(self, tables: Sequence[TableName]) -> None:
        names = [str(table) for table in tables[:_NAMED]]
        names += [f"{len(tables) - _NAMED} others"] * (len(tables) > _NAMED)
        self.note = f"builds the keys of {', '.join(names)}" if names else ""

    @contextmanager
    def _creating(self, contents: Contents) -> Iterator[Any]:
        """Open a session that creates tables."""
        with session(self._endpoint, "target") as connection:
            _prepare_session(connection)
            with copied_tables(connection, (table.create_sql for table in contents.tables)):
                yield connection

    def _finish(self) -> LoadResult:
        """Check that no file is left, add deferred keys, raise the counters, record the end. May be repeated."""
        with self._session() as connection:
            if self._contents is None or self._tables.read_status(connection) == FINISHED:
                return self._result(connection)
            self._check_finished(connection)
        if self._keys is not None:
            targets = [self._rules.route(table.name) for table in self._contents.tables]
            at_once = min(self._settings.pool_size, self._settings.tasks)
            self._keys.add(self._session, targets, self._builds, at_once)
        with self._session() as connection:
            raise_counters(connection, self._contents, self._rules.route)
            reach("load-finish-before")
            self._tables.write_status(connection, FINISHED)
            reach("load-finish-after")
            return self._result(connection)

    @contextmanager
    def _session(self) -> Iterator[Any]:
        """Open a session for the steps after the rows, each of which may take long."""
        with session(self._endpoint, "target", patience_seconds=STATEMENT_SECONDS) as connection:
            _prepare_session(connection)
            yield connection

    def _load(self, contents: Contents, ways: dict[TableName, Way], epoch: int, left: frozenset[str]) -> None:
        """Load the files of `left`. Spark isn't started for none."""
        files = [
            FileWork(file, ways[table.name]) for table in contents.tables for file in table.files if file.name in left
        ]
        if not files:
            return
        dealt = shares(files, [work.file.size for work in files], min(self._settings.pool_size, self._settings.tasks))
        connections = self._settings.pool_size // max(len(dealt), 1) if self._is_tidb else 1
        payloads = [
            pickle.dumps(
                LoadWork(
                    self._endpoint,
                    self._tables,
                    epoch,
                    self._settings.on_duplicate,
                    contents.directory,
                    tuple(share),
                    self._settings.gate,
                    max(1, min(connections, CONNECTIONS_OF_A_TASK, len(share))),
                    self._is_tidb,
                    self._settings.in_utc,
                    self._escape_backslash(contents),
                )
            )
            for share in dealt
        ]
        for outcome in self._run_tasks(payloads, load_files):
            try:
                disclose(outcome)
            except UnshardError as error:
                raise unlike_keys(error, ways) from error

    def _check_finished(self, connection: Any) -> None:
        left = [name for name, state in self._taken(self._tables.states(connection)).items() if not state.finished]
        if left:
            place = Where(self._tables.source, file=min(left))
            raise LoadError("LOAD-010", place, values={"count": len(left)})

    def _taken(self, states: Mapping[str, FileState]) -> Mapping[str, FileState]:
        """Return the states without those of tables that the rules leave out since the load began."""
        if self._contents is None:
            return states
        taken = {file.name for table in self._contents.tables for file in table.files}
        return {name: state for name, state in states.items() if name in taken}

    def _result(self, connection: Any) -> LoadResult:
        return _loaded(self._tables.states(connection))


def _loaded(states: Mapping[str, FileState]) -> LoadResult:
    return LoadResult(len(states), sum(state.done_rows for state in states.values()))


def _tell_left_out(files: Iterable[str], source: str) -> None:
    """Warn of the tables of these files, which the load has begun and the rules now leave out."""
    for table in sorted({table for file in files if (table := table_of_file(file)) is not None}):
        logger("load", source=source).warning(
            "the table is left out since its load began; the rows of it that are loaded stay in the target,"
            " where nothing changes them any more",
            table=str(table),
        )


def _prepare_session(connection: Any) -> None:
    written = {name: f"'{value}'" for name, value in printed_collations(connection).items()}
    values = {**SESSION, **written}
    rows(connection, "SET " + ", ".join(f"@@session.{name} = {value}" for name, value in values.items()))


def _tell_lost(contents: Contents, ways: dict[TableName, Way], source: str, escape_backslash: bool | None) -> None:
    """Warn of each column whose values a dump of another tool can't hold unchanged, and of a form that nobody named."""
    if not contents.foreign:
        return
    if escape_backslash is None:
        logger("load", source=source).warning(
            "backslashes in the dump's texts are read as escapes; if dumpling was called with --escape-backslash=false,"
            " stop the task, set `extra-args` to that under `mydumpers:`, and begin anew with --reset"
        )
    for table in contents.tables:
        for column in ways[table.name].source.columns:
            lost = ""
            if column.type == "enum" and "" in column.members:
                lost = "the dump can't tell an ENUM's error value from its empty member, which is loaded"
            elif read_by_number(column):
                lost = "the dump can't tell whether a SET's empty member is in a value, and it is loaded without"
            elif column.type == "float":
                lost = "the dump holds FLOAT values rounded to six digits, as the server shows them"
            if lost:
                logger("load", source=source).warning(lost, table=str(table.name), column=column.name)
