"""Structures of a source that a real TiDB gets whole, with the rows in them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.dump_units import dump_of
from support.followed_on_tidb import OnTidb
from support.threads import run_tasks
from unshard.compare.executor.canonical import document
from unshard.load.checkpoint import LoadTables
from unshard.load.unit import LoadSettings, LoadUnit
from unshard.model.table import TableName, quote_text
from unshard.mysql.connection import rows
from unshard.mysql.defaults import constant_defaults
from unshard.mysql.structure import read_table
from unshard.testing.mariadb_server import MariadbServer
from unshard.testing.mysql_server import Mysql80Server
from unshard.testing.tidb_server import TidbServer

pytestmark = pytest.mark.server

DOCUMENTS = (
    '{"bb": [1, 2.5e0, null, true, "é漢😀\\\\u0041\\"\\\\n"], "a": {}}',
    "18446744073709551615",
    "-9223372036854775808",
    "[]",
    "null",
    '"a text"',
)


@pytest.fixture(scope="module")
def mysql() -> Iterator[Mysql80Server]:
    """A MySQL that makes no foreign key of REFERENCES in the definition of a column."""
    with Mysql80Server() as server:
        yield server


def test_json_of_mysql_is_copied_as_json(mysql: Mysql80Server, tidb: TidbServer, schema: str, tmp_path: Path) -> None:
    values = ", ".join(f"ROW({number}, {quote_text(text)})" for number, text in enumerate(DOCUMENTS))
    mysql.run(
        f"CREATE DATABASE {schema}",
        f"CREATE TABLE {schema}.t (id INT PRIMARY KEY, j JSON, k JSON NOT NULL, g INT AS (j->'$.bb[0]'))",
        f"INSERT INTO {schema}.t (id, j, k) SELECT *, j FROM (VALUES {values}) AS v (id, j)",
        f"INSERT INTO {schema}.t (id, k) VALUES (99, '1')",
    )
    dump_of(mysql, tmp_path, schema).run()
    settings = LoadSettings(directory=tmp_path / "dump", pool_size=2, on_duplicate="error")
    tables = LoadTables(f"{schema}_meta", "task", "shard-1")
    LoadUnit(tidb.endpoint, tables, settings, lambda name: name, lambda name: None, run_tasks, lambda name: ()).run()
    kinds = "SELECT COLUMN_NAME, DATA_TYPE FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = %s AND TABLE_NAME = 't'"
    assert dict(tidb.query(kinds, (schema,))) == {"id": "int", "j": "json", "k": "json", "g": "int"}
    asked = f"SELECT id, CAST(j AS CHAR), CAST(k AS CHAR), g, JSON_TYPE(j) FROM {schema}.t ORDER BY id"
    there, here = tidb.query(asked), mysql.query(asked)
    assert [_comparable(row) for row in there] == [_comparable(row) for row in here]
    assert len(there) == len(DOCUMENTS) + 1


def _comparable(row: tuple[object, ...]) -> tuple[object, ...]:
    number, *texts, made, kind = row
    shown = (None if text is None else document(str(text)) for text in texts)
    return (number, *shown, made, str(kind).replace("UNSIGNED ", ""))


def foreign_keys(followed: OnTidb) -> list[Any]:
    """Those of TiDB's tables: the table, the column, the table that it names, and what becomes of its rows."""
    asked = """
    SELECT k.TABLE_NAME, k.COLUMN_NAME, k.REFERENCED_TABLE_NAME, r.DELETE_RULE
    FROM information_schema.KEY_COLUMN_USAGE k JOIN information_schema.REFERENTIAL_CONSTRAINTS r
    USING (CONSTRAINT_SCHEMA, CONSTRAINT_NAME, TABLE_NAME) WHERE k.CONSTRAINT_SCHEMA = %s ORDER BY 1, 2
    """
    return list(rows(followed.target, asked, (followed.schema,)))


