"""The names that `ignore-checking-items` takes: DM's own, and ours."""

from __future__ import annotations

from typing import Literal

CheckingItem = Literal[
    "all",
    "version",
    "server_id",
    "binlog_enable",
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
    "target_keys",
    "rows_between_sources",
    "shard_settings",
    "target_collations",
    "tidb_tables",
    "tidb_collations",
]
