"""Metrics of a process itself, under the names that Prometheus' own clients give them."""

from __future__ import annotations

from unshard.metrics.metric import Metric, graph

METRICS = (
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
