"""`unshard compare` of tables that nobody writes to: keys, multisets, rules, structures, and what can't be compared."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from support.comparisons import compared, kinds, not_followed, only_table, state_file
from support.task_runs import TaskFiles
from support.waiting import wait_until
from unshard.cli.compare_subject import CompareWish
from unshard.compare.report import text_lines, write_parquet
from unshard.compare.result import CompareVerdict, RowClass
from unshard.errors import CompareError
from unshard.testing.mariadb_server import MariadbServer
from unshard.testing.throwaway_server import ThrowawayServer

pytestmark = [pytest.mark.server, pytest.mark.spark]


@pytest.fixture
def files(
    source_server: MariadbServer, target_server: ThrowawayServer, schema: str, tmp_path: Path
) -> Iterator[TaskFiles]:
    """What differs is looked at twice, and told."""
    with not_followed(source_server, target_server, schema, tmp_path) as files:
        yield files


def on(files: TaskFiles, source: str = "", target: str = "", both: str = "") -> None:
    """Run statements, separated by semicolons, in the task's schema: on both ends first."""
    (schema,) = files.schemas
    for server, text in ((files.sources["s1"], both + ";" + source), (files.target, both + ";" + target)):
        statements = [one.strip() for one in text.split(";") if one.strip()]
        server.run(f"USE {schema}", "SET sql_mode = ''", *statements)


def with_keys(files: TaskFiles, keys: dict[str, Any], **instance: Any) -> TaskFiles:
    return replace(files, keys={**files.keys, **keys}, instance=instance).write()


@pytest.mark.scenarios
def test_rows_without_a_key_are_compared_as_a_multiset(files: TaskFiles, spark: SparkSession) -> None:
    on(files, both="CREATE TABLE t (a INT, b VARCHAR(9)); INSERT INTO t VALUES (1, 'x'), (1, 'x'), (2, NULL), (3, 'y')")
    assert compared(files, spark).exit_code == 0
    on(files, source="INSERT INTO t VALUES (4, 'z'), (4, 'z')", target="DELETE FROM t WHERE a = 1 LIMIT 1")
    on(files, target="INSERT INTO t VALUES (2, NULL), (5, 'w'), (5, 'w')")
    table = only_table(compared(files, spark))
    told = {(one.kind.value, one.times) for one in table.differences}
    assert told == {("missing", (2, 0)), ("missing", (2, 1)), ("extra", (1, 2)), ("extra", (0, 2))}


def test_pairs_that_an_xor_would_cancel_are_told(files: TaskFiles, spark: SparkSession) -> None:
    on(files, both="CREATE TABLE t (a VARCHAR(9))", source="INSERT INTO t VALUES ('a'), ('a')")
    on(files, target="INSERT INTO t VALUES ('b'), ('b')")
    assert compared(files, spark).verdict is CompareVerdict.DIFFERENT


def test_values_that_run_into_each_other_are_told_apart(files: TaskFiles, spark: SparkSession) -> None:
    on(files, both="CREATE TABLE t (id INT PRIMARY KEY, a VARCHAR(9), b VARCHAR(9))")
    on(files, source="INSERT INTO t VALUES (1, 'a,b', 'c'), (2, 'N', NULL)")
    on(files, target="INSERT INTO t VALUES (1, 'a', 'b,c'), (2, NULL, 'N')")
    assert kinds(only_table(compared(files, spark))) == {"id=1": "changed", "id=2": "changed"}


