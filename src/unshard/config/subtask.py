"""A subtask's settings: one source's part of a task, with every name resolved and every default filled in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from pydantic import Field

from unshard.config.database import TargetConfig
from unshard.config.dump_flags import Consistency, parse_size
from unshard.config.quantities import size_of
from unshard.config.redact import hidden
from unshard.config.rules import BlockAllowRule, ColumnMappingRule, ExpressionFilterRule, FilterRule, RouteRule
from unshard.config.section import Section
from unshard.config.source import SourceConfig
from unshard.config.task import (
    Delivery,
    InstanceConfig,
    JsonValues,
    MetaConfig,
    Mode,
    ShardDrop,
    SparkConfig,
    TaskConfig,
    TimeValues,
)
from unshard.config.units import (
    DEFAULT_ROWS,
    DumperConfig,
    DumpFormat,
    LoaderConfig,
    OnDuplicate,
    OnMissingRow,
    SyncerConfig,
    ValidatorConfig,
)
from unshard.errors import ConfigError

DEFAULT_STATEMENT_BYTES = 1_000_000


_BESIDE = ("checker", "purge")


class DumperSettings(Section):
    """The dump of one source.

    If one of `databases`, `tables` (schema, table) and `filters` (rules of a table filter) is set, they replace the
    block-allow list.
    """

    threads: int
    format: DumpFormat
    chunk_bytes: int
    statement_bytes: int
    rows: int
    where: str = ""
    consistency: Consistency = "auto"
    databases: tuple[str, ...] = ()
    tables: tuple[tuple[str, str], ...] = ()
    filters: tuple[str, ...] = ()


class LoaderSettings(Section):
    """The load of one source. `directory` belongs to this task and source alone.

    `escape_backslash`: whether dumpling was told to escape by backslashes; None where the task's file does not say it.
    """

    pool_size: int
    directory: str
    on_duplicate: OnDuplicate
    incremental_import: bool = False
    escape_backslash: bool | None = None


class SyncerSettings(Section):
    """The sync of one source."""

    worker_count: int
    batch_rows: int
    checkpoint_flush_interval_seconds: int
    compact: bool
    multiple_rows: bool
    on_missing_row: OnMissingRow
    safe_mode: bool
    safe_mode_duration_seconds: float


class ValidatorSettings(Section):
    """Continuous validation of one source."""

    mode: Literal["none", "fast", "full"] = "none"
    worker_count: int = 4
    validate_interval_seconds: float = 10.0
    check_interval_seconds: float = 5.0
    batch_query_size: int = 100
    max_pending_bytes: int = 500 << 20
    max_pending_rows: int = 2147483647
    full_load_rows_per_second: int = 0


class SubtaskConfig(Section):
    """The complete configuration of one source's part of a task.

    Can be pickled; `model_dump_json` writes it, `model_validate_json` reads it.

    Args:
        start: where an incremental task begins. None in another mode, and if the task begins at the binlog's present
            end.
        attempt: drawn by the master before the task's records in the target are discarded, so that a dump of an
            earlier attempt is made again. Empty: any dump is continued.
        pessimistic: whether DDL of merged tables is coordinated, in either mode of `shard-mode`.
        optimistic: with `pessimistic`: each shard's DDL is applied by itself where possible.
        strict: with `optimistic`: the task stops at a DDL that would have to wait.
        peers: all sources of the task, this one too.
        ignore_checking_items: the checks that the task leaves out.

    Passwords are as the user wrote them (plain or a reference). `redacted` is the form to show.
    """

    name: str
    source_id: str
    mode: Mode
    delivery: Delivery
    meta_schema: str
    timezone: str
    case_sensitive: bool
    source: SourceConfig
    target: TargetConfig
    start: MetaConfig | None = None
    attempt: str = ""
    routes: dict[str, RouteRule] = Field(default_factory=dict)
    filters: dict[str, FilterRule] = Field(default_factory=dict)
    block_allow: BlockAllowRule | None = None
    column_mappings: dict[str, ColumnMappingRule] = Field(default_factory=dict)
    expression_filters: dict[str, ExpressionFilterRule] = Field(default_factory=dict)
    shadow_table_rules: tuple[str, ...] = ()
    trash_table_rules: tuple[str, ...] = ()
    dumper: DumperSettings
    loader: LoaderSettings
    syncer: SyncerSettings
    clean_dump_file: bool
    spark: SparkConfig
    pessimistic: bool = False
    optimistic: bool = False
    strict: bool = False
    shard_drop: ShardDrop = "ignore"
    shard_wait_alert_seconds: float = 0.0
    peers: tuple[str, ...] = ()
    collations: dict[str, str] = Field(default_factory=dict)
    json_values: JsonValues = "stop"
    time_values: TimeValues = "stop"
    ignore_checking_items: tuple[str, ...] = ()
    validator: ValidatorSettings = ValidatorSettings()

    def leaves_out(self, *checks: str) -> bool:
        """Return whether the task leaves one of these checks out."""
        return not {"all", *checks}.isdisjoint(self.ignore_checking_items)

    def of_copy(self) -> SubtaskConfig:
        """Return the settings without those that a dump and a load have no use for once they are under way.

        These are the settings of the sync, auto-resume, the purge of relay files, the checks before a start, and the
        source's password, which only new connections need.
        """
        none = {name: type(self.source).model_fields[name].get_default(call_default_factory=True) for name in _BESIDE}
        database = self.source.database.model_copy(update={"password": ""})
        source = self.source.model_copy(update={**none, "database": database})
        return self.model_copy(update={"source": source, "syncer": None, "ignore_checking_items": ()})

    def redacted(self) -> dict[str, Any]:
        """Return the JSON form in DM's key names, with `******` for every secret."""
        form: dict[str, Any] = hidden(self.model_dump(mode="json", by_alias=True))
        return form


