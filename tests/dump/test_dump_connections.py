"""Connections that a dump loses: by the source's idle timeout, in the middle of a snapshot, again and again."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from unshard.dump.lock_free import reader
from unshard.dump.locked import ChunkWork, _lock
from unshard.dump.start import DumpSettings
from unshard.dump.unit import DumpUnit
from unshard.errors import DumpError
from unshard.model.table import TableName
from unshard.mysql.connection import Endpoint
from unshard.retry import ATTEMPTS
from unshard.testing.proxy import FaultProxy
from unshard.testing.servers import MariadbServer
from unshard.testing.threads import run_tasks, wait


@pytest.fixture
def table(source_server: MariadbServer, schema: str) -> TableName:
    source_server.run(f"CREATE DATABASE {schema}", f"CREATE TABLE {schema}.t (id INT PRIMARY KEY, v CHAR(200))")
    source_server.run(f"INSERT INTO {schema}.t SELECT seq, REPEAT('v', 100) FROM seq_1_to_2000", database="mysql")
    return TableName(schema, "t")


def dump(endpoint: Endpoint, table: TableName, folder: Path, consistency: str, tasks: object = run_tasks) -> DumpUnit:
    settings = DumpSettings(folder, threads=2, rows=700, consistency=consistency)  # type: ignore[arg-type]
    allows = table.__eq__
    return DumpUnit(endpoint, "s1", settings, allows, tasks, wait, slots=2)  # type: ignore[arg-type]


def long_wait() -> None:
    time.sleep(2.5)
    wait()


def test_a_dump_that_outlasts_the_idle_timeout(source_server: MariadbServer, table: TableName, tmp_path: Path) -> None:
    begun = []

    def slow(payloads: list[bytes], task: Callable[[bytes], bytes], *, barrier: bool = False) -> list[bytes]:
        begun.append(task)
        done = run_tasks(payloads, task, barrier=barrier)
        time.sleep(1.5)
        return done

    impatient = source_server.endpoint.with_session(wait_timeout="1")
    result = dump(impatient, table, tmp_path / "dump", "none", slow).run()
    assert result.end is not None
    assert len(begun) == 1


@pytest.mark.parametrize("consistency", ["flush", "lock", "none"])
def test_it_begins_anew(consistency: str, source_server: MariadbServer, table: TableName, tmp_path: Path) -> None:
    with FaultProxy("127.0.0.1", source_server.port) as proxy:
        unit = dump(
            replace(source_server.endpoint, port=proxy.port, patience_seconds=2), table, tmp_path / "dump", consistency
        )
        proxy.cut_after(40_000)
        result = unit.run()
        assert proxy.has_cut()
    assert set(result.tables) == {table}
    assert unit.progress().rows_done == 2000
    source_server.run(f"INSERT INTO {table.quoted} VALUES (0, 'no lock is left')")


def test_it_gives_up(
    source_server: MariadbServer, table: TableName, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("unshard.retry.FIRST_PAUSE_SECONDS", 0)
    with FaultProxy("127.0.0.1", source_server.port) as proxy:
        unit = dump(replace(source_server.endpoint, port=proxy.port), table, tmp_path / "dump", "flush")
        proxy.refuse()
        with pytest.raises(DumpError) as caught:
            unit.run()
        assert caught.value.code == "DUMP-012"
        assert "SOURCE-00" in caught.value.cause
        assert proxy.accepted == ATTEMPTS
        proxy.refuse(False)
        assert set(unit.run().tables) == {table}


def test_the_lock_is_kept_while_we_live_and_let_go_when_we_fall_silent(
    source_server: MariadbServer, table: TableName, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("unshard.dump.locked.LOCK_IDLE_SECONDS", 1)
    begun = []

    def counted(payloads: list[bytes], task: Callable[[bytes], bytes], *, barrier: bool = False) -> list[bytes]:
        begun.append(task)
        return run_tasks(payloads, task, barrier=barrier)

    settings = DumpSettings(tmp_path / "dump", threads=1, consistency="flush")
    DumpUnit(source_server.endpoint, "s1", settings, table.__eq__, counted, long_wait, slots=1).run()
    assert len(begun) == 1

    work = ChunkWork(0, source_server.endpoint, tmp_path, "", "flush", (), (), (table,), "", settings.limits, wait)
    with reader(source_server.endpoint, text=True) as silent:
        _lock(silent, work)
        waiting = f"SET STATEMENT lock_wait_timeout = 10 FOR INSERT INTO {table.quoted} VALUES (0, 'waits a second')"
        source_server.run(waiting)
