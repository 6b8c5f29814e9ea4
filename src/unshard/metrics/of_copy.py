"""Metrics of the full copy: dump and load."""

from __future__ import annotations

from unshard.metrics.metric import Metric, graph
from unshard.metrics.of_tasks import HERE, TASK, WHO, exits

ROW = "Dump and load"

METRICS = (
    Metric(
        "dumpling_dump_finished_rows",
        "gauge",
        TASK,
        "rows",
        "Rows in finished dump files.",
        panels=(
            graph(
                ROW,
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
        panels=(graph(ROW, "Dump files", "decbytes", (f"unshard_dump_bytes{{{HERE}}}", WHO)),),
    ),
    Metric(
        "unshard_dump_tables",
        "gauge",
        (*TASK, "state"),
        "tables",
        "Tables to dump: state finished, total.",
        panels=(graph(ROW, "Tables dumped", "short", (f"unshard_dump_tables{{{HERE}}}", "{{state}} " + WHO)),),
    ),
    Metric(
        "unshard_load_bytes",
        "gauge",
        (*TASK, "state"),
        "bytes",
        "Bytes of dump files to load: state finished, total.",
        panels=(
            graph(
                ROW,
                "Load progress",
                "percentunit",
                (
                    f'unshard_load_bytes{{state="finished",{HERE}}}'
                    f' / on(task, source_id) (unshard_load_bytes{{state="total",{HERE}}} > 0)',
                    WHO,
                ),
            ),
            graph(ROW, "Load", "Bps", (f'deriv(unshard_load_bytes{{state="finished",{HERE}}}[1m])', WHO)),
        ),
    ),
    Metric(
        "unshard_load_rows",
        "gauge",
        TASK,
        "rows",
        "Rows in the target.",
        panels=(graph(ROW, "Rows loaded", "ops", (f"deriv(unshard_load_rows{{{HERE}}}[1m])", WHO)),),
    ),
    Metric(
        "unshard_load_tables",
        "gauge",
        (*TASK, "state"),
        "tables",
        "Tables to load: state finished, total.",
        panels=(graph(ROW, "Tables loaded", "short", (f"unshard_load_tables{{{HERE}}}", "{{state}} " + WHO)),),
    ),
    exits("dm_dumpling_exit_with_error_count", "dump", "DM_dump_process_exists_with_error"),
    exits("dm_loader_exit_with_error_count", "load", "DM_load_process_exists_with_error"),
)
