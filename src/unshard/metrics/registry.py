"""The metrics, by name. The exported samples, the graphs, the alerts and the documentation all come from here.

The Grafana dashboard (`examples/monitoring/dashboard.json`) and the alert rules (`examples/monitoring/alerts.yml`) are
made from them. `ELSEWHERE` has the
metrics of DM that Unshard lacks, each with its replacement or the reason why it has no meaning.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from unshard.metrics import of_process, of_relay, of_sync, of_tasks, of_units
from unshard.metrics.metric import Alert, Metric, Panel

METRICS: Mapping[str, Metric] = {
    metric.name: metric
    for group in (
        of_tasks.METRICS,
        of_units.COPY,
        of_sync.METRICS,
        of_units.SHARDING,
        of_units.VALIDATION,
        of_relay.METRICS,
        of_process.CLUSTER,
        of_process.PROCESS,
    )
    for metric in group
}

ROWS = ("Overview", "Tasks", "Dump and load", "Sync", "Sharding DDL", "Validation", "Relay", "Cluster", "Errors")
"""The headings of the dashboard, in order."""

PROCESS_ALERTS = (
    Alert(
        "DM_master_all_down",
        'up{job="unshard_master"} == 0',
        "1m",
        "critical",
        "master {{ $labels.instance }} does not answer",
        "start it; its log tells why it ended",
    ),
    Alert(
        "Unshard_worker_down",
        'up{job="unshard_worker"} == 0',
        "1m",
        "critical",
        "worker {{ $labels.instance }} does not answer",
        "start it; meanwhile its source moves to a spare worker, if there is one",
    ),
)
"""Alerts on Prometheus' own `up`. The example of a scrape configuration names its jobs accordingly."""


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


_SOURCE = {"type": "prometheus", "uid": "${datasource}"}
_WIDTH, _HEIGHT, _ACROSS = 8, 8, 24
_OPEN = ROWS[0]
"""The heading whose panels are open at first; the others are folded until someone opens them."""


def dashboard() -> dict[str, Any]:
    """Return the dashboard for import into Grafana (schema 39: version 10 and later)."""
    return {
        "title": "Unshard",
        "uid": "unshard",
        "tags": ["unshard"],
        "schemaVersion": 39,
        "editable": True,
        "refresh": "10s",
        "time": {"from": "now-1h", "to": "now"},
        "timezone": "browser",
        "templating": {
            "list": [
                {"name": "datasource", "type": "datasource", "query": "prometheus"},
                _choice("task", "dm_worker_task_state", "task"),
                _choice("source", "unshard_relay_stage", "source_id"),
                _choice("worker", "dm_worker_task_state", "worker"),
            ]
        },
        "panels": list(_panels()),
    }


def panels_of(row: str) -> list[Panel]:
    """Return the panels of one row of the dashboard, in the order of the metrics."""
    return [panel for metric in METRICS.values() for panel in metric.panels if panel.row == row]


def _panels() -> Iterator[dict[str, Any]]:
    number, y = 1, 0
    for row in ROWS:
        heading: dict[str, Any] = {
            "id": number,
            "type": "row",
            "title": row,
            "collapsed": row != _OPEN,
            "gridPos": {"x": 0, "y": y, "w": _ACROSS, "h": 1},
            "panels": [],
        }
        graphs = []
        for place, panel in enumerate(panels_of(row)):
            down, across = divmod(place * _WIDTH, _ACROSS)
            position = {"x": across, "y": y + 1 + down * _HEIGHT, "w": _WIDTH, "h": _HEIGHT}
            graphs.append(_graph(panel, number + 1 + place, position))
        number += 1 + len(graphs)
        y += 1 + _HEIGHT * -(-len(graphs) * _WIDTH // _ACROSS)
        if row == _OPEN:
            yield heading
            yield from graphs
        else:
            yield {**heading, "panels": graphs}


def _graph(panel: Panel, number: int, position: dict[str, int]) -> dict[str, Any]:
    return {
        "id": number,
        "type": "timeseries",
        "title": panel.title,
        "description": _description(panel),
        "datasource": _SOURCE,
        "gridPos": position,
        "fieldConfig": {"defaults": {"unit": panel.unit, "min": 0}, "overrides": []},
        "options": {"legend": {"displayMode": "list", "placement": "bottom"}, "tooltip": {"mode": "multi"}},
        "targets": [
            {"refId": chr(ord("A") + place), "expr": query.expr, "legendFormat": query.legend, "datasource": _SOURCE}
            for place, query in enumerate(panel.queries)
        ],
    }


def _description(panel: Panel) -> str:
    return next(metric.help for metric in METRICS.values() if panel in metric.panels)


def _choice(name: str, metric: str, label: str) -> dict[str, Any]:
    return {
        "name": name,
        "type": "query",
        "datasource": _SOURCE,
        "query": f"label_values({metric}, {label})",
        "refresh": 2,
        "multi": True,
        "includeAll": True,
        "allValue": ".*",
        "current": {"text": "All", "value": "$__all"},
    }


def alerts() -> list[Alert]:
    """Return all alerts: those of the processes, then those of each metric."""
    return [*PROCESS_ALERTS, *(alert for metric in METRICS.values() for alert in metric.alerts)]


def rules() -> dict[str, Any]:
    """Return the rule file: one group with a rule for each alert."""
    return {"groups": [{"name": "unshard", "rules": [_rule(alert) for alert in alerts()]}]}


def _rule(alert: Alert) -> dict[str, Any]:
    return {
        "alert": alert.name,
        "expr": alert.expr,
        "for": alert.lasting,
        "labels": {"severity": alert.severity},
        "annotations": {"summary": alert.summary, "action": alert.action},
    }
