"""The task file: what is migrated from which sources to which target, and how."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field, field_validator

from unshard.config.database import TargetConfig
from unshard.config.problems import used_without_effect
from unshard.config.quantities import Seconds, Unit
from unshard.config.rules import (
    BlockAllowRule,
    ColumnMappingRule,
    ExpressionFilterRule,
    FilterRule,
    OnlineTableRule,
    RouteRule,
)
from unshard.config.section import NoEffect, Section, later
from unshard.config.source import BinlogName, GtidText, SourceId
from unshard.config.units import DumperConfig, LoaderConfig, SyncerConfig, ValidatorConfig

CheckingItem = Literal[
    "all",
    "version",
    "server_id",
    "binlog_enable",
    "log_slave_updates",
    "binlog_format",
    "binlog_row_image",
    "binlog_db",
    "replication_privilege",
    "dump_privilege",
    "target_privilege",
    "meta_position",
    "conn_number",
    "online_ddl",
    "table_schema",
    "schema_of_shard_tables",
    "auto_increment_ID",
    "empty_region",
    "region_distribution",
    "downstream_version",
    "free_space",
    "downstream_mutex_features",
    "downstream_table_empty",
    "primary_key",
    "target_triggers",
    "unmatched_rules",
    "json_values",
    "character_codes",
    "negative_zeros",
    "target_keys",
    "rows_between_sources",
    "shard_settings",
    "target_collations",
    "tidb_tables",
    "tidb_collations",
    "tidb_limits",
    "value_limits",
    "large_value_limits",
    "where_zone",
]
"""The names that `ignore-checking-items` accepts: DM's, and our own."""


LONGEST_TABLE_SUFFIX = "_lightning_checkpoint_list"
"""The longest suffix of a meta table's name.

Together with the task's name it must fit into the 64 characters of a table name.
"""

Mode = Literal["full", "incremental", "all", "dump", "load"]
Delivery = Literal["exactly-once", "at-least-once"]
ShardDrop = Literal["ignore", "stop"]
JsonValues = Literal["stop", "convert"]
TimeValues = Literal["stop", "clamp"]
CollationName = Annotated[str, Field(pattern=r"^[A-Za-z0-9]+(_[A-Za-z0-9]+)*$")]
_HEARTBEAT = NoEffect("DM dropped its heartbeat")
_COLLATIONS_KEPT = NoEffect("the source's collations are always kept")
_ASYNC_FLUSH = NoEffect("a checkpoint is one small write between two batches; the rows are the same")
_SHADOW = (r"^_(.+)_(?:new|gho)$",)
_TRASH = (r"^_(.+)_(?:ghc|del|old)$",)


class MetaConfig(Section):
    """The position where an incremental task begins. Ignored once the target has a checkpoint of the task."""

    binlog_name: BinlogName = Field(default="", description="Binlog file to begin in.", examples=["mysql-bin.000001"])
    binlog_pos: Annotated[int, Unit("byte offset")] = Field(default=4, ge=4, description="Place in that file.")
    binlog_gtid: GtidText = Field(default="", description="GTID set to begin after; for sources with `enable-gtid`.")


class InstanceConfig(Section):
    """One source of the task, and the named rules that apply to it."""

    old_names: ClassVar[dict[str, str]] = {"black-white-list": "block-allow-list"}

    source_id: SourceId = Field(description="`source-id` of the source file.")
    meta: MetaConfig | None = Field(
        default=None, description="Where an incremental task begins; not set: the present end."
    )
    route_rules: tuple[str, ...] = Field(default=(), description="Names under `routes`.")
    filter_rules: tuple[str, ...] = Field(default=(), description="Names under `filters`.")
    expression_filters: tuple[str, ...] = Field(default=(), description="Names under `expression-filter`.")
    block_allow_list: str = Field(default="", description="A name under `block-allow-list`; not set: all tables.")
    column_mapping_rules: tuple[str, ...] = Field(default=(), description="Names under `column-mappings`.")
    mydumper_config_name: str = Field(default="", description="A name under `mydumpers`.")
    mydumper: DumperConfig | None = Field(default=None, description="The same inline.")
    mydumper_thread: int = Field(default=0, ge=0, description="In place of `threads`; 0: as set there.")
    loader_config_name: str = Field(default="", description="A name under `loaders`.")
    loader: LoaderConfig | None = Field(default=None, description="The same inline.")
    loader_thread: int = Field(default=0, ge=0, description="In place of `pool-size`; 0: as set there.")
    syncer_config_name: str = Field(default="", description="A name under `syncers`.")
    syncer: SyncerConfig | None = Field(default=None, description="The same inline.")
    syncer_thread: int = Field(default=0, ge=0, description="In place of `worker-count`; 0: as set there.")
    validator_config_name: str = Field(default="", description="A name under `validators`.")


