"""The suites themselves: none is forgotten, a failure is told at once, and the table at the end says all of it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from suites.catalogue import BESIDE, GATE, SUITES, Step, Suite, misplaced
from suites.report import RECORD, Record, read
from suites.run import Result, named, paths_of, ran, summary

ROOT = Path(__file__).parents[2]
CONFTEST = """
import pytest
from suites.report import Reporter

@pytest.hookimpl(trylast=True)
def pytest_configure(config):
    config.pluginmanager.register(Reporter(config.pluginmanager.get_plugin("terminalreporter"), ["a reason"]))
"""
TESTS = """
import time

def test_wrong():
    assert 1 + 1 == 3

def test_right():
    pass
"""


WAITS = """
from pathlib import Path

class ExpiredWait(AssertionError):
    pass

def test_it_arrives():
    first = Path("{first}")
    if not first.exists():
        first.touch()
        raise ExpiredWait("not in 3 s: arrived")

def test_rows():
    assert {equal}
"""


def test_each_suite_has_a_target_and_each_mark_is_registered() -> None:
    (targets,) = re.findall(r"^SUITES := (.*)$", (ROOT / "Makefile").read_text(), re.M)
    assert targets.split() == [suite.name for suite in SUITES if suite is not GATE]
    marks = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["pytest"]["ini_options"]["markers"]
    assert set(BESIDE) <= {mark.partition(":")[0] for mark in marks}
    folders = {path for suite in SUITES for step in suite.steps for path in step.paths}
    assert {"tests/mysql_server", "tests/tidb_server"} <= folders


def test_a_test_is_left_out_of_the_gate_by_each_mark_of_another_suite_and_by_no_other() -> None:
    for step in GATE.steps:
        assert set(re.findall(r"not (\w+)", step.marks)) - {"server", "spark", "recovery"} == set(BESIDE)


def test_the_steps_of_the_gate_hold_each_test_once() -> None:
    """By every combination of the marks that give the order, in the paths of the house and outside of them."""
    for server, spark, recovery in [(a, b, c) for a in (0, 1) for b in (0, 1) for c in (0, 1)]:
        known = {"server": server, "spark": spark, "recovery": recovery} | dict.fromkeys(BESIDE, 0)
        steps = [step.name for step in GATE.steps if eval(step.marks, {}, known)]
        assert len(steps) == 1 or steps == ["house", "unit"], (server, spark, recovery)
    house, unit, *_ = GATE.steps
    assert unit.ignored == house.paths


def test_a_step_collects_the_files_that_name_its_marks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for folder in ("tests/a", "tests/mysql_server"):
        Path(folder).mkdir(parents=True)
        for name in ("spark", "recovery", "faults", "server"):
            Path(folder, f"test_{name}.py").write_text(f"pytestmark = [pytest.mark.{name}]\n")
        Path(folder, "helper.py").write_text("pytest.mark.spark, pytest.mark.recovery, pytest.mark.faults")
    house, unit, servers, spark, processes = GATE.steps
    assert [paths_of(step) for step in (house, unit, servers)] == [house.paths, ("tests",), ("tests",)]
    assert paths_of(spark) == ("tests/a/test_spark.py",)
    assert paths_of(processes) == ("tests/a/test_recovery.py",)
    assert [paths_of(step) for suite in named(["faults", "mysql"]) for step in suite.steps] == [
        ("tests/a/test_faults.py",),
        ("tests/mysql_server",),
    ]


@pytest.mark.parametrize(
    ("marks", "text", "fault"),
    [
        ({"server", "spark", "faults"}, "[pytest.mark.spark, pytest.mark.faults]", ""),
        ({"server", "parametrize"}, "", ""),
        ({"page", "docs"}, "mark.page mark.docs", "belongs to several suites: docs, page"),
        ({"spark", "faults"}, "mark.spark", "has the mark faults: its file has to name `pytest.mark.faults` itself"),
    ],
)
def test_a_test_that_its_step_would_not_find_is_refused(marks: set[str], text: str, fault: str) -> None:
    assert misplaced(marks, text) == fault


def test_a_failure_is_told_with_its_error_at_once(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(CONFTEST)
    (tmp_path / "test_two.py").write_text(TESTS)
    path = tmp_path / "record.json"
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "tests"), RECORD: str(path)}
    environment.pop("PYTEST_XDIST_WORKER", None)
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-p",
        "no:cacheprovider",
        "-q",
        "--rootdir",
        str(tmp_path),
        str(tmp_path),
    ]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, cwd=tmp_path, check=False)
    told = re.search(
        r"^FAILED test_two.py::test_wrong after .* s, in its call: assert \(1 \+ 1\) == 3$", done.stdout, re.M
    )
    assert told is not None, done.stdout
    assert told.start() < done.stdout.index("= FAILURES ="), done.stdout
    record = read(path)
    assert list(record.seconds) == ["test_two.py::test_wrong", "test_two.py::test_right"]
    assert record.failed == {"test_two.py::test_wrong": "assert (1 + 1) == 3"}
    assert (record.passed, record.left_out) == (1, ["a reason"])


@pytest.mark.parametrize(("second_try", "rows_differ"), [(True, False), (False, False), (True, True)])
def test_a_wait_that_expired_may_be_tried_again(tmp_path: Path, second_try: bool, rows_differ: bool) -> None:
    """It passes at its second try; where another test failed by its rows, there is none."""
    (tmp_path / "conftest.py").write_text(CONFTEST)
    (tmp_path / "test_waits.py").write_text(WAITS.format(first=tmp_path / "first", equal=not rows_differ))
    path = str(tmp_path / "test_waits.py")
    suite = Suite("faults", "", (Step("faults", paths=(path,), jobs=0),), second_try=second_try)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("suites.run.RECORDS", tmp_path / "records")
        patch.setenv("PYTHONPATH", str(ROOT / "tests"))
        patch.delenv("PYTEST_XDIST_WORKER", raising=False)
        patch.chdir(tmp_path)
        (result,) = ran([suite])
    assert result.good == (second_try and not rows_differ)
    expired = "test_waits.py::test_it_arrives"
    assert result.second_tries == ((expired,) if result.good else ())
    table = summary([result])
    assert (f"PASSED AT ITS SECOND TRY, a defect: {expired}" in table) == result.good
    assert table.endswith(
        "2 passed, 0 failed" if result.good else f"{1 - rows_differ} passed, {1 + rows_differ} failed"
    )


def test_the_table_tells_what_failed_and_what_was_left_out() -> None:
    good = Record({"a": 1.0, "b": 2.0}, left_out=["MySQL: no server"])
    bad = Record({"c": 1.0, "d": 1.0}, {"d": "assert 1 == 2"})
    told = summary(
        [
            Result("test", "unit", good, 3, 0),
            Result("faults", "faults", bad, 70.4, 1),
            Result("page", "page", Record(), 2, -9),
            Result("tidb", "set-up", Record(), 0, 1, "`tools/test-servers tidb` failed, see above"),
        ]
    ).splitlines()
    assert told == [
        "suite      step              tests failed  seconds",
        "test       unit                  2      0        3",
        "faults     faults                2      1       70  FAILED",
        "page       page                  0      0        2  FAILED",
        "tidb       set-up                0      0        0  FAILED",
        "FAILED d: assert 1 == 2",
        "FAILED page, page: pytest ended with -9 and names no test",
        "NOT TESTED: tidb: `tools/test-servers tidb` failed, see above",
        "NOT TESTED: MySQL: no server",
        "3 passed, 3 failed",
    ]


def test_a_suite_that_is_not_there_is_told_with_those_that_are() -> None:
    assert named(["all"]) == SUITES
    assert [suite.name for suite in named(["page", "docs"])] == ["page", "docs"]
    with pytest.raises(SystemExit, match=r"no suite is called pages; there are all, test, faults"):
        named(["pages"])
