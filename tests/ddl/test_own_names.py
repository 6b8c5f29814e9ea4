"""Names that a server makes from a table's: they go with the table's, and no other name does."""

from __future__ import annotations

import pytest

from unshard.ddl.context import Context
from unshard.ddl.own_names import as_it_has, without_own_names
from unshard.ddl.parse import classify_ddl
from unshard.ddl.rewrite import routed
from unshard.load.create_statements import create_table
from unshard.model.table import Table, TableName

MERGED = TableName("all", "t`s")


def on_target(sql: str) -> str:
    return routed(classify_ddl(sql, Context("s")), lambda name: MERGED, lambda schema: schema).text


@pytest.mark.parametrize(
    ("sql", "wanted"),
    [
        ("ALTER TABLE t_0 DROP CHECK t_0_chk_1", "DROP CHECK `t``s_chk_1`"),
        ("alter table `t_0` drop constraint if exists `T_0_chk_12`, add c int", "exists `t``s_chk_12`, add c int"),
        ("ALTER TABLE s.t_0 DROP FOREIGN KEY t_0_ibfk_2, DROP KEY t_0_ibfk_2", "`t``s_ibfk_2`, DROP KEY `t``s_ibfk_2`"),
        ("ALTER TABLE t_0 ALTER CHECK t_0_chk_1 NOT ENFORCED", "CHECK `t``s_chk_1` NOT ENFORCED"),
        ("DROP INDEX t_0_ibfk_1 ON t_0", "DROP INDEX `t``s_ibfk_1` ON `all`.`t``s`"),
        ("CREATE TABLE t_0 (a INT, CONSTRAINT t_0_chk_1 CHECK (a > 0))", "CONSTRAINT `t``s_chk_1` CHECK"),
    ],
)
def test_names_of_the_table_get_its_new_one(sql: str, wanted: str) -> None:
    assert wanted in on_target(sql)


@pytest.mark.parametrize(
    "rest",
    [
        "DROP CHECK t_1_chk_1",
        "DROP CHECK t_0_chk_x",
        "DROP COLUMN t_0_chk_1",
        "ADD CONSTRAINT t_0_chk_1 CHECK (id > 0)",
        "COMMENT 'DROP CHECK t_0_chk_1'",
        "DROP PRIMARY KEY",
    ],
)
def test_others_stay(rest: str) -> None:
    assert on_target(f"ALTER TABLE t_0 {rest}") == f"ALTER TABLE `all`.`t``s` {rest}"


def test_a_table_may_have_the_names_of_another() -> None:
    ddl = classify_ddl("ALTER TABLE t DROP CHECK t_chk_1, DROP CHECK t_chk_2, DROP CHECK t_chk_3", Context("s"))
    text = "CREATE TABLE `t` (\n  CONSTRAINT `t_5_chk_1` CHECK (1),\n  CONSTRAINT `t_chk_2` CHECK (2)\n)"
    found = as_it_has(ddl, Table(TableName("s", "t"), (), create_sql=text), ("t_4", "t_5"))
    assert found == "ALTER TABLE t DROP CHECK `t_5_chk_1`, DROP CHECK `t_chk_2`, DROP CHECK t_chk_3"


def test_structures_under_two_names() -> None:
    text = "CREATE TABLE `t_{0}` (\n  `a` int,\n  CONSTRAINT `t_{0}_chk_1` CHECK (`a` > 0)\n)"
    first, second = (Table(TableName("s", f"t_{n}"), (), create_sql=text.format(n)) for n in (0, 1))
    assert without_own_names(first) == without_own_names(second).replace("`t_1`", "`t_0`")
    made = create_table(first.create_sql, "s", MERGED, lambda name: name)
    assert "CONSTRAINT `t``s_chk_1` CHECK" in made
