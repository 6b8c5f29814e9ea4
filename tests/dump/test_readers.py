"""The connections of a dump's task: what ends one of them, and what a DDL that waits for them holds up."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from support.waiting import wait_until
from unshard.config.rules import BlockAllowRule
from unshard.dump import lock_free, plan
from unshard.dump.folder import begin
from unshard.dump.lock_free import _Readers
from unshard.dump.metadata import read_dump
from unshard.dump.settings import DumpSettings
from unshard.dump.unit import DumpUnit
from unshard.model.table import TableName
from unshard.mysql.connection import session
from unshard.source.exact_positions import ExactPositions
from unshard.source.snapshot import ask, open_reader, tells_positions
from unshard.testing.mariadb_server import MariadbServer
from unshard.transform.source_rules import TableSelection

pytestmark = pytest.mark.server


def test_the_limits_of_idle_transactions_are_lifted(source_server: MariadbServer) -> None:
    limits = ("idle_transaction_timeout", "idle_readonly_transaction_timeout", "idle_write_transaction_timeout")
    source_server.run(*(f"SET GLOBAL {name} = 7" for name in limits))
    try:
        reader = open_reader(source_server.endpoint, text=True)
        assert [ask(reader, f"SELECT @@{name}") for name in limits] == [[["0"]]] * 3
        reader.close()
    finally:
        source_server.run(*(f"SET GLOBAL {name} = 0" for name in limits))


def test_a_limit_on_the_rows_of_a_result_leaves_out_none(
    make_dump: Callable[..., DumpUnit], source_server: MariadbServer, schema: str, tmp_path: Path
) -> None:
    source_server.run(
        f"CREATE DATABASE {schema}",
        f"CREATE TABLE {schema}.t (id INT PRIMARY KEY)",
        f"INSERT INTO {schema}.t SELECT seq FROM mysql.seq_1_to_50",
        "SET GLOBAL sql_select_limit = 7",
    )
    try:
        make_dump(schema).run()
    finally:
        source_server.run("SET GLOBAL sql_select_limit = DEFAULT")
    assert read_dump(tmp_path / "dump").records[TableName(schema, "t")].rows == 50


def test_a_connection_that_is_lost_once_all_rows_are_read_is_replaced(source_server: MariadbServer) -> None:
    readers = _Readers(source_server.endpoint, 2)
    used: list[Any] = []

    def read(plain: Any, bulks: tuple[Any, ...], _: ExactPositions) -> tuple[Any, ...]:
        used.append(bulks)
        if len(used) == 1:
            source_server.run(f"KILL {bulks[1].thread_id()}")
        return ()

    assert readers.with_all(read) == ()
    assert readers.with_all(read) == ()
    assert readers.with_all(read) == ()
    assert used[1] != used[0]
    assert used[2] == used[1], "they are kept"
    readers.close()


def test_a_ddl_that_waits_for_the_readers_does_not_hold_them_up(
    make_dump: Callable[..., DumpUnit],
    source_server: MariadbServer,
    schema: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(plan, "_LARGE", 1)
    source_server.run(
        f"CREATE DATABASE {schema}",
        f"CREATE TABLE {schema}.t (id INT PRIMARY KEY)",
        f"INSERT INTO {schema}.t SELECT seq FROM seq_1_to_5000",
        f"ANALYZE TABLE {schema}.t",
        database="mysql",
    )
    altering = threading.Thread(target=source_server.run, args=(f"ALTER TABLE {schema}.t ADD COLUMN v INT",))
    waits = (
        "SELECT 1 FROM information_schema.PROCESSLIST WHERE STATE LIKE 'Waiting for table metadata lock%'"
        f" AND INFO LIKE 'ALTER TABLE {schema}%'"
    )
    ranges, seen = plan.key_ranges, []

    def meanwhile(*asked: Any) -> list[str]:
        altering.start()
        wait_until(lambda: bool(source_server.query(waits)), "the DDL waits")
        found = ranges(*asked)
        seen.append(bool(source_server.query(waits)))
        return found

    monkeypatch.setattr(lock_free, "key_ranges", meanwhile)
    make_dump(schema, threads=4).run()
    altering.join()
    assert seen == [True], "it was asked while the DDL waited"
    assert read_dump(tmp_path / "dump").records[TableName(schema, "t")].rows == 5000


@pytest.mark.parametrize(("ordered", "consistency"), [("ON", "lock-free"), ("OFF", "flush")])
def test_where_positions_do_not_tell_what_a_snapshot_has_it_is_locked(
    ordered: str, consistency: str, tmp_path: Path
) -> None:
    with MariadbServer({"binlog_optimize_thread_scheduling": ordered}) as server:
        server.run("CREATE DATABASE d", "CREATE TABLE d.t (id INT PRIMARY KEY)")
        with session(server.endpoint, "source") as connection:
            assert tells_positions(connection) == (ordered == "ON")
            header, _ = begin(connection, DumpSettings(tmp_path), "s1", TableSelection(BlockAllowRule(do_dbs=("d",))))
    assert header.consistency == consistency
