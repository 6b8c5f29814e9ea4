"""SQL text of other tools: statements are found, INSERTs rewritten."""

from __future__ import annotations

import pytest

from unshard.errors import ConfigError, LoadError, Where
from unshard.load.create_statements import create_database, create_table, created_name, without_counter
from unshard.load.sql_dump import Rewriter, rows_of, statements
from unshard.model.table import Column, TableName
from unshard.transform.column_mapping import ColumnMapping
from unshard.transform.extract import Constant

HERE = Where("shard-1", "a.t", file="a.t.1.sql")


def texts(data: bytes) -> list[bytes]:
    return [text.sql for text in statements(data, 0, HERE)]


@pytest.mark.parametrize(
    "statement",
    [
        b"INSERT INTO t VALUES (1);",
        b"INSERT INTO t VALUES ('a;b');",
        b"INSERT INTO t VALUES ('it''s;', 'x\\';', \"q;\\\"\");",
        b"INSERT INTO `a;b` VALUES (1);",
        b"INSERT INTO t VALUES ('\\\\');",
        b"INSERT INTO t VALUES (1-2/3);",
        b"INSERT INTO t VALUES ('-- no comment', '/* nor this */', '# nor that');",
        b"INSERT INTO t VALUES (/* ; */ 1, -- ;\n 2);",
        b"/*!40101 SET NAMES binary*/;",
        b"INSERT INTO t VALUES ('\x00\xff\n\r\x1a');",
    ],
)
def test_a_statement_ends_at_its_own_semicolon(statement: bytes) -> None:
    assert texts(statement + b"\n" + statement) == [statement, statement]


def test_comments_between_statements_are_dropped() -> None:
    assert texts(b"-- a;\n# b;\n/* c; */ SELECT 1;\n-- end") == [b"SELECT 1;"]
    assert texts(b"\n \n") == []
    assert texts(b"/* a */\n/*!40101 SET NAMES binary*/;\n/***/ --\n-- b") == [b"/*!40101 SET NAMES binary*/;"]


@pytest.mark.parametrize(
    "cut",
    [
        b"INSERT INTO t VALUES (1)",
        b"INSERT INTO t VALUES ('a;",
        b"INSERT INTO t VAL",
        b"INSERT INTO `;",
        b"INSERT INTO t /* a;",
    ],
)
def test_an_end_inside_a_statement_is_damage(cut: bytes) -> None:
    with pytest.raises(LoadError, match=r"LOAD-002.*a\.t\.1\.sql") as caught:
        texts(b"SELECT 1;\n" + cut)
    assert "byte 10" in str(caught.value)


def rewriter(mapping: ColumnMapping | None = None, *constants: Constant) -> Rewriter:
    return Rewriter(TableName("x", "y"), ("id", "v"), "INSERT", mapping, HERE, constants)


@pytest.mark.parametrize(
    ("sql", "rewritten"),
    [
        (b"INSERT INTO `t` VALUES\n(1,'a'),\n(2,NULL);", b"INSERT INTO `x`.`y` (`id`,`v`) VALUES (1,'a'),\n(2,NULL)"),
        (b"INSERT INTO `t` (`v`,`id`) VALUES ('(;',1);", b"INSERT INTO `x`.`y` (`v`,`id`) VALUES ('(;',1)"),
        (b"insert ignore into a.`t` values(1,2);", b"INSERT INTO `x`.`y` (`id`,`v`) VALUES (1,2)"),
        (b"REPLACE INTO t (id) VALUES (1);", b"INSERT INTO `x`.`y` (`id`) VALUES (1)"),
    ],
)
def test_only_the_name_changes(sql: bytes, rewritten: bytes) -> None:
    assert rewriter().rewrite(sql) == rewritten


def test_other_statements_are_refused() -> None:
    with pytest.raises(LoadError, match=r"LOAD-003.*DELETE"):
        rewriter().rewrite(b"DELETE FROM t;")


def test_a_column_mapping_changes_one_value_of_each_row() -> None:
    mapping = ColumnMapping("rule", TableName("a", "t"), "id", "id", 1 << 59)
    sql = b"INSERT INTO `t` VALUES (1,'(2,x)'),('3',POINT(1,2)),\n(NULL,'it''s');"
    assert rewriter(mapping).rewrite(sql) == (
        b"INSERT INTO `x`.`y` (`id`,`v`) VALUES (576460752303423489,'(2,x)'),(576460752303423491,POINT(1,2)),"
        b"\n(NULL,'it''s')"
    )


