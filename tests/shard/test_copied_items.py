"""Sharding DDL on record: the structure from before a statement is not known where the table's copy has it."""

from __future__ import annotations

import json

import pytest

from unshard.ddl.context import Context
from unshard.ddl.parse import classify_ddl
from unshard.ddl.prepare import RoutedDdl, UpstreamTable
from unshard.model.position import Location, Position
from unshard.model.table import Column, Table, TableName
from unshard.shard.sequence import DdlItem
from unshard.sync.sharding.owner import item_payload, statements_of

CONTEXT = Context("shop")
ALTER = "ALTER TABLE shop.orders DROP COLUMN old, ADD COLUMN note INT"
SCHEMA = "CREATE DATABASE `shop`"
AT = Location(Position("mysql-bin.000001", 100), "")


def table(column: str) -> Table:
    return Table(TableName("shop_1", "orders_1"), tuple(Column(name, "int", "int(11)") for name in ("id", column)))


def upstream_on_record(before: Table | None, known: Table) -> UpstreamTable | None:
    met = [RoutedDdl(classify_ddl(ALTER, CONTEXT), UpstreamTable(known, SCHEMA))]
    payload = json.loads(json.dumps(item_payload(before, met)))
    (found,) = statements_of(DdlItem(AT, AT, (ALTER,), payload))
    assert found.ddl.text == ALTER
    return found.upstream


@pytest.mark.parametrize("known", [table("old"), table("other")])
def test_the_structure_before_a_statement_is_on_record(known: Table) -> None:
    assert upstream_on_record(table("old"), known) == UpstreamTable(known, SCHEMA)


def test_a_structure_from_behind_the_statement_is_not_taken_for_that_before_it() -> None:
    assert upstream_on_record(None, table("note")) == UpstreamTable(None, SCHEMA)


def test_nor_is_one_on_an_earlier_record() -> None:
    statement = [ALTER, CONTEXT.to_dict(), {"table": table("note").to_dict(), "schema": SCHEMA}]
    (found,) = statements_of(DdlItem(AT, AT, (ALTER,), {"before": None, "statements": [statement]}))
    assert found.upstream == UpstreamTable(None, SCHEMA)
