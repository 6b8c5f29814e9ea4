"""Metrics of sharding DDL: what waits for other tables or sources, and for how long."""

from __future__ import annotations

from unshard.metrics.metric import Alert, Metric, graph
from unshard.metrics.of_tasks import HERE, TASK, WHO

ROW = "Sharding DDL"
HELD = ("task", "table", "source_id")
"""A sharding DDL of a source: `table` is the target table."""

METRICS = (
    Metric(
        "dm_syncer_shard_lock_resolving",
        "gauge",
        TASK,
        "",
        "1 while a sharding DDL of the subtask waits for other tables or sources.",
        panels=(graph(ROW, "Waiting", "short", (f"dm_syncer_shard_lock_resolving{{{HERE}}}", WHO)),),
    ),
    Metric(
        "dm_syncer_unsynced_table_number",
        "gauge",
        HELD,
        "tables",
        "Tables of the source that have not met the sharding DDL yet, by target table.",
        panels=(
            graph(
                ROW,
                "Tables still to come",
                "short",
                (f"dm_syncer_unsynced_table_number{{{HERE}}}", "{{table}} {{source_id}}"),
            ),
        ),
    ),
    Metric(
        "unshard_shard_lock_age_seconds",
        "gauge",
        HELD,
        "seconds",
        "How long a sharding DDL of that target table has waited, since the subtask started at most.",
        panels=(graph(ROW, "Age", "s", (f"unshard_shard_lock_age_seconds{{{HERE}}}", "{{table}} {{source_id}}")),),
        alerts=(
            Alert(
                "DM_pending_DDL",
                "unshard_shard_lock_age_seconds > 3600",
                "0m",
                "critical",
                "a sharding DDL of {{ $labels.table }} has waited for more than an hour (task {{ $labels.task }})",
                "shard-ddl-lock shows who is missing, and the command that helps",
            ),
        ),
    ),
    Metric(
        "unshard_shard_lock_overdue",
        "gauge",
        HELD,
        "1: yes",
        "Whether a sharding DDL of that target table waits for longer than the task's shard-wait-alert.",
        panels=(
            graph(
                ROW,
                "Longer than it may",
                "short",
                (f"unshard_shard_lock_overdue{{{HERE}}}", "{{table}} {{source_id}}"),
            ),
        ),
        alerts=(
            Alert(
                "Unshard_shard_wait",
                "unshard_shard_lock_overdue == 1",
                "0m",
                "critical",
                "a sharding DDL of {{ $labels.table }} waits longer than shard-wait-alert (task {{ $labels.task }})",
                "shard-ddl-lock shows who is missing, and the command that helps",
            ),
        ),
    ),
)
