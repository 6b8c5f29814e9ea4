"""Operators for a statement that was left out while its table waited: such an item has no statement of its own."""

from __future__ import annotations

from typing import cast

import pytest

from unshard.ddl.pieces import StatementRules
from unshard.ddl.tracker import SchemaTracker
from unshard.errors import DdlError
from unshard.model.position import Location, Position
from unshard.model.table import TableName
from unshard.shard.sequence import DdlItem
from unshard.sync.sharding.owner import operator_pieces
from unshard.target.operators import Operator, OperatorKind

BEGIN, END = Position("log.000001", 400), Position("log.000001", 500)
RULES = StatementRules(lambda name: True, lambda schema: True, lambda name: TableName("db", "t"), lambda schema: schema)
LEFT_OUT = DdlItem(Location(BEGIN), Location(END), (), {"before": {}, "statements": []})


class NoTables:
    """A tracker that knows no table."""

    def get(self, name: TableName) -> None:
        """Return the structure of a table: none."""


def pieces(sql: str) -> list[str]:
    operator = Operator(1, "s1", OperatorKind.REPLACE, BEGIN, (sql,))
    found = operator_pieces(operator, LEFT_OUT, cast(SchemaTracker, NoTables()), RULES)
    return [part.text for piece in found for part in piece.run]


def test_another_statement_comes_in_its_place() -> None:
    sql = "ALTER TABLE up.t_1 ADD COLUMN c INT"
    assert pieces(sql) == [sql]


def test_a_statement_that_can_not_be_given_is_refused_with_its_place() -> None:
    with pytest.raises(DdlError, match="DDL-026") as found:
        pieces("ALTER TABLE t_1 ADD COLUMN c INT")
    assert (found.value.where.source, found.value.where.position) == ("s1", str(BEGIN))
