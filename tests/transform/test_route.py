"""Routes: levels, kept names, folding, and the two rules that may not both match."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from unshard.config.rules import RouteRule
from unshard.errors import ConfigError
from unshard.model.table import TableName
from unshard.transform.pattern import Chosen
from unshard.transform.route import Router


def router(case_sensitive: bool = False, **rules: tuple[str, ...]) -> Router:
    """Rules as (schema pattern, table pattern or "", target schema, target table or "")."""
    keys = ("schema-pattern", "table-pattern", "target-schema", "target-table")
    return Router(
        {
            name: RouteRule.model_validate({key: text for key, text in zip(keys, texts, strict=True) if text})
            for name, texts in rules.items()
        },
        case_sensitive,
    )


SHOP: dict[str, Any] = {
    "orders": ("shop_*", "order_*", "shop", "orders"),
    "logs": ("shop_*", "log", "archive", ""),
    "rest": ("shop_*", "", "shop", ""),
    "other": ("~^x\\d+$", "~^t", "y", "t"),
}


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("shop_1.order_7", "shop.orders"),
        ("SHOP_1.Order_7", "shop.orders"),
        ("shop_1.log", "archive.log"),
        ("shop_1.Item", "shop.Item"),
        ("Plain.T", "Plain.T"),
        ("x12.t5", "y.t"),
        ("x12a.t5", "x12a.t5"),
        ("x12.u", "x12.u"),
    ],
)
def test_a_table_goes_by_its_table_rule_else_its_schema_rule_else_nowhere(name: str, expected: str) -> None:
    assert str(router(**SHOP).route(TableName(*name.split(".")))) == expected


@pytest.mark.parametrize(
    ("name", "chosen"),
    [
        ("shop_1.order_7", Chosen("orders", True, ("rest",))),
        ("shop_1.Item", Chosen("rest", False)),
        ("x12.t5", Chosen("other", True)),
        ("Plain.T", None),
    ],
)
def test_the_decision_says_its_rule_and_what_came_too_late(name: str, chosen: Chosen | None) -> None:
    assert router(**SHOP).choice(TableName(*name.split("."))) == chosen


@pytest.mark.parametrize(
    ("schema", "expected"), [("shop_9", "shop"), ("SHOP_9", "shop"), ("x12", "x12"), ("Other", "Other")]
)
def test_a_schema_goes_by_schema_rules_only(schema: str, expected: str) -> None:
    assert router(**SHOP).route_schema(schema) == expected


def test_case_counts_on_demand() -> None:
    assert router(True, **SHOP).route(TableName("SHOP_1", "order_1")) == TableName("SHOP_1", "order_1")


def test_the_names_that_may_be_routed_to_a_table() -> None:
    def origins(schema: str, table: str) -> list[tuple[str, str]]:
        found = router(**SHOP).origins(TableName(schema, table))
        return [tuple(one if isinstance(one, str) else one.text for one in pair) for pair in found]  # type: ignore[misc]

    assert origins("shop", "orders") == [("shop_*", "order_*"), ("shop_*", "orders"), ("shop", "orders")]
    assert origins("archive", "log") == [("shop_*", "log"), ("archive", "log")]
    assert origins("shop_1", "order_7") == []
    assert origins("elsewhere", "t") == [("elsewhere", "t")]


def test_no_rules() -> None:
    assert Router({}).route(TableName("a", "b")) == TableName("a", "b")
    assert Router({}).route_schema("a") == "a"


def test_two_table_rules_for_one_table_are_refused_with_their_names() -> None:
    both = router(r1=("a_*", "t_1", "x", "t"), r2=("a_1", "t_*", "y", "t"), s=("*", "", "z", ""))
    assert both.route(TableName("a_2", "t_1")) == TableName("x", "t")
    assert both.origins(TableName("a_1", "t_1")) == ()
    assert both.route(TableName("a_2", "t_2")) == TableName("z", "t_2")
    with pytest.raises(ConfigError) as caught:
        both.route(TableName("a_1", "t_1"))
    assert caught.value.code == "CONFIG-006"
    assert "a_1.t_1 matches more than one rule of `routes`: r1, r2" in str(caught.value)


def test_two_schema_rules_for_one_schema_are_refused() -> None:
    both = router(r1=("a?", "", "x", ""), r2=("?b", "", "y", ""), t=("ab", "t", "z", ""))
    with pytest.raises(ConfigError, match="ab matches more than one rule"):
        both.route_schema("ab")
    with pytest.raises(ConfigError, match=r"ab\.u matches more than one rule"):
        both.route(TableName("ab", "u"))
    assert both.route(TableName("ab", "t")) == TableName("z", "t")


def test_a_router_pickles() -> None:
    copy = pickle.loads(pickle.dumps(router(**SHOP)))
    assert copy.route(TableName("shop_1", "order_7")) == TableName("shop", "orders")
