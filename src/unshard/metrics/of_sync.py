"""Metrics of following a binlog: lag, position, rows, batches."""

from __future__ import annotations

from unshard.metrics.metric import Alert, Metric, PanelQuery, graph
from unshard.metrics.metric import Panel as PanelOf
from unshard.metrics.of_tasks import DM_TASK, HERE, TASK, WHO, exits

ROW = "Sync"
TABLE = (*TASK, "target_schema", "target_table")
INTERVALS = (0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0)
DURATIONS = (0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 60.0, 120.0)


def _quantiles(name: str) -> tuple[tuple[str, str], ...]:
    return tuple(
        (f"histogram_quantile({q}, sum by (le, task, source_id) (rate({name}_bucket{{{HERE}}}[5m])))", f"{q} {WHO}")
        for q in ("0.5", "0.95", "0.99")
    )


LAG = (
    Metric(
        "dm_syncer_replication_lag_gauge",
        "gauge",
        DM_TASK,
        "seconds",
        "How far the target is behind the source, by the source's clock. It grows while the task stands still or the "
        "source can't be asked; while it isn't known there is no series, see unshard_sync_lag_known.",
        panels=(graph("Overview", "Replication lag", "s", (f"dm_syncer_replication_lag_gauge{{{HERE}}}", WHO)),),
        alerts=(
            Alert(
                "Unshard_lag",
                "dm_syncer_replication_lag_gauge > 600",
                "10m",
                "warning",
                "task {{ $labels.task }} is more than ten minutes behind source {{ $labels.source_id }}",
                "query-status tells what it is doing; the panels of stages tell what takes the time",
            ),
        ),
    ),
    Metric(
        "unshard_sync_lag_known",
        "gauge",
        TASK,
        "",
        "1 where the lag is known, 0 where nothing tells it: the source could not be asked since the start.",
        alerts=(
            Alert(
                "Unshard_lag_unknown",
                "unshard_sync_lag_known == 0",
                "10m",
                "warning",
                "the lag of task {{ $labels.task }} on source {{ $labels.source_id }} has been unknown for ten minutes",
                "look whether the source answers, and whether the account may read its binlog position",
            ),
        ),
    ),
    Metric(
        "unshard_sync_table_lag_seconds",
        "gauge",
        TABLE,
        "seconds",
        "The lag of a target table: that of the source, or more where the table is held by a sharding DDL. Tables that "
        "had a change since the subtask started.",
        panels=(
            graph(
                ROW,
                "Ten tables furthest behind",
                "s",
                (
                    f"topk(10, unshard_sync_table_lag_seconds{{{HERE}}})",
                    "{{target_schema}}.{{target_table}} {{source_id}}",
                ),
            ),
        ),
        alerts=(
            Alert(
                "Unshard_table_lag",
                "unshard_sync_table_lag_seconds > 3600",
                "10m",
                "warning",
                "table {{ $labels.target_schema }}.{{ $labels.target_table }} is more than an hour behind source"
                " {{ $labels.source_id }}",
                "shard-ddl-lock shows what a held table waits for",
            ),
        ),
    ),
    Metric(
        "unshard_sync_backlog_bytes",
        "gauge",
        TASK,
        "bytes",
        "Bytes of the source's binlog between the place that is applied and its end.",
        panels=(graph("Overview", "Backlog", "decbytes", (f"unshard_sync_backlog_bytes{{{HERE}}}", WHO)),),
    ),
    Metric(
        "dm_syncer_remaining_time",
        "gauge",
        DM_TASK,
        "seconds",
        "The backlog at the pace of the last minute. No series while nothing moves.",
        panels=(graph("Overview", "Remaining time to sync", "s", (f"dm_syncer_remaining_time{{{HERE}}}", WHO)),),
    ),
    Metric(
        "dm_syncer_binlog_file",
        "gauge",
        ("node", *TASK),
        "",
        "Number of a binlog file: node=syncer that of the place that is applied, node=master that of the source's end.",
        panels=(
            graph(
                ROW,
                "Binlog files between source and sync",
                "short",
                (
                    f'dm_syncer_binlog_file{{node="master",{HERE}}}'
                    f' - on(task, source_id) dm_syncer_binlog_file{{node="syncer",{HERE}}}',
                    WHO,
                ),
            ),
        ),
        alerts=(
            Alert(
                "DM_binlog_file_gap_between_master_syncer",
                'dm_syncer_binlog_file{node="master"} - on(task, source_id) dm_syncer_binlog_file{node="syncer"} > 1',
                "10m",
                "critical",
                "task {{ $labels.task }} is {{ $value }} binlog files behind source {{ $labels.source_id }}",
                "query-status tells what it is doing; the panels of stages tell what takes the time",
            ),
            Alert(
                "DM_binlog_file_gap_between_relay_syncer",
                'dm_relay_binlog_file{node="relay"}'
                ' - on(source_id) group_right dm_syncer_binlog_file{node="syncer"} > 1',
                "10m",
                "critical",
                "task {{ $labels.task }} is {{ $value }} files behind the relay of source {{ $labels.source_id }}",
                "query-status tells what it is doing; the panels of stages tell what takes the time",
            ),
        ),
    ),
    Metric(
        "dm_syncer_binlog_pos",
        "gauge",
        ("node", *TASK),
        "bytes",
        "Offset in that binlog file, nodes as in dm_syncer_binlog_file.",
        panels=(
            graph(
                ROW,
                "Place in the binlog",
                "decbytes",
                (f"dm_syncer_binlog_pos{{{HERE}}}", "{{node}} {{task}} {{source_id}}"),
            ),
        ),
    ),
)

