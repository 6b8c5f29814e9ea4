"""What sources of one target do one after the other: they wait for each other as long as it takes."""

from __future__ import annotations

from threading import Event, Thread
from typing import Any

import MySQLdb
import pytest

from support.scripted_connection import ScriptedConnection, first_match
from support.waiting import wait_until
from unshard.load import creation
from unshard.load.counters import raise_counter
from unshard.load.creation import each, named_lock
from unshard.load.deferred_keys import DEFERRED_BYTES, DeferredKeys
from unshard.model.table import TableName
from unshard.mysql.connection import rows, session
from unshard.retry import given_up_by
from unshard.testing.mariadb_server import MariadbServer

pytestmark = pytest.mark.server

NAME = "unshard:shop.orders"


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The statements of the module; a GET_LOCK of it returns at once."""
    found: list[str] = []

    def noted(connection: Any, statement: str, values: Any = ()) -> list[tuple[Any, ...]]:
        found.append(statement)
        return rows(connection, statement, values)

    monkeypatch.setattr(creation, "rows", noted)
    monkeypatch.setattr(creation, "_LOCK_SECONDS", 0)
    return found


def test_nobody_goes_on_without_the_lock(target_server: MariadbServer, asked: list[str]) -> None:
    entered = Event()

    def second() -> None:
        with session(target_server.endpoint, "target") as connection, named_lock(connection, NAME):
            entered.set()

    with session(target_server.endpoint, "target") as holder:
        rows(holder, "SELECT GET_LOCK(%s, 0)", (NAME,))
        waiting = Thread(target=second)
        waiting.start()
        wait_until(lambda: sum("GET_LOCK" in one for one in asked) > 3 or entered.is_set(), "asked again and again")
        assert not entered.is_set()
        rows(holder, "SELECT RELEASE_LOCK(%s)", (NAME,))
        waiting.join()
    assert entered.is_set()


def test_who_is_stopped_while_it_waits_gives_up(target_server: MariadbServer, asked: list[str]) -> None:
    stop = Event()
    stop.set()
    with (
        session(target_server.endpoint, "target") as holder,
        given_up_by(stop),
    ):
        rows(holder, "SELECT GET_LOCK(%s, 0)", (NAME,))
        second = target_server.connection()
        with pytest.raises(MySQLdb.OperationalError, match="waits for"), named_lock(second, NAME):
            raise AssertionError("it has no lock")
        second.close()


@pytest.mark.usefixtures("asked")
def test_sessions_of_one_who_is_stopped_give_up_too(target_server: MariadbServer) -> None:
    stop = Event()
    stop.set()

    def work(connection: Any, name: str) -> None:
        with named_lock(connection, name):
            raise AssertionError("it has no lock")

    with session(target_server.endpoint, "target") as holder, given_up_by(stop):
        rows(holder, "SELECT GET_LOCK(%s, 0)", (NAME,))
        with pytest.raises(MySQLdb.OperationalError, match="waits for"):
            each(target_server.connection, work, [NAME], 1)


@pytest.mark.parametrize(
    "error",
    [
        MySQLdb.OperationalError(
            1105, "Percona-XtraDB-Cluster prohibits use of GET_LOCK with pxc_strict_mode = ENFORCING"
        ),
        MySQLdb.NotSupportedError(
            1235, "This version of MariaDB doesn't yet support 'GET_LOCK in cluster (WSREP_ON=ON)'"
        ),
    ],
    ids=["PXC", "Galera"],
)
def test_a_cluster_without_named_locks_is_loaded_without_them(error: MySQLdb.Error) -> None:
    """Its tables keep their keys while they are loaded, for nothing keeps the sources apart that would drop them."""
    table = TableName("shop", "orders")

    def answer(statement: str) -> list[tuple[Any, ...]]:
        if "GET_LOCK" in statement:
            raise error
        return first_match(
            statement,
            {"SHOW CREATE TABLE": lambda: [("orders", "CREATE TABLE `orders` (\n  `id` int,\n  KEY `k` (`id`)\n)")]},
        )

    connection = ScriptedConnection(answer)
    raise_counter(connection, table, 7)
    assert connection.statements[-1] == "ALTER TABLE `shop`.`orders` AUTO_INCREMENT = 7"
    DeferredKeys("meta", "t", "s1").defer(connection, table, DEFERRED_BYTES)
    assert not [one for one in connection.statements if "DROP KEY" in one or "RELEASE_LOCK" in one]
