"""Everything that the target has on record of one task, dropped: its next start is its first.

Only which target tables it has filled stays on record, for their rows stay too (`target.filled`).
"""

from __future__ import annotations

from typing import Any

from unshard.model.table import quote_name
from unshard.mysql.connection import rows
from unshard.target.filled import FilledTables

SUFFIXES = (
    # ours, and those that we have of DM
    *("apply_batch", "apply_ledger", "apply_left_out", "apply_missing", "apply_partition", "binlog_operator"),
    *("lightning_checkpoint_list", "load_chunk", "onlineddl", "prepared_xa", "shard_lock", "shard_source", "stopped"),
    *("syncer_checkpoint", "syncer_sharding_meta", "upstream"),
    # DM's alone, that a task may have been taken over with
    *("loader_checkpoint", "validator_checkpoint", "validator_pending_change", "validator_error_change"),
    "validator_table_status",
)
"""Endings of the tables of a task, behind its name. No one of them ends with `_` and another one."""


def forget_task(connection: Any, schema: str, task: str) -> tuple[str, ...]:
    """Drop the task's tables in the meta schema; their names. Nothing may run of the task. Idempotent.

    The record of the tables that it filled is kept, as that of an earlier attempt, unless it is empty.

    Those of a task whose name differs by case are its own only where the server folds names. Driver errors come as
    they are.
    """
    asked = "SELECT TABLE_NAME, @@lower_case_table_names FROM information_schema.TABLES WHERE TABLE_SCHEMA = %s"
    wanted = {f"{task}_{suffix}" for suffix in SUFFIXES}
    folded = {name.lower() for name in wanted}
    there = rows(connection, asked, (schema,))
    found = tuple(sorted(name for name, folds in there if name in wanted or (folds and name.lower() in folded)))
    FilledTables(schema, task).note_earlier(connection)
    for name in found:
        rows(connection, f"DROP TABLE IF EXISTS {quote_name(schema)}.{quote_name(name)}")
    return found
