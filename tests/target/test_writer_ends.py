"""Connections of this process that write rows: another thread ends what they execute, and no other connection."""

from __future__ import annotations

from collections.abc import Iterator
from threading import Thread

import MySQLdb
import pytest

from support.waiting import PATIENCE_SECONDS, wait_until
from unshard.model.table import TableName
from unshard.target.writer import KeptWriter, break_off, drop_writers
from unshard.testing.hold import row_held, stands_still
from unshard.testing.mariadb_server import MariadbServer

pytestmark = pytest.mark.server


@pytest.fixture
def table(target_server: MariadbServer, schema: str) -> str:
    name = TableName(schema, "t").quoted
    target_server.run(
        f"CREATE DATABASE {schema}", f"CREATE TABLE {name} (id INT PRIMARY KEY)", f"INSERT INTO {name} VALUES (1)"
    )
    return name


@pytest.fixture
def kept(target_server: MariadbServer, schema: str) -> Iterator[KeptWriter]:
    yield KeptWriter(target_server.endpoint, 0, schema)
    drop_writers(schema)


def test_a_statement_is_ended_from_another_thread(kept: KeptWriter, table: str, target_server: MariadbServer) -> None:
    ended: list[MySQLdb.Error] = []

    def delete() -> None:
        try:
            kept.get().query(f"DELETE FROM {table}".encode())
        except MySQLdb.Error as error:
            ended.append(error)

    with row_held(target_server, table):
        thread = Thread(target=delete)
        thread.start()
        wait_until(lambda: stands_still(target_server), "the DELETE waits")
        break_off("of somebody else")
        assert thread.is_alive()
        break_off(kept.owner)
        thread.join(PATIENCE_SECONDS)
        assert not thread.is_alive()
    assert [error.args[0] for error in ended] == [2013]


def test_a_dropped_connection_is_opened_anew(kept: KeptWriter, target_server: MariadbServer) -> None:
    first = kept.get().thread_id()
    break_off(kept.owner)
    with pytest.raises(MySQLdb.OperationalError):
        kept.get().query(b"SELECT 1")
    kept.drop()
    break_off(kept.owner)
    second = kept.get().thread_id()
    assert second != first
    drop_writers(kept.owner)
    asked = f"SELECT ID FROM information_schema.PROCESSLIST WHERE ID IN ({first}, {second})"
    wait_until(lambda: target_server.query(asked) == [], "both sessions have ended")