def test_what_is_no_difference(files: TaskFiles, spark: SparkSession) -> None:
    """Padding, the order of JSON keys, digits behind the point, the spelling of a key."""
    columns = "c {0}, j {1}, n DECIMAL({2}), d DATETIME({3}), f {4}, s SET({5})"
    here = columns.format("CHAR(9)", "JSON", "9,2", "3", "FLOAT", "'p','q'")
    there = columns.format("VARCHAR(9)", "LONGTEXT", "12,4", "6", "DOUBLE", "'q','p'")
    row = "'ab', '{\"a\": 1, \"b\": 2.0}', 1.5, '2024-02-29 01:02:03.4', 0.1, 'p,q'"
    key = "k VARCHAR(9) COLLATE utf8mb4_general_ci PRIMARY KEY"
    on(files, f"CREATE TABLE t ({key}, {here}); INSERT INTO t VALUES ('Abc', {row})")
    on(files, target=f"CREATE TABLE t ({key}, {there}); INSERT INTO t VALUES ('aBC ', {row})")
    found = compared(files, spark)
    assert (found.exit_code, only_table(found).spelled) == (0, 1), list(text_lines(found))
    on(files, target='UPDATE t SET j = \'{"b": 2, "a": 1}\'')
    assert compared(files, spark).exit_code == 1  # neither side is a JSON column that a server knows as one


def test_two_tables_with_one_key(files: TaskFiles, spark: SparkSession) -> None:
    (schema,) = files.schemas
    own = {"schema-pattern": schema, "table-pattern": "t_*", "target-schema": schema, "target-table": "t"}
    merged = with_keys(files, {"routes": {"r": own}}, **{"route-rules": ["r"]})
    on(files, "CREATE TABLE t_1 (id INT PRIMARY KEY, v INT); CREATE TABLE t_2 LIKE t_1")
    on(files, "INSERT INTO t_1 VALUES (1, 1), (2, 1); INSERT INTO t_2 VALUES (2, 2), (3, 2)")
    on(files, target="CREATE TABLE t (id INT PRIMARY KEY, v INT); INSERT INTO t VALUES (1, 1), (2, 2), (3, 2)")
    table = only_table(compared(merged, spark))
    assert kinds(table) == {"id=2": "collision"}
    assert [name for name, _ in table.differences[0].source] == [f"s1: {schema}.t_1", f"s1: {schema}.t_2"]


def test_what_a_column_mapping_does_not_take(files: TaskFiles, spark: SparkSession) -> None:
    (schema,) = files.schemas
    rule = {
        "schema-pattern": schema,
        "table-pattern": "t",
        "expression": "partition id",
        "source-column": "id",
        "target-column": "id",
        "arguments": ["1", "", ""],
    }
    mapped = with_keys(files, {"column-mappings": {"ids": rule}}, **{"column-mapping-rules": ["ids"]})
    on(files, both="CREATE TABLE t (id BIGINT PRIMARY KEY)", source="INSERT INTO t VALUES (5)")
    on(files, target=f"INSERT INTO t VALUES ({1 << 59 | 5})")
    assert compared(mapped, spark).exit_code == 0
    found = compared(mapped, spark, CompareWish(where="id > 0"))
    assert (found.exit_code, [error.code for error in only_table(found).errors]) == (2, ["COMPARE-009"])
    on(files, "INSERT INTO t VALUES (-5)")
    found = compared(mapped, spark)
    assert (found.exit_code, [error.code for error in only_table(found).errors]) == (2, ["COMPARE-011"])


def test_texts_that_a_column_mapping_joins(files: TaskFiles, spark: SparkSession) -> None:
    (schema,) = files.schemas
    rule = {
        "schema-pattern": schema,
        "table-pattern": "t",
        "expression": "add prefix",
        "source-column": "k",
        "target-column": "k",
        "arguments": ["it's-"],
    }
    mapped = with_keys(files, {"column-mappings": {"own": rule}}, **{"column-mapping-rules": ["own"]})
    on(files, both="CREATE TABLE t (k VARCHAR(20) PRIMARY KEY, v INT)")
    on(
        files,
        "INSERT INTO t SELECT seq, seq FROM seq_1_to_50",
        "INSERT INTO t SELECT CONCAT('it\\'s-', seq), seq FROM seq_1_to_50",
    )
    assert compared(mapped, spark).exit_code == 0
    on(files, target="UPDATE t SET v = 0 WHERE v = 7; INSERT INTO t VALUES ('other', 1)")
    assert sorted(kinds(only_table(compared(mapped, spark))).items()) == [
        ("k='it\\'s-7'", "changed"),
        ("k='other'", "extra"),
    ]


