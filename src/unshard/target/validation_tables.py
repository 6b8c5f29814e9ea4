"""The tables of continuous validation in the target: DM's four, and two of ours.

| table | one row for each | deleted |
|---|---|---|
| `validator_checkpoint` | source: whether it validates, how far it is | with the task's records |
| `validator_changed_key` | part of a batch: keys that it changed, not looked at yet | once they have been looked at |
| `validator_full_load` | target table with loaded rows: how far they are compared | with these |
| `validator_pending_change` | key that differed at a look, and is not judged yet | once it is judged |
| `validator_error_change` | key that differs | by `clear-error` |
| `validator_question` | row, and a source that is asked for it (`validation_questions.py`) | once it is judged |
| `validator_table_status` | source table that can't be validated as a whole, and why | once it can be |

The changed keys of a batch commit with its checkpoint. A later step commits together with the removal of what it came
from, so that no key is lost at any crash; one may be looked at twice.
"""

from __future__ import annotations

from typing import Any

import MySQLdb

from unshard.mysql.connection import rows
from unshard.target.meta import DUPLICATE_COLUMN, NARROW, MetaTables

_TIMES = """
    create_time TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP,
    update_time TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP"""
_END = ") ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin"
_CREATE = {
    "validator_changed_key": """
    source VARCHAR(32) NOT NULL,
    binlog_name VARCHAR(128) NOT NULL,
    binlog_pos BIGINT UNSIGNED NOT NULL,
    binlog_gtid LONGTEXT NOT NULL,
    described LONGTEXT NOT NULL,
    keys_count INT NOT NULL,
    size INT NOT NULL,
    data LONGBLOB NOT NULL,
    KEY idx_source (source)""",
    "validator_pending_change": """
    source VARCHAR(32) NOT NULL,
    schema_name VARCHAR(128) NOT NULL,
    table_name VARCHAR(128) NOT NULL,
    row_pk VARCHAR(64) NOT NULL,
    data JSON NOT NULL,
    revision BIGINT NOT NULL DEFAULT 0,
    KEY idx_source_schema_table_key (source, schema_name, table_name, row_pk)""",
    "validator_error_change": """
    source VARCHAR(32) NOT NULL,
    src_schema_name VARCHAR(128) NOT NULL,
    src_table_name VARCHAR(128) NOT NULL,
    row_pk VARCHAR(64) NOT NULL,
    dst_schema_name VARCHAR(128) NOT NULL,
    dst_table_name VARCHAR(128) NOT NULL,
    data JSON NOT NULL,
    dst_data JSON NOT NULL,
    error_type INT NOT NULL,
    status INT NOT NULL,
    times INT NOT NULL DEFAULT 1,
    place VARCHAR(160) NOT NULL DEFAULT '',
    settled_by VARCHAR(255) NOT NULL DEFAULT '',
    UNIQUE KEY uk_source_schema_table_key (source, src_schema_name, src_table_name, row_pk),
    KEY idx_status (status)""",
    "validator_table_status": """
    source VARCHAR(32) NOT NULL,
    src_schema_name VARCHAR(128) NOT NULL,
    src_table_name VARCHAR(128) NOT NULL,
    dst_schema_name VARCHAR(128) NOT NULL,
    dst_table_name VARCHAR(128) NOT NULL,
    stage VARCHAR(32) NOT NULL,
    message VARCHAR(512) NOT NULL,
    UNIQUE KEY uk_source_schema_table (source, src_schema_name, src_table_name),
    KEY idx_stage (stage)""",
    "validator_question": """
    source VARCHAR(32) NOT NULL,
    asked VARCHAR(32) NOT NULL,
    dst_schema_name VARCHAR(64) NOT NULL,
    dst_table_name VARCHAR(64) NOT NULL,
    row_pk VARCHAR(64) NOT NULL,
    row_key LONGTEXT NOT NULL,
    answer INT NOT NULL DEFAULT 0,
    UNIQUE KEY uk_question (source, asked, dst_schema_name, dst_table_name, row_pk),
    KEY idx_asked (asked, answer)""",
    "validator_full_load": """
    source VARCHAR(32) NOT NULL,
    dst_schema_name VARCHAR(64) NOT NULL,
    dst_table_name VARCHAR(64) NOT NULL,
    origins LONGTEXT NOT NULL,
    range_key LONGTEXT NOT NULL,
    bound LONGTEXT,
    done INT NOT NULL DEFAULT 0,
    rows_done BIGINT NOT NULL DEFAULT 0,
    rows_about BIGINT NOT NULL DEFAULT 0,
    UNIQUE KEY uk_source_table (source, dst_schema_name, dst_table_name)""",
    "validator_checkpoint": """
    source VARCHAR(32) NOT NULL,
    binlog_name VARCHAR(128) DEFAULT '',
    binlog_pos BIGINT UNSIGNED DEFAULT 0,
    binlog_gtid LONGTEXT,
    procd_ins BIGINT UNSIGNED NOT NULL DEFAULT 0,
    procd_upd BIGINT UNSIGNED NOT NULL DEFAULT 0,
    procd_del BIGINT UNSIGNED NOT NULL DEFAULT 0,
    revision BIGINT NOT NULL DEFAULT 0,
    mode VARCHAR(8) NOT NULL DEFAULT '',
    stage VARCHAR(8) NOT NULL DEFAULT '',
    fault LONGTEXT,
    cutover_name VARCHAR(128) NOT NULL DEFAULT '',
    cutover_pos BIGINT UNSIGNED NOT NULL DEFAULT 0,
    cutover_gtid LONGTEXT,
    full_load_listed INT NOT NULL DEFAULT 0,
    UNIQUE KEY uk_source (source)""",
}
"""The one whose rows tell that there is a validation comes last."""