class SparkConfig(Section):
    """The Spark session that the task's jobs run in."""

    master: str = Field(
        default="local[*]",
        min_length=1,
        description="Spark master: `local[n]`, `spark://host:port`, `yarn` or `k8s://…`.",
        examples=["local[4]", "spark://10.0.0.9:7077"],
    )
    remote: str = Field(
        default="",
        description="Spark Connect server, in place of `master`.",
        examples=["sc://10.0.0.9:15002"],
    )
    python: str = Field(
        default="",
        description="Python interpreter of the executors, with Unshard installed; not set: the path of this one.",
        examples=["/opt/unshard/bin/python", "./env/bin/python"],
    )
    archives: tuple[str, ...] = Field(
        default=(),
        description="Packed environments that are unpacked where executors run, each as `file#folder`.",
        examples=[["/srv/unshard-env.tar.gz#env"]],
    )
    conf: dict[str, str] = Field(
        default_factory=dict,
        description="Spark properties, as `spark-submit --conf` takes them. Masters store them as they are written, "
        "not encrypted: secrets belong in Spark's own files.",
    )

    @field_validator("master")
    @classmethod
    def _master(cls, master: str) -> str:
        if master.startswith("sc://"):
            raise ValueError("write a Spark Connect server as remote: sc://…")
        return master

    @field_validator("remote")
    @classmethod
    def _remote(cls, remote: str) -> str:
        if remote and not remote.startswith("sc://"):
            raise ValueError("write sc://host:port")
        return remote

    @property
    def url(self) -> str:
        """The URL of the Spark Connect server, or else of the Spark master."""
        return self.remote or self.master


class ExperimentalConfig(Section):
    """DM's experimental settings."""

    async_checkpoint_flush: Annotated[bool, _ASYNC_FLUSH] = Field(
        default=False, description="Write checkpoints while changes go on being applied."
    )


