"""The rules by which a table's rows are written, as the checkpoint records them: the text must not change."""

from __future__ import annotations

from dataclasses import replace

import pytest

from unshard.config.rules import BlockAllowRule, ColumnMappingRule, ExtractTable, RouteRule
from unshard.model.table import TableName
from unshard.transform.block_allow import BlockAllowList
from unshard.transform.column_mapper import ColumnMapper
from unshard.transform.event_filter import EventFilter
from unshard.transform.online_tables import OnlineTables
from unshard.transform.route import Router
from unshard.transform.source_rules import SourceRules, TableSelection
from unshard.worker.source_facts import rules_of

NAME = TableName("shop_1", "orders_2")
OWN = SourceRules(
    "s1",
    OnlineTables(),
    BlockAllowList(),
    TableSelection(BlockAllowRule()),
    TableSelection().judge(),
    Router({}),
    ColumnMapper({}),
    EventFilter({}),
    {},
)
MAPPED = {"schema_pattern": "shop_*", "table_pattern": "orders_*", "source_column": "ID", "target_column": "id"}


@pytest.mark.parametrize(
    ("expression", "arguments", "expected"),
    [
        ("partition id", ("1", "shop_", "orders_"), f"`id` = `id` | {1 << 59 | 1 << 52 | 2 << 44}"),
        ("add prefix", ("ä-",), '`id` = "ä-" `id` ""'),
        ("add suffix", ('"',), r'`id` = "" `id` "\""'),
    ],
)
def test_a_column_mapping(expression: str, arguments: tuple[str, ...], expected: str) -> None:
    rule = ColumnMappingRule.model_validate({**MAPPED, "expression": expression, "arguments": arguments})
    assert rules_of(NAME, replace(OWN, mapper=ColumnMapper({"m": rule}))) == f"`shop_1`.`orders_2`; {expected}"


def test_a_route_with_extracted_columns() -> None:
    rule = RouteRule(
        schema_pattern="shop_*",
        table_pattern="orders_*",
        target_schema="shop",
        target_table="orders",
        extract_table=ExtractTable(table_regexp="orders_(.*)", target_column="Shard"),
    )
    assert rules_of(NAME, replace(OWN, router=Router({"r": rule}))) == '`shop`.`orders`; `shard` = "2"'


def test_a_table_that_keeps_its_name() -> None:
    assert rules_of(NAME, OWN) == "`shop_1`.`orders_2`"
