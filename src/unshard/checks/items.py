"""The checks in the order of DM's list (reference of DM, section 7.2): names, when they apply, what they ask."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal

from unshard.checks import doubled, losses, privileges, server, shards, tables, tidb, unmatched
from unshard.checks.facts import SourceFacts, TaskFacts
from unshard.checks.result import Finding
from unshard.config.task import TaskConfig
from unshard.model.table import TableName

Scope = Literal["source", "target", "merge", "nothing"]


@dataclass(frozen=True, slots=True)
class Item:
    """One check. `ignored` is its name in `ignore-checking-items`, "" for one that always runs.

    `scope` says what it is asked of: each source, the target, each merged table; `nothing` for what DM asks of a
    physical import alone. `on_tidb` ones are asked where the target is a TiDB, `opt_in`
    ones only when they are asked for.
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
        "tables have keys, no foreign keys that go unchecked, and fit into what the target has", "source",
        lambda source, task, config: tables.table_schema(source, task), worst="fail",
    ),
    Item(
        "tidb_tables", "table structure checker for TiDB",
        "a TiDB target can have the tables, with all of their columns and keys", "source",
        lambda source, task, config: tidb.tables(source, task), when=_copies,
        applies=f"{_COPY}, into TiDB", worst="fail", on_tidb=True,
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
        target=doubled.doubled, applies="all but `dump` and `load`", worst="fail",
    ),
    Item(
        "unmatched_rules", "unmatched rule checker",
        "the task takes tables, and its lists, routes and column mappings name some that there are", "target",
        target=unmatched.unmatched, applies="all but `dump` and `load`, before the first start", worst="fail",
    ),
    Item(
        "json_values", "json value checker",
        "no JSON of MySQL goes into a column that makes other values of its DECIMAL, dates and binary values", "source",
        lambda source, task, config: losses.json_values(source, task), applies="all but `dump`, from MySQL",
    ),
    Item(
        "character_codes", "character code checker",
        "no text goes through Unicode from a character set with two codes for one character into the same set",
        "source", lambda source, task, config: losses.character_codes(source, task), applies="all but `dump`",
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
    return tuple(item.ignored for item in ITEMS if item.opt_in)