def test_extracted_columns_in_the_key(files: TaskFiles, spark: SparkSession) -> None:
    (schema,) = files.schemas
    extract = {"table-regexp": "t_(.*)", "target-column": "shard"}
    own = {"schema-pattern": schema, "table-pattern": "t_*", "target-schema": schema, "target-table": "t"}
    merged = with_keys(files, {"routes": {"r": {**own, "extract-table": extract}}}, **{"route-rules": ["r"]})
    on(files, "CREATE TABLE t_a (id INT PRIMARY KEY, v INT); CREATE TABLE t_b LIKE t_a")
    on(files, "INSERT INTO t_a SELECT seq, seq FROM seq_1_to_500; INSERT INTO t_b SELECT seq, -seq FROM seq_1_to_500")
    on(files, target="CREATE TABLE t (id INT, v INT, shard VARCHAR(9), PRIMARY KEY (shard, id))")
    on(files, target="INSERT INTO t SELECT seq, seq, 'a' FROM seq_1_to_500")
    on(files, target="INSERT INTO t SELECT seq, -seq, 'b' FROM seq_1_to_500")
    found = compared(merged, spark, chunk_rows=90)
    assert (found.exit_code, only_table(found).source_rows, only_table(found).chunks) == (0, 1000, 12)
    on(files, target="UPDATE t SET v = 0 WHERE shard = 'b' AND id = 7; DELETE FROM t WHERE shard = 'a' AND id = 8")
    found = compared(merged, spark, chunk_rows=90)
    assert kinds(only_table(found)) == {"shard='b', id=7": "changed", "shard='a', id=8": "missing"}


def test_an_empty_target_is_cut_by_the_source(files: TaskFiles, spark: SparkSession) -> None:
    on(files, both="CREATE TABLE t (a VARBINARY(9), b DECIMAL(9,2), PRIMARY KEY (a, b))")
    on(files, "INSERT INTO t SELECT UNHEX(HEX(seq % 7)), seq FROM seq_1_to_300")
    table = only_table(compared(files, spark, chunk_rows=50, limit=3))
    assert (table.chunks, table.source_rows, table.target_rows) == (7, 300, 0)
    assert (table.classes, len(table.differences)) == ({RowClass.MISSING: 300}, 3)


def test_a_key_that_is_null_in_the_source(files: TaskFiles, spark: SparkSession) -> None:
    """It can be in no range, and in no row of the target."""
    on(files, "CREATE TABLE t (id INT UNIQUE, v INT)", "CREATE TABLE t (id INT PRIMARY KEY, v INT)")
    on(files, both="INSERT INTO t VALUES (1, 1), (2, 2)", source="INSERT INTO t VALUES (NULL, 3), (NULL, 3)")
    assert kinds(only_table(compared(files, spark))) == {"id=NULL": "collision"}


def test_what_stands_in_the_way_of_one_table_is_told_and_the_rest_is_compared(
    files: TaskFiles, spark: SparkSession
) -> None:
    on(files, both="CREATE TABLE good (id INT PRIMARY KEY); INSERT INTO good VALUES (1)")
    on(files, "CREATE TABLE gone (id INT PRIMARY KEY)")
    on(files, "CREATE TABLE more (id INT PRIMARY KEY, a INT, b INT)", "CREATE TABLE more (id INT PRIMARY KEY, a INT)")
    on(files, "CREATE TABLE other (id INT PRIMARY KEY, a INT)", "CREATE TABLE other (id INT PRIMARY KEY, a DATE)")
    found = compared(files, spark)
    codes = {one.name.table: ([error.code for error in one.errors], one.verdict.value) for one in found.tables}
    assert codes == {
        "good": ([], "equal"),
        "gone": (["COMPARE-001"], "different"),
        "more": (["COMPARE-002"], "different"),
        "other": (["COMPARE-003"], "unknown"),
    }
    wish = CompareWish(tables=("*.good", "*.other"))
    assert compared(files, spark, wish).exit_code == 2
    assert compared(files, spark, replace(wish, ignored=("A",))).exit_code == 0
    with pytest.raises(CompareError) as refused:
        compared(files, spark, CompareWish(tables=("nothing.*",)))
    assert refused.value.code == "COMPARE-007"


