"""What goes as text in place of a bulk statement, and what its failures leave behind."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import MySQLdb
import pytest

from support.certificates import Authority
from support.text_and_bulk import ROWS, TextAndBulk, small
from support.waiting import wait_until
from unshard.model.change import ValuesList
from unshard.mysql.connection import connect
from unshard.mysql.tls import Material, Tls
from unshard.target import bulk_insert
from unshard.target.bulk_insert import insert
from unshard.target.writer import KeptWriter, ServerAnswer, break_off, query, writer
from unshard.testing.mariadb_server import MariadbServer
from unshard.testing.proxy import FaultProxy

pytestmark = pytest.mark.server


def test_what_goes_as_text(tables: Callable[[str], TextAndBulk], monkeypatch: pytest.MonkeyPatch) -> None:
    both = tables("id INT PRIMARY KEY, v INT")
    one = both.connection
    assert small(one, both.schema, 19) is None
    assert small(one, both.schema, 30, limit=100) is None
    assert small(one, both.schema, 30, value="ABS(-1)") is None
    assert both.contents("b") == []
    monkeypatch.setattr(bulk_insert, "_EARLIEST", {})
    monkeypatch.setattr(bulk_insert, "_EARLIEST_SERIES", (99, 0))
    with closing(writer(both.server.endpoint)) as connection:
        assert small(connection, both.schema, 30) is None


def test_an_encrypted_connection_goes_as_text(tmp_path: Path, schema: str) -> None:
    authority = Authority(tmp_path)
    pair = authority.issue("db-1")
    with MariadbServer({"ssl_ca": str(authority.ca), "ssl_cert": str(pair.cert), "ssl_key": str(pair.key)}) as server:
        server.run(f"CREATE DATABASE {schema}", f"CREATE TABLE {schema}.b (id INT PRIMARY KEY, v INT)")
        tls = Tls(ca=Material(str(authority.ca)))
        with closing(writer(replace(server.endpoint, tls=tls))) as connection:
            assert small(connection, schema, 30) is None


def test_a_server_without_bulk_statements(
    tables: Callable[[str], TextAndBulk], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a proxy before it may be: the command is refused, and the rows go as text from then on."""
    both = tables("id INT PRIMARY KEY, v INT")
    monkeypatch.setattr(bulk_insert, "_BULK_EXECUTE", b"\x7b")
    head = f"INSERT INTO {both.schema}.b VALUES ".encode()
    for turn in range(2):
        listed = b",".join(b"(%d,1)" % id for id in range(100 * turn, 100 * turn + ROWS))
        sql, values = head + listed, ValuesList(len(head), len(head + listed), 2)
        assert insert(both.connection, sql, values, 1 << 20).found == ROWS
    assert len(both.contents("b")) == 2 * ROWS
    assert small(both.connection, both.schema, 30) is None


def test_a_server_that_prepares_nothing_more(tables: Callable[[str], TextAndBulk]) -> None:
    both = tables("id INT PRIMARY KEY, v INT")
    ((limit,),) = both.server.query("SELECT @@max_prepared_stmt_count")
    both.server.run("SET GLOBAL max_prepared_stmt_count = 0")
    try:
        assert small(both.connection, both.schema, 30) is None
        both.server.run(f"SET GLOBAL max_prepared_stmt_count = {limit}")
        assert small(both.connection, both.schema, 30) is None, "this connection asks no more"
        with closing(writer(both.server.endpoint)) as connection:
            assert small(connection, both.schema, 30) is not None
    finally:
        both.server.run(f"SET GLOBAL max_prepared_stmt_count = {limit}")


@pytest.mark.parametrize("fault", ["killed", "stalled", "truncated"])
def test_a_connection_that_is_lost(fault: str, tables: Callable[[str], TextAndBulk]) -> None:
    both = tables("id INT PRIMARY KEY, v INT")
    with FaultProxy("127.0.0.1", both.server.port) as proxy:
        connection = writer(replace(both.server.endpoint, port=proxy.port), patience_seconds=1)
        with closing(connection):
            assert small(connection, both.schema, 30) is not None
            if fault == "killed":
                both.server.run(f"KILL {connection.thread_id()}")
            elif fault == "stalled":
                proxy.stall()
            else:
                proxy.cut_after(5)
            with pytest.raises(MySQLdb.OperationalError) as caught:
                small(connection, both.schema, 40)
            assert caught.value.args[0] in (2006, 2013, 1927)
            proxy.flow()
            with pytest.raises(MySQLdb.OperationalError):  # no answer that is late is taken for that of a next command
                query(connection, b"SELECT 1")


