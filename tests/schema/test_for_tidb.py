"""What a TiDB gets in the place of a source's statements; no server is asked."""

from __future__ import annotations

from unshard.ddl.evaluate import definition_of
from unshard.errors import Where
from unshard.load.contents import SourceTable
from unshard.load.creation import ForTidb
from unshard.model.table import Table, TableName
from unshard.schema.definition import Dialect
from unshard.schema.tidb import TidbWords

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
