"""MySQL's -0 in a FLOAT or DOUBLE on its way into any target, copied and followed."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession

from support.checked_tasks import found, statement
from support.comparisons import compared
from support.task_runs import TaskFiles, TaskRun
from unshard.compare.result import CompareVerdict
from unshard.testing.throwaway_server import ThrowawayServer

ZEROS = "negative zero checker"


def carry_negative_zeros(
    source: ThrowawayServer, target: ThrowawayServer, schema: str, folder: Path, spark: SparkSession, *, kept: bool
) -> None:
    """`kept`: the target stores a -0. One that doesn't is told before, and both ends compare as equal all the same."""
    source.run(
        f"CREATE DATABASE {schema} CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci",
        f"CREATE TABLE {schema}.t (id INT PRIMARY KEY, x DOUBLE, f FLOAT)",
        f"CREATE TABLE {schema}.n (id INT PRIMARY KEY, d DECIMAL(9,3))",
        f"INSERT INTO {schema}.t VALUES (1, -0e0, 0), (2, 0, -0e0), (3, 0, 0), (4, -1, -0.5), (5, NULL, NULL)",
    )
    files = TaskFiles(folder, schema, {"s1": source}, target, (schema,)).write()
    findings = found(files, ZEROS)
    assert len(findings) == (not kept)
    for finding in findings:
        assert finding.severity == "warn"
        assert finding.short_error.endswith(f"Tables: {schema}.t")
        assert source.query(statement(finding)) == [(2,)]
    with TaskRun(files, spark) as run:
        run.catch_up()
        source.run(f"INSERT INTO {schema}.t VALUES (6, -0e0, -0e0), (7, -0e0, 1)")
        run.catch_up()
        source.run(
            f"UPDATE {schema}.t SET f = -0e0 WHERE id = 3",
            f"UPDATE {schema}.t SET x = 7 WHERE id = 6",
            f"DELETE FROM {schema}.t WHERE id = 7",
        )
        run.catch_up()
        assert run.sync.missing == 0
    query = f"SELECT id, CONCAT(x), CONCAT(f) FROM {schema}.t ORDER BY id"
    ends = source.query(query), target.query(query)
    assert ends[1] == [tuple("0" if value == "-0" and not kept else value for value in row) for row in ends[0]]
    assert [row for row in ends[0] if "-0" in row] == [(1, "-0", "0"), (2, "0", "-0"), (3, "0", "-0"), (6, "7", "-0")]
    assert compared(files, spark).verdict is CompareVerdict.EQUAL
