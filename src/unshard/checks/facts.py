"""The facts that the checks judge. They are read from the servers of a task once, before the first check runs.

Everything is read over connections that only read; the number of connections at a time is bounded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import MySQLdb

from unshard.checks.records import fresh_sources, safe_mode_of
from unshard.checks.replication import UnloggedReplication, unlogged_replication
from unshard.checks.start_position import start_fault
from unshard.config.subtask import SubtaskConfig
from unshard.dump.metadata import read_header, read_records
from unshard.dump.plan import Listed, list_tables
from unshard.errors import UnshardError
from unshard.load.empty_tables import EmptyTables
from unshard.model.table import Table, TableName
from unshard.mysql.connection import Endpoint, rows, session
from unshard.mysql.endpoint import to_endpoint
from unshard.mysql.flavour import Server, identify, status_statement
from unshard.mysql.grants import Grants, account
from unshard.mysql.one_server import of_one_server
from unshard.mysql.schema_structures import QUERIES, assemble
from unshard.mysql.tidb import connected, is_tidb
from unshard.mysql.triggers import Trigger, triggers_of
from unshard.target.filled import FilledTables
from unshard.transform.extract import Extracted
from unshard.transform.online_tables import OnlineTablePart
from unshard.transform.route import Router
from unshard.transform.source_rules import online_tables, taken

AT_ONCE = 8
"""The most connections that the checks of a task have open at a time."""

_PATIENCE_SECONDS = 120
_VARIABLES = (
    "log_bin", "binlog_format", "binlog_row_image", "server_id", "max_connections", "max_user_connections",
    "partial_revokes", "lower_case_table_names", "sql_mode", "innodb_native_foreign_keys",
    "time_zone", "system_time_zone",
    "read_only", "super_read_only", "innodb_read_only", "tidb_restricted_read_only", "tidb_super_read_only",
    "sql_generate_invisible_primary_key", "sql_require_primary_key",
    "log_slave_updates", "log_replica_updates",
)  # fmt: skip
_SETTINGS = f"SHOW GLOBAL VARIABLES WHERE Variable_name IN ({', '.join(map(repr, _VARIABLES))})"
_ACTIONS = "('CASCADE', 'SET NULL', 'SET DEFAULT')"
_CASCADING = (
    "SELECT CONSTRAINT_SCHEMA, TABLE_NAME FROM information_schema.REFERENTIAL_CONSTRAINTS"
    f" WHERE DELETE_RULE IN {_ACTIONS} OR UPDATE_RULE IN {_ACTIONS}"
)
_NO_GRANT = 1141
WRITES_ANYWAY = "RESTRICTED_REPLICA_WRITER_ADMIN"
"""The privilege to write to a TiDB that is read-only. ALL PRIVILEGES does not include it."""


@dataclass(frozen=True, slots=True)
class End:
    """The facts about one server, source or target.

    Args:
        version: the text of `VERSION()`.
        settings: global variables, names in lower case, values in upper case.
        account: the account that is logged in, quoted for a GRANT.
        connected: the number of sessions that the server has open.
        collations: the names of the server's collations and character sets.
    """

    endpoint: Endpoint = field(repr=False)
    server: Server
    version: str
    settings: Mapping[str, str]
    grants: Grants
    account: str
    connected: int
    collations: frozenset[str]

    @property
    def literal(self) -> bool:
        """True if schema names in GRANT have no wildcards."""
        return self.settings.get("partial_revokes") in ("ON", "1")

    @property
    def is_tidb(self) -> bool:
        """True if the server is TiDB."""
        return "TIDB" in self.version.upper()


@dataclass(frozen=True, slots=True)
class LogFilters:
    """The filters of a source's binlog: the schemas of `binlog_do_db` (`taken`) and of `binlog_ignore_db` (`left`).

    `fault` is the error if the server could not be asked for them.
    """

    taken: tuple[str, ...] = ()
    left: tuple[str, ...] = ()
    fault: str = ""


@dataclass(frozen=True, slots=True)
class SourceFacts:
    """The facts about one source of the task.

    Args:
        listed, tables: the tables that the task takes. If a finished dump waits to be loaded, `tables` has each table
            as it was when its rows were read, not as it is now.
        targets: the target table of each.
        extracted: by table, its extracted columns, which are filled from names of the source.
        fresh: whether the source has no checkpoint.
        filters: the server's settings that leave schemas out of the binlog.
        start_fault: what is wrong with the task's start position, and how to correct it.
        ghosts: ghost tables of tables that the task takes.
        cascading: tables with a foreign key by which the server itself changes their rows.
        copying: whether the task has `shard-mode` and its dump has begun. From then on the copy itself reconciles
            shards that differ, or stops.
        existing: all tables of the source, taken or not, except for helper tables of online DDL.
        safe_mode: the reason why changes are written in safe mode after this start, "" if they are not.
        replication: the source's replication from another server, if it does not log what it applies.
    """

    config: SubtaskConfig
    end: End
    listed: tuple[Listed, ...]
    tables: Mapping[TableName, Table]
    targets: Mapping[TableName, TableName]
    extracted: Mapping[TableName, tuple[Extracted, ...]]
    fresh: bool
    filters: LogFilters = LogFilters()
    start_fault: tuple[str, str] | None = None
    ghosts: tuple[TableName, ...] = ()
    cascading: frozenset[TableName] = frozenset()
    copying: bool = False
    existing: frozenset[TableName] = frozenset()
    safe_mode: str = ""
    replication: UnloggedReplication = field(default_factory=UnloggedReplication)

    @property
    def name(self) -> str:
        """Name of the source."""
        return self.config.source_id

    @property
    def logs_cascades(self) -> bool:
        """True if row changes by foreign keys are in the binlog, as in MySQL from 9.6 on."""
        return self.end.settings.get("innodb_native_foreign_keys") in ("OFF", "0")

    @property
    def copies(self) -> bool:
        """True if this start dumps the source."""
        return self.fresh and self.config.mode in ("full", "all", "dump")

    @property
    def follows(self) -> bool:
        """True if the task follows the source's binlog."""
        return self.config.mode in ("incremental", "all")


