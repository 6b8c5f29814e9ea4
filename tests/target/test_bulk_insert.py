"""INSERTs as bulk statements: what the server has and tells behind them is what the same INSERT as text leaves."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing

import MySQLdb
import pytest

from support.text_and_bulk import ROWS, TextAndBulk
from unshard.model.change import ValuesList
from unshard.target import bulk_insert
from unshard.target.bulk_insert import insert
from unshard.target.writer import query, writer

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


@pytest.mark.parametrize("kind", TYPES)
def test_every_type(kind: str, tables: Callable[[str], TextAndBulk]) -> None:
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
def test_values_that_do_not_fit(column: str, values: str, mode: str, tables: Callable[[str], TextAndBulk]) -> None:
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


def test_counts_of_upserts_and_replaces(tables: Callable[[str], TextAndBulk]) -> None:
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


def test_a_duplicate_key_changes_nothing(tables: Callable[[str], TextAndBulk]) -> None:
    both = tables("id INT PRIMARY KEY")
    query(both.connection, b"BEGIN")
    assert [found[0] for found in both.run([f"({id})" for id in range(ROWS)])] == [ROWS, ROWS]
    by_text, in_bulk = both.run([f"({id})" for id in (*range(100, 130), 7)])
    assert by_text == in_bulk == (1062, "Duplicate entry '7' for key 'PRIMARY'")
    query(both.connection, b"COMMIT")
    assert len(both.contents("b")) == ROWS


def test_a_transaction_rolls_it_back_and_the_driver_goes_on(tables: Callable[[str], TextAndBulk]) -> None:
    both = tables("id INT PRIMARY KEY, v INT")
    query(both.connection, b"BEGIN")
    both.run([f"({id},1)" for id in range(ROWS)])
    assert query(both.connection, f"UPDATE {both.schema}.b SET v = 2 WHERE id < 7".encode()).found == 7
    query(both.connection, b"ROLLBACK")
    assert both.contents("b") == []


def test_a_statement_is_prepared_once_and_few_are_kept(
    tables: Callable[[str], TextAndBulk], monkeypatch: pytest.MonkeyPatch
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


def test_a_table_that_is_altered_meanwhile(tables: Callable[[str], TextAndBulk]) -> None:
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


def test_a_statement_of_several_packets(tables: Callable[[str], TextAndBulk]) -> None:
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
