"""Every metric, by name. What is exported, drawn, alarmed on and documented is what stands here."""

from __future__ import annotations

from collections.abc import Mapping

from unshard.metrics import of_cluster, of_copy, of_process, of_relay, of_sharding, of_sync, of_tasks
from unshard.metrics.metric import Alert, Metric

METRICS: Mapping[str, Metric] = {
    metric.name: metric
    for group in (of_tasks, of_copy, of_sync, of_sharding, of_relay, of_cluster, of_process)
    for metric in group.METRICS
}

ROWS = ("Overview", "Tasks", "Dump and load", "Sync", "Sharding DDL", "Relay", "Cluster", "Errors")
"""Headings of the dashboard, in order."""

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
"""Alarms on Prometheus' own `up`: the jobs are named so in the example of a scrape configuration."""
