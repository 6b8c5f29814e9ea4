"""Metrics of relays. DM has one relay for each process; here a label names the relay's source."""

from __future__ import annotations

from unshard.metrics.metric import Alert, Metric, PanelQuery, graph
from unshard.metrics.metric import Panel as PanelOf

ROW = "Relay"
SOURCE = ("source_id",)
HERE = 'source_id=~"$source"'


def _errors(name: str, what: str, severity: str, alert: str, action: str) -> Metric:
    title = what[0].upper() + what[1:]
    return Metric(
        name,
        "counter",
        SOURCE,
        "errors",
        f"Times that the relay {what}. DM has no labels.",
        panels=(graph(ROW, title, "short", (f"increase({name}{{{HERE}}}[1m])", "{{source_id}}")),),
        alerts=(
            Alert(
                alert,
                f"changes({name}[1m]) > 0",
                "0m",
                "emergency" if severity == "emergency" else "critical",
                f"the relay of source {{{{ $labels.source_id }}}} {what}",
                action,
            ),
        ),
    )


METRICS = (
    Metric(
        "dm_relay_binlog_file",
        "gauge",
        ("node", *SOURCE),
        "",
        "Number of a binlog file: node=relay that of the relay log's end, node=master that of the source's.",
        panels=(
            graph(
                ROW,
                "Binlog files between source and relay",
                "short",
                (
                    f'dm_relay_binlog_file{{node="master",{HERE}}}'
                    f' - on(source_id) dm_relay_binlog_file{{node="relay",{HERE}}}',
                    "{{source_id}}",
                ),
            ),
        ),
        alerts=(
            Alert(
                "DM_binlog_file_gap_between_master_relay",
                'dm_relay_binlog_file{node="master"} - on(source_id) dm_relay_binlog_file{node="relay"} > 1',
                "10m",
                "critical",
                "the relay of source {{ $labels.source_id }} is {{ $value }} binlog files behind",
                "look at the network to the source, and at the relay's disk",
            ),
        ),
    ),
    Metric(
        "dm_relay_binlog_pos",
        "gauge",
        ("node", *SOURCE),
        "bytes",
        "Offset in that binlog file, nodes as in dm_relay_binlog_file.",
        panels=(
            graph(ROW, "Place in the binlog", "decbytes", (f"dm_relay_binlog_pos{{{HERE}}}", "{{node}} {{source_id}}")),
        ),
    ),
    Metric(
        "dm_relay_sub_dir_index",
        "gauge",
        ("node", "uuid", *SOURCE),
        "",
        "Number of the folder of the relay log that is written to: it grows when the source has failed over.",
    ),
    Metric(
        "dm_relay_space",
        "gauge",
        ("type", *SOURCE),
        "bytes",
        "The file system of the relay log: type capacity, available.",
        panels=(graph(ROW, "Space", "decbytes", (f"dm_relay_space{{{HERE}}}", "{{type}} {{source_id}}")),),
        alerts=(
            Alert(
                "DM_remain_storage_of_relay_log",
                'dm_relay_space{type="available"} < 10 * 1024 * 1024 * 1024',
                "0m",
                "critical",
                "less than 10 GB are left for the relay log of source {{ $labels.source_id }}",
                "purge-relay deletes what no task needs any more",
            ),
        ),
    ),
    Metric(
        "unshard_relay_received_bytes_total",
        "counter",
        SOURCE,
        "bytes",
        "Bytes of binlog that came from the source.",
        panels=(
            graph(ROW, "Received", "Bps", (f"rate(unshard_relay_received_bytes_total{{{HERE}}}[1m])", "{{source_id}}")),
        ),
    ),
    Metric(
        "unshard_relay_purged_files_total",
        "counter",
        SOURCE,
        "",
        "Relay files that were deleted, by hand or by the clock.",
    ),
    Metric(
        "unshard_relay_purged_bytes_total",
        "counter",
        SOURCE,
        "bytes",
        "Bytes of relay files that were deleted.",
        panels=(
            graph(
                ROW,
                "Purged in an hour",
                "decbytes",
                (f"increase(unshard_relay_purged_bytes_total{{{HERE}}}[1h])", "{{source_id}}"),
            ),
        ),
    ),
    Metric(
        "unshard_relay_stage",
        "gauge",
        SOURCE,
        "",
        "Stage of the relay: 1 New, 2 Running, 3 Paused, 4 Stopped.",
        panels=(
            PanelOf(
                ROW,
                "Stage (1 New, 2 Running, 3 Paused, 4 Stopped)",
                (PanelQuery(f"unshard_relay_stage{{{HERE}}}", "{{source_id}}"),),
            ),
        ),
        alerts=(
            Alert(
                "Unshard_relay_paused",
                "unshard_relay_stage == 3",
                "5m",
                "critical",
                "the relay of source {{ $labels.source_id }} has been paused for five minutes",
                "query-status shows why; resume-relay when it is mended",
            ),
        ),
    ),
    _errors(
        "dm_relay_read_error_count",
        "fails to read from the source",
        "critical",
        "DM_fail_to_read_binlog_from_master",
        "it connects again by itself; if that lasts, look whether the source is up and its account may replicate",
    ),
    _errors(
        "dm_relay_write_error_count",
        "fails to write to its disk",
        "critical",
        "DM_fail_to_write_relay_log",
        "look at the disk of the relay log: space, rights, health",
    ),
    _errors(
        "dm_relay_data_corruption",
        "met a damaged event",
        "emergency",
        "DM_relay_log_data_corruption",
        "query-status shows the place; look at the source's file with mysqlbinlog --verify-binlog-checksum",
    ),
    Metric(
        "dm_relay_exit_with_error_count",
        "counter",
        (*SOURCE, "resumable_err"),
        "errors",
        "Times that the relay stopped by an error. resumable_err tells whether it is worth another try by itself.",
        panels=(
            graph(
                "Errors",
                "relay ends by an error",
                "short",
                (f"increase(dm_relay_exit_with_error_count{{{HERE}}}[1m])", "{{source_id}}"),
            ),
        ),
        alerts=(
            Alert(
                "DM_relay_process_exits_with_error",
                'changes(dm_relay_exit_with_error_count{resumable_err="false"}[1m]) > 0'
                ' or increase(dm_relay_exit_with_error_count{resumable_err="true"}[2m]) > 3',
                "0m",
                "critical",
                "the relay of source {{ $labels.source_id }} stopped by an error",
                "query-status shows the error, its place, and what to do",
            ),
        ),
    ),
)
