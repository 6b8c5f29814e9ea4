"""The metrics, by name. The exported samples, the graphs, the alerts and the documentation all come from here.

The alert rules (`examples/monitoring/alerts.yml`) are made from them here, the Grafana dashboard by `dashboard.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from unshard.metrics import of_process, of_relay, of_sync, of_tasks, of_units
from unshard.metrics.metric import Alert, Metric

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
