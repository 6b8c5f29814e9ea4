"""Metrics of DM that Unshard lacks, each with its replacement or the reason why it has no meaning."""

from __future__ import annotations

from collections.abc import Mapping

_CPU = "`rate(process_cpu_seconds_total[1m])` of the process"
_NO_EVENTS = "events are not handled one by one: `unshard_sync_stage_seconds_total` has each stage of the batches"
_NO_QUEUES = "there are no queues of jobs: a batch is planned, then applied as a whole"
_STATEMENTS = "batches are few statements: `unshard_sync_batch_seconds`, apply of `unshard_sync_stage_seconds_total`"
_RELAY = "a block is passed on as it comes: the pace is `rate(unshard_relay_received_bytes_total[1m])`"
_TABLES, _BYTES = "`unshard_load_tables`", "`unshard_load_bytes`"

ELSEWHERE: Mapping[str, str] = {
    "dm_worker_cpu_usage": _CPU,
    "dm_master_cpu_usage": _CPU,
    "dm_master_ddl_state_number": "locks live in the target: `unshard_shard_lock_age_seconds` of each subtask",
    "dm_master_shard_ddl_error": "no master takes part: an error of a lock stops the subtask (`dm_worker_task_state`)",
    "dm_master_worker_event_error": "there is no watch that could fail: workers ask, `dm_master_worker_state` has them",
    "dm_syncer_read_binlog_duration": _NO_EVENTS,
    "dm_syncer_binlog_event_size": "`unshard_sync_bytes_total` has the bytes of all events",
    "dm_syncer_binlog_transform_cost": _NO_EVENTS,
    "dm_syncer_conflict_detect_duration": "stage causality of `unshard_sync_stage_seconds_total`",
    "dm_syncer_add_job_duration": _NO_QUEUES,
    "dm_syncer_dispatch_binlog_duration": _NO_QUEUES,
    "dm_syncer_skip_binlog_duration": "what is left out has no time of its own: `unshard_sync_left_out_total`",
    "dm_syncer_added_jobs_total": "fate decoded of `unshard_sync_changes_total`",
    "dm_syncer_ideal_qps": "a guess by DM's latencies: what is done is `rate(dm_syncer_finished_jobs_total[1m])`",
    "dm_syncer_queue_size": f"{_NO_QUEUES}; what waits is `unshard_sync_backlog_bytes`",
    "dm_syncer_binlog_event_row": _NO_EVENTS,
    "dm_syncer_txn_duration_time": _STATEMENTS,
    "dm_syncer_query_duration_time": _STATEMENTS,
    "dm_syncer_stmt_duration_time": _STATEMENTS,
    "dm_syncer_replication_lag": "`dm_syncer_replication_lag_gauge` over time",
    "dm_syncer_replication_transaction_batch": "`dm_syncer_finished_jobs_total` by `unshard_sync_batch_seconds_count`",
    "dm_relay_write_size": _RELAY,
    "dm_relay_write_duration": _RELAY,
    "dm_relay_read_binlog_duration": _RELAY,
    "dm_relay_read_transform_duration": _RELAY,
    "lightning_chunks": f"{_TABLES}, {_BYTES}",
    "lightning_tables": _TABLES,
    "lightning_row_read_bytes": _BYTES,
    "lightning_block_deliver_bytes": _BYTES,
    "lightning_idle_workers": "the files are tasks of Spark: its own page has the slots that are free",
    "lightning_kv_encoder": "rows are loaded by SQL: there are no encoders",
}
"""By DM's name. A name in backquotes is a metric of ours."""
