"""Tasks cut by source: every name looked up, every override in force, misfits refused."""

from __future__ import annotations

import json
import pickle
from typing import Any

import pytest

from unshard.config.subtask import SubtaskConfig, plan_subtasks
from unshard.errors import ConfigError
from unshard.master.orders import sent_form

START = {"binlog-name": "mysql-bin.000002", "binlog-pos": 120}


def plan_one(files: Any, source: dict[str, Any] | None = None, **changes: Any) -> SubtaskConfig:
    (subtask,) = plan_subtasks(files.read_task(**changes), [files.read_source(**(source or {}))])
    return subtask


def test_defaults(files: Any) -> None:
    subtask = plan_one(files)
    assert subtask.dumper.model_dump() == {
        "threads": 4, "format": "parquet", "chunk_bytes": 64 << 20, "statement_bytes": 1_000_000, "rows": 50_000,
        "where": "", "consistency": "auto", "databases": (), "tables": (), "filters": (),
    }  # fmt: skip
    assert subtask.loader.model_dump() == {
        "pool_size": 16, "directory": "./dumped_data.t/s1", "on_duplicate": "error",
        "incremental_import": False, "escape_backslash": None,
    }  # fmt: skip
    assert subtask.syncer.model_dump() == {
        "worker_count": 4, "batch_rows": 2000, "checkpoint_flush_interval_seconds": 30, "compact": True,
        "multiple_rows": True, "on_missing_row": "warn", "safe_mode": False, "safe_mode_duration_seconds": 60.0,
    }  # fmt: skip
    assert (subtask.name, subtask.source_id, subtask.mode, subtask.delivery) == ("t", "s1", "all", "exactly-once")
    assert (subtask.meta_schema, subtask.clean_dump_file, subtask.start) == ("dm_meta", True, None)
    assert (subtask.routes, subtask.block_allow, subtask.column_mappings) == ({}, None, {})
    assert subtask.spark.master == "local[*]"
    assert SubtaskConfig.model_validate(sent_form(subtask)) == subtask


@pytest.mark.parametrize("inline", [False, True])
def test_named_and_inline_settings_with_thread_overrides(files: Any, inline: bool) -> None:
    settings: dict[str, Any] = {
        "mydumper": {"threads": 2, "chunk-filesize": "1", "format": "sql", "extra-args": "-r 7 -s 8 --no-locks -B a"},
        "loader": {"pool-size": 3, "dir": "/d/", "on-duplicate-logical": "replace"},
        "syncer": {"worker-count": 5, "batch": 6, "compact": False, "multiple-rows": False},
    }
    instance: dict[str, Any] = {"source-id": "s1"}
    changes: dict[str, Any] = {"mysql_instances": [instance]}
    for unit, values in settings.items():
        instance[unit if inline else f"{unit}-config-name"] = values if inline else "x"
        if not inline:
            changes[f"{unit}s"] = {"x": values}
    subtask = plan_one(files, **changes)
    assert (subtask.dumper.threads, subtask.dumper.rows, subtask.dumper.statement_bytes) == (2, 7, 8)
    assert (subtask.dumper.consistency, subtask.dumper.databases, subtask.dumper.format) == ("none", ("a",), "sql")
    assert subtask.dumper.chunk_bytes == 1 << 20
    assert (subtask.loader.pool_size, subtask.loader.directory) == (3, "/d.t/s1")
    assert subtask.loader.on_duplicate == "replace"
    assert (subtask.syncer.worker_count, subtask.syncer.batch_rows) == (5, 6)
    assert not subtask.syncer.compact
    assert not subtask.syncer.multiple_rows
    instance.update({"mydumper-thread": 11, "loader-thread": 12, "syncer-thread": 13})
    subtask = plan_one(files, **changes)
    threads = (subtask.dumper.threads, subtask.loader.pool_size, subtask.syncer.worker_count)
    assert threads == (11, 12, 13)


def test_what_foreign_key_checks_cannot_go_with_is_refused_where_it_is_asked_for(files: Any) -> None:
    checked = {"host": "t", "port": 4000, "user": "root", "session": {"foreign_key_checks": 1}}
    instance = {"source-id": "s1", "syncer": {"multiple-rows": True, "compact": False}}
    assert plan_one(files, target_database=checked).target.checks_foreign_keys
    with pytest.raises(ConfigError, match="CONFIG-005") as caught:
        plan_one(files, target_database=checked, mysql_instances=[instance])
    assert "foreign_key_checks = 1 can't go with multiple-rows: true" in str(caught.value)
    assert "compact" not in caught.value.cause


def test_each_source_gets_its_own_rules(files: Any) -> None:
    route = {"schema-pattern": "a", "target-schema": "b"}
    instances = [
        {"source-id": "s2", "route-rules": ["r2", "r1"], "block-allow-list": "b"},
        {"source-id": "s1", "route-rules": ["r1"]},
    ]
    task = files.read_task(
        routes={"r1": route, "r2": {**route, "schema-pattern": "c"}},
        block_allow_list={"b": {"do-dbs": ["a"]}},
        mysql_instances=instances,
    )
    first, second = plan_subtasks(task, [files.read_source(), files.read_source(source_id="s2")])
    assert (first.source_id, second.source_id) == ("s2", "s1")
    assert (list(first.routes), list(second.routes)) == (["r2", "r1"], ["r1"])
    assert first.block_allow is not None
    assert first.block_allow.do_dbs == ("a",)
    assert second.block_allow is None


