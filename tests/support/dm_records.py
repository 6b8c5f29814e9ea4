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
