"""Shards that are merged, rows that rules shape or leave out, tables that are altered, rows that never rest."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from support.task_runs import TaskRun, newest
from support.validated_tasks import HeldLooks, ValidationRecords, validated
from support.waiting import wait_until
from unshard.target.validation import load_state
from unshard.target.validation_errors import ErrorKind, ErrorState
from unshard.testing.mariadb_server import MariadbServer
from unshard.testing.throwaway_server import ThrowawayServer

pytestmark = [pytest.mark.server, pytest.mark.spark]


def _route(schema: str) -> dict[str, object]:
    rule = {"schema-pattern": schema, "table-pattern": "t_*", "target-schema": schema, "target-table": "t"}
    return {"routes": {"merge": rule}}


def test_merged_shards_with_moved_and_equal_keys(
    database: str, source_server: MariadbServer, target_server: ThrowawayServer, spark: SparkSession, tmp_path: Path
) -> None:
    for number in (1, 2):
        source_server.run(f"CREATE TABLE {database}.t_{number} (id INT PRIMARY KEY, v VARCHAR(9))")
    source_server.run(
        f"INSERT INTO {database}.t_1 VALUES (1, 'a'), (2, 'b'), (3, 'c')",
        f"INSERT INTO {database}.t_2 VALUES (11, 'a'), (12, 'b')",
    )
    files = validated(
        tmp_path, database, {"s1": source_server}, target_server, {"task-mode": "all", **_route(database)}
    )
    records = ValidationRecords(files)
    run = TaskRun(files, spark)
    held = HeldLooks(run)
    with run:
        run.reach("sync")
        run.catch_up()
        records.settled()
        source_server.run(
            "BEGIN",
            f"DELETE FROM {database}.t_1 WHERE id = 1",
            f"INSERT INTO {database}.t_2 VALUES (1, 'moved')",
            "COMMIT",
            f"UPDATE {database}.t_2 SET v = 'y' WHERE id = 12",
        )
        run.catch_up()
        records.settled()
        assert records.errors() == []
        with held:
            source_server.run(f"UPDATE {database}.t_2 SET v = 'z' WHERE id = 1", f"UPDATE {database}.t_1 SET v = 'y'")
            run.catch_up()
            target_server.run(f"UPDATE {database}.t SET v = 'other' WHERE id IN (1, 2)")
        found = {one.key: one for one in records.new_errors(2)}
        assert found[("1",)].origin.table == "t_2"
        assert found[("2",)].origin.table == "t_1"
        assert found[("1",)].row == {"id": "1", "v": "z"}


@pytest.mark.scenarios
def test_rules_that_shape_rows_and_leave_rows_out(
    database: str, source_server: MariadbServer, target_server: ThrowawayServer, spark: SparkSession, tmp_path: Path
) -> None:
    for number in (1, 2):
        source_server.run(f"CREATE TABLE {database}.t_{number} (id BIGINT PRIMARY KEY, v INT)")
        source_server.run(f"INSERT INTO {database}.t_{number} VALUES (1, 1), (2, 2), (3, 3)")
    mapping = {
        "schema-pattern": database, "table-pattern": "t_*", "source-column": "id", "target-column": "id",
        "expression": "partition id", "arguments": ["1", "", "t_"],
    }  # fmt: skip
    kept = {"schema-pattern": database, "table-pattern": "t_*", "events": ["delete"], "action": "Ignore"}
    own = {
        **_route(database),
        "column-mappings": {"ids": mapping},
        "filters": {"kept": kept},
        "expression-filter": {"large": {"schema": database, "table": "t_1", "insert-value-expr": "v > 100"}},
    }
    files = validated(tmp_path, database, {"s1": source_server}, target_server, own)
    files.instance = {
        **files.instance,
        "column-mapping-rules": ["ids"],
        "filter-rules": ["kept"],
        "expression-filters": ["large"],
    }
    files.write()
    records = ValidationRecords(files)
    run = TaskRun(files, spark)
    held = HeldLooks(run)
    with run:
        run.reach("sync")
        run.catch_up()
        records.settled()
        source_server.run(
            f"INSERT INTO {database}.t_1 VALUES (4, 4), (5, 500)",
            f"UPDATE {database}.t_1 SET v = 30 WHERE id = 3",
            f"DELETE FROM {database}.t_1 WHERE id = 3",
        )
        run.catch_up()
        records.settled()
        assert records.errors() == []
        with held:
            source_server.run(f"UPDATE {database}.t_2 SET v = 20 WHERE id = 2")
            run.catch_up()
            target_server.run(f"UPDATE {database}.t SET v = 21 WHERE v = 20")
        (error,) = records.new_errors(1)
        assert (error.origin.table, error.kind) == ("t_2", ErrorKind.CHANGED)
        assert int(error.key[0]) > 1 << 50


@pytest.mark.scenarios
def test_a_table_that_is_altered_and_a_row_that_never_rests(
    database: str, source_server: MariadbServer, target_server: ThrowawayServer, spark: SparkSession, tmp_path: Path
) -> None:
    source_server.run(
        f"CREATE TABLE {database}.t (id INT PRIMARY KEY, v INT, w INT)",
        f"INSERT INTO {database}.t VALUES (1, 0, 0), (2, 0, 0)",
    )
    files = validated(tmp_path, database, {"s1": source_server}, target_server)
    records = ValidationRecords(files)
    run = TaskRun(files, spark)
    held = HeldLooks(run)
    ended = threading.Event()

    def write() -> None:
        number = 0
        while not ended.wait(0.02):
            number += 1
            source_server.run(f"UPDATE {database}.t SET v = {number} WHERE id = 1")

    with run:
        run.reach("sync")
        run.catch_up()
        records.settled()
        writer = threading.Thread(target=write)
        writer.start()
        try:
            for statement in ("ADD COLUMN x INT DEFAULT 7", "DROP COLUMN w", "MODIFY v BIGINT"):
                source_server.run(
                    f"ALTER TABLE {database}.t {statement}", f"UPDATE {database}.t SET v = v + 1 WHERE id = 2"
                )
                run.catch_up()
            with held:
                source_server.run(f"UPDATE {database}.t SET x = 8 WHERE id = 2")
                run.catch_up()
                target_server.run(f"UPDATE {database}.t SET x = 9 WHERE id = 2")
            wait_until(lambda: len(records.errors(ErrorState.NEW)) == 1, "an error", told=records.told)
        finally:
            ended.set()
            writer.join()
        run.catch_up()
        records.settled()
        (error,) = records.errors()
        assert (error.key, error.columns) == (("2",), ("x",))


@pytest.mark.scenarios
def test_sources_that_are_merged_ask_each_other(
    source_server: MariadbServer,
    second_source: MariadbServer,
    target_server: ThrowawayServer,
    schema: str,
    spark: SparkSession,
    tmp_path: Path,
) -> None:
    sources: dict[str, ThrowawayServer] = {"s1": source_server, "s2": second_source}
    for number, server in enumerate(sources.values()):
        server.run(
            f"CREATE DATABASE {schema}",
            f"CREATE TABLE {schema}.t_{number} (id INT PRIMARY KEY, v INT)",
            f"INSERT INTO {schema}.t_{number} VALUES ({number}1, 1), ({number}2, 2), ({number}3, 3)",
        )
    files = validated(tmp_path, schema, sources, target_server, _route(schema))
    records = ValidationRecords(files)
    run = TaskRun(files, spark)
    held = HeldLooks(run)
    try:
        with run:
            run.reach("sync")
            run.catch_up()
            records.settled()
            with held:  # the row has moved when it is looked at
                source_server.run(f"DELETE FROM {schema}.t_0 WHERE id = 1")
                run.catch_up()
                second_source.run(f"INSERT INTO {schema}.t_1 VALUES (1, 10)")
                run.catch_up()
            records.settled()
            assert records.errors() == []
            with held:
                source_server.run(f"DELETE FROM {schema}.t_0 WHERE id = 2")
                second_source.run(f"UPDATE {schema}.t_1 SET v = 20 WHERE id IN (1, 12)")
                run.catch_up()
                target_server.run(
                    f"INSERT INTO {schema}.t VALUES (2, 2)",
                    f"UPDATE {schema}.t SET v = 0 WHERE id = 12",
                )
            found = {(one.source, one.key): one for one in records.new_errors(2)}
            assert found["s1", ("2",)].kind is ErrorKind.EXTRA
            assert found["s2", ("12",)].columns == ("v",)
            second_source.run(f"INSERT IGNORE INTO {schema}.t_1 VALUES (4, 4)")
            target_server.run(f"DELETE FROM {schema}.t WHERE id = 2", f"UPDATE {schema}.t SET v = 20 WHERE id = 12")
            records.new_errors(0)
            records.settled()
            left = f"SELECT COUNT(*) FROM {records.meta.named('validator_question')}"
            assert target_server.query(left) == [(0,)]
    finally:
        for server in (*sources.values(), target_server):
            server.run(f"DROP DATABASE IF EXISTS {schema}")


@pytest.mark.parametrize("last", ["free", "held"])
def test_a_cutover_is_not_validated_while_rows_before_it_wait_for_a_sharding_ddl(
    last: str,
    database: str,
    source_server: MariadbServer,
    target_server: ThrowawayServer,
    spark: SparkSession,
    tmp_path: Path,
) -> None:
    """`last`: whether the log ends with a row that is applied at once, or with one that waits."""
    for number in (1, 2):
        source_server.run(f"CREATE TABLE {database}.t_{number} (id INT PRIMARY KEY, v INT)")
    keys = {"shard-mode": "pessimistic", **_route(database)}
    files = validated(tmp_path, database, {"s1": source_server}, target_server, keys)
    records = ValidationRecords(files)
    inserts = {
        "free": f"INSERT INTO {database}.t_1 VALUES (1, 1)",
        "held": f"INSERT INTO {database}.t_2 VALUES (2, 2, 2)",
    }
    statements = sorted(inserts, key=lambda name: name == last)
    with TaskRun(files, spark) as run:
        run.reach("sync")
        run.catch_up()
        records.settled()
        source_server.run(f"ALTER TABLE {database}.t_2 ADD w INT", *(inserts[name] for name in statements))
        run.catch_up()
        records.cut_over_at("s1", newest(source_server))
        wait_until(
            lambda: records.ask(lambda c: load_state(c, records.meta, "s1")).processed == (1, 0, 0),
            "the row that is applied is seen",
            told=records.told,
        )
        for _ in range(2):  # the second one is of a round that began after that
            _await_round(run)
        assert records.cutover_status() == "not reached"
        source_server.run(f"ALTER TABLE {database}.t_1 ADD w INT")
        run.catch_up()
        records.settled()
        assert records.cutover_status() == "validated"


def _await_round(run: TaskRun) -> None:
    """Wait until the validator of the only source has ended a round."""
    (subtask,) = run.crew.subtasks
    assert subtask.validation is not None
    validation = subtask.validation
    before = validation.reading()
    wait_until(lambda: validation.reading() is not before, "a round of the validator")
