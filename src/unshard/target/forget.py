"""Drops everything that the target has on record of one task, after which its next start is its first.

Only the record of the target tables that the task has filled stays, for their rows stay too (`target.filled`).
"""

from __future__ import annotations

from typing import Any

from unshard.model.table import quote_name
from unshard.mysql.connection import rows
from unshard.target.filled import FilledTables

SUFFIXES = (
    # ours, and those of DM that we use
    *("apply_batch", "apply_ledger", "apply_left_out", "apply_missing", "apply_partition", "binlog_operator"),
    "clamped_value",
    *(
        "lightning_checkpoint_list",
        "load_chunk",
        "load_key",
        "onlineddl",
        "prepared_xa",
        "repair",
        "shard_lock",
        "shard_merged",
        "shard_source",
    ),
    *("stopped", "syncer_checkpoint", "syncer_sharding_meta", "upstream"),
    # DM's own, which a task that is taken over from DM may have
    *("loader_checkpoint", "validator_checkpoint", "validator_pending_change", "validator_error_change"),
    *("validator_table_status", "validator_changed_key", "validator_question", "validator_full_load"),
)
"""Endings of the tables of a task, after its name. No ending ends with `_` and another ending."""


def forget_task(connection: Any, schema: str, task: str) -> tuple[str, ...]:
    """Drop the task's tables in the meta schema; return their names. The task must not be running. Idempotent.

    The record of the tables that the task filled is kept, as that of an earlier attempt, unless it is empty. A table of
    a task whose name differs only by case is dropped only where the server folds names. Driver errors are raised
    unchanged.
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