def test_a_task_without_a_checkpoint_can_not_be_judged(files: TaskFiles, spark: SparkSession) -> None:
    on(files, both="CREATE TABLE t (id INT PRIMARY KEY)")
    found = compared(with_keys(files, {"task-mode": "all"}), spark)
    assert found.exit_code == 2
    assert [error.code for error in found.errors] == ["COMPARE-006"]


def test_a_source_that_is_gone(files: TaskFiles, spark: SparkSession) -> None:
    on(files, both="CREATE TABLE t (id INT PRIMARY KEY)")
    path = files.source_paths[0]
    path.write_text(path.read_text().replace(f"port: {files.sources['s1'].port}", "port: 1"))
    found = compared(files, spark)
    assert (found.exit_code, found.tables) == (2, ())
    assert [error.code for error in found.errors] == ["SOURCE-001"]


@pytest.mark.faults
def test_a_source_that_goes_in_the_middle(files: TaskFiles, schema: str, tmp_path: Path, spark: SparkSession) -> None:
    """What was found until then is told, and nothing is called equal."""
    with MariadbServer({"gtid_domain_id": "7"}) as lost:
        for server in (lost, files.target):
            server.run(f"CREATE DATABASE IF NOT EXISTS {schema}", f"CREATE TABLE {schema}.t (id INT PRIMARY KEY)")
            server.run(f"INSERT INTO {schema}.t SELECT seq FROM mysql.seq_1_to_6000")
        own = replace(files, sources={"s1": lost}, folder=tmp_path / "own").write()
        path = state_file(tmp_path)

        def kill() -> None:
            wait_until(lambda: path.exists() and len(path.read_text().splitlines()) > 3, "some ranges compared")
            lost.kill()

        killer = threading.Thread(target=kill)
        killer.start()
        found = compared(own, spark, chunk_rows=600, rows_per_second=1000, state=path)
        killer.join()
    table = only_table(found)
    assert found.exit_code == 2
    assert 0 < table.chunks < 10
    assert table.errors
    assert path.exists(), "the same command goes on from here"
    codes = {error.code for error in (*found.errors, *table.errors)}
    assert codes <= {"SOURCE-001", "SOURCE-003", "COMPARE-024"}, "its structure can't be read again either"


def test_where_and_sample(files: TaskFiles, spark: SparkSession) -> None:
    on(files, both="CREATE TABLE t (id INT PRIMARY KEY, v INT); INSERT INTO t SELECT seq, seq FROM seq_1_to_1000")
    on(files, target="UPDATE t SET v = 0 WHERE id = 5")
    assert compared(files, spark, CompareWish(where="id > 5")).exit_code == 0
    assert compared(files, spark, CompareWish(where="id <= 5")).exit_code == 1
    table = only_table(compared(files, spark, chunk_rows=20, sample=20))
    assert 0 < table.chunks < 50
    assert table.chunks + table.skipped == 51


def test_the_copy_was_limited(files: TaskFiles, spark: SparkSession) -> None:
    on(
        files,
        both="CREATE TABLE t (id INT PRIMARY KEY); INSERT INTO t VALUES (1), (2)",
        source="INSERT INTO t VALUES (9)",
    )
    assert compared(files, spark).exit_code == 1
    limited = with_keys(files, {"mydumpers": {"few": {"where": "id < 9"}}}, **{"mydumper-config-name": "few"})
    assert compared(limited, spark).exit_code == 0


