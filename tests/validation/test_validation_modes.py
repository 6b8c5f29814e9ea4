"""Mode fast, delivery at least once, the bounds of what may wait, and tables that DM has left."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from support.task_runs import TaskRun
from support.validated_tasks import QUICK, HeldLooks, ValidationRecords, validated
from support.waiting import wait_until
from unshard.mysql.connection import Endpoint, rows, session
from unshard.sync.planning import planner
from unshard.target.meta import MetaTables
from unshard.target.pending_keys import load_pending
from unshard.target.validation import load_state, pending_size
from unshard.target.validation_errors import ErrorKind, ErrorState, load_errors
from unshard.target.validation_tables import create_validation
from unshard.testing.mariadb_server import MariadbServer
from unshard.testing.throwaway_server import ThrowawayServer

pytestmark = [pytest.mark.server, pytest.mark.spark]


@pytest.fixture
def stocked(database: str, source_server: MariadbServer) -> str:
    source_server.run(
        f"CREATE TABLE {database}.t (id INT PRIMARY KEY, v INT)",
        f"INSERT INTO {database}.t VALUES (1, 1), (2, 2), (3, 3)",
    )
    return database


@pytest.mark.parametrize("delivery", ["exactly-once", "at-least-once"])
def test_mode_fast_tells_only_of_rows_that_are_not_there(
    delivery: str,
    stocked: str,
    source_server: MariadbServer,
    target_server: ThrowawayServer,
    spark: SparkSession,
    tmp_path: Path,
) -> None:
    validator = {**QUICK, "mode": "fast"}
    keys = {"delivery": delivery}
    files = validated(tmp_path, stocked, {"s1": source_server}, target_server, keys, validator)
    records = ValidationRecords(files)
    run = TaskRun(files, spark)
    held = HeldLooks(run)
    with run:
        run.reach("sync")
        run.catch_up()
        records.settled()
        with held:
            source_server.run(
                f"UPDATE {stocked}.t SET v = v + 10 WHERE id < 3", f"DELETE FROM {stocked}.t WHERE id = 3"
            )
            run.catch_up()
            target_server.run(
                f"UPDATE {stocked}.t SET v = 0 WHERE id = 1",
                f"DELETE FROM {stocked}.t WHERE id = 2",
                f"INSERT INTO {stocked}.t VALUES (3, 3)",
            )
        found = {one.key: one.kind for one in records.new_errors(2)}
        assert found == {("2",): ErrorKind.MISSING, ("3",): ErrorKind.EXTRA}


def test_a_validator_with_too_much_to_do_stops_and_the_task_goes_on(
    stocked: str, source_server: MariadbServer, target_server: ThrowawayServer, spark: SparkSession, tmp_path: Path
) -> None:
    validator = {**QUICK, "max-pending-row-count": 2}
    files = validated(tmp_path, stocked, {"s1": source_server}, target_server, validator=validator)
    records = ValidationRecords(files)
    run = TaskRun(files, spark)
    held = HeldLooks(run)
    with run:
        run.reach("sync")
        run.catch_up()
        records.settled()
        with held:
            source_server.run(f"UPDATE {stocked}.t SET v = v + 10")
            run.catch_up()
            source_server.run(f"UPDATE {stocked}.t SET v = v + 10")
            run.catch_up()
        wait_until(lambda: records.ask(lambda c: load_state(c, records.meta, "s1")).stage == "Stopped", "stopped")
        assert "COMPARE-020" in records.ask(lambda c: load_state(c, records.meta, "s1")).fault
        before = records.ask(lambda c: pending_size(c, records.meta, "s1"))
        source_server.run(f"UPDATE {stocked}.t SET v = v + 10")
        run.catch_up()
        assert records.ask(lambda c: pending_size(c, records.meta, "s1")) == before
        (reading,) = run.crew.readings()
        assert reading.validation is not None
        assert reading.validation.state.stage == "Stopped"


@pytest.mark.parametrize("way", ["shuffled", "sliced"])
@pytest.mark.scenarios
def test_keys_of_batches_that_are_shuffled_or_sliced(
    way: str,
    stocked: str,
    source_server: MariadbServer,
    target_server: ThrowawayServer,
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    source_server.run(f"INSERT INTO {stocked}.t SELECT seq, 0 FROM mysql.seq_4_to_3000")
    files = validated(tmp_path, stocked, {"s1": source_server}, target_server)
    records = ValidationRecords(files)
    run = TaskRun(files, spark)
    held = HeldLooks(run)
    unit = run.sync_unit(slice_bytes=8192 if way == "sliced" else 0)
    if way == "shuffled":
        monkeypatch.setattr(planner, "SHUFFLE_BYTES", 0)
        unit.planner = replace(unit.planner, slots=planner.SHUFFLE_SLOTS)
    with run:
        run.reach("sync")
        run.catch_up()
        records.settled()
        with held:
            source_server.run(f"UPDATE {stocked}.t SET v = v + 10")
            run.catch_up()
            target_server.run(f"DELETE FROM {stocked}.t WHERE id IN (1, 1500, 3000)")
        assert {one.key for one in records.new_errors(3)} == {("1",), ("1500",), ("3000",)}
        state = records.ask(lambda c: load_state(c, records.meta, "s1"))
        assert state.processed == (0, 3000, 0)


@pytest.mark.scenarios
def test_a_table_that_gets_another_key(
    stocked: str, source_server: MariadbServer, target_server: ThrowawayServer, spark: SparkSession, tmp_path: Path
) -> None:
    files = validated(tmp_path, stocked, {"s1": source_server}, target_server)
    records = ValidationRecords(files)
    run = TaskRun(files, spark)
    held = HeldLooks(run)
    with run:
        run.reach("sync")
        run.catch_up()
        records.settled()
        with held:
            source_server.run(f"UPDATE {stocked}.t SET v = v + 10")
            run.catch_up()
            target_server.run(f"DELETE FROM {stocked}.t WHERE id = 1")
        records.new_errors(1)
        source_server.run(f"ALTER TABLE {stocked}.t MODIFY v INT NOT NULL, DROP PRIMARY KEY, ADD PRIMARY KEY (id, v)")
        run.catch_up()
        with held:
            source_server.run(f"UPDATE {stocked}.t SET v = v + 10 WHERE id = 2")
            run.catch_up()
            target_server.run(f"DELETE FROM {stocked}.t WHERE id = 2")
        errors = {one.key for one in records.new_errors(2)}
        assert errors == {("1",), ("2", "22")}
        (reading,) = run.crew.readings()
        assert reading.validation is not None
        assert reading.validation.fault is None


@pytest.mark.scenarios
def test_a_table_that_can_not_be_read_leaves_the_others_alone(
    stocked: str, source_server: MariadbServer, target_server: ThrowawayServer, spark: SparkSession, tmp_path: Path
) -> None:
    source_server.run(
        f"CREATE TABLE {stocked}.other (id INT PRIMARY KEY, v INT)", f"INSERT INTO {stocked}.other VALUES (1, 1)"
    )
    files = validated(tmp_path, stocked, {"s1": source_server}, target_server)
    records = ValidationRecords(files)
    run = TaskRun(files, spark)
    held = HeldLooks(run)
    with run:
        run.reach("sync")
        run.catch_up()
        records.settled()
        source_server.run(f"UPDATE {stocked}.other SET v = 2")
        run.catch_up()
        records.settled()  # both tables are planned
        with held:
            source_server.run(f"UPDATE {stocked}.other SET v = 3", f"UPDATE {stocked}.t SET v = v + 1 WHERE id = 2")
            run.catch_up()
            target_server.run(
                f"RENAME TABLE {stocked}.other TO {stocked}.away", f"DELETE FROM {stocked}.t WHERE id = 2"
            )
        (error,) = records.new_errors(1)
        assert error.key == ("2",)
        statuses = {name.table: (stage, message) for name, _, stage, message in records.statuses()}
        assert statuses["t"][0] == "Running"
        assert statuses["other"][0] == "Stopped"
        target_server.run(f"RENAME TABLE {stocked}.away TO {stocked}.other")


@pytest.mark.scenarios
def test_tables_that_dm_has_left(target_server: ThrowawayServer, schema: str) -> None:
    times = "create_time TIMESTAMP DEFAULT CURRENT_TIMESTAMP, update_time TIMESTAMP DEFAULT CURRENT_TIMESTAMP"
    head = "id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY, source VARCHAR(32) NOT NULL"
    names = "src_schema_name VARCHAR(128), src_table_name VARCHAR(128), row_pk VARCHAR(64)"
    target_server.run(
        f"CREATE DATABASE {schema}",
        f"CREATE TABLE {schema}.t_validator_checkpoint ({head}, binlog_name VARCHAR(128), binlog_pos INT UNSIGNED,"
        " binlog_gtid TEXT, procd_ins BIGINT UNSIGNED NOT NULL, procd_upd BIGINT UNSIGNED NOT NULL,"
        f" procd_del BIGINT UNSIGNED NOT NULL, revision BIGINT NOT NULL, {times}, UNIQUE KEY uk_source (source))",
        f"CREATE TABLE {schema}.t_validator_pending_change ({head}, schema_name VARCHAR(128), table_name VARCHAR(128),"
        f" row_pk VARCHAR(64), data JSON, revision BIGINT, {times})",
        f"CREATE TABLE {schema}.t_validator_error_change ({head}, {names}, dst_schema_name VARCHAR(128),"
        f" dst_table_name VARCHAR(128), data JSON, dst_data JSON, error_type INT, status INT, {times})",
        f"INSERT INTO {schema}.t_validator_checkpoint VALUES (1, 's1', 'bin.000003', 4, '', 1, 2, 3, 7, NOW(), NOW())",
        f"INSERT INTO {schema}.t_validator_pending_change VALUES (1, 's1', 'a', 'b', '1', '{{\"key\": \"1\"}}', 1,"
        " NOW(), NOW())",
        f"INSERT INTO {schema}.t_validator_error_change VALUES (1, 's1', 'a', 'b', '1', 'a', 'b',"
        f" '{json.dumps(['1', 'x'])}', '{json.dumps(['1', 'y'])}', 2, 1, NOW(), NOW())",
    )
    meta = MetaTables(schema, "t")
    try:
        with session(Endpoint("127.0.0.1", target_server.port, "root", ""), "target") as connection:
            assert load_state(connection, meta, "s1") is None
            for _ in range(2):
                create_validation(connection, meta)
            state = load_state(connection, meta, "s1")
            assert state is not None
            assert (state.stage, state.processed) == ("", (1, 2, 3))
            assert load_pending(connection, meta, "s1", 0, 10) == []
            (error,) = load_errors(connection, meta, ["s1"], [ErrorState.NEW])
            assert (error.kind, error.row) == (ErrorKind.CHANGED, {"0": "1", "1": "x"})
            assert rows(connection, f"SELECT COUNT(*) FROM {meta.named('validator_changed_key')}") == [(0,)]
    finally:
        target_server.run(f"DROP DATABASE {schema}")