def plan_subtasks(task: TaskConfig, sources: Sequence[SourceConfig]) -> tuple[SubtaskConfig, ...]:
    """Return the subtasks of a task, in the order of `mysql-instances`.

    Raises ConfigError CONFIG-005 with every source that is missing, given twice, not in the task, disabled, or whose
    starting point doesn't suit its `enable-gtid`.
    """
    by_id = {source.source_id: source for source in sources}
    faults = list(_misfits(task, sources))
    if faults:
        values = {"task": task.name, "count": len(faults)}
        raise ConfigError("CONFIG-005", cause="\n       ".join(faults), values=values)
    return tuple(_subtask(task, instance, by_id[instance.source_id]) for instance in task.mysql_instances)


def plan_subtask(task: TaskConfig, source: SourceConfig) -> SubtaskConfig:
    """Return the subtask of one source of the task. The other sources are not checked."""
    instance = next(one for one in task.mysql_instances if one.source_id == source.source_id)
    return _subtask(task, instance, source)


def _misfits(task: TaskConfig, sources: Sequence[SourceConfig]) -> list[str]:
    given = [source.source_id for source in sources]
    wanted = [instance.source_id for instance in task.mysql_instances]
    faults = [f"source '{name}' of the task has no source file" for name in wanted if name not in given]
    faults += [f"source '{name}' is not in the task's mysql-instances" for name in dict.fromkeys(given) - _keys(wanted)]
    faults += [f"source '{name}' is in {given.count(name)} source files" for name in _repeated(given)]
    if task.delivery == "at-least-once" and task.spark.conf.get("spark.speculation", "").lower() == "true":
        faults.append(
            "delivery: at-least-once can't go with spark.speculation: a late attempt would bring back old rows"
        )
    faults += _unchecked(task)
    by_id = {source.source_id: source for source in sources}
    for instance in task.mysql_instances:
        source = by_id.get(instance.source_id)
        if source is None:
            continue
        if not source.enable:
            faults.append(f"source '{source.source_id}' is disabled; set enable: true in its file")
        if task.task_mode == "incremental" and instance.meta is not None:
            key = "binlog-gtid" if source.enable_gtid else "binlog-name"
            if not (instance.meta.binlog_gtid if source.enable_gtid else instance.meta.binlog_name):
                switch = str(source.enable_gtid).lower()
                faults.append(f"source '{source.source_id}' has enable-gtid: {switch}, so its meta needs {key}")
    return faults


def _unchecked(task: TaskConfig) -> list[str]:
    """Return syncer settings that conflict with a target that checks foreign keys.

    On such a target connected tables keep the binlog's order.
    """
    if not task.target_database.checks_foreign_keys:
        return []
    syncers = [*task.syncers.values(), *(one.syncer for one in task.mysql_instances if one.syncer is not None)]
    asked = sorted(
        {
            name.replace("_", "-")
            for syncer in syncers
            for name in ("compact", "multiple_rows")
            if name in syncer.model_fields_set and getattr(syncer, name)
        }
    )
    return [f"session: foreign_key_checks = 1 can't go with {name}: true; take one of them out" for name in asked]


def _keys(names: Sequence[str]) -> Any:
    return dict.fromkeys(names).keys()