@pytest.mark.scenarios
def test_it_goes_on_from_its_file(files: TaskFiles, spark: SparkSession, tmp_path: Path) -> None:
    on(files, both="CREATE TABLE t (id INT PRIMARY KEY, v INT); INSERT INTO t SELECT seq, seq FROM seq_1_to_100")
    path = state_file(tmp_path)
    on(files, target="UPDATE t SET v = 0 WHERE id = 3")
    whole = compared(files, spark, chunk_rows=10, state=path)
    assert not path.exists(), "a comparison that is finished leaves nothing"
    from unshard.compare import run as run_module

    seen: list[int] = []
    compare = run_module.TableComparison._compare

    def break_off(self: Any, wave: Any, *more: Any) -> float:
        busy = compare(self, wave, *more)
        seen.append(len(wave))
        if len(seen) == 2:
            raise KeyboardInterrupt
        return busy

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(run_module.TableComparison, "_compare", break_off)
        with pytest.raises(KeyboardInterrupt):
            compared(files, spark, chunk_rows=10, state=path)
    lines = path.read_text().splitlines()
    assert len(lines) == 1 + sum(seen)
    path.write_text(path.read_text() + '{"table": "cut o')
    again = only_table(compared(files, spark, chunk_rows=10, state=path))
    assert again.to_dict() == only_table(whole).to_dict()
    path.write_text("\n".join(lines) + "\n")


def test_the_progress_of_another_comparison_is_refused_until_its_file_is_removed(
    files: TaskFiles, spark: SparkSession, tmp_path: Path
) -> None:
    """Both ways that COMPARE-008 names are followed to their end."""
    on(files, both="CREATE TABLE t (id INT PRIMARY KEY, v INT); INSERT INTO t SELECT seq, seq FROM seq_1_to_40")
    on(files, "", "UPDATE t SET v = 0 WHERE id = 7")
    path = tmp_path / "progress"
    path.write_text('{"version": 1, "comparison": "of others"}\n')
    with pytest.raises(CompareError) as refused:
        compared(files, spark, chunk_rows=20, state=path)
    assert refused.value.code == "COMPARE-008"
    assert str(path) in str(refused.value)
    elsewhere = only_table(compared(files, spark, chunk_rows=20, state=tmp_path / "other"))
    path.unlink()
    again = only_table(compared(files, spark, chunk_rows=20, state=path))
    assert again.to_dict() == elsewhere.to_dict()
    assert len(again.differences) == 1


def test_what_is_told_in_text_json_and_parquet(files: TaskFiles, spark: SparkSession, tmp_path: Path) -> None:
    on(files, both="CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(9), b BLOB); INSERT INTO t VALUES (1, 'a', x'ff00')")
    on(files, "INSERT INTO t VALUES (2, NULL, NULL)", "UPDATE t SET v = 'b'")
    found = compared(files, spark)
    text = "\n".join(text_lines(found))
    assert "changed: id=1" in text
    assert "*v=a*" in text
    assert "*v=b*" in text
    assert "missing: id=2" in text
    form = json.loads(json.dumps(found.to_dict()))
    assert (form["verdict"], form["exit_code"]) == ("different", 1)
    (table,) = form["tables"]
    assert table["counts"]["missing"] == table["counts"]["changed"] == 1
    path = tmp_path / "differences.parquet"
    write_parquet(found, path)
    rows = {row["key"]: row for row in pq.read_table(path).to_pylist()}
    assert rows["id=1"]["columns"] == ["v"]
    assert json.loads(rows["id=2"]["source_rows"][0]) == {"id": "2", "v": None, "b": None}
    with pytest.raises(CompareError):
        write_parquet(found, tmp_path / "no" / "such" / "folder.parquet")
