"""Drops everything that the target has on record of one task, after which its next start is its first.

Two records stay, for the tables stay too: that of the target tables that the task has filled (`target.filled`), and
that of keys which a load that did not end has left out of them (`load.deferred_keys`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from unshard.model.table import TableName, quote_name
from unshard.mysql.connection import rows
from unshard.target.filled import FilledTables

SUFFIXES = (
    # ours, and those of DM that we use
    *("apply_batch", "apply_ledger", "apply_left_out", "apply_missing", "apply_partition", "binlog_operator"),
    *("block_allow_list", "clamped_value"),
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
_KEYS = "_load_key"


Permit = Callable[[], None]
"""Called before each step in the target that can't be taken back; raises where the step is not to be done any more."""


def freely() -> None:
    """Permit each step: no other process can have taken the caller's place."""


def forget_task(connection: Any, schema: str, task: str, permit: Permit = freely) -> tuple[str, ...]:
    """Drop the task's tables in the meta schema; return their names. The task must not be running. Idempotent.

    The record of the tables that the task filled is kept, as that of an earlier attempt, unless it is empty; that of
    left out keys, unless none of its tables is there. A table of a task whose name differs only by case is dropped only
    where the server folds names. Driver errors and what `permit` raises are raised unchanged.
    """
    asked = "SELECT TABLE_NAME, @@lower_case_table_names FROM information_schema.TABLES WHERE TABLE_SCHEMA = %s"
    wanted = {f"{task}_{suffix}" for suffix in SUFFIXES}
    folded = {name.lower() for name in wanted}
    there = rows(connection, asked, (schema,))
    named = sorted(name for name, folds in there if name in wanted or (folds and name.lower() in folded))
    found = tuple(
        name for name in named if not (name.endswith(_KEYS) and _lack_keys(connection, TableName(schema, name)))
    )
    permit()
    FilledTables(schema, task).note_earlier(connection)
    for name in found:
        permit()
        rows(connection, f"DROP TABLE IF EXISTS {quote_name(schema)}.{quote_name(name)}")
    return found


def _lack_keys(connection: Any, record: TableName) -> bool:
    """Return whether a table is there whose keys are on record."""
    recorded = rows(connection, f"SELECT DISTINCT target_schema, target_table FROM {record.quoted}")
    asked = "SELECT 1 FROM information_schema.TABLES WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s"
    return any(rows(connection, asked, names) for names in recorded)
