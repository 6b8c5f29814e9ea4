"""Metrics of a task's units apart from the sync.

The full copy: dump and load. Sharding DDL: what waits for other tables or sources, and for how long. Continuous
validation, under DM's names.
"""

from __future__ import annotations

from unshard.metrics.metric import Alert, Metric, graph
from unshard.metrics.of_tasks import HERE, TASK, WHO, exits

_COPYING = "Dump and load"

COPY = (
    Metric(
        "dumpling_dump_finished_rows",
        "gauge",
        TASK,
        "rows",
        "Rows in finished dump files.",
        panels=(
            graph(
                _COPYING,
                "Dump progress",
                "percentunit",
                (f"dumpling_dump_finished_rows{{{HERE}}} / (dumpling_dump_estimate_total_rows{{{HERE}}} > 0)", WHO),
            ),
        ),
    ),
    Metric("dumpling_dump_estimate_total_rows", "gauge", TASK, "rows", "Rows to dump, by the source's statistics."),
    Metric(
        "unshard_dump_bytes",
        "gauge",
        TASK,
        "bytes",
        "Bytes in dump files, finished or not.",
        panels=(graph(_COPYING, "Dump files", "decbytes", (f"unshard_dump_bytes{{{HERE}}}", WHO)),),
    ),
    Metric(
        "unshard_dump_tables",
        "gauge",
        (*TASK, "state"),
        "tables",
        "Tables to dump: state finished, total.",
        panels=(graph(_COPYING, "Tables dumped", "short", (f"unshard_dump_tables{{{HERE}}}", "{{state}} " + WHO)),),
    ),
    Metric(
        "unshard_load_bytes",
        "gauge",
        (*TASK, "state"),
        "bytes",
        "Bytes of dump files to load: state finished, total.",
        panels=(
            graph(
                _COPYING,
                "Load progress",
                "percentunit",
                (
                    f'unshard_load_bytes{{state="finished",{HERE}}}'
                    f' / on(task, source_id) (unshard_load_bytes{{state="total",{HERE}}} > 0)',
                    WHO,
                ),
            ),
            graph(_COPYING, "Load", "Bps", (f'deriv(unshard_load_bytes{{state="finished",{HERE}}}[1m])', WHO)),
        ),
    ),
    Metric(
        "unshard_load_rows",
        "gauge",
        TASK,
        "rows",
        "Rows in the target.",
        panels=(graph(_COPYING, "Rows loaded", "ops", (f"deriv(unshard_load_rows{{{HERE}}}[1m])", WHO)),),
    ),
    Metric(
        "unshard_load_tables",
        "gauge",
        (*TASK, "state"),
        "tables",
        "Tables to load: state finished, total.",
        panels=(graph(_COPYING, "Tables loaded", "short", (f"unshard_load_tables{{{HERE}}}", "{{state}} " + WHO)),),
    ),
    exits("dm_dumpling_exit_with_error_count", "dump", "DM_dump_process_exists_with_error"),
    exits("dm_loader_exit_with_error_count", "load", "DM_load_process_exists_with_error"),
)


_DDL = "Sharding DDL"
HELD = ("task", "table", "source_id")
"""The labels of a source's sharding DDL; `table` is the target table."""

SHARDING = (
    Metric(
        "dm_syncer_shard_lock_resolving",
        "gauge",
        TASK,
        "",
        "1 while a sharding DDL of the subtask waits for other tables or sources.",
        panels=(graph(_DDL, "Waiting", "short", (f"dm_syncer_shard_lock_resolving{{{HERE}}}", WHO)),),
    ),
    Metric(
        "dm_syncer_unsynced_table_number",
        "gauge",
        HELD,
        "tables",
        "Tables of the source that have not met the sharding DDL yet, by target table.",
        panels=(
            graph(
                _DDL,
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
        panels=(graph(_DDL, "Age", "s", (f"unshard_shard_lock_age_seconds{{{HERE}}}", "{{table}} {{source_id}}")),),
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
                _DDL,
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


_JUDGED = "Validation"

VALIDATION = (
    Metric(
        "dm_validator_validator_error_count",
        "gauge",
        (*TASK, "state"),
        "rows",
        "Rows that differ, as the target has them on record: new, ignored, resolved.",
        panels=(
            graph(
                _JUDGED,
                "Rows that differ",
                "short",
                (f"dm_validator_validator_error_count{{{HERE}}}", "{{state}} " + WHO),
            ),
        ),
        alerts=(
            Alert(
                "Unshard_validator_error",
                'dm_validator_validator_error_count{state="new"} > 0',
                "1m",
                "critical",
                "rows of task {{ $labels.task }}, source {{ $labels.source_id }}, differ in the target",
                "`unshard ctl validation show-error` prints them; they are resolved once a look finds them right",
            ),
        ),
    ),
    Metric(
        "unshard_validator_pending_rows",
        "gauge",
        TASK,
        "rows",
        "Rows that have changed and are not judged yet.",
        panels=(graph(_JUDGED, "Rows to judge", "short", (f"unshard_validator_pending_rows{{{HERE}}}", WHO)),),
    ),
    Metric(
        "unshard_validator_running",
        "gauge",
        TASK,
        "",
        "1 while the rows that change are validated, 0 where the validation has stopped.",
        panels=(graph(_JUDGED, "Running", "short", (f"unshard_validator_running{{{HERE}}}", WHO)),),
    ),
    Metric(
        "dm_validator_binlog_file",
        "gauge",
        TASK,
        "",
        "Number of the binlog file up to which all changes have been looked at.",
        panels=(graph(_JUDGED, "Binlog file", "short", (f"dm_validator_binlog_file{{{HERE}}}", WHO)),),
    ),
    Metric(
        "dm_validator_binlog_pos",
        "gauge",
        TASK,
        "bytes",
        "Offset in that file.",
        panels=(graph(_JUDGED, "Binlog position", "bytes", (f"dm_validator_binlog_pos{{{HERE}}}", WHO)),),
    ),
    Metric(
        "dm_validator_logfile_latency",
        "gauge",
        TASK,
        "",
        "How many binlog files the validation is behind the source.",
        panels=(graph(_JUDGED, "Files behind", "short", (f"dm_validator_logfile_latency{{{HERE}}}", WHO)),),
    ),
    Metric(
        "dm_validator_logpos_latency",
        "gauge",
        TASK,
        "bytes",
        "The source's offset in its binlog file less that of the validation in its own, as DM gives it.",
        panels=(graph(_JUDGED, "Offset behind", "bytes", (f"dm_validator_logpos_latency{{{HERE}}}", WHO)),),
    ),
)
