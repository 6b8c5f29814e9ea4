"""Connections that a dump loses: by the source's idle timeout, in the middle of a snapshot, again and again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from support.threads import run_tasks, wait
from support.waiting import wait_until
from unshard.dump.lock_free import reader
from unshard.dump.locked import ChunkWork, _lock
from unshard.dump.settings import DumpSettings
from unshard.dump.unit import DumpUnit
from unshard.errors import DumpError
from unshard.model.table import TableName
from unshard.mysql.connection import Endpoint, rows, session
from unshard.retry import ATTEMPTS
from unshard.testing.mariadb_server import MariadbServer
from unshard.testing.proxy import FaultProxy
from unshard.transform.source_rules import TableSelection


@pytest.fixture
def table(source_server: MariadbServer, schema: str) -> TableName:
    source_server.run(f"CREATE DATABASE {schema}", f"CREATE TABLE {schema}.t (id INT PRIMARY KEY, v CHAR(200))")
    source_server.run(f"INSERT INTO {schema}.t SELECT seq, REPEAT('v', 100) FROM seq_1_to_2000", database="mysql")
    return TableName(schema, "t")


def dump(endpoint: Endpoint, table: TableName, folder: Path, consistency: str, tasks: object = run_tasks) -> DumpUnit:
    settings = DumpSettings(folder, threads=2, rows=700, consistency=consistency)  # type: ignore[arg-type]
    return DumpUnit(endpoint, "s1", settings, only(table), tasks, wait, slots=2)  # type: ignore[arg-type]


def only(table: TableName) -> TableSelection:
    return TableSelection(tables=((table.schema, table.table),))


@dataclass(frozen=True)
class LongWait:
    """The barrier, reached after some signs of life of the one that holds the lock."""

    endpoint: Endpoint

    def __call__(self) -> None:
        with session(self.endpoint, "source") as connection:
            before = self._signs(connection)
            wait_until(lambda: self._signs(connection) > before + 5, "some signs of life")
        wait()

    def _signs(self, connection: Any) -> int:
        return int(rows(connection, "SHOW GLOBAL STATUS LIKE 'Com_do'")[0][1])


def test_no_connection_is_left_idle_while_its_tasks_run(
    source_server: MariadbServer, table: TableName, tmp_path: Path
) -> None:
    """They may take longer than a connection may be idle at the source."""
    source_server.run("CREATE USER dumper@'127.0.0.1'", "GRANT ALL ON *.* TO dumper@'127.0.0.1'")
    own = "SELECT 1 FROM information_schema.PROCESSLIST WHERE USER = 'dumper'"
    begun = []

    def slow(payloads: Sequence[bytes], task: Callable[[bytes], bytes], *, barrier: bool = False) -> list[bytes]:
        begun.append(task)
        wait_until(lambda: not source_server.query(own), "no connection is left")
        return run_tasks(payloads, task, barrier=barrier)

    result = dump(replace(source_server.endpoint, user="dumper"), table, tmp_path / "dump", "none", slow).run()
    assert result.end is not None
    assert len(begun) == 1


@pytest.mark.parametrize("consistency", ["flush", "lock", "none"])
def test_it_begins_anew(consistency: str, source_server: MariadbServer, table: TableName, tmp_path: Path) -> None:
    with FaultProxy("127.0.0.1", source_server.port) as proxy:
        unit = dump(replace(source_server.endpoint, port=proxy.port), table, tmp_path / "dump", consistency)
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
    monkeypatch.setattr("unshard.dump.locked._SIGNS", 600)
    begun = []

    def counted(payloads: Sequence[bytes], task: Callable[[bytes], bytes], *, barrier: bool = False) -> list[bytes]:
        begun.append(task)
        return run_tasks(payloads, task, barrier=barrier)

    settings = DumpSettings(tmp_path / "dump", threads=1, consistency="flush")
    waits = LongWait(source_server.endpoint)
    DumpUnit(source_server.endpoint, "s1", settings, only(table), counted, waits, slots=1).run()
    assert len(begun) == 1

    monkeypatch.setattr("unshard.dump.locked.LOCK_IDLE_SECONDS", 1)
    tables = ((), (), (table,), TableSelection())
    work = ChunkWork(0, source_server.endpoint, tmp_path, "", "flush", *tables, "", settings.limits, wait)
    with reader(source_server.endpoint, text=True) as silent:
        _lock(silent, work)
        waiting = f"SET STATEMENT lock_wait_timeout = 90 FOR INSERT INTO {table.quoted} VALUES (0, 'waits a second')"
        source_server.run(waiting)