@pytest.mark.parametrize(("task", "source"), [(True, False), (False, True), (True, True), (False, False)])
def test_case_counts_when_either_file_says_so(files: Any, task: bool, source: bool) -> None:
    subtask = plan_one(files, {"case_sensitive": source}, case_sensitive=task)
    assert subtask.case_sensitive == (task or source)


def test_a_starting_point_is_kept_in_incremental_only(files: Any) -> None:
    instances = [{"source-id": "s1", "meta": START}]
    start = plan_one(files, task_mode="incremental", mysql_instances=instances).start
    assert start is not None
    assert (start.binlog_name, start.binlog_pos, start.binlog_gtid) == ("mysql-bin.000002", 120, "")
    assert plan_one(files, task_mode="all", mysql_instances=instances).start is None
    assert plan_one(files, task_mode="incremental").start is None


@pytest.mark.parametrize(
    ("gtid", "meta", "needs"),
    [(False, {"binlog-gtid": "0-1-1"}, "binlog-name"), (True, START, "binlog-gtid")],
)
def test_a_starting_point_has_to_suit_the_source(files: Any, gtid: bool, meta: dict[str, Any], needs: str) -> None:
    changes = {"task_mode": "incremental", "mysql_instances": [{"source-id": "s1", "meta": meta}]}
    with pytest.raises(ConfigError) as caught:
        plan_one(files, {"enable_gtid": gtid}, **changes)
    assert caught.value.cause == f"source 's1' has enable-gtid: {str(gtid).lower()}, so its meta needs {needs}"
    assert plan_one(files, {"enable_gtid": not gtid}, **changes).start is not None


def test_all_misfits_of_task_and_sources_come_together(files: Any) -> None:
    task = files.read_task(mysql_instances=[{"source-id": name} for name in ("s1", "s2", "s3")])
    sources = [
        files.read_source(),
        files.read_source(source_id="s2", enable=False),
        files.read_source(source_id="s4"),
        files.read_source(source_id="s4"),
    ]
    with pytest.raises(ConfigError) as caught:
        plan_subtasks(task, sources)
    assert caught.value.code == "CONFIG-005"
    assert [line.strip() for line in caught.value.cause.splitlines()] == [
        "source 's3' of the task has no source file",
        "source 's4' is not in the task's mysql-instances",
        "source 's4' is in 2 source files",
        "source 's2' is disabled; set enable: true in its file",
    ]
    assert "task t and the source files do not fit together: 4 problem(s)" in str(caught.value)


def test_a_subtask_travels_as_bytes_and_as_json(files: Any) -> None:
    instances = [{"source-id": "s1", "meta": START, "mydumper": {"extra-args": "-T a.b"}}]
    subtask = plan_one(files, task_mode="incremental", mysql_instances=instances)
    assert pickle.loads(pickle.dumps(subtask)) == subtask
    assert SubtaskConfig.model_validate_json(subtask.model_dump_json()) == subtask
    assert SubtaskConfig.model_validate_json(subtask.model_dump_json(by_alias=True)) == subtask


def test_passwords_stay_out_of_what_is_shown(files: Any) -> None:
    server = {"host": "h", "port": 1, "user": "u", "password": "geheim"}
    subtask = plan_one(files, {"from": server}, target_database=server)
    assert "geheim" not in repr(subtask) + str(subtask) + json.dumps(subtask.redacted())
    assert subtask.redacted()["source"]["from"]["password"] == "******"
    assert plan_one(files).redacted()["target"]["password"] == ""
    assert subtask.target.password == "geheim"


def test_safe_mode_lasts_two_checkpoint_intervals_or_what_is_written(files: Any) -> None:
    def seconds(**keys: Any) -> float:
        return plan_one(files, mysql_instances=[{"source-id": "s1", "syncer": keys}]).syncer.safe_mode_duration_seconds

    assert seconds(**{"checkpoint-flush-interval": 7}) == 14
    assert seconds(**{"safe-mode-duration": "1m30s"}) == 90
    assert seconds(**{"safe-mode-duration": "0s"}) == 0


def test_safe_mode_for_no_time_is_dms_20061(files: Any) -> None:
    syncer = {"safe-mode": True, "safe-mode-duration": "0s"}
    (fault,) = files.task_problems(**{"mysql-instances": [{"source-id": "s1", "syncer": syncer}]})
    assert "20061" in fault
    (fault,) = files.task_problems(**{"mysql-instances": [{"source-id": "s1", "syncer": {"safe-mode-duration": "60"}}]})
    assert "mysql-instances[0].syncer.safe-mode-duration" in fault
    assert "30s" in fault


def test_at_least_once_takes_no_second_attempts_side_by_side(files: Any) -> None:
    with pytest.raises(ConfigError, match=r"CONFIG-005[\s\S]*spark\.speculation"):
        plan_one(files, delivery="at-least-once", spark={"conf": {"spark.speculation": "true"}})
