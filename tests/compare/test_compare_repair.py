"""`unshard compare --sql`: the file mends what it can, and says what it can't."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from support.comparisons import compared, only_table, run_file
from support.task_runs import TaskFiles
from unshard.cli.compare_subject import CompareWish
from unshard.compare.result import ComparisonOutcome
from unshard.testing.mariadb_server import MariadbServer
from unshard.testing.throwaway_server import ThrowawayServer

pytestmark = [pytest.mark.server, pytest.mark.spark]


@pytest.fixture
def files(
    source_server: MariadbServer, target_server: ThrowawayServer, schema: str, tmp_path: Path
) -> Iterator[TaskFiles]:
    """Shards `t_1` and `t_2` of one source, whose ids get the number of the table, merged into `t`."""
    route = {"schema-pattern": schema, "table-pattern": "t_*", "target-schema": schema, "target-table": "t"}
    mapping = {
        "schema-pattern": schema,
        "table-pattern": "t_*",
        "expression": "partition id",
        "source-column": "id",
        "target-column": "id",
        "arguments": ["1", "", "t", "_"],
    }
    keys = {"task-mode": "full", "routes": {"r": route}, "column-mappings": {"m": mapping}}
    rules = {"route-rules": ["r"], "column-mapping-rules": ["m"]}
    for server in (source_server, target_server):
        server.run(f"CREATE DATABASE {schema} CHARACTER SET utf8mb4")
    files = TaskFiles(tmp_path, f"task_{schema}", {"s1": source_server}, target_server, (schema,), keys)
    yield replace(files, instance=rules).write()
    for server in (source_server, target_server):
        server.run(f"DROP DATABASE IF EXISTS {schema}")


COLUMNS = "(id BIGINT PRIMARY KEY, u INT UNIQUE, v VARCHAR(99), b VARBINARY(9), n DECIMAL(9,2), d TIMESTAMP NULL)"
TRICKY = r"""'it''s \\ \n \r\n; -- "no" \0 é'"""


def key_of(table: int, number: int) -> int:
    return 1 << 59 | table << 51 | number


def planted(files: TaskFiles) -> None:
    """Equal rows on both ends, but for two missing, two extra and three changed ones."""
    (schema,) = files.schemas
    source, target = files.sources["s1"], files.target
    target.run(f"USE {schema}", f"CREATE TABLE t {COLUMNS}")
    for number in (1, 2):
        rows = [f"({n}, {number * 100 + n}, 'v{n}', x'00ff', {n}.5, '2024-02-29 01:02:03')" for n in range(1, 8)]
        source.run(f"USE {schema}", "SET time_zone = '+00:00'", f"CREATE TABLE t_{number} {COLUMNS}")
        source.run(f"USE {schema}", "SET time_zone = '+00:00'", f"INSERT INTO t_{number} VALUES {', '.join(rows)}")
        mapped = [row.replace("(", f"({key_of(number, 0)} + ", 1) for row in rows]
        target.run(f"USE {schema}", "SET time_zone = '+00:00'", f"INSERT INTO t VALUES {', '.join(mapped)}")
    source.run(f"USE {schema}", f"UPDATE t_1 SET v = {TRICKY}, b = NULL, d = NULL WHERE id = 3")
    target.run(
        f"USE {schema}",
        f"DELETE FROM t WHERE id IN ({key_of(1, 3)}, {key_of(2, 7)})",
        f"UPDATE t SET v = NULL, n = -1 WHERE id = {key_of(2, 1)}",
        f"UPDATE t SET b = x'00', d = NULL WHERE id = {key_of(2, 2)}",
        # the two others have their unique values from here
        f"INSERT INTO t VALUES ({key_of(3, 1)}, 103, 'x', NULL, 0, NULL), ({key_of(3, 2)}, 207, 'x', NULL, 0, NULL)",
        f"UPDATE t SET v = '' WHERE id = {key_of(1, 7)}",
    )


def with_sql(files: TaskFiles, spark: SparkSession, **settings: int) -> tuple[ComparisonOutcome, Path]:
    path = files.folder / "mend.sql"
    return compared(files, spark, CompareWish(sql=path), **settings), path


def test_the_file_makes_the_target_equal(files: TaskFiles, spark: SparkSession) -> None:
    planted(files)
    outcome, path = with_sql(files, spark)
    counts = {kind.value: count for kind, count in only_table(outcome).classes.items()}
    assert counts == {"missing": 2, "extra": 2, "changed": 3}
    assert outcome.notes[-1] == f"{path} has 7 statements"
    assert compared(files, spark).exit_code == 1, "nothing is written to the target by the comparison"
    run_file(files.target, path)
    after = compared(files, spark)
    assert (after.exit_code, only_table(after).differences) == (0, [])


@pytest.mark.scenarios
def test_an_update_sets_only_columns_that_differ(files: TaskFiles, spark: SparkSession) -> None:
    planted(files)
    _, path = with_sql(files, spark)
    updates = [line for line in path.read_text().splitlines() if line.startswith("UPDATE")]
    assert any(line.endswith(f"SET `v`='v7' WHERE `id` = {key_of(1, 7)};") for line in updates)


def test_a_higher_limit_mends_the_rows_that_were_not_kept(files: TaskFiles, spark: SparkSession) -> None:
    planted(files)
    outcome, path = with_sql(files, spark, limit=4)
    (told,) = [note for note in outcome.notes if "more rows differ" in note]
    assert "3 more rows differ" in told
    assert "a higher --limit" in told
    assert f"{path} has 4 statements" in outcome.notes
    outcome, path = with_sql(files, spark, limit=7)
    assert f"{path} has 7 statements" in outcome.notes
    run_file(files.target, path)
    assert compared(files, spark).exit_code == 0


def test_what_no_statement_mends_is_told(files: TaskFiles, spark: SparkSession) -> None:
    (schema,) = files.schemas
    files.sources["s1"].run(f"USE {schema}", "CREATE TABLE bare (a INT)", "INSERT INTO bare VALUES (1)")
    files.target.run(f"USE {schema}", "CREATE TABLE bare (a INT)")
    outcome, path = with_sql(files, spark)
    assert f"{schema}.bare: the table has no key that names a row: no statements" in outcome.notes
    assert f"{path} has 0 statements" in outcome.notes
    assert f"-- {schema}.bare: the table has no key that names a row" in path.read_text()


def test_no_file_is_left_where_nothing_differs(files: TaskFiles, spark: SparkSession) -> None:
    (schema,) = files.schemas
    for server in (files.sources["s1"], files.target):
        server.run(f"USE {schema}", "CREATE TABLE s (a INT PRIMARY KEY)")
    path = files.folder / "mend.sql"
    path.write_text("DELETE FROM an.earlier_comparison;")
    outcome, path = with_sql(files, spark)
    assert outcome.notes[-1] == f"no rows differ: {path} was not written"
    assert not path.exists()


def test_columns_that_are_not_compared_get_no_statements(files: TaskFiles, spark: SparkSession) -> None:
    planted(files)
    wish = CompareWish(sql=files.folder / "mend.sql", ignored=("n",))
    outcome = compared(files, spark, wish)
    (note,) = [note for note in outcome.notes if "no statements" in note]
    assert note.endswith(".t: not all of its columns and rows were compared: no statements")
