"""Tables that DM keeps of a task in the target."""

from __future__ import annotations

CHECKPOINT = """
CREATE TABLE {name} (
  id VARCHAR(32) NOT NULL, cp_schema VARCHAR(128) NOT NULL, cp_table VARCHAR(128) NOT NULL,
  binlog_name VARCHAR(128), binlog_pos INT UNSIGNED, binlog_gtid TEXT,
  exit_safe_binlog_name VARCHAR(128) DEFAULT '', exit_safe_binlog_pos INT UNSIGNED DEFAULT 0,
  exit_safe_binlog_gtid TEXT, table_info JSON NOT NULL, is_global BOOLEAN,
  create_time TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP,
  update_time TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP,
  UNIQUE KEY uk_id_schema_table (id, cp_schema, cp_table))
"""
SHARDING_META = """
CREATE TABLE {name} (
  source_id VARCHAR(32) NOT NULL, target_table_id VARCHAR(144) NOT NULL DEFAULT '',
  source_table_id VARCHAR(144) NOT NULL DEFAULT '', active_index INT, is_global BOOLEAN, data JSON NOT NULL,
  create_time TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP,
  update_time TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP,
  UNIQUE KEY uk_source_id_table_id_source (source_id, target_table_id, source_table_id))
"""
