"""Metrics of masters: who leads, which workers are there, sharding locks of all sources."""

from __future__ import annotations

from unshard.metrics.metric import Alert, Metric, graph

ROW = "Cluster"

METRICS = (
    Metric(
        "dm_master_worker_state",
        "gauge",
        ("worker",),
        "",
        "State of a worker as the leading master has it: 0 offline, 1 free, 2 bound to a source.",
        panels=(
            graph(ROW, "Workers (0 offline, 1 free, 2 bound)", "short", ("dm_master_worker_state", "{{worker}}")),
            graph(
                ROW, "Workers in each state", "short", ('count_values("state", dm_master_worker_state)', "{{state}}")
            ),
        ),
        alerts=(
            Alert(
                "DM_worker_offline",
                "dm_master_worker_state == 0",
                "1h",
                "critical",
                "worker {{ $labels.worker }} has been offline for an hour",
                "start it, or take it off with offline-member",
            ),
        ),
    ),
    Metric(
        "unshard_master_leader",
        "gauge",
        (),
        "",
        "1 on the master that leads, 0 on others.",
        panels=(graph(ROW, "Leader", "short", ("unshard_master_leader", "{{instance}}")),),
        alerts=(
            Alert(
                "Unshard_no_leader",
                "sum(unshard_master_leader) == 0",
                "1m",
                "critical",
                "no master leads",
                "look at the masters' logs, and whether their database answers",
            ),
        ),
    ),
    Metric(
        "dm_master_start_leader_counter",
        "counter",
        (),
        "times",
        "Times that this master became the leader.",
        panels=(
            graph(
                ROW, "Changes of the leader", "short", ("increase(dm_master_start_leader_counter[1m])", "{{instance}}")
            ),
        ),
    ),
    Metric(
        "unshard_sources_unbound",
        "gauge",
        (),
        "sources",
        "Sources that no worker serves.",
        panels=(graph(ROW, "Sources without a worker", "short", ("unshard_sources_unbound", "{{instance}}")),),
        alerts=(
            Alert(
                "Unshard_source_unbound",
                "unshard_sources_unbound > 0",
                "5m",
                "critical",
                "{{ $value }} sources have had no worker for five minutes",
                "start another worker; list-member shows those that are there",
            ),
        ),
    ),
)
