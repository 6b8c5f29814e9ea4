"""The tables of a task in the target's `meta-schema`: DM's own, those of the receipts, and those of sharding DDL.

Names and columns of `<task>_syncer_checkpoint` are DM's, so that DM's users find what they know.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import MySQLdb

from unshard.model.table import quote_name

DUPLICATE_COLUMN = 1060
NARROW = "int"
"""The type of columns that are to be wider, as `information_schema` names it."""

_CHECKPOINT = """
CREATE TABLE IF NOT EXISTS {name} (
    id VARCHAR(32) NOT NULL,
    cp_schema VARCHAR(128) NOT NULL,
    cp_table VARCHAR(128) NOT NULL,
    binlog_name VARCHAR(128),
    binlog_pos BIGINT UNSIGNED,
    binlog_gtid TEXT,
    exit_safe_binlog_name VARCHAR(128) DEFAULT '',
    exit_safe_binlog_pos BIGINT UNSIGNED DEFAULT 0,
    exit_safe_binlog_gtid TEXT,
    table_info JSON NOT NULL,
    is_global BOOLEAN,
    create_time TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP,
    update_time TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP,
    PRIMARY KEY (id, cp_schema, cp_table)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin
"""
_BATCH = """
CREATE TABLE IF NOT EXISTS {name} (
    source VARCHAR(32) NOT NULL PRIMARY KEY,
    epoch BIGINT NOT NULL,
    batch_id BIGINT NOT NULL,
    begin_name VARCHAR(128) NOT NULL DEFAULT '',
    begin_pos BIGINT UNSIGNED NOT NULL DEFAULT 0,
    end_name VARCHAR(128) NOT NULL DEFAULT '',
    end_pos BIGINT UNSIGNED NOT NULL DEFAULT 0,
    plan LONGTEXT NOT NULL,
    state VARCHAR(8) NOT NULL,
    cluster BIGINT NOT NULL DEFAULT 0,
    order_epoch BIGINT NOT NULL DEFAULT 0,
    worker VARCHAR(255) NOT NULL DEFAULT '',
    moves BIGINT NOT NULL DEFAULT 0,
    update_time TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin
"""
_PARTITION = """
CREATE TABLE IF NOT EXISTS {name} (
    source VARCHAR(32) NOT NULL,
    part INT NOT NULL,
    epoch BIGINT NOT NULL,
    batch_id BIGINT NOT NULL,
    chunk INT NOT NULL,
    step INT NOT NULL DEFAULT 0,
    writer BIGINT UNSIGNED NOT NULL DEFAULT 0,
    trouble VARCHAR(500) NOT NULL DEFAULT '',
    PRIMARY KEY (source, part)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin
"""
_LEDGER = """
CREATE TABLE IF NOT EXISTS {name} (
    source VARCHAR(32) NOT NULL,
    target VARCHAR(160) NOT NULL,
    decoded BIGINT NOT NULL,
    filtered BIGINT NOT NULL DEFAULT 0,
    compacted BIGINT NOT NULL,
    inserted BIGINT NOT NULL,
    updated BIGINT NOT NULL,
    deleted BIGINT NOT NULL,
    missing BIGINT NOT NULL,
    PRIMARY KEY (source, target)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin
"""
COUNTS = ("decoded", "filtered", "compacted", "inserted", "updated", "deleted", "missing")
"""The columns of the ledger that count the changes of a target table."""

_LEFT_OUT = """
CREATE TABLE IF NOT EXISTS {name} (
    source VARCHAR(32) NOT NULL,
    name VARCHAR(160) NOT NULL,
    rule VARCHAR(255) NOT NULL,
    changes BIGINT NOT NULL DEFAULT 0,
    events BIGINT NOT NULL DEFAULT 0,
    PRIMARY KEY (source, name, rule)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin
"""
_MISSING = """
CREATE TABLE IF NOT EXISTS {name} (
    source VARCHAR(32) NOT NULL,
    part INT NOT NULL,
    batch_id BIGINT NOT NULL,
    chunk INT NOT NULL,
    step INT NOT NULL,
    target VARCHAR(160) NOT NULL,
    missing BIGINT NOT NULL,
    example VARCHAR(255) NOT NULL,
    PRIMARY KEY (source, part, batch_id, chunk, step, target)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin
"""
CLAMPED_VALUE = """
CREATE TABLE IF NOT EXISTS {name} (
    source VARCHAR(32) NOT NULL,
    source_table VARCHAR(160) NOT NULL,
    target VARCHAR(160) NOT NULL,
    row_key VARCHAR(350) NOT NULL,
    name VARCHAR(64) NOT NULL,
    value VARCHAR(32) NOT NULL,
    place VARCHAR(160) NOT NULL,
    update_time TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP,
    PRIMARY KEY (source, source_table, row_key, name)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin
"""
_LATER = (
    ("apply_partition", "step", "INT NOT NULL DEFAULT 0"),
    ("apply_partition", "writer", "BIGINT UNSIGNED NOT NULL DEFAULT 0"),
    ("apply_partition", "trouble", "VARCHAR(500) NOT NULL DEFAULT ''"),
    ("apply_ledger", "filtered", "BIGINT NOT NULL DEFAULT 0"),
    ("apply_left_out", "events", "BIGINT NOT NULL DEFAULT 0"),
    ("apply_batch", "cluster", "BIGINT NOT NULL DEFAULT 0"),
    ("apply_batch", "order_epoch", "BIGINT NOT NULL DEFAULT 0"),
    ("apply_batch", "worker", "VARCHAR(255) NOT NULL DEFAULT ''"),
    ("apply_batch", "moves", "BIGINT NOT NULL DEFAULT 0"),
)
"""Columns that a task's tables of an earlier version lack; their counts begin when they are added."""
_WIDER = (
    ("syncer_checkpoint", "binlog_pos", "BIGINT UNSIGNED"),
    ("syncer_checkpoint", "exit_safe_binlog_pos", "BIGINT UNSIGNED DEFAULT 0"),
)
"""Columns that are INT UNSIGNED in tables of DM and of earlier versions; a binlog file may be longer than 4 GiB."""
_ONLINE_DDL = """
CREATE TABLE IF NOT EXISTS {name} (
    id VARCHAR(32) NOT NULL,
    ghost_schema VARCHAR(128) NOT NULL,
    ghost_table VARCHAR(128) NOT NULL,
    ddls LONGTEXT,
    update_time TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP,
    PRIMARY KEY (id, ghost_schema, ghost_table)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin
"""
_PREPARED_XA = """
CREATE TABLE IF NOT EXISTS {name} (
    source VARCHAR(32) NOT NULL,
    xid VARCHAR(270) NOT NULL,
    binlog_name VARCHAR(128) NOT NULL,
    begin_pos BIGINT UNSIGNED NOT NULL,
    end_pos BIGINT UNSIGNED NOT NULL,
    binlog_gtid LONGTEXT NOT NULL,
    PRIMARY KEY (source, xid)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin
"""
_UPSTREAM = """
CREATE TABLE IF NOT EXISTS {name} (
    source VARCHAR(32) NOT NULL PRIMARY KEY,
    uuid VARCHAR(64) NOT NULL
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin
"""
_BLOCK_ALLOW_LIST = """
CREATE TABLE IF NOT EXISTS {name} (
    source VARCHAR(32) NOT NULL PRIMARY KEY,
    lists LONGTEXT NOT NULL
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin
"""
_OPERATOR = """
CREATE TABLE IF NOT EXISTS {name} (
    number BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
    source VARCHAR(32) NOT NULL,
    op VARCHAR(8) NOT NULL,
    binlog_name VARCHAR(128) NOT NULL,
    binlog_pos BIGINT UNSIGNED NOT NULL,
    sqls LONGTEXT NOT NULL,
    state VARCHAR(8) NOT NULL,
    given_by VARCHAR(255) NOT NULL,
    given_time TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP,
    settled_time TIMESTAMP NULL DEFAULT NULL,
    epoch BIGINT,
    batch_id BIGINT,
    note VARCHAR(1000) NOT NULL DEFAULT '',
    KEY source_state (source, state)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin
"""
_STOPPED = """
CREATE TABLE IF NOT EXISTS {name} (
    source VARCHAR(32) NOT NULL PRIMARY KEY,
    binlog_name VARCHAR(128) NOT NULL,
    binlog_pos BIGINT UNSIGNED NOT NULL,
    code VARCHAR(16) NOT NULL,
    error LONGTEXT NOT NULL,
    sure BOOLEAN NOT NULL,
    stopped_time TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin
"""

_SHARDING_META = """
CREATE TABLE IF NOT EXISTS {name} (
    source_id VARCHAR(32) NOT NULL,
    target_table_id VARCHAR(270) NOT NULL,
    source_table_id VARCHAR(270) NOT NULL,
    active_index INT,
    is_global BOOLEAN,
    data LONGTEXT NOT NULL,
    create_time TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP,
    update_time TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP,
    PRIMARY KEY (source_id, target_table_id, source_table_id)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin
"""
_SHARD_SOURCE = """
CREATE TABLE IF NOT EXISTS {name} (
    source VARCHAR(32) NOT NULL PRIMARY KEY,
    declared BOOLEAN NOT NULL
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin
"""
_SHARD_LOCK = """
CREATE TABLE IF NOT EXISTS {name} (
    target_schema VARCHAR(64) NOT NULL,
    target_table VARCHAR(64) NOT NULL,
    locks INT NOT NULL,
    state LONGTEXT NOT NULL,
    update_time TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP,
    PRIMARY KEY (target_schema, target_table)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin
"""
_SHARD_MERGED = """
CREATE TABLE IF NOT EXISTS {name} (
    target_schema VARCHAR(64) NOT NULL,
    target_table VARCHAR(64) NOT NULL,
    state LONGTEXT NOT NULL,
    update_time TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP,
    PRIMARY KEY (target_schema, target_table)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin
"""


@dataclass(frozen=True, slots=True)
class MetaTables:
    """The quoted names of one task's tables in the target. `schema` is the task's meta schema."""

    schema: str
    task: str

    def named(self, suffix: str) -> str:
        """Return the quoted name of the task's table with that ending, ours or DM's."""
        return f"{quote_name(self.schema)}.{quote_name(f'{self.task}_{suffix}')}"

    @property
    def checkpoint(self) -> str:
        """Quoted name of DM's table of checkpoints: a row for each source, and one for each of its tables."""
        return self.named("syncer_checkpoint")

    @property
    def batch(self) -> str:
        """Quoted name of the table with each source's open or last batch: its positions, plan and epoch."""
        return self.named("apply_batch")

    @property
    def partition(self) -> str:
        """Quoted name of the table with the apply progress of each part of a batch."""
        return self.named("apply_partition")

    @property
    def ledger(self) -> str:
        """Quoted name of the table with the row counts of each source and target table."""
        return self.named("apply_ledger")

    @property
    def left_out(self) -> str:
        """Quoted name of the table that counts the changes and events that each rule excluded."""
        return self.named("apply_left_out")

    @property
    def missing(self) -> str:
        """Quoted name of the table of rows that an UPDATE or DELETE did not find in the target."""
        return self.named("apply_missing")

    @property
    def clamped_value(self) -> str:
        """Quoted name of the table of values that the target has no room for, and that were clamped."""
        return self.named("clamped_value")

    @property
    def online_ddl(self) -> str:
        """Quoted name of DM's table with the DDL statements of ghost tables."""
        return self.named("onlineddl")

    @property
    def prepared_xa(self) -> str:
        """Quoted name of the table of XA transactions that are prepared and not yet completed."""
        return self.named("prepared_xa")

    @property
    def upstream(self) -> str:
        """Quoted name of the table with the UUID of the server that each source was last read from."""
        return self.named("upstream")

    @property
    def block_allow_list(self) -> str:
        """Quoted name of the table with the block-allow lists by which each source has been followed."""
        return self.named("block_allow_list")

    @property
    def operator(self) -> str:
        """Quoted name of the table of binlog operators: skip, replace and inject."""
        return self.named("binlog_operator")

    @property
    def stopped(self) -> str:
        """Quoted name of the table with the error that stopped each source."""
        return self.named("stopped")

    @property
    def sharding_meta(self) -> str:
        """Quoted name of DM's table with the sharding DDL that waits in pessimistic mode."""
        return self.named("syncer_sharding_meta")

    @property
    def shard_source(self) -> str:
        """Quoted name of the table of the sources whose sharded tables are declared."""
        return self.named("shard_source")

    @property
    def shard_lock(self) -> str:
        """Quoted name of the table with the sharding lock of each target table."""
        return self.named("shard_lock")

    @property
    def shard_merged(self) -> str:
        """Quoted name of the table with the merged structure of each target table."""
        return self.named("shard_merged")

    def create(self, connection: Any) -> None:
        """Create the missing tables and columns, and widen columns; may run any number of times, from several sources.

        Where nothing is missing it runs one query: a start calls it more than once.
        """
        with connection.cursor() as cursor:
            columns, fold = self._columns_there(cursor)
            known = {name for name, _ in columns}
            if not known:
                cursor.execute(f"CREATE DATABASE IF NOT EXISTS {quote_name(self.schema)}")
            for statement, name in (
                (_CHECKPOINT, self.checkpoint),
                (_BATCH, self.batch),
                (_PARTITION, self.partition),
                (_LEDGER, self.ledger),
                (_LEFT_OUT, self.left_out),
                (_MISSING, self.missing),
                (CLAMPED_VALUE, self.clamped_value),
                (_ONLINE_DDL, self.online_ddl),
                (_PREPARED_XA, self.prepared_xa),
                (_UPSTREAM, self.upstream),
                (_BLOCK_ALLOW_LIST, self.block_allow_list),
                (_OPERATOR, self.operator),
                (_STOPPED, self.stopped),
                (_SHARDING_META, self.sharding_meta),
                (_SHARD_SOURCE, self.shard_source),
                (_SHARD_LOCK, self.shard_lock),
                (_SHARD_MERGED, self.shard_merged),
            ):
                if fold(name) not in known:
                    cursor.execute(statement.format(name=name))
            for suffix, column, definition in _LATER:
                name = fold(self.named(suffix))
                if name in known and (name, column) not in columns:
                    self._add_column(cursor, suffix, column, definition)
            for suffix, column, definition in _WIDER:
                if columns.get((fold(self.named(suffix)), column)) == NARROW:
                    cursor.execute(f"ALTER TABLE {self.named(suffix)} MODIFY COLUMN {column} {definition}")

    def _columns_there(self, cursor: Any) -> tuple[dict[tuple[str, str], str], Callable[[str], str]]:
        """Return the columns of the task's tables, maybe of others too; and the server's folding of names.

        They are types, such as `int`, by (quoted name, column).
        """
        cursor.execute(
            "SELECT TABLE_NAME, COLUMN_NAME, DATA_TYPE, @@lower_case_table_names FROM information_schema.COLUMNS"
            " WHERE TABLE_SCHEMA = %s AND TABLE_NAME LIKE %s",
            (self.schema, f"{self.task}\\_%"),
        )
        schema, found = quote_name(self.schema), cursor.fetchall()
        fold = str.lower if any(folds for *_, folds in found) else str
        return {(fold(f"{schema}.{quote_name(table)}"), column): kind for table, column, kind, _ in found}, fold

    def _add_column(self, cursor: Any, suffix: str, column: str, definition: str) -> None:
        """Add a column that a table of an earlier version lacks. Only MariaDB has ADD COLUMN IF NOT EXISTS."""
        try:
            cursor.execute(f"ALTER TABLE {self.named(suffix)} ADD COLUMN {column} {definition}")
        except MySQLdb.Error as error:
            if error.args[0] != DUPLICATE_COLUMN:  # another source's start was quicker
                raise