def test_a_text_is_joined_by_the_server_whatever_form_the_literal_has() -> None:
    sql = rb"INSERT INTO `t` VALUES (1,'it''s \'(,'),(2,NULL),(3,_binary x'41');"
    prefix = ColumnMapping("rule", TableName("a", "t"), "v", "V", prefix="n'")
    assert rewriter(prefix).rewrite(sql) == (
        rb"INSERT INTO `x`.`y` (`id`,`v`) VALUES (1,CONCAT(_utf8mb4'n\'','it''s \'(,',_utf8mb4'')),"
        rb"(2,CONCAT(_utf8mb4'n\'',NULL,_utf8mb4'')),(3,CONCAT(_utf8mb4'n\'',_binary x'41',_utf8mb4''))"
    )


def test_constants_stand_behind_the_values_of_each_row() -> None:
    text, number = Column("c", "varchar", "varchar(9)", charset="utf8mb4"), Column("n", "int", "int(11)")
    added = (Constant(text, r"a\'1"), Constant(number, 7))
    sql = rb"INSERT INTO `t` (`v`,`id`) VALUES (')\'(',POINT(1,ABS(-2))), (NULL,'x)');"
    assert rewriter(None, *added).rewrite(sql) == (
        rb"INSERT INTO `x`.`y` (`v`,`id`,`c`,`n`) VALUES (')\'(',POINT(1,ABS(-2)),_utf8mb4'a\\\'1',7),"
        rb" (NULL,'x)',_utf8mb4'a\\\'1',7)"
    )
    with pytest.raises(LoadError, match="LOAD-003"):
        rewriter(None, *added).rewrite(b"INSERT INTO t VALUES (1,F(G(H(I(2)))));")


def test_an_id_out_of_range_is_told_with_the_file() -> None:
    mapping = ColumnMapping("rule", TableName("a", "t"), "id", "id", 1 << 59)
    with pytest.raises(ConfigError, match="CONFIG-009") as caught:
        rewriter(mapping).rewrite(b"INSERT INTO t VALUES (-1,2);")
    assert caught.value.where.file == HERE.file


def test_a_row_of_another_width_is_refused() -> None:
    with pytest.raises(LoadError, match="LOAD-003"):
        list(rows_of(b"(1,2),(3)", 2, HERE))


def test_create_statements_are_renamed_and_foreign_keys_follow() -> None:
    sql = (
        "CREATE TABLE `t` (\n  `a` int(11) DEFAULT 1 COMMENT 'REFERENCES `p`',\n"
        "  CONSTRAINT `c` FOREIGN KEY (`a`) REFERENCES `p` (`id`)\n) ENGINE=InnoDB AUTO_INCREMENT=9"
    )
    moved = create_table(sql, "src", TableName("x", "y`z"), lambda name: TableName("x", f"{name.schema}_{name.table}"))
    assert moved.startswith("CREATE TABLE IF NOT EXISTS `x`.`y``z` (\n")
    assert "COMMENT 'REFERENCES `p`'" in moved
    assert "REFERENCES `x`.`src_p` (`id`)" in moved
    assert created_name("CREATE TABLE `a``b`.`c` (x int)") == ("a`b", "c")
    assert without_counter(sql).endswith("ENGINE=InnoDB")
    told = "COMMENT='a TRANSACTIONAL=1'\n PARTITION BY KEY ()\n(PARTITION `p` ENGINE = Aria)"
    aria = f"CREATE TABLE `t` (\n  `a` int\n) ENGINE=Aria PAGE_CHECKSUM=1 ROW_FORMAT=PAGE TRANSACTIONAL=1 {told}"
    made = create_table(aria, "src", TableName("x", "t"), lambda name: name)
    assert made.endswith(f"\n) ENGINE=InnoDB PAGE_CHECKSUM=1 {told.replace('Aria', 'InnoDB')}")
    assert create_database(
        "CREATE DATABASE /*!32312 IF NOT EXISTS*/ `s` /*!40100 DEFAULT CHARACTER SET latin1 */", "n"
    ) == ("CREATE DATABASE IF NOT EXISTS `n` /*!40100 DEFAULT CHARACTER SET latin1 */")
