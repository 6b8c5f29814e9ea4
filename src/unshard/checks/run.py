"""Runs the checks of a task before it starts. `ITEMS` lists them in the order in which DM runs its own.

`check-task` and every start of a task call it. A check reads from the source and the target, and writes nothing. DM's
checks: its reference, section 7.2.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal

from unshard.checks import limits, losses, partitions, privileges, rules, server, shards, tables, tidb, zones
from unshard.checks.facts import SourceFacts, TaskFacts, read_facts
from unshard.checks.grouped import LocatedFinding, grouped
from unshard.checks.result import DEFAULT_LIMIT, CheckReport, Finding, Result
from unshard.checks.rules import doubled
from unshard.config.subtask import SubtaskConfig
from unshard.config.task import TaskConfig
from unshard.errors import CheckError, UnshardError
from unshard.model.table import Table, TableName
from unshard.mysql.endpoint import to_endpoint
from unshard.mysql.one_server import one_server_among
from unshard.transform.expressions.filter import ExpressionFilters

Scope = Literal["source", "target", "merge", "nothing"]


@dataclass(frozen=True, slots=True)
class Item:
    """One check.

    Args:
        ignored: its name in `ignore-checking-items`, "" for one that always runs.
        name, desc: its name and its description, in the report.
        scope: what it is run for: each source, the target, or each merged table; `nothing` for a check of DM that
            concerns only a physical import.
        source, target, merge: the function that checks, one of the three.
        when: whether the check applies to a source.
        applies: the same in words, for the documentation.
        worst: the worst severity of its findings, for the documentation.
        on_tidb: whether it runs only if the target is a TiDB.
        opt_in: whether it runs only if the user asks for it.
    """

    ignored: str
    name: str
    desc: str
    scope: Scope = "nothing"
    source: Callable[[SourceFacts, TaskFacts, TaskConfig], Iterable[Finding]] | None = None
    target: Callable[[TaskFacts], Iterable[Finding]] | None = None
    merge: Callable[[TaskFacts, TableName, shards.Group], Iterable[Finding]] | None = None
    when: Callable[[SourceFacts], bool] = lambda source: True
    applies: str = "all modes"
    worst: str = "warn"
    on_tidb: bool = False
    opt_in: bool = False


def _follows(source: SourceFacts) -> bool:
    return source.follows


def _copies(source: SourceFacts) -> bool:
    return source.copies


def _needs_log(source: SourceFacts) -> bool:
    return source.follows or source.copies


def _starts_by_meta(source: SourceFacts) -> bool:
    return source.fresh and source.config.mode == "incremental"


def _of_source(
    check: Callable[[SourceFacts], Iterable[Finding]],
) -> Callable[[SourceFacts, TaskFacts, TaskConfig], Iterable[Finding]]:
    return lambda source, task, config: check(source)


def _meta(source: SourceFacts) -> Iterable[Finding]:
    if source.start_fault is not None:
        yield Finding("fail", *source.start_fault)


def _physical(ignored: str, desc: str) -> Item:
    return Item(ignored, f"lightning_{ignored}", desc, applies="physical import, which Unshard does not have")


_FOLLOW = "`incremental`, `all`"
_COPY = "`full`, `all`, `dump`, until the copy is done"

ITEMS: tuple[Item, ...] = (
    Item(
        "version", "mysql_version", "the source is of a version that was tested", "source",
        _of_source(server.version),
    ),
    Item(
        "server_id", "mysql_server_id", "the source has a server_id", "source", _of_source(server.server_id),
        when=_follows, applies=_FOLLOW,
    ),
    Item(
        "binlog_enable", "mysql_binlog_enable", "the source writes a binlog", "source",
        _of_source(server.binlog_enable), when=_needs_log, applies="all but `load`", worst="fail",
    ),
    Item(
        "log_slave_updates", "mysql_log_slave_updates", "the binlog holds what the source applies as a replica",
        "source", _of_source(server.log_slave_updates), when=_follows, applies=_FOLLOW, worst="fail",
    ),
    Item(
        "binlog_format", "mysql_binlog_format", "the binlog holds rows", "source",
        _of_source(server.binlog_format), when=_follows, applies=_FOLLOW, worst="fail",
    ),
    Item(
        "binlog_row_image", "mysql_binlog_row_image",
        "the binlog holds whole rows; others are followed with limits, and fail only where safe mode needs them",
        "source", _of_source(server.binlog_row_image), when=_follows, applies=_FOLLOW, worst="fail",
    ),
    Item(
        "binlog_db", "binlog_do_db/binlog_ignore_db check", "the binlog holds the schemas of the task", "source",
        _of_source(server.binlog_db), when=_follows, applies=_FOLLOW, worst="fail",
    ),
    Item(
        "replication_privilege", "source db replication privilege checker", "the account may follow the binlog",
        "source", _of_source(privileges.replication_privilege), when=_follows, applies=_FOLLOW, worst="fail",
    ),
    Item(
        "dump_privilege", "source db dump privilege checker", "the account may read the tables, and lock where it must",
        "source", _of_source(privileges.dump_privilege), when=_copies, applies=_COPY, worst="fail",
    ),
    Item(
        "target_privilege", "target db privilege checker", "the account may write to the schemas of the task",
        "target", target=privileges.target_privilege, applies="all but `dump`", worst="fail",
    ),
    Item(
        "", "target db version checker", "the target is of a version that can hold the task's tables", "target",
        target=server.target_version, applies="all but `dump`", worst="fail",
    ),
    Item(
        "", "target db writable checker", "the target lets the account write: it is no replica", "target",
        target=privileges.target_writable, applies="all but `dump`", worst="fail",
    ),
    Item(
        "target_collations", "target db collation checker", "a TiDB target compares texts by their collations",
        "target", target=tidb.target_collations, applies="all but `dump`, into TiDB", on_tidb=True,
    ),
    Item(
        "meta_position", "meta position check", "the source still has the place that `meta` names", "source",
        _of_source(_meta), when=_starts_by_meta, applies="`incremental`, before the first checkpoint", worst="fail",
    ),
    Item(
        "conn_number", "dumper_conn_number_checker", "the source bears the connections of the dump", "source",
        _of_source(server.dumper_connections), when=_copies, applies=_COPY, worst="fail",
    ),
    Item(
        "conn_number", "loader_conn_number_checker", "the target bears the connections of the load", "target",
        target=server.loader_connections, applies="`full`, `all`, `load`, until the copy is done",
    ),
    Item(
        "online_ddl", "online ddl checker",
        "no online schema change is under way; with `online-ddl: false` its shadow tables are told only", "source",
        lambda source, task, config: tables.online_ddl(source, config.shadow_table_rules, config.finds_online_ddl),
        when=_follows, applies=_FOLLOW, worst="fail",
    ),
    Item(
        "table_schema", "table structure compatibility check",
        "tables have keys, no foreign keys that go unchecked, and fit into what the target has, with their partitions",
        "source",
        lambda source, task, config: (
            *tables.table_schema(source, task),
            *partitions.partitions(source, task),
            *zones.computed_by_zone(source, task),
        ),
        worst="fail",
    ),
    Item(
        "where_zone", "where clause checker", "`where` of the copy has no local times of the source", "source",
        _of_source(zones.where_by_zone), when=_copies, applies=_COPY, worst="fail",
    ),
    Item(
        "tidb_tables", "table structure checker for TiDB",
        "a TiDB target can have the tables, with all of their columns and keys", "source",
        lambda source, task, config: tidb.tables(source, task), when=_copies,
        applies=f"{_COPY}, into TiDB", worst="fail", on_tidb=True,
    ),
    Item(
        "tidb_limits", "table size checker for TiDB",
        "no table has more columns or keys than the TiDB target takes", "source",
        lambda source, task, config: limits.parts_of_tables(source, task), when=_copies,
        applies=f"{_COPY}, into TiDB", worst="fail", on_tidb=True,
    ),
    Item(
        "value_limits", "value size checker",
        f"no table of up to {limits.MANY_ROWS:,} rows has rows that are longer than the target takes, or a later TIME",
        "source", lambda source, task, config: limits.values(source, task), when=_copies,
        applies=f"{_COPY}, into TiDB, and from MariaDB into MySQL", worst="fail",
    ),
    Item(
        "large_value_limits", "value size checker of large tables",
        f"the same of tables of more than {limits.MANY_ROWS:,} rows, each of which is read for it", "source",
        lambda source, task, config: limits.values_of_large_tables(source, task), when=_copies,
        applies="only with `--also large_value_limits`", worst="fail", opt_in=True,
    ),
    Item(
        "tidb_collations", "collation checker for TiDB",
        "a TiDB target has the collations, or one of the task file takes their place; others get the nearest one",
        "source", lambda source, task, config: tidb.collations(source, task),
        applies="all but `dump` and `load`, into TiDB", worst="fail", on_tidb=True,
    ),
    Item(
        "schema_of_shard_tables", "sharding table {target} consistency checking",
        "all tables that merge into one have the same columns", "merge", merge=shards.shard_structures,
        when=_copies, applies=f"{_COPY}, for each merged table", worst="fail",
    ),
    Item(
        "auto_increment_ID", "auto-increment key checking of sharding table {target}",
        "counted keys of merged tables can't clash", "merge", merge=shards.auto_increment,
        applies="all modes, for each merged table",
    ),
    _physical("empty_region", "regions without rows"),
    _physical("region_distribution", "regions spread over stores"),
    _physical("downstream_version", "version of the cluster"),
    _physical("free_space", "room in the cluster"),
    _physical("downstream_mutex_features", "PiTR or changefeeds of the cluster"),
    _physical("downstream_table_empty", "target tables without rows"),
    Item(
        "primary_key", "primary key existence check", "every table has a primary key", "source",
        lambda source, task, config: tables.primary_key(source), applies="only with `--also primary_key`",
        worst="fail", opt_in=True,
    ),
    Item(
        "", "same table name checker", "no two tables of the target differ in case alone (DM's error 26001)",
        "target", target=tables.same_but_for_case, applies="all but `dump`", worst="fail",
    ),
    Item(
        "", "same upstream checker", "no two sources are one server and take the same tables of it", "target",
        target=rules.doubled, applies="all but `dump` and `load`", worst="fail",
    ),
    Item(
        "unmatched_rules", "unmatched rule checker",
        "the task takes tables; its lists, routes, column mappings and flags of the dump name some that there are",
        "target", target=rules.unmatched, applies="all but `dump` and `load`, before the first start", worst="fail",
    ),
    Item(
        "json_values", "json value checker",
        "no JSON, nor text that the target has as JSON, loses DECIMAL, dates, binary values or digits", "source",
        lambda source, task, config: (*losses.json_values(source, task), *losses.texts_into_json(source, task)),
        applies="all but `dump`",
    ),
    Item(
        "character_codes", "character code checker",
        "no text goes through Unicode from a character set with two codes for one character into the same set",
        "source", lambda source, task, config: losses.character_codes(source, task), applies="all but `dump`",
    ),
    Item(
        "negative_zeros", "negative zero checker",
        "no FLOAT or DOUBLE of MySQL goes into a TiDB or MariaDB, which store -0 as 0", "source",
        lambda source, task, config: losses.negative_zeros(source, task), applies="all but `dump`, from MySQL",
    ),
    Item(
        "target_keys", "target key checker",
        "the target has no unique key that the source's rows are not held to", "source",
        lambda source, task, config: losses.keys_of_the_target(source, task), applies="all but `dump`",
    ),
    Item(
        "rows_between_sources", "row move checking of sharding table {target}",
        "no row that moves between two sources can be lost", "merge", merge=losses.rows_between_sources,
        applies="all modes, for each merged table of several sources",
    ),
    Item(
        "shard_settings", "settings checking of sharding table {target}",
        "sources that merge into one table run their DDL with the same time zone and SQL mode", "merge",
        merge=losses.settings_of_shards, when=_follows,
        applies=f"{_FOLLOW}, for each merged table of several sources, with `shard-mode`",
    ),
    Item(
        "", "target rows checker", "a copy finds no rows in its target tables but those that it has on record",
        "target", target=tables.rows_in_target, applies="`full`, `all`, until the copy is done", worst="fail",
    ),
    Item(
        "target_triggers", "target trigger checker", "no trigger of the target does again what the binlog holds",
        "target", target=tables.target_triggers, applies="all but `dump` and `load`", worst="fail",
    ),
)  # fmt: skip


def opt_in_names() -> tuple[str, ...]:
    """Return the names of the checks that run only if they are asked for."""
    return tuple(item.ignored for item in ITEMS if item.opt_in)


EVERYTHING = "all"


def check_task(
    task: TaskConfig,
    configs: Sequence[SubtaskConfig],
    also: Collection[str] = (),
    others: Sequence[SubtaskConfig] = (),
) -> CheckReport:
    """Return the report of a task's pre-checks, without the items that the task ignores.

    `also` names opt-in items to run. `configs` are the subtasks that are to be started, `others` those of the same task
    that are not. Raises SourceError or TargetError if a server can't be asked at all, and ConfigError CONFIG-020 and
    CONFIG-021 for an expression filter, as the start of the task would.
    """
    filters = {config.source_id: _expressions(config) for config in configs}
    ignored = set(task.ignore_checking_items)
    if EVERYTHING in ignored:
        return CheckReport(())
    items = [item for item in ITEMS if item.ignored not in ignored and (not item.opt_in or item.ignored in also)]
    facts = read_facts(configs, others)
    for source in facts.sources:
        if source.fresh:
            _ask(source.name, filters[source.name], source.tables.values())
    return CheckReport.of([result for item in items for result in _results(item, facts, task)])


def check_moved(task: TaskConfig, config: SubtaskConfig, others: Sequence[SubtaskConfig]) -> CheckReport:
    """Check whether a source that is moved to the server in `config` meets another source of the task there.

    Called because the check at the task's start may be long ago. `others` and errors are as in `check_task`. Tables and
    the target are read only if two sources are one server.
    """
    if config.mode in ("dump", "load") or EVERYTHING in task.ignore_checking_items:
        return CheckReport(())
    if not one_server_among({one.source_id: to_endpoint(one.source.database) for one in (config, *others)}):
        return CheckReport(())
    facts = read_facts([config], others)
    return CheckReport.of(
        [result for item in ITEMS if item.target is doubled for result in _results(item, facts, task)]
    )


def _expressions(config: SubtaskConfig) -> ExpressionFilters:
    try:
        return ExpressionFilters(config.expression_filters, config.case_sensitive, lambda local: local)
    except UnshardError as error:
        raise error.at(source=config.source_id) from None


def _ask(source: str, filters: ExpressionFilters, tables: Iterable[Table]) -> None:
    """Check that the expressions fit the tables as they are now. Called for a source that begins with these tables."""
    for table in tables:
        try:
            filters.of_table(table)
        except UnshardError as error:
            raise error.at(source=source) from None


def require(report: CheckReport) -> None:
    """Raise CheckError CHECK-001 with every failure and its remedy; return if there is no failure."""
    failures = [group.line for group in grouped(found_of(*one) for one in report.findings("fail"))]
    if failures:
        more = [f"… and {len(failures) - DEFAULT_LIMIT} more"] if len(failures) > DEFAULT_LIMIT else []
        cause = "\n       ".join(failures[:DEFAULT_LIMIT] + more)
        raise CheckError("CHECK-001", cause=cause, values={"count": len(list(report.findings("fail")))})


def found_of(result: Result, finding: Finding) -> LocatedFinding:
    """Return a finding with its check, to be grouped."""
    texts = (finding.short_error, finding.instruction, finding.self)
    return LocatedFinding(finding.severity, result.name, result.extra, *texts)


def _results(item: Item, facts: TaskFacts, task: TaskConfig) -> Iterator[Result]:
    if item.on_tidb and not (facts.target is not None and facts.target.is_tidb):
        return
    if item.source is not None:
        for source in facts.sources:
            if item.when(source):
                yield Result(item.name, item.desc, _findings(partial(item.source, source, facts, task)), source.name)
    if item.target is not None and facts.target is not None:
        yield Result(item.name, item.desc, _findings(partial(item.target, facts)), "target")
    if item.merge is not None:
        for target, group in facts.merged.items():
            if all(item.when(source) for source, _ in group):
                findings = _findings(partial(item.merge, facts, target, group))
                yield Result(item.name.format(target=target), item.desc, findings, str(target))


def _findings(check: Callable[[], Iterable[Finding]]) -> tuple[Finding, ...]:
    """Return the findings of a check. An error that the check meets becomes a failure."""
    try:
        return tuple(check())
    except UnshardError as error:
        return (Finding("fail", f"{error.code}: {error.message}", error.hint),)