ROWS = (
    Metric(
        "dm_syncer_finished_transaction_total",
        "counter",
        DM_TASK,
        "transactions",
        "Transactions of the source that are applied, or passed over as a whole.",
        panels=(
            graph(
                "Overview", "Replication TPS", "ops", (f"rate(dm_syncer_finished_transaction_total{{{HERE}}}[1m])", WHO)
            ),
        ),
    ),
    Metric(
        "dm_syncer_finished_jobs_total",
        "counter",
        ("type", *DM_TASK, "target_schema", "target_table"),
        "rows",
        "Row changes that were written to the target: type insert, update, delete (a change of the key is a delete and "
        "an insert). DM has a label queueNo too.",
        panels=(
            PanelOf(
                "Overview",
                "Replication QPS (row changes written)",
                (
                    PanelQuery(
                        f"sum by (task, source_id, type) (rate(dm_syncer_finished_jobs_total{{{HERE}}}[1m]))",
                        "{{type}} " + WHO,
                    ),
                ),
                "ops",
            ),
        ),
    ),
    Metric(
        "unshard_sync_changes_total",
        "counter",
        (*TABLE, "fate"),
        "changes",
        "The ledger beside what was written: fate decoded (all that the log had), filtered (by a rule), compacted "
        "(undone or overtaken in the same batch), missing (updates and deletes that found no row).",
        panels=(
            graph(
                ROW,
                "Changes in the log, filtered, compacted",
                "ops",
                (f"sum by (task, source_id, fate) (rate(unshard_sync_changes_total{{{HERE}}}[1m]))", "{{fate}} " + WHO),
            ),
        ),
        alerts=(
            Alert(
                "Unshard_rows_missing",
                'increase(unshard_sync_changes_total{fate="missing"}[5m]) > 0',
                "0m",
                "warning",
                "changes of source {{ $labels.source_id }} found no row in"
                " {{ $labels.target_schema }}.{{ $labels.target_table }}",
                "the log has an example of each; somebody else may write to the target",
            ),
        ),
    ),
    Metric(
        "unshard_sync_left_out_total",
        "counter",
        (*TABLE, "rule"),
        "changes",
        "Changes that a rule left out, by target table and rule.",
        panels=(
            graph(
                ROW,
                "Left out by rules",
                "ops",
                (
                    f"sum by (source_id, rule) (rate(unshard_sync_left_out_total{{{HERE}}}[1m]))",
                    "{{rule}} {{source_id}}",
                ),
            ),
        ),
    ),
    Metric(
        "unshard_sync_passed_over_events_total",
        "counter",
        (*TASK, "source_table", "rule"),
        "row events",
        "Row events that were passed over undecoded, by source table and rule; after the first 300 tables of a source"
        " the further ones together, as `other tables`.",
        panels=(
            graph(
                ROW,
                "Row events passed over",
                "ops",
                (
                    f"sum by (source_id, rule) (rate(unshard_sync_passed_over_events_total{{{HERE}}}[1m]))",
                    "{{rule}} {{source_id}}",
                ),
            ),
        ),
    ),
    Metric(
        "unshard_sync_bytes_total",
        "counter",
        TASK,
        "bytes",
        "Bytes of the binlog that were read and applied, compressed events unpacked.",
        panels=(graph(ROW, "Binlog applied", "Bps", (f"rate(unshard_sync_bytes_total{{{HERE}}}[1m])", WHO)),),
    ),
)

BATCHES = (
    Metric(
        "unshard_sync_batch_seconds",
        "histogram",
        TASK,
        "seconds",
        "How long the job of a batch took, all of its stages.",
        buckets=DURATIONS,
        panels=(graph(ROW, "Batch", "s", *_quantiles("unshard_sync_batch_seconds")),),
    ),
    Metric(
        "unshard_sync_stage_seconds_total",
        "counter",
        (*TASK, "stage"),
        "seconds",
        "Time spent in a stage of the batches (decode, filter, map, causality, encode, keys, apply), over all tasks.",
        panels=(
            graph(
                ROW,
                "Stages of batches",
                "short",
                (f"rate(unshard_sync_stage_seconds_total{{{HERE}}}[1m])", "{{stage}} " + WHO),
            ),
        ),
    ),
    Metric(
        "dm_syncer_flush_checkpoints_time_interval",
        "histogram",
        DM_TASK,
        "seconds",
        "Time between two moves of the checkpoint.",
        buckets=INTERVALS,
        panels=(graph(ROW, "Checkpoint interval", "s", *_quantiles("dm_syncer_flush_checkpoints_time_interval")),),
    ),
    Metric(
        "unshard_sync_safe_mode",
        "gauge",
        TASK,
        "",
        "1 while changes are written so that they may be repeated (safe mode).",
        panels=(graph(ROW, "Safe mode", "short", (f"unshard_sync_safe_mode{{{HERE}}}", WHO)),),
    ),
    exits("dm_syncer_exit_with_error_count", "sync", "DM_sync_process_exists_with_error"),
)

METRICS = (*LAG, *ROWS, *BATCHES)
