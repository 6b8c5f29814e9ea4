"""`unshard compare` of tables whose task leaves out changes, and of rows that never rest."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from support.comparisons import compared, kinds, only_table, repaired
from support.cutovers import Trial
from support.numbers import numbers
from support.task_runs import TaskFiles, TaskRun
from unshard.cli.compare_subject import CompareWish
from unshard.compare.result import RowClass
from unshard.testing.mariadb_server import MariadbServer
from unshard.testing.throwaway_server import ThrowawayServer

pytestmark = [pytest.mark.server, pytest.mark.spark]


@pytest.fixture
def files(source_server: MariadbServer, target_server: ThrowawayServer, schema: str, tmp_path: Path) -> TaskFiles:
    source_server.run(
        f"CREATE DATABASE {schema}",
        f"CREATE TABLE {schema}.t (id INT PRIMARY KEY, v INT)",
        f"INSERT INTO {schema}.t SELECT seq, seq FROM {numbers(1, 50)}",
    )
    return TaskFiles(tmp_path, f"task_{schema}", {"s1": source_server}, target_server, (schema,))


def with_filter(files: TaskFiles, section: str, rule: dict[str, Any], names: str) -> TaskFiles:
    return replace(files, keys={section: {"own": rule}}, instance={names: ["own"]}).write()


@pytest.mark.scenarios
def test_deletes_that_an_event_filter_leaves_out_can_not_be_judged(
    files: TaskFiles, source_server: MariadbServer, target_server: ThrowawayServer, schema: str, spark: SparkSession
) -> None:
    rule = {"schema-pattern": schema, "table-pattern": "*", "events": ["delete"], "action": "Ignore"}
    files = with_filter(files, "filters", rule, "filter-rules")
    with TaskRun(files, spark) as run:
        run.catch_up()
        assert compared(files, spark).exit_code == 0
        source_server.run(f"DELETE FROM {schema}.t WHERE id = 7")
        run.catch_up()
        found = compared(files, spark)
        table = only_table(found)
        assert (found.exit_code, kinds(table)) == (2, {"id=7": "unclear"})
        assert table.differences[0].rule == "filters.own"
        target_server.run(f"DELETE FROM {schema}.t WHERE id = 8")
        table = only_table(compared(files, spark))
        assert kinds(table) == {"id=7": "unclear", "id=8": "missing"}


def test_rows_that_an_expression_filter_leaves_out_are_no_difference(
    files: TaskFiles, source_server: MariadbServer, target_server: ThrowawayServer, schema: str, spark: SparkSession
) -> None:
    rule = {"schema": schema, "table": "t", "insert-value-expr": "v > 1000"}
    files = with_filter(files, "expression-filter", rule, "expression-filters")
    with TaskRun(files, spark) as run:
        run.catch_up()
        source_server.run(f"INSERT INTO {schema}.t VALUES (100, 1001), (101, 999)")
        run.catch_up()
        found = compared(files, spark)
        assert (found.exit_code, only_table(found).left_out) == (0, 1)
        target_server.run(f"UPDATE {schema}.t SET v = 0 WHERE id = 101")
        assert kinds(only_table(compared(files, spark))) == {"id=101": "changed"}


@pytest.mark.parametrize(
    "key",
    [{"events": ["truncate table"]}, pytest.param({"sql-pattern": ["^TRUNCATE"]}, marks=pytest.mark.scenarios)],
    ids=str,
)
def test_rows_that_an_event_filter_keeps_can_not_be_judged(
    key: dict[str, list[str]],
    files: TaskFiles,
    source_server: MariadbServer,
    target_server: ThrowawayServer,
    schema: str,
    spark: SparkSession,
) -> None:
    rule = {"schema-pattern": schema, "table-pattern": "*", "action": "Ignore", **key}
    files = with_filter(files, "filters", rule, "filter-rules")
    with TaskRun(files, spark) as run:
        run.catch_up()
        source_server.run(f"TRUNCATE TABLE {schema}.t", f"INSERT INTO {schema}.t VALUES (51, 51)")
        run.catch_up()
        found = compared(files, spark)
        table = only_table(found)
        assert (found.exit_code, table.classes) == (2, {RowClass.UNCLEAR: 50}), table.to_dict()
        assert {one.rule for one in table.differences} == {"filters.own"}
        target_server.run(f"DELETE FROM {schema}.t WHERE id = 51")
        after = repaired(files, compared(files, spark), spark)
        assert only_table(after).classes == {RowClass.UNCLEAR: 50}, after.to_dict()
        assert target_server.query(f"SELECT COUNT(*), MAX(id) FROM {schema}.t") == [(51, 51)]


def test_rows_of_a_shard_whose_drop_was_left_out_can_not_be_judged(
    files: TaskFiles, source_server: MariadbServer, schema: str, spark: SparkSession
) -> None:
    """The shard is not there any more, and the filter is for no other one."""
    source_server.run(
        f"CREATE TABLE {schema}.t_1 (id INT PRIMARY KEY)",
        f"CREATE TABLE {schema}.t_2 LIKE {schema}.t_1",
        f"INSERT INTO {schema}.t_1 VALUES (1)",
        f"INSERT INTO {schema}.t_2 VALUES (2)",
    )
    route = {"schema-pattern": schema, "table-pattern": "t_*", "target-schema": schema, "target-table": "merged"}
    rule = {"schema-pattern": schema, "table-pattern": "t_2", "events": ["drop table"], "action": "Ignore"}
    keys = {"routes": {"merge": route}, "filters": {"own": rule}}
    files = replace(files, keys=keys, instance={"route-rules": ["merge"], "filter-rules": ["own"]}).write()
    with TaskRun(files, spark) as run:
        run.catch_up()
        source_server.run(f"DROP TABLE {schema}.t_2")
        run.catch_up()
        found = compared(files, spark)
        assert (found.exit_code, kinds(found.tables[0])) == (2, {"id=2": "unclear"}), found.to_dict()
        files.target.run(f"INSERT INTO {schema}.t VALUES (1000, 0)")
        assert kinds(compared(files, spark).tables[1]) == {"id=1000": "extra"}, "the filter is not for this table"


def test_rows_of_a_dropped_shard_are_extra_and_unclear_for_a_filter_in_a_copy_of_the_task(
    files: TaskFiles, source_server: MariadbServer, schema: str, spark: SparkSession
) -> None:
    """The way that docs/how-to/compare-both-ends.md gives to keep what `shard-drop: ignore` has left in the target."""
    source_server.run(
        f"DROP TABLE {schema}.t",
        *(f"CREATE TABLE {schema}.t_{number} (id INT PRIMARY KEY)" for number in (1, 2)),
        *(f"INSERT INTO {schema}.t_{number} VALUES ({number})" for number in (1, 2)),
    )
    route = {"schema-pattern": schema, "table-pattern": "t_*", "target-schema": schema, "target-table": "t"}
    sharded = {"shard-mode": "pessimistic", "routes": {"merge": route}}
    files = replace(files, keys=sharded, instance={"route-rules": ["merge"]}).write()
    with TaskRun(files, spark) as run:
        run.catch_up()
        source_server.run(f"DROP TABLE {schema}.t_2")
        run.catch_up()
        assert kinds(only_table(compared(files, spark))) == {"id=2": "extra"}
        events = ["drop table", "drop database", "truncate table"]
        rule = {"schema-pattern": schema, "table-pattern": "t_*", "events": events, "action": "Ignore"}
        rules = {"route-rules": ["merge"], "filter-rules": ["own"]}
        copy = replace(
            files, folder=files.folder / "copy", keys={**sharded, "filters": {"own": rule}}, instance=rules
        ).write()
        found = compared(copy, spark)
        assert kinds(only_table(found)) == {"id=2": "unclear"}
        repaired(copy, found, spark)
        assert files.target.query(f"SELECT id FROM {schema}.t ORDER BY id") == [(1,), (2,)]


def limited(files: TaskFiles) -> TaskFiles:
    """The same task, whose copy takes only rows with a `v` below 9."""
    few = {"mydumpers": {"few": {"where": "v < 9"}}}
    return replace(files, keys=few, instance={"mydumper-config-name": "few"}).write()


@pytest.mark.scenarios
def test_a_limited_copy_has_no_fewer_rows_than_where_and_may_have_more(
    files: TaskFiles, source_server: MariadbServer, target_server: ThrowawayServer, schema: str, spark: SparkSession
) -> None:
    files = limited(files)
    with TaskRun(files, spark) as run:
        run.catch_up()
        source_server.run(f"INSERT INTO {schema}.t VALUES (100, 100)")
        run.catch_up()
        found = compared(files, spark)
        table = only_table(found)
        assert (found.exit_code, table.source_rows, table.target_rows) == (0, 8, 9), table.to_dict()
        proof = Trial(files, spark).run()
        assert proof is not None
        assert proof.outcome.exit_code == 0, proof.outcome.to_dict()
        target_server.run(f"DELETE FROM {schema}.t WHERE id IN (3, 100)", f"INSERT INTO {schema}.t VALUES (200, 1)")
        found = compared(files, spark)
        assert (found.exit_code, kinds(only_table(found))) == (1, {"id=3": "missing", "id=200": "extra"})


def test_rows_without_a_key_that_a_limited_copy_left_out_and_that_came_later(
    files: TaskFiles, source_server: MariadbServer, target_server: ThrowawayServer, schema: str, spark: SparkSession
) -> None:
    """Of rows that are equal, the target may have those that changed after the copy, and none of the others."""
    source_server.run(
        f"DROP TABLE {schema}.t",
        f"CREATE TABLE {schema}.bare (v INT)",
        f"INSERT INTO {schema}.bare VALUES (1), (1), (9), (9), (9), (20)",
    )
    files = limited(files)
    with TaskRun(files, spark) as run:
        run.catch_up()
        source_server.run(f"INSERT INTO {schema}.bare VALUES (9), (9), (30)")
        run.catch_up()
        found = compared(files, spark)
        assert (found.exit_code, only_table(found).target_rows) == (0, 5), only_table(found).to_dict()
        target_server.run(
            f"DELETE FROM {schema}.bare WHERE v = 1",
            f"INSERT INTO {schema}.bare VALUES (30), (30), (40)",
        )
        found = compared(files, spark)
        times = {one.times: one.kind.value for one in only_table(found).differences}
        assert times == {(2, 0): "missing", (1, 3): "extra", (0, 1): "extra"}
        after = repaired(files, found, spark)
        assert after.exit_code == 0, after.to_dict()
        rows = target_server.query(f"SELECT v FROM {schema}.bare ORDER BY v")
        assert rows == [(1,), (1,), (9,), (9,), (30,)]


@contextmanager
def flipped(server: ThrowawayServer, statement: str) -> Iterator[None]:
    """The statement is run again and again meanwhile, with another number each time: 0, 1, 0, 1."""
    ended = threading.Event()

    def flip() -> None:
        connection = server.connection()
        number = 0
        with connection.cursor() as cursor:
            while not ended.wait(0.02):
                number = 1 - number
                cursor.execute(statement, (number,))
        connection.close()

    thread = threading.Thread(target=flip)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


@pytest.mark.scenarios
def test_a_row_that_goes_to_and_fro_is_never_told_as_different(
    files: TaskFiles, source_server: MariadbServer, target_server: ThrowawayServer, schema: str, spark: SparkSession
) -> None:
    files.write()
    with TaskRun(files, spark) as run:
        run.catch_up()
        target_server.run(f"DELETE FROM {schema}.t WHERE id = 50")
        with flipped(source_server, f"UPDATE {schema}.t SET v = %s WHERE id = 3"):
            for _ in range(2):
                table = only_table(compared(files, spark, patience_seconds=40.0))
                assert table.classes[RowClass.MISSING] == 1, table.to_dict()
                assert set(kinds(table)) <= {"id=50", "id=3"}
                assert kinds(table).get("id=3", "in flight") == "in flight"


@pytest.mark.scenarios
def test_what_the_task_has_not_applied_yet_is_in_flight(
    files: TaskFiles, source_server: MariadbServer, schema: str, spark: SparkSession
) -> None:
    with TaskRun(files.write(), spark) as run:
        run.catch_up()
    source_server.run(f"UPDATE {schema}.t SET v = 0 WHERE id = 3")
    found = compared(files, spark, patience_seconds=2.0)
    assert (found.exit_code, kinds(only_table(found))) == (2, {"id=3": "in flight"})
    source_server.run(f"ALTER TABLE {schema}.t ADD x INT", f"CREATE TABLE {schema}.u (id INT PRIMARY KEY)")
    found = compared(files, spark, patience_seconds=2.0)
    errors = {table.name.table: [error.code for error in table.errors] for table in found.tables}
    assert (found.exit_code, errors) == (2, {"t": ["COMPARE-002"], "u": ["COMPARE-001"]})
    with TaskRun(files, spark) as run:
        run.catch_up()
        assert compared(files, spark).exit_code == 0


def test_a_table_that_the_account_no_longer_sees_and_a_source_that_has_gone(
    files: TaskFiles, source_server: MariadbServer, schema: str, spark: SparkSession
) -> None:
    with TaskRun(files.write(), spark) as run:
        run.catch_up()
    user = f"reader_{schema}"
    source_server.run(
        f"CREATE USER {user}@'127.0.0.1'",
        f"GRANT REPLICATION CLIENT ON *.* TO {user}@'127.0.0.1'",
        f"CREATE TABLE {schema}.other (id INT PRIMARY KEY)",
        f"GRANT SELECT ON {schema}.other TO {user}@'127.0.0.1'",
    )
    path = files.source_paths[0]
    text = path.read_text()
    path.write_text(text.replace("user: root", f"user: {user}"))
    found = compared(files, spark, CompareWish(tables=("*.t",)))
    assert (found.exit_code, [error.code for error in only_table(found).errors]) == (2, ["COMPARE-005"])
    path.write_text(text.replace(f"port: {source_server.port}", "port: 1"))
    found = compared(files, spark)
    assert found.exit_code == 2
    assert [error.code for error in (*found.errors, *only_table(found).errors)] == ["SOURCE-001", "COMPARE-004"]
    source_server.run(f"DROP USER {user}@'127.0.0.1'")


def test_sources_that_are_held_are_compared_at_one_place(
    files: TaskFiles, source_server: MariadbServer, schema: str, spark: SparkSession
) -> None:
    files = files.write()
    with TaskRun(files, spark) as run:
        run.catch_up()
        with flipped(source_server, f"UPDATE {schema}.t SET v = v + 1 WHERE id = %s + 1"):
            found = compared(files, spark, hold_seconds=60.0)
            assert (found.exit_code, found.notes) == (0, ())
            (place,) = found.places
            assert place.to_dict()["exact"]
        run.catch_up()
        found = compared(files, spark, hold_seconds=0.01)
        assert (found.exit_code, len(found.notes)) == (0, 1)
        assert "give a longer --hold" in found.notes[0]
        source_server.run(f"DELETE FROM {schema}.t WHERE id = 1")  # it would wait for locks that are left
