"""Panels and alarms are of metrics that there are, with labels that they have."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from unshard.metrics.dashboard import dashboard, panels_of
from unshard.metrics.elsewhere import ELSEWHERE
from unshard.metrics.registry import METRICS, ROWS, alerts, rules

MONITORING = Path(__file__).parents[2] / "examples" / "monitoring"
WORDS = frozenset(
    [
        "rate",
        "increase",
        "changes",
        "deriv",
        "sum",
        "by",
        "on",
        "group_right",
        "group_left",
        "or",
        "and",
        "unless",
        "topk",
        "count",
        "count_values",
        "vector",
        "le",
        "up",
        "job",
        "histogram_quantile",
        "instance",
        "state",
    ]
)
"""Functions, operators and labels that Prometheus has itself."""

DM_ALERTS = frozenset(
    [
        "DM_master_all_down",
        "DM_worker_offline",
        "DM_pending_DDL",
        "DM_task_state",
        "DM_remain_storage_of_relay_log",
        "DM_relay_process_exits_with_error",
        "DM_relay_log_data_corruption",
        "DM_fail_to_read_binlog_from_master",
        "DM_fail_to_write_relay_log",
        "DM_binlog_file_gap_between_master_relay",
        "DM_binlog_file_gap_between_master_syncer",
        "DM_binlog_file_gap_between_relay_syncer",
        "DM_sync_process_exists_with_error",
        "DM_load_process_exists_with_error",
        "DM_dump_process_exists_with_error",
    ]
)


def expressions() -> Iterator[tuple[str, str]]:
    """(what it is of, PromQL)."""
    for metric in METRICS.values():
        for panel in metric.panels:
            yield from ((panel.title, query.expr) for query in panel.queries)
    yield from ((alert.name, alert.expr) for alert in alerts())


def named(expr: str) -> set[str]:
    """Names of series in a PromQL expression, those of a histogram by its own name."""
    bare = re.sub(r'"[^"]*"|\[\w+\]|\$\w+', "", expr)
    words = set(re.findall(r"(?<![\w.])[a-z_]\w*", re.sub(r"\{[^}]*\}", "", bare)))
    labels = {label for inner in re.findall(r"(?:by|on)\s*\(([^)]*)\)", bare) for label in re.findall(r"\w+", inner)}
    found = words - labels - WORDS
    return {name.removesuffix("_bucket") if name not in METRICS else name for name in found}


@pytest.mark.parametrize(("what", "expr"), sorted(set(expressions())))
def test_an_expression_is_of_metrics_and_labels_that_there_are(what: str, expr: str) -> None:
    names = named(expr)
    assert names or expr.startswith("up{"), what
    assert names <= set(METRICS), what
    for name, inner in re.findall(r"(\w+)\{([^}]*)\}", expr):
        labels = set(re.findall(r"(\w+)\s*(?:=~|!=|!~|=)", inner))
        known = {"job"} if name == "up" else set(METRICS[name.removesuffix("_bucket")].labels) | {"le"}
        assert labels <= known, f"{what}: {name} has {known}"
    for pair in ("()", "{}", "[]"):
        assert expr.count(pair[0]) == expr.count(pair[1]), what
    assert not re.search(r"rate\([^\[]*\)|\{\{", expr), what


def test_a_legend_is_made_of_labels_that_its_metrics_have() -> None:
    for metric in METRICS.values():
        for panel in metric.panels:
            for query in panel.queries:
                known = {"instance", "state"}.union(*(METRICS[name].labels for name in named(query.expr)))
                assert set(re.findall(r"\{\{(\w+)\}\}", query.legend)) <= known, panel.title


def test_an_alarm_speaks_of_labels_that_its_series_has() -> None:
    for alert in alerts():
        known = {"instance", "job"}.union(*(METRICS[name].labels for name in named(alert.expr)))
        assert set(re.findall(r"\$labels\.(\w+)", alert.summary + alert.action)) <= known, alert.name


def test_names_are_what_prometheus_takes_and_say_whose_they_are() -> None:
    for metric in METRICS.values():
        assert re.fullmatch(r"(dm|dumpling|unshard|process)_[a-z_]+", metric.name)
        assert bool(metric.buckets) == (metric.kind == "histogram"), metric.name
        if metric.name.startswith("unshard_"):
            assert metric.name.endswith("_total") == (metric.kind == "counter"), metric.name
        assert metric.help.endswith("."), metric.name


def test_every_panel_is_under_a_heading_and_drawn_once() -> None:
    assert {panel.row for metric in METRICS.values() for panel in metric.panels} == set(ROWS)
    drawn = [inner for panel in dashboard()["panels"] for inner in [panel, *panel.get("panels", [])]]
    numbers = Counter(panel["id"] for panel in drawn)
    assert max(numbers.values()) == 1
    assert Counter(panel["title"] for panel in drawn if panel["type"] != "row") == Counter(
        panel.title for row in ROWS for panel in panels_of(row)
    )


def test_dm_s_alarms_are_there_but_those_of_locks_in_the_master() -> None:
    names = Counter(alert.name for alert in alerts())
    assert max(names.values()) == 1
    assert set(names) >= DM_ALERTS


def test_the_examples_are_those_that_are_made() -> None:
    assert json.loads((MONITORING / "dashboard.json").read_text()) == dashboard()
    assert yaml.safe_load((MONITORING / "alerts.yml").read_text()) == rules()
    scraped = yaml.safe_load((MONITORING / "prometheus.yml").read_text())
    jobs = {one["job_name"] for one in scraped["scrape_configs"]}
    assert jobs == set(re.findall(r'job="(\w+)"', " ".join(alert.expr for alert in alerts())))
    assert scraped["rule_files"] == ["alerts.yml"]


DM_METRICS = """
dm_worker_task_state dm_worker_operate_error dm_worker_cpu_usage dm_master_cpu_usage
dm_master_worker_state dm_master_ddl_state_number dm_master_shard_ddl_error dm_master_worker_event_error
dm_master_start_leader_counter dm_syncer_read_binlog_duration dm_syncer_binlog_event_size
dm_syncer_binlog_transform_cost dm_syncer_conflict_detect_duration dm_syncer_add_job_duration
dm_syncer_dispatch_binlog_duration dm_syncer_skip_binlog_duration dm_syncer_added_jobs_total
dm_syncer_finished_jobs_total dm_syncer_ideal_qps dm_syncer_queue_size dm_syncer_binlog_pos
dm_syncer_binlog_file dm_syncer_binlog_event_row dm_syncer_txn_duration_time dm_syncer_query_duration_time
dm_syncer_stmt_duration_time dm_syncer_exit_with_error_count dm_syncer_replication_lag_gauge
dm_syncer_replication_lag dm_syncer_remaining_time dm_syncer_unsynced_table_number
dm_syncer_shard_lock_resolving dm_syncer_finished_transaction_total
dm_syncer_replication_transaction_batch dm_syncer_flush_checkpoints_time_interval
dm_loader_exit_with_error_count dm_dumpling_exit_with_error_count dm_relay_binlog_pos dm_relay_binlog_file
dm_relay_sub_dir_index dm_relay_space dm_relay_data_corruption dm_relay_write_error_count
dm_relay_read_error_count dm_relay_exit_with_error_count dm_relay_write_size dm_relay_write_duration
dm_relay_read_binlog_duration dm_relay_read_transform_duration dm_validator_validator_error_count
dumpling_dump_finished_rows dumpling_dump_estimate_total_rows lightning_chunks lightning_tables
lightning_row_read_bytes lightning_block_deliver_bytes lightning_idle_workers lightning_kv_encoder
dm_validator_logpos_latency dm_validator_logfile_latency dm_validator_binlog_pos dm_validator_binlog_file
"""


def test_every_metric_of_dm_is_here_or_it_is_told_where_to_look() -> None:
    of_dm = DM_METRICS.split()
    assert [name for name in of_dm if name not in METRICS and name not in ELSEWHERE] == []
    assert [name for name in ELSEWHERE if name in METRICS or name not in of_dm] == []
    named = {name for told in ELSEWHERE.values() for name in re.findall(r"\b(?:unshard|dm|process)_\w+", told)}
    assert named - {f"{name}{end}" for name in METRICS for end in ("", "_count")} == set()
