"""Defaults that a source shows with `?` for letters of four bytes: a dump asks for the text that they have."""

from __future__ import annotations

from contextlib import closing

import pytest

from support.source_servers import source_name
from unshard.dump.true_defaults import with_true_defaults
from unshard.model.table import Column, Table, TableName
from unshard.mysql.defaults import column_lines
from unshard.mysql.structure import read_table
from unshard.testing.throwaway_server import ThrowawayServer

TEXTS = ["😀", "is it 😀?", "it''s ? \\\\ 🎉 \\n", "really?", "DEFAULT ''?'' 🎉"]


@pytest.mark.parametrize("null", ["NULL", "NOT NULL"])
@pytest.mark.parametrize("has_row", [True, False])
def test_a_table_that_is_made_of_it_has_the_same_defaults(
    source_server: ThrowawayServer, schema: str, null: str, caplog: pytest.LogCaptureFixture, *, has_row: bool
) -> None:
    columns = [f"c{number} VARCHAR(40) {null} DEFAULT '{text}' COMMENT '?'" for number, text in enumerate(TEXTS)]
    others = "`it``s?` CHAR(9) CHARACTER SET latin1 DEFAULT '?', n INT DEFAULT 3, e ENUM('?', 'b') DEFAULT '?', x TEXT"
    source_server.run(f"CREATE DATABASE {schema}")
    source_server.run(f"CREATE TABLE {schema}.t (id INT PRIMARY KEY, {', '.join(columns)}, {others}) CHARSET utf8mb4")
    if has_row:
        source_server.run(f"INSERT INTO {schema}.t (id) VALUES (1)")
    with closing(source_server.connection()) as connection:
        shown = read_table(connection, TableName(schema, "t"))
        assert shown is not None
        table = with_true_defaults(connection, shown)
    source_server.run(table.create_sql.replace("`t`", f"{schema}.made", 1))
    lines, before = column_lines(table.create_sql), column_lines(shown.create_sql)
    assert all(lines[name] == before[name] for name in ("id", "it`s?", "n", "e", "x"))
    known = has_row or null == "NULL" or source_name() in ("mysql-8.0", "mysql-9.7")
    warnings = [record.msg for record in caplog.records if isinstance(record.msg, dict)]
    told = [(one["event"], one["columns"]) for one in warnings]
    assert told == ([] if known else [("a default may be another one", "c0, c1, c2, c3, c4")])
    if not known:
        assert lines == before
        return
    source_server.run(f"INSERT INTO {schema}.made (id) VALUES (2)")
    source_server.run(f"INSERT IGNORE INTO {schema}.t (id) VALUES (2)")
    assert source_server.query(f"SELECT * FROM {schema}.made WHERE id = 2") == source_server.query(
        f"SELECT * FROM {schema}.t WHERE id = 2"
    )


def test_a_table_without_a_question_mark_is_not_asked() -> None:
    sql = "CREATE TABLE `t` (\n  `v` varchar(9) DEFAULT 'x' COMMENT '?'\n)"
    table = Table(TableName("s", "t"), (Column("v", "varchar", "varchar(9)", charset="utf8mb4"),), create_sql=sql)
    assert with_true_defaults(None, table) is table