@dataclass(frozen=True, slots=True)
class TaskFacts:
    """All facts about a task.

    Args:
        configs: the subtasks to start.
        sources: the sources of these subtasks, without those of mode `load`.
        target: None for a task that only dumps.
        there: the existing ones among the target tables of the sources' tables.
        fresh: by source, whether it has no checkpoint.
        triggers: the triggers on the target's tables.
        others: sources of the task that are not to be started now, if they could be asked.
        one_server: groups of the names of sources that are one server, among `sources` and `others`.
    """

    configs: tuple[SubtaskConfig, ...]
    sources: tuple[SourceFacts, ...]
    target: End | None
    there: Mapping[TableName, Table]
    fresh: Mapping[str, bool]
    triggers: tuple[Trigger, ...] = ()
    others: tuple[SourceFacts, ...] = ()
    one_server: tuple[tuple[str, ...], ...] = ()

    @property
    def loading(self) -> tuple[SubtaskConfig, ...]:
        """The subtasks that this start loads."""
        modes = ("full", "all", "load")
        return tuple(config for config in self.configs if config.mode in modes and self.fresh[config.source_id])

    @property
    def merged(self) -> Mapping[TableName, tuple[tuple[SourceFacts, TableName], ...]]:
        """The source tables of each merged table."""
        groups: dict[TableName, list[tuple[SourceFacts, TableName]]] = {}
        for source in self.sources:
            for name, target in source.targets.items():
                groups.setdefault(target, []).append((source, name))
        return {target: tuple(names) for target, names in sorted(groups.items()) if len(names) > 1}


