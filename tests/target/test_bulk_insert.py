"""INSERTs as bulk statements: what the server has and tells behind them is what the same INSERT as text leaves."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import MySQLdb
import pytest

from support.certificates import Authority
from support.waiting import wait_until
from unshard.model.change import ValuesList
from unshard.mysql.connection import connect
from unshard.mysql.tls import Material, Tls
from unshard.target import bulk_insert
from unshard.target.bulk_insert import insert, insert_in_bulk
from unshard.target.writer import KeptWriter, ServerAnswer, break_off, packet_limit, query, writer
from unshard.testing.mariadb_server import MariadbServer
from unshard.testing.proxy import FaultProxy

pytestmark = pytest.mark.server

TYPES = {
    "TINYINT": ["-128", "127", "0"],
    "SMALLINT UNSIGNED": ["65535", "0"],
    "INT": ["-2147483648", "2147483647"],
    "BIGINT UNSIGNED": ["18446744073709551615", "0"],
    "BIGINT": ["-9223372036854775808", "9223372036854775807"],
    "DECIMAL(40,10)": ["-123456789012345678901234567890.0123456789", "0.1", "7"],
    "FLOAT": ["1.1", "3.40282e+38", "-1e-45", "0.1"],
    "DOUBLE": ["1.7976931348623157e+308", "0.1", "-0e0", "5e-324", "3"],
    "BIT(12)": ["x'0fff'", "x'0000'"],
    "YEAR": ["0", "1901", "2155"],
    "DATE": ["'0000-00-00'", "'9999-12-31'"],
    "TIME(6)": ["'-838:59:59.999999'", "'00:00:00.000001'"],
    "DATETIME(6)": ["'0000-00-00 00:00:00.000000'", "'2020-02-29 23:59:59.999999'"],
    "TIMESTAMP(3) NULL": ["'1970-01-01 00:00:01.000'", "'2038-01-19 03:14:07.999'"],
    "CHAR(9)": ["'a  '", "'ä€😀'", "''"],
    "VARCHAR(9) CHARACTER SET latin1": ["'äöü'", "'€'"],
    "VARCHAR(9) CHARACTER SET gbk": ["'中文'"],
    "VARCHAR(9) CHARACTER SET utf16": ["'😀'"],
    "LONGTEXT": [r"'\0\n\r\Z\"\'\\'", f"'{'x' * 70_000}'"],
    "BINARY(4)": ["x'00000001'"],
    "VARBINARY(9)": ["x'ff00fe'", "x''"],
    "LONGBLOB": [f"x'{'00ff' * 40_000}'"],
    "ENUM('a','b','')": ["'b'", "''"],
    "SET('a','b')": ["'a,b'", "''"],
    "JSON": [r"'{\"a\": [1, \"ä\", null]}'"],
    "UUID": ["'123e4567-e89b-12d3-a456-426655440000'"],
    "INET6": ["'2001:db8::1'"],
    "POINT": [f"x'{'00000000' + '01' + '01000000' + '000000000000f03f' + '0000000000000040'}'"],
}
ROWS = 40


class Tables:
    """Two tables alike, one of which is written as text and the other one in bulk."""

    def __init__(self, server: MariadbServer, schema: str, columns: str) -> None:
        self.server, self.schema = server, schema
        server.run(f"CREATE DATABASE {schema}", *(f"CREATE TABLE {schema}.{name} ({columns})" for name in ("a", "b")))
        self.connection = writer(server.endpoint)
        names = "SELECT COLUMN_NAME FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = %s AND TABLE_NAME = 'a'"
        self.columns = [name for (name,) in server.query(f"{names} ORDER BY ORDINAL_POSITION", (schema,))]

    def run(self, rows: list[str], verb: str = "INSERT", tail: str = "") -> list[tuple[Any, ...]]:
        """Run it in both ways; what either of them gave: found rows, the counts in words, and the warnings."""
        return [self.outcome("a", query, rows, verb, tail), self.outcome("b", self._bulk, rows, verb, tail)]

    def outcome(self, table: str, run: Callable[..., Any], rows: list[str], verb: str, tail: str) -> tuple[Any, ...]:
        head, listed = f"{verb} INTO {self.schema}.{table} VALUES ".encode(), ",".join(rows).encode()
        sql = head + listed + tail.encode()
        values = ValuesList(len(head), len(head) + len(listed), len(self.columns))
        try:
            answer = run(self.connection, sql) if run is query else run(sql, values)
        except MySQLdb.Error as error:
            return tuple(error.args)
        warnings = []
        if answer.warnings:
            with self.connection.cursor() as cursor:
                cursor.execute("SHOW WARNINGS")
                warnings = [tuple(row[:2]) for row in cursor.fetchall()]
        words = answer.info[answer.info.find(b"Records") :]
        return answer.found, words, answer.warnings, warnings

    def _bulk(self, sql: bytes, values: ValuesList) -> ServerAnswer:
        found = insert_in_bulk(self.connection, sql, values, packet_limit(self.connection))
        assert found is not None
        return found

    def contents(self, table: str) -> list[tuple[Any, ...]]:
        listed = ",".join(f"HEX({name}), CONCAT({name}, '')" for name in self.columns)
        return list(self.server.query(f"SELECT {listed} FROM {self.schema}.{table}"))


@pytest.fixture
def tables(source_server: MariadbServer, schema: str) -> Iterator[Callable[[str], Tables]]:
    made: list[Tables] = []

    def make(columns: str) -> Tables:
        made.append(Tables(source_server, schema, columns))
        return made[-1]

    yield make
    for one in made:
        one.connection.close()
        source_server.run(f"DROP DATABASE {one.schema}")


@pytest.mark.parametrize("kind", TYPES)
def test_every_type(kind: str, tables: Callable[[str], Tables]) -> None:
    both = tables(f"id INT PRIMARY KEY, v {kind}")
    values = [*TYPES[kind], "NULL"]
    by_text, in_bulk = both.run([f"({number},{values[number % len(values)]})" for number in range(ROWS)])
    assert by_text == in_bulk
    assert by_text[0] == ROWS
    assert both.contents("a") == both.contents("b")


@pytest.mark.parametrize(
    ("column", "values"),
    [
        ("v VARCHAR(3)", "'abcd'"),
        ("v VARCHAR(9) NOT NULL", "NULL"),
        ("v TINYINT", "300"),
        ("v TINYINT UNSIGNED", "-1"),
        ("v DECIMAL(5,2)", "1.239"),
        ("v DECIMAL(5,2)", "12345"),
        ("v INT", "1.5"),
        ("v INT", "'7 things'"),
        ("v INT", "2.5e0"),
        ("v VARCHAR(9)", "1.50"),
        ("v VARCHAR(9)", "1.50e0"),
        ("v VARCHAR(9)", "7"),
        ("v VARCHAR(9) CHARACTER SET latin1", "'中'"),
        ("v VARCHAR(9)", "x'ff'"),
        ("v ENUM('a')", "'b'"),
        ("v ENUM('a','b')", "2"),
        ("v DATE", "'2021-02-30'"),
        ("v DATE", "20210228"),
        ("v DATETIME", "'2021-02-28 25:00:00'"),
        ("v TIME", "'839:00:00'"),
        ("v JSON", "'{'"),
        ("v INT, CHECK (v < 5)", "7"),
        ("v INT, w INT AS (1 / v) STORED", "0"),
    ],
)
@pytest.mark.parametrize("mode", ["STRICT_ALL_TABLES,ALLOW_INVALID_DATES", "ALLOW_INVALID_DATES"])
def test_values_that_do_not_fit(column: str, values: str, mode: str, tables: Callable[[str], Tables]) -> None:
    """Refused or changed, with the same warnings; a NULL where none may be is refused, instead of changed."""
    both = tables(column)
    both.columns = both.columns[:1]
    query(both.connection, f"SET sql_mode = '{mode}'".encode())
    by_text, in_bulk = (
        both.outcome(table, run, [f"({values})"] * ROWS, "INSERT", "")
        for table, run in (("a (v)", query), ("b (v)", both._bulk))
    )
    if values == "NULL":
        assert in_bulk[0] == 1048
        return
    assert str(by_text).replace("`a`", "`b`").replace("`a.", "`b.") == str(in_bulk)
    assert both.contents("a") == both.contents("b")


def test_counts_of_upserts_and_replaces(tables: Callable[[str], Tables]) -> None:
    both = tables("id INT PRIMARY KEY, v VARCHAR(20), UNIQUE KEY (v)")
    upsert = " ON DUPLICATE KEY UPDATE v=VALUES(v)"
    for first, verb, tail in (
        (0, "INSERT", ""),
        (0, "INSERT", upsert),
        (30, "INSERT", upsert),
        (50, "REPLACE", ""),
        (70, "INSERT IGNORE", ""),
    ):
        by_text, in_bulk = both.run([f"({id},'{verb}{id}')" for id in range(first, first + ROWS)], verb, tail)
        assert by_text == in_bulk
        assert b"Records: 40" in by_text[1]
    assert both.contents("a") == both.contents("b")


def test_a_duplicate_key_changes_nothing(tables: Callable[[str], Tables]) -> None:
    both = tables("id INT PRIMARY KEY")
    query(both.connection, b"BEGIN")
    assert [found[0] for found in both.run([f"({id})" for id in range(ROWS)])] == [ROWS, ROWS]
    by_text, in_bulk = both.run([f"({id})" for id in (*range(100, 130), 7)])
    assert by_text == in_bulk == (1062, "Duplicate entry '7' for key 'PRIMARY'")
    query(both.connection, b"COMMIT")
    assert len(both.contents("b")) == ROWS


def test_a_transaction_rolls_it_back_and_the_driver_goes_on(tables: Callable[[str], Tables]) -> None:
    both = tables("id INT PRIMARY KEY, v INT")
    query(both.connection, b"BEGIN")
    both.run([f"({id},1)" for id in range(ROWS)])
    assert query(both.connection, f"UPDATE {both.schema}.b SET v = 2 WHERE id < 7".encode()).found == 7
    query(both.connection, b"ROLLBACK")
    assert both.contents("b") == []


def test_a_statement_is_prepared_once_and_few_are_kept(
    tables: Callable[[str], Tables], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bulk_insert, "_KEPT", 2)
    both = tables("id INT PRIMARY KEY, v INT")

    def counted() -> dict[str, int]:
        with both.connection.cursor() as cursor:
            cursor.execute("SHOW SESSION STATUS LIKE 'Com_stmt_%'")
            return {name: int(value) for name, value in cursor.fetchall()}

    for turn in range(3):
        both.run([f"({id},1)" for id in range(100 * turn, 100 * turn + ROWS)])
    assert counted()["Com_stmt_prepare"] == 1
    for tail in (" ON DUPLICATE KEY UPDATE v=1", " ON DUPLICATE KEY UPDATE v=2"):
        both.run([f"({id},1)" for id in range(ROWS)], tail=tail)
    assert (counted()["Com_stmt_prepare"], counted()["Com_stmt_close"]) == (3, 1)
    both.run([f"({id},1)" for id in range(500, 500 + ROWS)])
    assert (counted()["Com_stmt_prepare"], counted()["Com_stmt_close"]) == (4, 2)


def test_a_table_that_is_altered_meanwhile(tables: Callable[[str], Tables]) -> None:
    both = tables("id INT PRIMARY KEY, v INT")
    both.run([f"({id},1)" for id in range(ROWS)])
    both.server.run(*(f"ALTER TABLE {both.schema}.{name} MODIFY v VARCHAR(9)" for name in "ab"))
    by_text, in_bulk = both.run([f"({id},'x')" for id in range(100, 100 + ROWS)])
    assert by_text == in_bulk
    both.server.run(*(f"ALTER TABLE {both.schema}.{name} DROP COLUMN v" for name in "ab"))
    by_text, in_bulk = both.run([f"({id},'x')" for id in range(200, 200 + ROWS)])
    assert by_text == in_bulk == (1136, "Column count doesn't match value count at row 1")
    both.server.run(f"DROP TABLE {both.schema}.a")
    head = f"INSERT INTO {both.schema}.a VALUES ".encode()
    listed = b",".join(b"(%d)" % id for id in range(ROWS))
    with pytest.raises(MySQLdb.Error) as caught:
        insert(both.connection, head + listed, ValuesList(len(head), len(head + listed), 1), 1 << 20)
    assert caught.value.args[0] == 1146


def test_a_statement_of_several_packets(tables: Callable[[str], Tables]) -> None:
    both = tables("id INT PRIMARY KEY, v LONGTEXT")
    with closing(both.server.connection()) as connection:
        connection.query("SELECT @@max_allowed_packet")
        limit = int(connection.store_result().fetch_row()[0][0])
    if limit < 40 << 20:
        both.server.run(f"SET GLOBAL max_allowed_packet = {64 << 20}")
        both.connection.close()
        both.connection = writer(both.server.endpoint)
    try:
        for size in ((1 << 24) // ROWS, (1 << 24) // ROWS - 10, 800_000):
            both.server.run(f"TRUNCATE {both.schema}.a", f"TRUNCATE {both.schema}.b")
            assert len(set(map(str, both.run([f"({id},'{'x' * size}')" for id in range(ROWS)])))) == 1
            for name in "ab":
                sql = f"SELECT COUNT(*), MIN(LENGTH(v)), MAX(LENGTH(v)) FROM {both.schema}.{name}"
                assert both.server.query(sql) == [(ROWS, size, size)]
    finally:
        both.server.run(f"SET GLOBAL max_allowed_packet = {limit}")


def small(connection: Any, schema: str, rows: int, *, limit: int = 1 << 20, value: str = "1") -> ServerAnswer | None:
    head = f"INSERT INTO {schema}.b VALUES ".encode()
    listed = b",".join(b"(%d,%b)" % (id, value.encode()) for id in range(rows))
    return insert_in_bulk(connection, head + listed, ValuesList(len(head), len(head + listed), 2), limit)


def test_what_goes_as_text(tables: Callable[[str], Tables], monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_a_server_without_bulk_statements(tables: Callable[[str], Tables], monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_a_server_that_prepares_nothing_more(tables: Callable[[str], Tables]) -> None:
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
def test_a_connection_that_is_lost(fault: str, tables: Callable[[str], Tables]) -> None:
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


def test_another_thread_breaks_it_off(tables: Callable[[str], Tables]) -> None:
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


def test_a_trigger_that_inserts_into_another_table(tables: Callable[[str], Tables]) -> None:
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
    tables: Callable[[str], Tables], monkeypatch: pytest.MonkeyPatch
) -> None:
    both = tables("id INT PRIMARY KEY, v INT")
    for info in (b"", b"Records: 1  Duplicates: 0  Warnings: 0"):
        monkeypatch.setattr(bulk_insert, "_counted", lambda _, info=info: ServerAnswer(1, info, 0))
        query(both.connection, b"BEGIN")
        with pytest.raises(MySQLdb.OperationalError, match="for 30 rows of a bulk statement"):
            small(both.connection, both.schema, 30)
        query(both.connection, b"ROLLBACK")


def test_a_deadlock_while_it_is_prepared_is_raised(tables: Callable[[str], Tables]) -> None:
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