def test_foreign_keys_of_columns(source_server: MariadbServer, tidb: TidbServer, schema: str) -> None:
    followed = OnTidb(source_server, tidb, schema)
    followed.run(
        "CREATE TABLE p (id INT PRIMARY KEY)",
        "CREATE TABLE c (id INT PRIMARY KEY, p INT REFERENCES p (id) ON DELETE CASCADE, a INT CHECK (a > 3), j JSON)",
    )
    rows(followed.target, f"INSERT INTO {schema}.p VALUES (1)")
    rows(followed.target, f"INSERT INTO {schema}.c VALUES (1, 1, 5, '{{}}')")
    followed.run(
        "ALTER TABLE c ADD COLUMN q INT REFERENCES p (id) ON DELETE SET NULL",
        "ALTER TABLE c ADD COLUMN IF NOT EXISTS q INT REFERENCES p (id), ADD COLUMN b INT CHECK (b > 4)",
    )
    followed.assert_equal()
    assert foreign_keys(followed) == [("c", "p", "p", "CASCADE"), ("c", "q", "p", "SET NULL")]
    followed.close()


def test_references_that_the_source_reads_over(mysql: Mysql80Server, tidb: TidbServer, schema: str) -> None:
    followed = OnTidb(mysql, tidb, schema)
    followed.run(
        "CREATE TABLE p (id INT PRIMARY KEY)",
        "CREATE TABLE c (id INT PRIMARY KEY, p INT REFERENCES p (id) ON DELETE CASCADE, s INT,"
        " FOREIGN KEY (s) REFERENCES p (id))",
    )
    rows(followed.target, f"INSERT INTO {schema}.p VALUES (1)")
    rows(followed.target, f"INSERT INTO {schema}.c VALUES (1, 1, 1)")
    followed.run("ALTER TABLE c ADD q INT REFERENCES p (id) ON DELETE CASCADE, ADD r INT REFERENCES p (id)")
    followed.assert_equal()
    assert foreign_keys(followed) == [("c", "s", "p", "NO ACTION")]
    followed.close()


def test_the_default_of_a_timestamp_and_texts_without_escapes(
    source_server: MariadbServer, tidb: TidbServer, schema: str
) -> None:
    """TiDB's own default and the constant that a row image without the column gets are both the source's."""
    followed = OnTidb(source_server, tidb, schema)
    rows(followed.source, "SET time_zone = '+05:00', sql_mode = 'NO_BACKSLASH_ESCAPES'")
    followed.run(
        "CREATE TABLE t (id INT PRIMARY KEY, f TIMESTAMP NOT NULL DEFAULT '2020-01-01 03:00:00')",
        "INSERT INTO t (id) VALUES (1)",
    )
    rows(followed.target, f"INSERT INTO {schema}.t (id) VALUES (1)")
    followed.run(
        "ALTER TABLE t ADD g TIMESTAMP(1) NOT NULL DEFAULT '2020-07-01',"
        r" ADD e ENUM('x\y', 'z''\') DEFAULT 'x\y', ADD v VARCHAR(9) DEFAULT 'a\b' COMMENT 'c\'",
        r"ALTER TABLE t ALTER v SET DEFAULT 'b\'",
        "INSERT INTO t (id) VALUES (2)",
    )
    rows(followed.target, f"INSERT INTO {schema}.t (id) VALUES (2)")
    for connection in (followed.source, followed.target):
        rows(connection, "SET time_zone = '+00:00'")
    followed.assert_equal()
    asked = f"SELECT id, CONCAT(f), CONCAT(g), e, v FROM {schema}.t ORDER BY id"
    wanted = rows(followed.source, asked)
    assert rows(followed.target, asked) == wanted
    assert wanted[0][1:4] == ("2019-12-31 22:00:00", "2020-06-30 19:00:00.0", r"x\y")
    name = TableName(schema, "t")
    tracked, upstream = followed.tracker.get(name), read_table(followed.source, name)
    assert tracked is not None
    assert upstream is not None
    assert constant_defaults(tracked) == constant_defaults(upstream)
    assert followed.column("t", "v")[2:] == ("b\\", "c\\")
    followed.close()