def read_facts(configs: Sequence[SubtaskConfig], others: Sequence[SubtaskConfig] = ()) -> TaskFacts:
    """Read both ends of every source. Raises SourceError, TargetError, ConfigError (a table that two routes claim).

    `others` are subtasks of the same task that are not to be started now; those whose source can't be asked are left
    out.
    """
    with (
        ThreadPoolExecutor(AT_ONCE // 2, "check") as pool,
        ThreadPoolExecutor(AT_ONCE // 2, "check source") as by_source,
    ):
        target = None
        fresh = dict.fromkeys((config.source_id for config in configs), True)
        if configs[0].mode != "dump":
            target = _end(_patient(to_endpoint(configs[0].target)), "target")
            fresh = fresh_sources(target.endpoint, configs)
        ask = partial(_ask_in_parallel, pool)
        asked = [c for c in configs if c.mode != "load"]
        sources = tuple(by_source.map(lambda config: _named(config, fresh[config.source_id], ask), asked))
        beside = tuple(filter(None, by_source.map(lambda config: _if_it_answers(config, ask), others)))
        there: dict[TableName, Table] = {}
        triggers: tuple[Trigger, ...] = ()
        if target is not None:
            routed = {name for source in sources for name in source.targets.values()}
            folds = target.settings.get("lower_case_table_names", "0") != "0"
            schemas = sorted({name.schema for name in routed})
            there = {n: t for n, t in ask(target, "target", schemas).items() if n in routed}
            with session(target.endpoint, "target") as connection:
                sources = tuple(
                    replace(one, safe_mode=safe_mode_of(connection, one.config, fresh=one.fresh)) for one in sources
                )
                for name in _made_anew(connection, configs[0], sources, there):
                    del there[name]
                triggers = triggers_of(connection, routed, folds=folds)
    one_server = of_one_server({one.name: (one.end.endpoint, one.end.server) for one in (*sources, *beside)})
    return TaskFacts(tuple(configs), sources, target, there, fresh, triggers, beside, one_server)


def _made_anew(
    connection: Any, config: SubtaskConfig, sources: Sequence[SourceFacts], there: Iterable[TableName]
) -> frozenset[TableName]:
    """Return the tables that an earlier attempt of the task created and did not fill.

    A load creates such a table again if it does not fit. Tables with columns that a route fills are left out, because
    the user creates those.
    """
    by_hand = {source.targets[name] for source in sources for name in source.tables if source.extracted[name]}
    records = FilledTables(config.meta_schema, config.name)
    return EmptyTables(records).among(connection, there) - by_hand


Ask = Callable[[End, Any, Sequence[str]], dict[TableName, Table]]


def _ask_in_parallel(pool: ThreadPoolExecutor, end: End, side: Any, schemas: Sequence[str]) -> Any:
    """Return the tables of these schemas. Each query runs on a connection of its own."""

    def one(query: str, schema: str) -> list[tuple[Any, ...]]:
        with session(end.endpoint, side) as connection:
            return rows(connection, query, (schema,))

    asked = [[pool.submit(one, query, schema) for query in QUERIES] for schema in schemas]
    found: dict[TableName, Table] = {}
    for schema, answers in zip(schemas, asked, strict=True):
        columns, indexes, children = (answer.result() for answer in answers)
        found |= assemble(schema, columns, indexes, children, tidb=end.is_tidb)
    return found


def _patient(endpoint: Endpoint) -> Endpoint:
    return replace(endpoint, patience_seconds=_PATIENCE_SECONDS)


def _end(endpoint: Endpoint, side: Any) -> End:
    with session(endpoint, side) as connection:
        settings = {str(n).lower(): str(v).upper() for n, v in rows(connection, _SETTINGS)}
        ((version, user, most),) = rows(connection, "SELECT VERSION(), CURRENT_USER(), @@session.max_user_connections")
        settings["max_user_connections"] = str(most)
        literal = settings.get("partial_revokes") in ("ON", "1")
        collations = rows(connection, "SELECT * FROM information_schema.COLLATION_CHARACTER_SET_APPLICABILITY")
        return End(
            endpoint,
            identify(connection),
            str(version),
            settings,
            Grants.read(_grants(connection), literal=literal),
            account(str(user)),
            _connected(connection),
            frozenset(str(value) for row in collations for value in row),
        )


def _grants(connection: Any) -> list[str]:
    """Return the lines of SHOW GRANTS.

    A TiDB that checks no privileges (`skip-grant-table`) has none to show, so it gets all.
    """
    try:
        return [str(row[0]) for row in rows(connection, "SHOW GRANTS")]
    except MySQLdb.Error as error:
        if error.args[0] != _NO_GRANT or not is_tidb(connection):
            raise
        return ["GRANT ALL PRIVILEGES ON *.* TO ''@''", f"GRANT {WRITES_ANYWAY} ON *.* TO ''@''"]


def _connected(connection: Any) -> int:
    """Return the number of sessions that the server has open.

    TiDB lacks the status variable, and is asked otherwise.
    """
    if is_tidb(connection):
        return connected(connection)
    ((_, count),) = rows(connection, "SHOW GLOBAL STATUS LIKE 'Threads_connected'")
    return int(count)


def _source(config: SubtaskConfig, fresh: bool, ask: Ask) -> SourceFacts:
    end = _end(_patient(to_endpoint(config.source.database)), "source")
    router = Router(config.routes, config.case_sensitive)
    with session(end.endpoint, "source") as connection:
        everything = list_tables(connection, lambda name: True)
        cascading = frozenset(TableName(*name) for name in rows(connection, _CASCADING))
        filters = log_filters(connection, end.server)
        replication = unlogged_replication(connection, end.server, end.settings)
        fault = start_fault(connection, end.server, config) if fresh else None
    takes, helpers = taken(config), online_tables(config)
    listed = tuple(table for table in everything if takes(table.name))
    names = {table.name for table in listed}
    told = ((table.name, helpers.told(table.name)) for table in everything)
    ghosts = tuple(name for name, helper in told if helper.part is OnlineTablePart.GHOST and takes(helper.table))
    tables = ask(end, "source", sorted({name.schema for name in names}))
    copies = _copies(config) if fresh else {}
    return SourceFacts(
        config,
        end,
        listed,
        {name: copies.get(name, table) for name, table in tables.items() if name in names},
        {name: router.route(name) for name in sorted(names)},
        {name: router.extracted(name, config.source_id) for name in names},
        fresh,
        filters,
        fault,
        ghosts,
        cascading,
        fresh and config.pessimistic and read_header(Path(config.loader.directory)) is not None,
        frozenset(table.name for table in everything if helpers.is_real(table.name)),
        replication=replication,
    )


def _copies(config: SubtaskConfig) -> dict[TableName, Table]:
    """Return the tables of a finished dump that the start continues with, as they were when their rows were read.

    Later changes of their structure are in the binlog, after their rows.
    """
    directory = Path(config.loader.directory)
    header = read_header(directory) if config.mode in ("full", "all") else None
    if header is None or not header.finished:
        return {}
    return {name: record.table for name, record in read_records(directory, header).items()}


def _named(config: SubtaskConfig, fresh: bool, ask: Ask) -> SourceFacts:
    try:
        return _source(config, fresh, ask)
    except UnshardError as error:
        raise error.at(source=config.source_id) from error


def _if_it_answers(config: SubtaskConfig, ask: Ask) -> SourceFacts | None:
    with suppress(UnshardError):
        return _source(config, False, ask)
    return None


def log_filters(connection: Any, server: Server) -> LogFilters:
    """Return the server's `binlog-do-db` and `binlog-ignore-db`; where it refuses to show them, the refusal."""
    try:
        found = rows(connection, status_statement(server))
    except MySQLdb.Error as error:
        return LogFilters(fault=str(error.args[-1]))
    taken, left = (tuple(filter(None, str(names).split(","))) for names in (found[0][2:4] if found else ("", "")))
    return LogFilters(taken, left)
