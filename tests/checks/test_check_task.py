"""`unshard ctl check-task` and the start of `unshard run` from outside: JSON, exit codes, limits, a failure blocks."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from io import StringIO

import pytest
from rich.console import Console

from support.checked_tasks import as_user, report_of, with_keys, with_source
from support.task_runs import TaskFiles
from unshard.checks.result import CheckReport, Finding, Result
from unshard.checks.run import ITEMS
from unshard.config.task import CheckingItem
from unshard.ctl.tables import rendered
from unshard.errors import ConfigError, TargetError
from unshard.testing.mariadb_server import MariadbServer

LACK = Finding("fail", "broken", "mend it")
DOUBT = Finding("warn", "doubtful", "look at it")


def unshard(files: TaskFiles, *words: str) -> subprocess.CompletedProcess[str]:
    files.write()
    sources = [word for path in files.source_paths for word in ("-s", str(path))]
    command = [sys.executable, "-m", "unshard", *words, str(files.task_path), *sources]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=120, cwd=files.folder)


def test_every_name_of_dm_is_an_item() -> None:
    assert {item.ignored for item in ITEMS} == {"", *CheckingItem.__args__} - {"all"}  # type: ignore[attr-defined]


def test_the_worst_finding_is_the_state() -> None:
    assert Result("n", "d").state == "success"
    assert Result("n", "d", (DOUBT,)).state == "warn"
    assert Result("n", "d", (DOUBT, LACK, DOUBT)).state == "fail"


def test_limits_count_over_all_results() -> None:
    report = CheckReport.of([Result("fine", ""), Result("a", "", (LACK, DOUBT, LACK)), Result("b", "", (LACK, DOUBT))])
    form = report.to_dict(errors=2, warnings=2)
    assert [(result["id"], len(result["errors"])) for result in form["results"]] == [(1, 3), (2, 1)]
    assert report.to_dict(errors=1, warnings=0)["results"][0]["instruction"] == "mend it"
    assert form["summary"] == {"passed": False, "total": 3, "successful": 1, "failed": 2, "warning": 0}
    assert form["result"] is False


def test_the_table_on_a_terminal() -> None:
    text = StringIO()
    report = CheckReport.of([Result("fine", ""), Result("a [b]", "", (LACK, DOUBT), "s1")])
    console = Console(file=text, force_terminal=True, width=80, color_system=None)
    for part in rendered("check-task", report.to_dict(10, 0)):
        console.print(part, markup=False)
    told = text.getvalue()
    assert "broken" in told
    assert "  mend it" in told
    assert "doubtful" not in told
    assert "1 of 2 fine, 0 warned, 1 failed" in told


@pytest.mark.server
def test_a_sound_task(files: TaskFiles) -> None:
    done = unshard(files, "ctl", "check-task")
    assert (done.returncode, done.stderr) == (0, "")
    form = json.loads(done.stdout)
    assert (form["result"], form["msg"], form["results"]) == (True, "pre-check is passed. ", [])


@pytest.mark.server
def test_a_failure_is_exit_code_1_and_blocks_a_run(files: TaskFiles, changed_source: MariadbServer) -> None:
    login = as_user(changed_source, "poor", "SELECT ON *.*")
    own = with_source(files, login)
    done = unshard(own, "ctl", "check-task", "--error", "1", "--warn", "0")
    assert done.returncode == 1
    (result,) = json.loads(done.stdout)["results"]
    assert result["state"] == "fail"
    assert set(result) == {"id", "name", "desc", "state", "errors", "instruction", "extra"}
    assert set(result["errors"][0]) == {"severity", "short_error", "self", "other", "instruction"}
    run = unshard(own, "run")
    assert run.returncode == 1
    assert "ERROR CHECK-001" in run.stderr
    assert result["errors"][0]["instruction"] in run.stderr
    assert not run.stdout.count("sync")
    assert files.target.query("SHOW DATABASES LIKE %s", (files.meta,)) == []


@pytest.mark.scenarios
@pytest.mark.server
@pytest.mark.spark
def test_a_warning_is_told_and_the_run_goes_on(files: TaskFiles, changed_source: MariadbServer, schema: str) -> None:
    changed_source.run(f"CREATE TABLE {schema}.k (a INT)", f"INSERT INTO {schema}.k VALUES (7)")
    run = unshard(with_keys(files, task_mode="full"), "run")
    assert (run.returncode, run.stderr) == (0, "")
    assert "warning: table structure compatibility check" in run.stdout
    assert files.target.query(f"SELECT a FROM {schema}.k") == [(7,)]
    names = {result.name for result in report_of(with_keys(files, task_mode="full")).results}
    assert "dumper_conn_number_checker" not in names, "nothing is dumped at the next start"


@pytest.mark.server
def test_names_that_are_no_items_are_wrong_use(files: TaskFiles) -> None:
    done = unshard(replace(files), "ctl", "check-task", "--also", "version")
    assert done.returncode == 2
    assert "primary_key" in done.stderr
    unknown = unshard(with_keys(files, ignore_checking_items=["binlog_formt"]), "ctl", "check-task")
    assert unknown.returncode == 1
    assert unknown.stderr.startswith("CONFIG-001")
    assert "binlog_format" in unknown.stderr


@pytest.mark.parametrize(("expression", "code"), [("v = 'x", "CONFIG-020"), ("w = 'x'", "CONFIG-021")])
def test_an_expression_that_the_start_would_refuse(expression: str, code: str, files: TaskFiles, schema: str) -> None:
    rule = {"schema": schema, "table": "t", "insert-value-expr": expression}
    own = with_keys(files, expression_filter={"r": rule})
    own = replace(own, instance={**own.instance, "expression-filters": ["r"]})
    with pytest.raises(ConfigError, match=code) as caught:
        report_of(own)
    assert caught.value.where.source == "s1"


def test_a_session_variable_that_the_target_does_not_know(files: TaskFiles, target_server: MariadbServer) -> None:
    login = {"host": "127.0.0.1", "port": target_server.port, "user": "root", "session": {"sql_mod": "x"}}
    with pytest.raises(TargetError, match=r"TARGET-004.*sql_mod = 'x'"):
        report_of(with_keys(files, target_database=login))
