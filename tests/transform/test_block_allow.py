"""The block-allow list: one case for every cell of its table."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from unshard.config.rules import BlockAllowRule
from unshard.model.table import TableName
from unshard.mysql.structure import SYSTEM_SCHEMAS
from unshard.transform.block_allow import BlockAllowList, Passage
from unshard.transform.online_tables import OnlineTables


def allow_rule(lists: dict[str, Any]) -> BlockAllowRule:
    """Lists with `_` for `-`; tables as `schema.table` patterns."""
    keys: dict[str, Any] = {}
    for key, texts in lists.items():
        entries = [dict(zip(("db-name", "tbl-name"), text.split("."), strict=True)) for text in texts if "." in text]
        keys[key.replace("_", "-")] = entries if key.endswith("tables") else texts
    return BlockAllowRule.model_validate(keys)


def allow(case_sensitive: bool = False, **lists: Any) -> BlockAllowList:
    return BlockAllowList(allow_rule(lists), case_sensitive)


@pytest.mark.parametrize(
    ("lists", "schema", "expected"),
    [
        ({}, "a", True),
        ({"do_dbs": ["a*"]}, "ab", True),
        ({"do_dbs": ["a*"]}, "b", False),
        ({"do_dbs": ["a*"], "ignore_dbs": ["ab"]}, "ab", True),
        ({"ignore_dbs": ["a*"]}, "ab", False),
        ({"ignore_dbs": ["a*"]}, "b", True),
        ({"do_tables": ["a.t"]}, "b", True),
        ({"ignore_tables": ["a.*"]}, "a", True),
    ],
)
def test_schemas(lists: dict[str, Any], schema: str, expected: bool) -> None:
    assert allow(**lists).allows_schema(schema) == expected


@pytest.mark.parametrize(
    ("lists", "table", "expected"),
    [
        ({}, "a.t", True),
        ({"do_dbs": ["a"]}, "a.t", True),
        ({"do_dbs": ["a"]}, "b.t", False),
        ({"do_dbs": ["a"], "do_tables": ["b.t"]}, "b.t", False),
        ({"ignore_dbs": ["a"], "do_tables": ["a.t"]}, "a.t", False),
        ({"do_tables": ["a.t"]}, "a.t", True),
        ({"do_tables": ["a.t"]}, "a.u", False),
        ({"do_tables": ["a.t"], "ignore_tables": ["a.t"]}, "a.t", True),
        ({"do_tables": ["a.t"], "ignore_tables": ["a.u"]}, "a.u", False),
        ({"ignore_tables": ["a.t"]}, "a.t", False),
        ({"ignore_tables": ["a.t"]}, "a.u", True),
        ({"do_dbs": ["a"], "ignore_tables": ["a.t_*"]}, "a.t_1", False),
        ({"do_dbs": ["a"], "ignore_tables": ["a.t_*"]}, "a.u", True),
        ({"do_tables": ["*_shop.*_log"]}, "my_shop.a_log", True),
        ({"do_tables": ["*_shop.t?x"]}, "my_shop.tax", True),
        ({"do_tables": ["~^s.~g$"]}, "shop.log", True),
        ({"do_tables": ["~^s.~g$"]}, "shop.logs", False),
        ({"do_tables": ["A.T"]}, "a.t", True),
    ],
)
def test_tables(lists: dict[str, Any], table: str, expected: bool) -> None:
    assert allow(**lists).allows(TableName(*table.split("."))) == expected


def test_case_counts_on_demand() -> None:
    assert not allow(True, do_dbs=["Shop"]).allows_schema("shop")
    assert allow(True, do_dbs=["Shop"]).allows_schema("Shop")


@pytest.mark.parametrize("schema", sorted(SYSTEM_SCHEMAS))
def test_system_schemas_never_pass(schema: str) -> None:
    for name in (schema, schema.upper()):
        assert not allow(True, do_dbs=[name], do_tables=[f"{name}.*"]).allows_schema(name)
        assert not allow(do_tables=[f"{name}.*"]).allows(TableName(name, "t"))
        assert not BlockAllowList().allows_schema(name)


def test_a_list_pickles() -> None:
    copy = pickle.loads(pickle.dumps(allow(do_dbs=["a"])))
    assert copy.allows_schema("a")
    assert not copy.allows_schema("b")


LISTS = {"do_dbs": ["a*"], "do_tables": ["a.t", "a.w_*"], "ignore_tables": ["a.x"]}


@pytest.mark.parametrize(
    ("lists", "table", "passage"),
    [
        (LISTS, "mysql.user", Passage(False, "system schema")),
        (LISTS, "b.t", Passage(False, "do-dbs")),
        (LISTS, "a.w_1", Passage(True, "do-tables[1]", "a.w_*")),
        (LISTS, "a.x", Passage(False, "ignore-tables[0]", "a.x")),
        (LISTS, "a.u", Passage(False, "do-tables")),
        (LISTS, "a._t_gho", Passage(False, "online DDL")),
        ({"ignore_dbs": ["b", "c*"]}, "cd.t", Passage(False, "ignore-dbs[1]", "c*")),
        ({"do_dbs": ["b", "c*"]}, "cd.t", Passage(True, "do-dbs[1]", "c*")),
        ({}, "a.t", Passage(True)),
    ],
)
def test_the_decision_says_its_reason(lists: dict[str, Any], table: str, passage: Passage) -> None:
    found = BlockAllowList(allow_rule(lists), online=OnlineTables.compile(["^_(.+)_gho$"], []))
    assert found.judge(TableName(*table.split("."))) == passage
