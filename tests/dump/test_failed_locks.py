"""A dump under a lock ends before it reads rows where its lock or its list of tables fails."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import MySQLdb
import pytest

from support.vanishing_tables import Vanishing
from unshard.dump import locked
from unshard.dump.locked import ChunkWork
from unshard.dump.metadata import read_dump
from unshard.dump.unit import DumpUnit
from unshard.errors import DumpError
from unshard.model.table import TableName
from unshard.source.snapshot import ask
from unshard.testing.mariadb_server import MariadbServer

pytestmark = pytest.mark.server

FLUSH = "FLUSH TABLES WITH READ LOCK"


@pytest.fixture
def tables(source_server: MariadbServer, schema: str) -> list[TableName]:
    """Two tables, so that the other task of the dump has one of them; one has no transactions."""
    names = [TableName(schema, "a"), TableName(schema, "b"), TableName(schema, "c")]
    engines = ("InnoDB", "InnoDB", "MyISAM")
    made = (f"CREATE TABLE {n} (id INT PRIMARY KEY) ENGINE={e}" for n, e in zip(names, engines, strict=True))
    source_server.run(f"CREATE DATABASE {schema}", *made, *(f"INSERT INTO {name} VALUES (1)" for name in names))
    return names


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The run of each chunk that is read."""
    found: list[str] = []
    dump = locked._dump_chunk

    def noted(work: ChunkWork, *more: Any) -> Any:
        found.append(work.run)
        return dump(work, *more)

    monkeypatch.setattr(locked, "_dump_chunk", noted)
    return found


def test_a_lock_that_is_not_granted_ends_the_other_tasks(
    tables: list[TableName],
    runs: list[str],
    make_dump: Callable[..., DumpUnit],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    def refused(connection: Any, statement: str) -> list[list[str]]:
        if statement == FLUSH:
            raise MySQLdb.OperationalError(1205, "Lock wait timeout exceeded; try restarting transaction")
        return ask(connection, statement)

    with monkeypatch.context() as patch:
        patch.setattr(locked, "ask", refused)
        with pytest.raises(DumpError, match="DUMP-004"):
            make_dump(tables[0].schema, consistency="flush").run()
    assert runs == []
    assert list((tmp_path / "dump").rglob("parts/*")) == []
    assert len(make_dump(tables[0].schema, consistency="flush").run().tables) == 3


def test_a_table_that_was_made_before_the_lock_is_seen_before_rows_are_read(
    tables: list[TableName],
    runs: list[str],
    make_dump: Callable[..., DumpUnit],
    source_server: MariadbServer,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    later = TableName(tables[0].schema, "later")
    made = Vanishing(FLUSH, lambda: source_server.run(f"CREATE TABLE {later} (id INT PRIMARY KEY)"))
    made.before(monkeypatch, locked, "ask")
    make_dump(later.schema, consistency="flush").run()
    assert made.done
    assert set(read_dump(tmp_path / "dump").records) == {*tables, later}
    transactional = runs.count(runs[-1])
    assert (len(set(runs)), transactional) == (2, 4)
    assert len(runs) == 5, "only the table without transactions, which is read under the lock, is read twice"