def _repeated(names: Sequence[str]) -> list[str]:
    return sorted({name for name in names if names.count(name) > 1})


def _subtask(task: TaskConfig, instance: InstanceConfig, source: SourceConfig) -> SubtaskConfig:
    return SubtaskConfig(
        name=task.name,
        source_id=source.source_id,
        mode=task.task_mode,
        delivery=task.delivery,
        meta_schema=task.meta_schema,
        timezone=task.timezone,
        case_sensitive=task.case_sensitive or source.case_sensitive,
        source=source,
        target=task.target_database,
        start=instance.meta if task.task_mode == "incremental" else None,
        routes={name: task.routes[name] for name in instance.route_rules},
        filters={name: task.filters[name] for name in instance.filter_rules},
        block_allow=task.block_allow_list[instance.block_allow_list] if instance.block_allow_list else None,
        column_mappings={name: task.column_mappings[name] for name in instance.column_mapping_rules},
        expression_filters={name: task.expression_filter[name] for name in instance.expression_filters},
        shadow_table_rules=task.shadow_table_rules if task.finds_online_ddl else (),
        trash_table_rules=task.trash_table_rules if task.finds_online_ddl else (),
        dumper=_dumper(task.dumper_of(instance), instance),
        loader=_loader(task, instance),
        syncer=_syncer(task.syncers, instance),
        clean_dump_file=task.clean_dump_file,
        spark=task.spark,
        pessimistic=task.is_sharding or task.shard_mode != "",
        optimistic=task.shard_mode == "optimistic",
        strict=task.strict_optimistic_shard_mode,
        shard_drop=task.shard_drop,
        shard_wait_alert_seconds=task.shard_wait_alert,
        peers=tuple(one.source_id for one in task.mysql_instances),
        collations=task.collations,
        json_values=task.json_values,
        time_values=task.time_values,
        ignore_checking_items=task.ignore_checking_items,
        validator=_validator(task, instance),
    )


def _dumper(config: DumperConfig, instance: InstanceConfig) -> DumperSettings:
    flags = config.flags
    return DumperSettings(
        threads=instance.mydumper_thread or flags.threads or config.threads,
        format=config.format,
        chunk_bytes=flags.chunk_bytes or parse_size(config.chunk_filesize),
        statement_bytes=flags.statement_bytes or config.statement_size or DEFAULT_STATEMENT_BYTES,
        rows=flags.rows or config.rows or DEFAULT_ROWS,
        where=flags.where if flags.where is not None else config.where,
        consistency=flags.consistency or "auto",
        databases=flags.databases,
        tables=flags.tables,
        filters=flags.filters,
    )


def _loader(task: TaskConfig, instance: InstanceConfig) -> LoaderSettings:
    name = instance.loader_config_name
    config = task.loaders[name] if name else instance.loader or LoaderConfig()
    return LoaderSettings(
        pool_size=instance.loader_thread or config.pool_size,
        directory=config.dir
        if task.task_mode == "load"
        else f"{config.dir.rstrip('/')}.{task.name}/{instance.source_id}",
        on_duplicate=config.on_duplicate_logical,
        incremental_import=config.incremental_import,
        escape_backslash=task.dumper_of(instance).flags.escape_backslash,
    )


def _validator(task: TaskConfig, instance: InstanceConfig) -> ValidatorSettings:
    name = instance.validator_config_name
    config = task.validators[name] if name else ValidatorConfig()
    return ValidatorSettings(
        mode=config.mode,
        worker_count=config.worker_count,
        validate_interval_seconds=config.validate_interval,
        check_interval_seconds=config.check_interval,
        batch_query_size=config.batch_query_size,
        max_pending_bytes=size_of(config.max_pending_row_size),
        max_pending_rows=config.max_pending_row_count,
        full_load_rows_per_second=config.full_load_rows_per_second if task.task_mode == "all" else 0,
    )


def _syncer(named: Mapping[str, SyncerConfig], instance: InstanceConfig) -> SyncerSettings:
    name = instance.syncer_config_name
    config = named[name] if name else instance.syncer or SyncerConfig()
    return SyncerSettings(
        worker_count=instance.syncer_thread or config.worker_count,
        batch_rows=config.batch,
        checkpoint_flush_interval_seconds=config.checkpoint_flush_interval,
        compact=config.compact,
        multiple_rows=config.multiple_rows,
        on_missing_row=config.on_missing_row,
        safe_mode=config.safe_mode,
        safe_mode_duration_seconds=config.safe_mode_seconds,
    )
