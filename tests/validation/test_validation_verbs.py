"""`unshard ctl validation …` as it is typed, beside a task that runs, and with its file alone."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from support.task_runs import UNSHARD, Command, TaskFiles
from support.validated_tasks import QUICK, ValidationRecords, validated
from support.waiting import wait_until
from unshard.target.validation_errors import ErrorState
from unshard.testing.mariadb_server import MariadbServer
from unshard.testing.throwaway_server import ThrowawayServer

pytestmark = [pytest.mark.server, pytest.mark.spark]


@pytest.fixture
def stocked(database: str, source_server: MariadbServer) -> str:
    source_server.run(
        f"CREATE TABLE {database}.t (id INT PRIMARY KEY, v INT)",
        f"CREATE TABLE {database}.plain (v INT)",
        f"INSERT INTO {database}.t VALUES (1, 1), (2, 2), (3, 3)",
    )
    return database


def ctl(files: TaskFiles, *words: str, code: int = 0) -> Any:
    command = [UNSHARD, "ctl", "validation", *words]
    done = subprocess.run(command, cwd=files.folder, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == code, done.stdout + done.stderr
    return json.loads(done.stdout) if code < 2 and done.stdout else done.stderr


def _first(files: TaskFiles) -> Any:
    return ctl(files, "status", files.name)["validators"][0]


def _fail(records: ValidationRecords, source: ThrowawayServer, stocked: str, numbers: str) -> None:
    """Rows that differ: they are deleted in the target before anybody has looked at their change."""
    with records.held():
        source.run(f"UPDATE {stocked}.t SET v = v + 1 WHERE id IN ({numbers})")
        wait_until(records.files.caught_up, "caught up")
        records.files.target.run(f"DELETE FROM {stocked}.t WHERE id IN ({numbers})")


@pytest.mark.scenarios
def test_the_verbs(stocked: str, source_server: MariadbServer, target_server: ThrowawayServer, tmp_path: Path) -> None:
    files = validated(tmp_path, stocked, {"s1": source_server}, target_server, validator={**QUICK, "mode": "none"})
    records = ValidationRecords(files)
    task = files.name
    with Command(files):
        wait_until(files.caught_up, "caught up")
        assert ctl(files, "status", task)["msg"] == "no source of the task has been validated"
        assert "is written as" in json.dumps(ctl(files, "start", task, "--start-time", "yesterday", code=1))
        (one,) = ctl(files, "start", task, "--start-time", "2026-01-01 00:00:00")["sources"]
        assert one["source"] == "s1"
        assert one["msg"].startswith("the worker is told; all rows are compared")
        assert ctl(files, "start", "--all-task")["sources"][0]["msg"] == "the validator runs already"
        refused = json.dumps(ctl(files, "start", task, "--start-time", "2026-01-01 00:00:00", code=1))
        assert f"`unshard ctl validation stop {task}`" in refused
        wait_until(lambda: bool(ctl(files, "status", task)["validators"][0]["validatorBinlog"]), "running")
        source_server.run(f"INSERT INTO {stocked}.plain VALUES (1)", f"INSERT INTO {stocked}.t VALUES (4, 4)")
        records.settled()
        answer = ctl(files, "status", task)
        (validator,) = answer["validators"]
        assert (validator["task"], validator["source"], validator["mode"]) == (task, "s1", "full")
        assert (validator["stage"], validator["result"]) == ("Running", None)
        assert validator["processedRowsStatus"] == "insert/update/delete: 2/0/0"
        assert validator["errorRowsStatus"] == "new/ignored/resolved: 0/0/0"
        stages = {one["srcTable"]: one["stage"] for one in answer["tableStatuses"]}
        assert stages == {f"`{stocked}`.`t`": "Running", f"`{stocked}`.`plain`": "Stopped"}
        (stopped,) = ctl(files, "status", task, "--table-stage", "stopped")["tableStatuses"]
        assert "no primary key" in stopped["message"]

        _fail(records, source_server, stocked, "1, 2, 3")
        records.new_errors(3)
        found = ctl(files, "show-error", task)["error"]
        assert [(one["errorType"], one["status"]) for one in found] == [("Expected rows not exist", "NewErr")] * 3
        assert json.loads(found[0]["srcData"]) == {"id": "1", "v": "2"}
        assert found[0]["dstData"] == ""
        first, second, third = (one["id"] for one in found)
        ctl(files, "ignore-error", task, first)
        ctl(files, "resolve-error", task, second)
        ctl(files, "clear-error", task, third)
        ctl(files, "clear-error", task, code=1)
        assert [one["id"] for one in ctl(files, "show-error", task, "--error", "ignored")["error"]] == [first]
        (resolved,) = ctl(files, "show-error", task, "--error", "resolved")["error"]
        assert resolved["id"] == second
        assert resolved["settledBy"]
        assert ctl(files, "show-error", task)["error"] == []
        ctl(files, "clear-error", task, "--all")
        assert ctl(files, "show-error", task, "--error", "all")["error"] == []

        assert ctl(files, "update", task, "--cutover-binlog-pos", "(mysql-bin.000001, 4)")["result"]
        assert _first(files)["cutoverBinlogPos"] == "(mysql-bin.000001, 4)"
        assert "as the source prints it" in json.dumps(
            ctl(files, "update", task, "--cutover-binlog-gtid", "no set", code=1)
        )
        ((end,),) = source_server.query("SELECT @@gtid_binlog_pos")
        domain, server, number = end.split("-")
        ctl(files, "update", task, "--cutover-binlog-gtid", f"{domain}-{server}-{int(number) + 1}")
        assert _first(files)["cutoverStatus"] == "not reached"
        source_server.run(f"UPDATE {stocked}.t SET v = v + 10 WHERE id = 4")
        wait_until(lambda: _first(files)["cutoverStatus"] == "validated", "validated", told=records.told)
        shown = subprocess.run(
            [UNSHARD, "ctl", "query-status", task], cwd=files.folder, capture_output=True, text=True, check=True
        )
        told = json.loads(shown.stdout)["sources"][0]["subTaskStatus"][0]["validation"]
        assert (told["stage"], told["mode"], told["source"]) == ("Running", "full", "s1")
        ctl(files, "stop", task)
        assert _first(files)["stage"] == "Stopped"
        _fail(records, source_server, stocked, "4")
    assert ctl(files, "show-error", "task.yaml", "-s", "s1.yaml")["error"] == []
    files.keys = {**files.keys, "validators": {"v": {**QUICK, "mode": "none", "full-load-rows-per-second": 0}}}
    files.write()
    refused = ctl(files, "start", "task.yaml", "-s", "s1.yaml", "--start-time", "2026-01-01", code=1)
    assert "where a start compares all rows" in json.dumps(refused)
    assert ctl(files, "start", "task.yaml", "-s", "s1.yaml", "--mode", "fast")["sources"][0]["msg"].startswith("takes")


@pytest.mark.faults
def test_a_kill_loses_no_key_and_no_error(
    stocked: str, source_server: MariadbServer, target_server: ThrowawayServer, tmp_path: Path
) -> None:
    """Killed with an error on record, a key that nobody has looked at, and a row that is right meanwhile."""
    files = validated(tmp_path, stocked, {"s1": source_server}, target_server)
    records = ValidationRecords(files)
    with Command(files) as first:
        wait_until(files.caught_up, "caught up")
        records.settled()
        _fail(records, source_server, stocked, "1, 3")
        before = {one.key: one for one in records.new_errors(2)}
        with records.held():
            source_server.run(f"UPDATE {stocked}.t SET v = v + 1 WHERE id = 2")
            wait_until(files.caught_up, "caught up")
            target_server.run(f"DELETE FROM {stocked}.t WHERE id = 2")
            first.kill()
    assert {one.key: one for one in records.errors()} == before
    target_server.run(f"INSERT INTO {stocked}.t VALUES (3, 4)")
    with Command(files):
        told = {("1",): ErrorState.NEW, ("2",): ErrorState.NEW, ("3",): ErrorState.RESOLVED}
        wait_until(lambda: {one.key: one.state for one in records.errors()} == told, "told", told=records.told)
        same = next(one for one in records.errors() if one.key == ("1",))
        assert (same.number, same.place, same.times) == (before[("1",)].number, before[("1",)].place, 1)


@pytest.mark.scenarios
def test_a_task_that_only_copies_says_why_it_has_no_validator(
    stocked: str, source_server: MariadbServer, target_server: ThrowawayServer, tmp_path: Path
) -> None:
    files = validated(tmp_path, stocked, {"s1": source_server}, target_server, {"task-mode": "full"})
    with Command(files) as run:
        assert run.wait() == 0, run.text
        assert "validator-config-name has no effect: task-mode full follows no binlog" in run.text
    for words in (("start", "task.yaml", "-s", "s1.yaml"), ("status", "task.yaml", "-s", "s1.yaml")):
        told = json.dumps(ctl(files, *words, code=1 if words[0] == "start" else 0))
        assert "mode full and follows no binlog" in told
        assert "unshard compare" in told
    target_server.run(f"DROP DATABASE IF EXISTS {files.meta}")
