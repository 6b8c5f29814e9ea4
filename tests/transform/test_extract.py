"""Columns filled from a source's names: what is taken, what a target's column makes of it, what mends a target."""

from __future__ import annotations

import pickle
from typing import Any

import pyarrow as pa
import pytest

from unshard.config.rules import RouteRule
from unshard.errors import ConfigError, Where
from unshard.kernels.literals import render
from unshard.model.table import Column, Index, Table, TableName
from unshard.transform.extract import Extracted, append_constants, constants, mending, with_constants
from unshard.transform.route import Router

NAME = TableName("all", "t")
ID = Column("id", "bigint", "bigint(20)", nullable=False)
TEXT = Column("c", "varchar", "varchar(4)", charset="utf8mb4", collation="utf8mb4_bin", length=4)
KEYS = (Index("PRIMARY", ("id",), (0,), unique=True), Index("u", ("a", "b"), (0, 7), unique=True))
UPSTREAM = Table(TableName("s_1", "t_1"), (ID,), KEYS, "CREATE TABLE `t_1` (\n  `id` bigint(20)\n) ENGINE=InnoDB")


def router(**parts: Any) -> Router:
    rules = {
        "tables": {"schema-pattern": "shop_*", "table-pattern": "t_*", "target-schema": "x", "target-table": "t"},
        "schemas": {"schema-pattern": "*", "target-schema": "x"},
    }
    for name, extraction in parts.items():
        rules[name] |= extraction
    return Router({name: RouteRule.model_validate(rule) for name, rule in rules.items()})


def part(of: str, regexp: str, column: str) -> dict[str, Any]:
    return {f"extract-{of}": {f"{of}-regexp": regexp, "target-column": column}}


def test_all_groups_make_the_value_in_the_order_of_table_schema_source() -> None:
    rule = part("source", "^db-(..)-(\\d+)$", "s") | part("schema", "shop_(.*)", "d") | part("table", "_(.*)", "t")
    found = pickle.loads(pickle.dumps(router(tables=rule))).extracted(TableName("shop_1", "t_X_2"), "db-eu-07")
    assert [(one.rule, one.column, one.value) for one in found if one.column != "d"] == [
        ("tables", "t", "X_2"),
        ("tables", "s", "eu07"),
    ]


def test_expressions_heed_case_and_a_name_that_one_does_not_match_is_refused() -> None:
    found = router(tables=part("schema", "shop_(.*)", "d"))
    assert found.extracted(TableName("shop_1", "t_1"), "s") == (Extracted("tables", "d", "1"),)
    with pytest.raises(ConfigError) as caught:
        found.extracted(TableName("SHOP_1", "t_1"), "s")
    assert (caught.value.code, str(caught.value.where)) == ("CONFIG-016", "source s, table SHOP_1.t_1")
    assert "extract-schema finds nothing in `SHOP_1`: shop_(.*)" in caught.value.message


def test_the_rule_that_routes_the_table_is_asked_alone() -> None:
    found = router(schemas=part("schema", "(.*)", "d"))
    assert found.extracted(TableName("shop_1", "t_1"), "s") == ()
    assert found.extracted(TableName("shop_1", "u"), "s") == (Extracted("schemas", "d", "shop_1"),)
    assert Router({}).extracted(NAME, "s") == ()


def test_groups_that_took_no_part_add_nothing() -> None:
    found = router(tables=part("table", "t(_(a)|_(b))?(.*)", "c"))
    assert found.extracted(TableName("shop_1", "t_b1"), "s")[0].value == "_bb1"


def column(kind: str, definition: str, **keys: Any) -> Column:
    return Column("c", kind, definition, **keys)


@pytest.mark.parametrize(
    ("there", "text", "literal"),
    [
        (TEXT, "it's", rb"'it\'s'"),
        (column("tinyint", "tinyint(4)"), "0127", b"127"),
        (column("bigint", "bigint(20) unsigned"), str(2**64 - 1), b"18446744073709551615"),
        (column("enum", "enum('a','b')", members=("a", "b"), charset="utf8mb4"), "b", b"'b'"),
        (column("varbinary", "varbinary(4)", length=4), "é1", b"x'c3a931'"),
        (column("binary", "binary(3)", length=3), "a", b"x'610000'"),
    ],
)
def test_a_value_in_the_form_of_its_column(there: Column, text: str, literal: bytes) -> None:
    (found,) = constants([Extracted("r", "C", text)], UPSTREAM, NAME, Table(NAME, (ID, there)), Where())
    batch = append_constants(pa.record_batch({"id": pa.array([1, 2], pa.int64())}), [found])
    assert render([batch.column(1)], [b""], b";").to_pylist() == [literal + b";"] * 2
    assert with_constants(UPSTREAM, [found]).columns == (ID, found.column)


