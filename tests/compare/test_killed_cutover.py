"""`unshard cutover` is killed at each of its writes and run again: it goes on from there, and its report is right."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from support.cutovers import merged_tables
from support.killed_commands import TypedCommand
from support.task_runs import TaskFiles, TaskRun, newest
from unshard.testing.mariadb_server import MariadbServer
from unshard.testing.throwaway_server import ThrowawayServer

pytestmark = [pytest.mark.server, pytest.mark.spark, pytest.mark.recovery, pytest.mark.faults]


@pytest.fixture
def files(
    source_server: MariadbServer,
    second_source: MariadbServer,
    target_server: ThrowawayServer,
    schema: str,
    tmp_path: Path,
) -> Iterator[TaskFiles]:
    """There is another table too. The second source is read-only."""
    with merged_tables((source_server, second_source), target_server, schema, tmp_path) as files:
        source_server.run(f"CREATE TABLE {schema}.other (id INT PRIMARY KEY)", f"INSERT INTO {schema}.other VALUES (1)")
        second_source.run("SET GLOBAL read_only = ON")
        yield files


def kept(files: TaskFiles, name: str) -> Any:
    return json.loads((files.folder / f"unshard-cutover-{files.name}.{name}").read_text())


def read_only(files: TaskFiles) -> dict[str, int]:
    return {name: server.query("SELECT @@read_only")[0][0] for name, server in files.sources.items()}


def test_it_goes_on_after_each_death(files: TaskFiles, spark: SparkSession, schema: str) -> None:
    words = [word for path in files.source_paths for word in ("-s", path.name)]
    cut_over = TypedCommand(files.folder, ("cutover", "task.yaml", *words, "--rest", "1"))
    more = {"super_read_only": "OFF"} if files.sources["s1"].product == "MySQL" else {}
    before = {"s1": {"read_only": "OFF"} | more, "s2": {"read_only": "ON"} | more}
    with TaskRun(files, spark) as run:
        run.catch_up()
        files.target.run(f"DELETE FROM {schema}.t WHERE id = 1007")
        cut_over.dies("cutover-read-only-before", "--read-only")
        assert kept(files, "state.json")["read_only"] == {"s1": before["s1"]}
        assert read_only(files) == {"s1": 0, "s2": 1}
        cut_over.dies("cutover-read-only-after", "--read-only")
        assert read_only(files) == {"s1": 1, "s2": 1}
        cut_over.dies("cutover-ends-before", "--read-only")
        assert kept(files, "state.json")["read_only"] == before
        cut_over.dies("cutover-ends-after", "--read-only")
        ends = kept(files, "state.json")["ends"]
        assert {name: end["position"] for name, end in ends.items()} == {
            name: str(newest(server)) for name, server in files.sources.items()
        }
        told = cut_over.dies("compare-range-after", "--read-only")
        assert "going on behind" not in told
        done = cut_over.ends("--read-only")
        assert done.returncode == 1, done.stdout + done.stderr
        assert "going on behind 1 ranges" in done.stderr
        report = kept(files, "json")
        assert not report["cut_over"]
        counts = {
            one["table"]: (one["counts"]["missing"], one["source_rows"]) for one in report["comparison"]["tables"]
        }
        assert counts == {f"{schema}.other": (0, 1), f"{schema}.t": (1, 200)}

        files.target.run(f"INSERT INTO {schema}.t VALUES (1007, 7)")
        cut_over.dies("cutover-report-before", "--read-only")
        assert kept(files, "json") == report, "the report of before is left as it was"
        done = cut_over.ends("--read-only")
        assert done.returncode == 0, done.stdout + done.stderr
        report = kept(files, "json")
        assert report["cut_over"]
        assert {one["source"]: one["position"] for one in report["sources"]} == {
            name: end["position"] for name, end in ends.items()
        }
        assert {one["source"]: one["read_only_before"] for one in report["sources"]} == before
    statements = ["s1: SET GLOBAL read_only = OFF"]
    if more:
        statements = ["s1: SET GLOBAL super_read_only = OFF", *statements, "s2: SET GLOBAL super_read_only = OFF"]
    cut_over.dies(f"cutover-back-after:{2 if more else 1}", "--back")
    assert read_only(files) == {"s1": 0, "s2": 1}
    assert cut_over.ends("--back").stdout.splitlines() == statements
    assert read_only(files) == {"s1": 0, "s2": 1}
    assert cut_over.ends("--back").stdout.startswith("nothing to do")