def test_another_thread_breaks_it_off(tables: Callable[[str], TextAndBulk]) -> None:
    """The thread that waits gets the error of a lost connection."""
    both = tables("id INT PRIMARY KEY, v INT")
    kept = KeptWriter(both.server.endpoint, 0, "an owner")
    connection = kept.get()
    assert small(connection, both.schema, 30) is not None
    errors: list[BaseException] = []
    with closing(connect(both.server.endpoint, "target")) as holder:
        holder.query(f"LOCK TABLES {both.schema}.b READ")

        def write() -> None:
            try:
                small(connection, both.schema, 40)
            except MySQLdb.Error as error:
                errors.append(error)

        thread = threading.Thread(target=write)
        thread.start()
        waits = f"SELECT 1 FROM information_schema.PROCESSLIST WHERE ID = {connection.thread_id()}"
        wait_until(lambda: bool(both.server.query(f"{waits} AND STATE LIKE 'Waiting%'")), "the statement waits")
        break_off("an owner")
        thread.join()
    kept.drop()
    assert [error.args[0] for error in errors] == [2013]


@pytest.mark.parametrize(
    ("version", "keeps"),
    [
        ((10, 5, 28), False),
        ((10, 6, 20), False),
        ((10, 6, 21), True),
        ((10, 9, 9), False),
        ((10, 11, 10), False),
        ((10, 11, 11), True),
        ((11, 4, 4), False),
        ((11, 4, 5), True),
        ((11, 5, 2), False),
        ((11, 7, 2), True),
        ((11, 8, 0), True),
        ((12, 0, 1), True),
    ],
)
def test_releases_whose_triggers_take_values_get_text(version: tuple[int, int, int], keeps: bool) -> None:
    assert bulk_insert._keeps_values(*version) == keeps


def test_a_trigger_that_inserts_into_another_table(tables: Callable[[str], TextAndBulk]) -> None:
    both = tables("id INT PRIMARY KEY, v INT")
    for name in "ab":
        both.server.run(
            f"CREATE TABLE {both.schema}.seen_{name} (id INT, v INT)",
            *(
                f"CREATE TRIGGER {both.schema}.{when}_{name} {when} INSERT ON {both.schema}.{name} FOR EACH ROW"
                f" INSERT INTO {both.schema}.seen_{name} VALUES (NEW.id, NEW.v)"
                for when in ("BEFORE", "AFTER")
            ),
        )
    by_text, in_bulk = both.run([f"({id},{id})" for id in range(ROWS)])
    assert by_text[0] == in_bulk[0] == ROWS
    assert both.contents("b") == both.contents("a")
    counted = f"SELECT COUNT(*), SUM(v) FROM {both.schema}.seen_"
    assert both.server.query(f"{counted}b") == [(2 * ROWS, sum(range(ROWS)) * 2)]
    assert both.server.query(f"{counted}a") == both.server.query(f"{counted}b")


def test_an_answer_that_tells_of_other_rows_is_an_error(
    tables: Callable[[str], TextAndBulk], monkeypatch: pytest.MonkeyPatch
) -> None:
    both = tables("id INT PRIMARY KEY, v INT")
    for info in (b"", b"Records: 1  Duplicates: 0  Warnings: 0"):
        monkeypatch.setattr(bulk_insert, "_counted", lambda _, info=info: ServerAnswer(1, info, 0))
        query(both.connection, b"BEGIN")
        with pytest.raises(MySQLdb.OperationalError, match="for 30 rows of a bulk statement"):
            small(both.connection, both.schema, 30)
        query(both.connection, b"ROLLBACK")


def test_a_deadlock_while_it_is_prepared_is_raised(tables: Callable[[str], TextAndBulk]) -> None:
    """The server has rolled the transaction back: as text the rows would be alone in another one."""
    both = tables("id INT PRIMARY KEY, v INT")
    one = both.connection
    query(one, b"BEGIN")
    query(one, f"INSERT INTO {both.schema}.b VALUES (1, 1)".encode())
    swap = ", ".join(f"{both.schema}.{old} TO {both.schema}.{new}" for old, new in (("b", "c"), ("a", "b"), ("c", "a")))
    renaming = threading.Thread(target=both.server.run, args=(f"RENAME TABLE {swap}",))
    renaming.start()
    waits = "SELECT 1 FROM information_schema.PROCESSLIST WHERE STATE LIKE 'Waiting for table metadata lock%'"
    wait_until(lambda: bool(both.server.query(f"{waits} AND INFO LIKE 'RENAME TABLE {both.schema}%'")), "it has a")
    head = f"INSERT INTO {both.schema}.a VALUES ".encode()
    listed = b",".join(b"(%d,1)" % id for id in range(ROWS))
    with pytest.raises(MySQLdb.OperationalError) as caught:
        insert(one, head + listed, ValuesList(len(head), len(head + listed), 2), 1 << 20)
    assert caught.value.args[0] == 1213
    renaming.join()
    query(one, b"COMMIT")
    assert both.contents("a") == both.contents("b") == []


def test_an_error_behind_the_preparation_is_no_silence() -> None:
    """As Galera answers to any command once it has ended the transaction."""
    ended = b"\xff\xbd\x04#40001Deadlock found"
    packets = [b"\x00\x07\x00\x00\x00\x00\x00\x01\x00\x00\x00\x00", b"\x03def", ended]

    class Answers:
        def send(self, command: bytes) -> None:
            pass

        def packet(self) -> bytes:
            return packets.pop(0)

    assert bulk_insert._number(Answers(), bulk_insert._Prepared(True), b"INSERT") == ended  # type: ignore[arg-type]