@pytest.mark.parametrize(
    ("there", "text", "fault"),
    [
        (TEXT, "12345", "column c is varchar(4), '12345' is longer"),
        (column("tinyint", "tinyint(4)"), "128", "column c is tinyint(4), 128 is larger"),
        (column("int", "int(11)"), "x", "column c is int(11), 'x' is no number"),
        (column("int", "int(11)"), "", "column c is int(11), '' is no number"),
        (column("enum", "enum('a')", members=("a",)), "A", "column c is enum('a'), which has no member 'A'"),
        (column("varbinary", "varbinary(2)", length=2), "é1", "column c is varbinary(2), 'é1' is longer"),
        (column("decimal", "decimal(9,0)"), "1", "a text, an integer, bytes or an ENUM is needed"),
        (column("int", "int(11)", generated=True), "1", "column c is a generated one"),
    ],
)
def test_a_value_that_its_column_does_not_take(there: Column, text: str, fault: str) -> None:
    with pytest.raises(ConfigError) as caught:
        constants([Extracted("r", "c", text)], UPSTREAM, NAME, Table(NAME, (ID, there)), Where("s1", "s_1.t_1"))
    assert caught.value.code == "CONFIG-017"
    assert fault in caught.value.message


def test_the_sources_own_column_is_not_overwritten() -> None:
    with pytest.raises(ConfigError, match="column ID is one of the source's own"):
        constants([Extracted("r", "ID", "1")], UPSTREAM, NAME, Table(NAME, (ID,)), Where())


def test_a_target_without_the_columns_is_mended_keys_and_all() -> None:
    target = Table(NAME, (ID,), KEYS)
    with pytest.raises(ConfigError) as caught:
        constants([Extracted("r", "c", "1"), Extracted("r", "d", "2")], UPSTREAM, NAME, target, Where())
    assert "it has no column c; it has no column d" in caught.value.message
    mend = (
        "ALTER TABLE `all`.`t` ADD COLUMN `c` VARCHAR(64) NOT NULL, ADD COLUMN `d` VARCHAR(64) NOT NULL, "
        "DROP PRIMARY KEY, ADD PRIMARY KEY (`id`, `c`, `d`), DROP INDEX `u`, ADD UNIQUE `u` (`a`, `b`(7), `c`, `d`)"
    )
    assert caught.value.values["mend"] == mend
    assert mend in caught.value.hint


def test_a_target_that_is_not_there_is_made_like_the_source() -> None:
    there = "CREATE DATABASE IF NOT EXISTS `all`; CREATE TABLE `all`.`t`"
    text = mending(None, UPSTREAM, NAME, ["c"])
    assert text == f"{there} (\n  `id` bigint(20),\n  `c` VARCHAR(64) NOT NULL\n) ENGINE=InnoDB"
    assert mending(None, None, NAME, ["c"]) == (
        f"{there} with the source's columns,\n  `c` VARCHAR(64) NOT NULL and these in each of its unique keys"
    )
    assert constants((), UPSTREAM, NAME, None, Where()) == ()


def test_a_clustered_primary_key_can_not_be_dropped_so_the_table_is_made_anew() -> None:
    text = (
        "CREATE TABLE `t` (\n  `id` bigint(20) NOT NULL COMMENT 'a,',\n  `b,` text DEFAULT NULL,\n"
        "  PRIMARY KEY (`id`) /*T![clustered_index] CLUSTERED */,\n  KEY `k` (`id`),\n"
        "  UNIQUE KEY `u(` (`id`,`b,`(7)),\n  UNIQUE KEY `e` ((`id` + 1))\n) ENGINE=InnoDB"
    )
    assert mending(Table(NAME, (ID,), KEYS, create_sql=text), UPSTREAM, NAME, ["c", "d"]) == (
        "RENAME TABLE `all`.`t` TO `all`.`t_without_extract`; "
        "CREATE TABLE `all`.`t` (\n  `id` bigint(20) NOT NULL COMMENT 'a,',\n  `b,` text DEFAULT NULL,\n"
        "  `c` VARCHAR(64) NOT NULL,\n  `d` VARCHAR(64) NOT NULL,\n"
        "  PRIMARY KEY (`id`,`c`,`d`) /*T![clustered_index] CLUSTERED */,\n  KEY `k` (`id`),\n"
        "  UNIQUE KEY `u(` (`id`,`b,`(7),`c`,`d`),\n  UNIQUE KEY `e` ((`id` + 1))\n) ENGINE=InnoDB"
    )
