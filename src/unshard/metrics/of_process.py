"""Metrics of processes: of masters and of each process itself.

Masters have the leader, the workers, and sources without a worker. Metrics of a process itself have the names of
Prometheus' own clients.
"""

from __future__ import annotations

from unshard.metrics.metric import Alert, Metric, graph

_ROW = "Cluster"

CLUSTER = (
    Metric(
        "dm_master_worker_state",
        "gauge",
        ("worker",),
        "",
        "State of a worker as the leading master has it: 0 offline, 1 free, 2 bound to a source.",
        panels=(
            graph(_ROW, "Workers (0 offline, 1 free, 2 bound)", "short", ("dm_master_worker_state", "{{worker}}")),
            graph(
                _ROW, "Workers in each state", "short", ('count_values("state", dm_master_worker_state)', "{{state}}")
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
        panels=(graph(_ROW, "Leader", "short", ("unshard_master_leader", "{{instance}}")),),
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
                _ROW, "Changes of the leader", "short", ("increase(dm_master_start_leader_counter[1m])", "{{instance}}")
            ),
        ),
    ),
    Metric(
        "unshard_sources_unbound",
        "gauge",
        (),
        "sources",
        "Sources that no worker serves.",
        panels=(graph(_ROW, "Sources without a worker", "short", ("unshard_sources_unbound", "{{instance}}")),),
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


PROCESS = (
    Metric("unshard_build_info", "gauge", ("version",), "", "Always 1; the label tells which version runs."),
    Metric(
        "process_cpu_seconds_total",
        "counter",
        (),
        "seconds",
        "Processor time of the process, without Spark's. DM has dm_worker_cpu_usage and dm_master_cpu_usage.",
        panels=(
            graph("Cluster", "Processors in use", "short", ("rate(process_cpu_seconds_total[1m])", "{{instance}}")),
        ),
    ),
    Metric(
        "process_resident_memory_bytes",
        "gauge",
        (),
        "bytes",
        "Memory of the process, without Spark's.",
        panels=(graph("Cluster", "Memory", "decbytes", ("process_resident_memory_bytes", "{{instance}}")),),
    ),
    Metric("process_start_time_seconds", "gauge", (), "seconds", "When the process began, in seconds since 1970."),
)