_LATER = {
    "validator_checkpoint": (
        ("mode", "VARCHAR(8) NOT NULL DEFAULT ''"),
        ("stage", "VARCHAR(8) NOT NULL DEFAULT ''"),
        ("fault", "LONGTEXT"),
        ("cutover_name", "VARCHAR(128) NOT NULL DEFAULT ''"),
        ("cutover_pos", "BIGINT UNSIGNED NOT NULL DEFAULT 0"),
        ("cutover_gtid", "LONGTEXT"),
        ("full_load_listed", "INT NOT NULL DEFAULT 0"),
    ),
    "validator_error_change": (
        ("times", "INT NOT NULL DEFAULT 1"),
        ("place", "VARCHAR(160) NOT NULL DEFAULT ''"),
        ("settled_by", "VARCHAR(255) NOT NULL DEFAULT ''"),
    ),
}
"""Columns that DM's own tables lack."""


def create_validation(connection: Any, meta: MetaTables) -> None:
    """Create what is missing. Tables that DM has left get our columns; its pending rows, in its own form, go.

    Positions of DM's tables, and of an earlier version's, get room for a place beyond 4 GiB.
    """
    found = rows(
        connection,
        "SELECT TABLE_NAME, COLUMN_NAME, DATA_TYPE FROM information_schema.COLUMNS"
        " WHERE TABLE_SCHEMA = %s AND TABLE_NAME LIKE %s",
        (meta.schema, f"{meta.task}\\_validator\\_%"),
    )
    known = {(str(table).lower(), str(column)): str(kind) for table, column, kind in found}
    there = {table for table, _ in known}
    for suffix, columns in _CREATE.items():
        name = f"{meta.task}_{suffix}".lower()
        if name not in there:
            head = "id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY,"
            rows(connection, f"CREATE TABLE IF NOT EXISTS {meta.named(suffix)} ({head}{columns},{_TIMES}\n{_END}")
            continue
        lacking = [one for one in _LATER.get(suffix, ()) if (name, one[0]) not in known]
        for column, definition in lacking:
            try:
                rows(connection, f"ALTER TABLE {meta.named(suffix)} ADD COLUMN {column} {definition}")
            except MySQLdb.Error as error:
                if error.args[0] != DUPLICATE_COLUMN:  # another source's start was quicker
                    raise
        if suffix == "validator_checkpoint" and known.get((name, "binlog_pos")) == NARROW:
            rows(connection, f"ALTER TABLE {meta.named(suffix)} MODIFY COLUMN binlog_pos BIGINT UNSIGNED DEFAULT 0")
        if suffix == "validator_checkpoint" and (name, "mode") not in known:
            rows(connection, f"DELETE FROM {meta.named('validator_pending_change')}")
            rows(connection, "COMMIT")
