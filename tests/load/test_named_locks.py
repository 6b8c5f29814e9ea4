"""What sources of one target do one after the other: they wait for each other as long as it takes."""

from __future__ import annotations

from threading import Event, Thread
from typing import Any

import MySQLdb
import pytest

from support.waiting import wait_until
from unshard.load import creation
from unshard.load.creation import each, named_lock
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
