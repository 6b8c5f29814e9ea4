"""Constant defaults, from SHOW CREATE TABLE of either server."""

from __future__ import annotations

import pytest

from unshard.model.table import Column, Table, TableName
from unshard.mysql.defaults import constant_defaults
from unshard.mysql.structure import read_table
from unshard.testing.mariadb_server import MariadbServer


def default_of(definition: str, column: Column | None = None) -> str | None:
    column = column or Column("c`x", "varchar", "varchar(20)", nullable="NOT NULL" not in definition)
    text = f"CREATE TABLE `t` (\n  `id` int NOT NULL DEFAULT 9,\n  `c``x` {definition},\n  KEY `c``x` (`id`)\n) DEFAULT"
    return constant_defaults(Table(TableName("s", "t"), (column,), create_sql=text)).get(column.name)


@pytest.mark.parametrize(
    ("definition", "default"),
    [
        ("int NOT NULL DEFAULT 5", "5"),
        ("int DEFAULT -5 COMMENT 'DEFAULT 6'", "-5"),
        ("double DEFAULT 1e-30", "1e-30"),
        ("varchar(20) DEFAULT 'it''s, \\'DEFAULT 3\\''", "'it''s, \\'DEFAULT 3\\''"),
        ("enum('DEFAULT 1','b') NOT NULL DEFAULT 'b'", "'b'"),
        ("bit(4) DEFAULT b'101'", "b'101'"),
        ("varchar(20) DEFAULT NULL", "NULL"),
        ("text", "NULL"),
        ("text /*!100301 COMPRESSED*/ DEFAULT 'x'", "'x'"),
        ("int NOT NULL", None),
        ("int NOT NULL AUTO_INCREMENT", None),
        ("timestamp NOT NULL DEFAULT current_timestamp() ON UPDATE current_timestamp()", None),
        ("timestamp NOT NULL DEFAULT CURRENT_TIMESTAMP", None),
        ("varchar(40) DEFAULT (uuid())", None),
        ("int NULL DEFAULT (5 + 1)", None),
        ("int DEFAULT nextval(`s`.`q`)", None),
    ],
)
def test_a_default(definition: str, default: str | None) -> None:
    assert default_of(definition) == default


def test_generated_and_binary_columns() -> None:
    generated = Column("c`x", "int", "int(11)", generated=True)
    assert default_of("int GENERATED ALWAYS AS (`id` + 1) STORED", generated) is None
    binary = Column("c`x", "varbinary", "varbinary(9)")
    assert default_of("varbinary(9) DEFAULT 'abc'", binary) == "'abc'"
    assert default_of("varbinary(9) DEFAULT 'é'", binary) is None


def test_without_create_table_nothing_is_known() -> None:
    assert constant_defaults(Table(TableName("s", "t"), (Column("a", "int", "int"),))) == {}


def test_of_a_server(source_server: MariadbServer, schema: str) -> None:
    source_server.run(
        f"CREATE DATABASE {schema}",
        f"CREATE TABLE {schema}.t (id INT AUTO_INCREMENT PRIMARY KEY, a INT DEFAULT 5, b VARCHAR(9) DEFAULT 'o''b',"
        " c TEXT, d TEXT NOT NULL, e TIMESTAMP DEFAULT CURRENT_TIMESTAMP, f INT DEFAULT (1 + 1), g INT AS (a) STORED,"
        " h DATE NOT NULL DEFAULT '0000-00-00', i DECIMAL(5,2) DEFAULT -1.5)",
    )
    connection = source_server.connection()
    try:
        table = read_table(connection, TableName(schema, "t"))
    finally:
        connection.close()
    assert table is not None
    assert constant_defaults(table) == {
        "a": "5",
        "b": "'o''b'",
        "c": "NULL",
        "h": "'0000-00-00'",
        "i": "-1.50",
    }