class TaskConfig(Section):
    """One migration."""

    old_names: ClassVar[dict[str, str]] = {"black-white-list": "block-allow-list"}

    name: str = Field(
        min_length=1,
        max_length=64 - len(LONGEST_TABLE_SUFFIX),
        description="Name of the task; the meta tables on the target begin with it.",
    )
    task_mode: Mode = Field(
        description="`full`: copy what is there. `incremental`: follow the binlog. `all`: copy, then follow. `dump`: "
        "write the dump files and no more. `load`: load dump files, ours, mydumper's or dumpling's, from `dir` as it "
        "stands."
    )
    delivery: Delivery = Field(
        default="exactly-once",
        description="How often a row change reaches the target, whatever dies meanwhile. `at-least-once` is DM's way: "
        "no receipts, a checkpoint every interval, and safe mode where changes may come again.",
    )
    is_sharding: bool = Field(default=False, description="DM's old switch: `true` is `shard-mode: pessimistic`.")
    shard_mode: Literal["", "pessimistic", "optimistic"] = Field(
        default="",
        description="How DDL of merged tables is brought together. `pessimistic`: a DDL waits until all tables that "
        "are merged into one have it, in all sources; it is run once then. `optimistic`: what makes a shard's table "
        "larger is run at once, what makes it smaller with the last shard, anything else when all have it; only the "
        "shard that waits is held. Not set: such a DDL stops the task.",
    )
    shard_drop: ShardDrop = Field(
        default="ignore",
        description="With `shard-mode`: what DROP TABLE, DROP DATABASE and TRUNCATE of a source's tables do. `ignore`: "
        "nothing on the target, as in DM; `stop`: the task stops in front of them.",
    )
    shard_wait_alert: Seconds = Field(
        default=0.0,
        ge=0,
        description="With `shard-mode`: a DDL that waits for longer than this is an error in the log, and "
        "`query-status` says so; 0: never. The task goes on as before.",
        examples=["30m"],
    )
    strict_optimistic_shard_mode: bool = Field(
        default=False,
        description="With `shard-mode: optimistic`: a statement that would wait for other shards stops the task in "
        "front of it.",
    )
    ignore_checking_items: tuple[CheckingItem, ...] = Field(
        default=(),
        description="Checks before the start to leave out, `all` for every one; `reference/checks.md` lists them.",
        examples=[["version"]],
    )
    meta_schema: str = Field(
        default="dm_meta", min_length=1, max_length=64, description="Schema on the target for checkpoints and receipts."
    )
    enable_heartbeat: Annotated[bool, _HEARTBEAT] = Field(default=False, description="Old delay measurement.")
    heartbeat_update_interval: Annotated[int, _HEARTBEAT, Unit("s")] = Field(default=1, description="Old.")
    heartbeat_report_interval: Annotated[int, _HEARTBEAT, Unit("s")] = Field(default=10, description="Old.")
    timezone: Annotated[str, later("", "+00:00", "UTC")] = Field(
        default="",
        description="Time zone of sessions. Values move in UTC, statements run in the zone of their event. With"
        " `task-mode: load`, `UTC` says that the TIMESTAMP values of a dump are in UTC whose files do not tell"
        " (LOAD-028).",
    )
    case_sensitive: bool = Field(default=False, description="Patterns and names of rules are compared with their case.")
    collation_compatible: Annotated[Literal["loose", "strict"], _COLLATIONS_KEPT] = Field(
        default="loose",
        alias="collation_compatible",
        description="`strict`: the source's default collations are kept where the target has others. They always are.",
    )
    collations: dict[CollationName, CollationName] = Field(
        default_factory=dict,
        description="With a TiDB target: by collation of the source, the one that its columns get. Not named: the "
        "same, or the nearest one where TiDB lacks it, as the checks before the start tell.",
        examples=[{"latin1_swedish_ci": "utf8mb4_bin"}],
    )
    json_values: JsonValues = Field(
        default="stop",
        description="What a row of the binlog does whose column is JSON in the target (MySQL, TiDB), if its document "
        "holds a DECIMAL, a date or time, or binary data, for which JSON has no words (of MySQL), or, as text, a "
        "number with more digits than a DOUBLE keeps. `stop`: the task stops in front of it; `convert`: numbers are "
        "stored as DOUBLE, the others as strings. The copy always stores them so.",
    )
    time_values: TimeValues = Field(
        default="stop",
        description="With a source of MariaDB and a target of TiDB or MySQL: what a TIME beyond 838:59:59 does, which "
        "the target has not (MariaDB's TIME goes to 838:59:59.999999). `stop`: the task stops in front of it; `clamp`: "
        "the target gets 838:59:59 or -838:59:59, and the table `clamped_value` of the task in the `meta-schema` the "
        "value and the key of its row. In a column of a unique key, and in a copy by `format: sql`, such "
        "a value always stops the task.",
    )
    target_database: TargetConfig = Field(description="The target.")
    mysql_instances: tuple[InstanceConfig, ...] = Field(description="The sources; at least one.")
    online_ddl: bool = Field(
        default=True,
        description="Recognise the helper tables of gh-ost and pt-online-schema-change: their rows are left out, and "
        "what was run on the ghost is run on the table when it takes its place.",
    )
    shadow_table_rules: tuple[OnlineTableRule, ...] = Field(
        default=_SHADOW,
        description="Regular expressions of ghost tables' names; the one capture group is the table's name.",
    )
    trash_table_rules: tuple[OnlineTableRule, ...] = Field(
        default=_TRASH, description="The same for tables that are left out: change logs, sentries, old copies."
    )
    online_ddl_scheme: Literal["", "gh-ost", "pt"] = Field(
        default="", description="DM's old key: anything but an empty text is `online-ddl: true`."
    )
    routes: dict[str, RouteRule] = Field(default_factory=dict, description="Named routes.")
    filters: dict[str, FilterRule] = Field(default_factory=dict, description="Named event filters.")
    expression_filter: dict[str, ExpressionFilterRule] = Field(
        default_factory=dict, description="Named expression filters."
    )
    block_allow_list: dict[str, BlockAllowRule] = Field(default_factory=dict, description="Named block-allow lists.")
    column_mappings: dict[str, ColumnMappingRule] = Field(default_factory=dict, description="Named column mappings.")
    mydumpers: dict[str, DumperConfig] = Field(default_factory=dict, description="Named dump settings.")
    loaders: dict[str, LoaderConfig] = Field(default_factory=dict, description="Named load settings.")
    syncers: dict[str, SyncerConfig] = Field(default_factory=dict, description="Named sync settings.")
    validators: dict[str, ValidatorConfig] = Field(default_factory=dict, description="Named validator settings.")
    clean_dump_file: bool = Field(default=True, description="Delete the dump files once they are loaded.")
    ansi_quotes: Annotated[bool, NoEffect("it is read from the source's sql_mode")] = Field(
        default=False, description='Names are quoted with ".'
    )
    remove_meta: Annotated[
        bool, NoEffect("a start goes on from what the target has on record, unless --remove-meta is given to it")
    ] = Field(default=False, description="Old: give `--remove-meta` to `start-task` or `unshard run`.")
    experimental: ExperimentalConfig = Field(default_factory=ExperimentalConfig, description="DM's trials.")
    spark: SparkConfig = Field(default_factory=SparkConfig, description="Where the jobs run.")

    @field_validator("name")
    @classmethod
    def _name(cls, name: str) -> str:
        if set(name) & set("/\\\0") or name.strip(" .") != name:
            raise ValueError("it names folders and tables; write it without slashes, and no blank or dot at its ends")
        if max(name) > "\uffff":
            raise ValueError("tables are named by it, and their names can't have characters beyond U+FFFF")
        return _without_percent(name)

    @field_validator("meta_schema")
    @classmethod
    def _meta_schema(cls, name: str) -> str:
        return _without_percent(name)

    @field_validator("mysql_instances")
    @classmethod
    def _some(cls, instances: tuple[InstanceConfig, ...]) -> tuple[InstanceConfig, ...]:
        # not min_length: that counts the valid entries, and would tell of a broken one twice
        if not instances:
            raise ValueError("name at least one source: - source-id: …")
        return instances

    @property
    def finds_online_ddl(self) -> bool:
        """True if the task recognizes the tables of gh-ost and pt-osc."""
        return self.online_ddl or bool(self.online_ddl_scheme)

    def dumper_of(self, instance: InstanceConfig) -> DumperConfig:
        """Return the dump settings of one of the task's instances."""
        name = instance.mydumper_config_name
        return self.mydumpers[name] if name else instance.mydumper or DumperConfig()

    @property
    def notices(self) -> tuple[str, ...]:
        """Notices for the user about keys that have no effect; one sentence each."""
        found = list(used_without_effect(self, ()))
        if self.task_mode != "incremental":
            found += [
                f"mysql-instances[{index}].meta has no effect: task-mode {self.task_mode} begins at its own dump"
                for index, instance in enumerate(self.mysql_instances)
                if instance.meta is not None
            ]
        if self.task_mode != "load":
            found += [
                f"--escape-backslash=false in extra-args of mysql-instances[{index}] has no effect: it says how "
                f"dumpling wrote a dump, and task-mode {self.task_mode} reads none"
                for index, instance in enumerate(self.mysql_instances)
                if self.dumper_of(instance).flags.escape_backslash is False
            ]
        if self.task_mode not in ("incremental", "all"):
            found += [
                f"mysql-instances[{index}].expression-filters has no effect: task-mode {self.task_mode} follows no "
                "binlog; `where` under mydumpers leaves rows out of the copy"
                for index, instance in enumerate(self.mysql_instances)
                if instance.expression_filters
            ]
        if self.task_mode not in ("incremental", "all"):
            found += [
                f"mysql-instances[{index}].filter-rules has no effect: task-mode {self.task_mode} follows no binlog"
                for index, instance in enumerate(self.mysql_instances)
                if instance.filter_rules
            ]
            found += [
                f"mysql-instances[{index}].validator-config-name has no effect: task-mode {self.task_mode} follows no "
                "binlog, so rows that change in the source later would count as errors; `unshard compare` compares "
                "the rows that were loaded"
                for index, instance in enumerate(self.mysql_instances)
                if instance.validator_config_name and self.validators[instance.validator_config_name].mode != "none"
            ]
        return tuple(found)


def _without_percent(name: str) -> str:
    """Return a part of the names of the task's own tables in the target. Raises ValueError.

    The driver formats statements that have parameters with `%`, the names in them included.
    """
    if "%" in name:
        raise ValueError("the task's own tables in the target are named by it; write it without %")
    return name
