"""Statements and tables of a source as a TiDB gets them; no server is asked."""

from __future__ import annotations

import pytest

from unshard.ddl.context import Context
from unshard.ddl.evaluate import (
    created_definition,
    definition_of,
    dialect_of,
    evaluate,
    operations,
    surroundings,
)
from unshard.ddl.parse import classify_ddl
from unshard.errors import Where
from unshard.load.contents import SourceTable
from unshard.load.creation import ForTidb
from unshard.model.table import Table, TableName
from unshard.schema.definition import Dialect
from unshard.schema.implied import complete_table
from unshard.schema.tidb import TidbWords, Translation, create_table
from unshard.schema.tidb_alter import alter_table

NAME = TableName("s", "t")
WORDS = TidbWords(lambda collation: collation)


def copied(create_sql: str) -> str:
    """The CREATE TABLE for TiDB of a source's SHOW CREATE TABLE."""
    table = SourceTable(NAME, create_sql, None, None, ())
    return ForTidb(WORDS, "source-1").table(table, NAME, lambda name: name, None, Where("source-1"))


def test_a_copy_has_the_json_of_mysql() -> None:
    """MariaDB's JSON is a LONGTEXT, and its SHOW CREATE TABLE says so."""
    shown = (
        "CREATE TABLE `t` (\n  `id` int NOT NULL,\n  `j` json DEFAULT NULL,\n  PRIMARY KEY (`id`)\n) ENGINE=InnoDB {}"
    )
    for options in ("DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci", "DEFAULT CHARSET=latin1"):
        text = shown.format(options)
        assert "`j` json DEFAULT NULL" in copied(text)
        found = ForTidb(WORDS, "source-1").structure(None, SourceTable(NAME, text, None, None, ()))
        assert [column.type for column in found.columns] == ["int", "json"]
        (_, document) = definition_of(Table(NAME, (), create_sql=text), Dialect.MARIADB).columns
        assert document.type.name == "json"


def test_a_copy_has_the_text_of_mariadbs_json() -> None:
    shown = (
        "CREATE TABLE `t` (`id` int(11) NOT NULL, `j` longtext CHARACTER SET utf8mb4 COLLATE utf8mb4_bin DEFAULT NULL"
        " CHECK (json_valid(`j`)), PRIMARY KEY (`id`)) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci"
    )
    assert "`j` longtext CHARACTER SET utf8mb4 COLLATE utf8mb4_bin DEFAULT NULL" in copied(shown)


MARIADB, MYSQL = Context("s"), Context("s", mariadb=False, default_collations=(255,))


def made(sql: str, context: Context = MARIADB) -> Translation:
    """A CREATE TABLE of the log for TiDB."""
    ddl = classify_ddl(sql, context)
    table = complete_table(created_definition(ddl), ddl.tables[0].table, surroundings(context, None))
    return create_table(table, ddl.tables[0], WORDS, if_not_exists=False)


def changed(sql: str, *before: str, context: Context = MARIADB) -> Translation:
    """An ALTER TABLE of the log for TiDB, of the table that other statements have made."""
    tables: dict[TableName, Table | None] = {}
    for earlier in before:
        tables |= evaluate(classify_ddl(earlier, context), tables.get, lambda schema: None)
    ddl = classify_ddl(sql, context)
    there = tables[ddl.tables[0]]
    assert there is not None
    definition = definition_of(there, dialect_of(context))
    around = surroundings(context, None)
    return alter_table(operations(ddl), ddl.tables[0], definition, definition, around, WORDS)


CHILD = "CREATE TABLE c (id INT PRIMARY KEY, p INT)"


@pytest.mark.parametrize("context", [MARIADB, MYSQL])
def test_a_column_brings_its_foreign_key(context: Context) -> None:
    found = changed("ALTER TABLE c ADD COLUMN q INT REFERENCES parent (id) ON DELETE CASCADE", CHILD, context=context)
    key = "CONSTRAINT `c_ibfk_1` FOREIGN KEY (`q`) REFERENCES parent (id) ON DELETE CASCADE"
    added = "ALTER TABLE `s`.`c` ADD COLUMN `q` int(11) DEFAULT NULL"
    assert found.statements == (added, f"ALTER TABLE `s`.`c` ADD {key}")
    assert not found.left_out


def test_a_column_that_is_there_brings_nothing() -> None:
    """The source makes neither the column nor its keys."""
    sql = "ALTER TABLE c ADD COLUMN IF NOT EXISTS p INT UNIQUE REFERENCES parent (id), ADD COLUMN IF NOT EXISTS q INT"
    assert changed(sql, CHILD).statements == ("ALTER TABLE `s`.`c` ADD COLUMN IF NOT EXISTS `q` int(11) DEFAULT NULL",)


def test_a_column_of_another_engine_brings_none() -> None:
    found = changed("ALTER TABLE c ADD q INT REFERENCES parent (id)", CHILD + " ENGINE=MyISAM")
    assert found.statements == ("ALTER TABLE `s`.`c` ADD COLUMN `q` int(11) DEFAULT NULL",)
    assert len(found.left_out) == 1


def test_a_check_of_a_column_is_told() -> None:
    """MariaDB keeps it at the column; that of its JSON columns is told by no word, as it only spells the type."""
    found = made("CREATE TABLE t (id INT PRIMARY KEY, a INT CHECK (a > 3), j JSON, CHECK (id > 0))")
    assert found.left_out == ("CHECK (a > 3)",)
    assert "CONSTRAINT `CONSTRAINT_1` CHECK (id > 0)" in found.statements[0]
    assert "a > 3" not in found.statements[0]
    assert changed("ALTER TABLE c ADD a INT CHECK (a > 3), ADD j JSON", CHILD).left_out == ("CHECK (a > 3)",)
    assert changed("ALTER TABLE c CHANGE p a INT CHECK (a > 3)", CHILD).left_out == ("CHECK (a > 3)",)
    assert changed("ALTER TABLE c ADD a INT CHECK (a > 3)", CHILD, context=MYSQL).left_out == ("CHECK (a > 3)",)


def test_a_check_of_a_column_of_mysql_is_one_of_the_table() -> None:
    found = made("CREATE TABLE t (id INT PRIMARY KEY, a INT CHECK (a > 3))", MYSQL)
    assert not found.left_out
    assert "CONSTRAINT `t_chk_1` CHECK (a > 3)" in found.statements[0]
