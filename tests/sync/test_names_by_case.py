"""Names that the target takes for one: what the check asks of the rules, with many tables."""

from __future__ import annotations

from collections import Counter

import pytest

from unshard.ddl.context import Context
from unshard.ddl.parse import classify_ddl
from unshard.ddl.pieces import AlterOperation, StatementRules
from unshard.ddl.sandbox import ScratchPlace
from unshard.ddl.tracker import SchemaTracker
from unshard.errors import DdlError
from unshard.model.table import TableName
from unshard.sync.statements.names_by_case import NamesByCase
from unshard.sync.statements.tracked_tables import TrackedTables


def test_only_names_that_are_new_or_gone_are_routed_again() -> None:
    """A log may make thousands of tables, beside thousands that are there."""
    routed = Counter[str]()

    def route(name: TableName) -> TableName:
        routed[name.table] += 1
        return name

    rules = StatementRules(lambda name: True, lambda name: True, route, lambda name: name)
    known = frozenset(TableName("shop", f"t{number}") for number in range(100))
    tables = TrackedTables("s1", SchemaTracker(ScratchPlace("dm_meta", "task", "s1")), rules, known, lazy=True)
    names = NamesByCase(tables, lambda targets: {}, lambda question: True)

    def refuse(sql: str) -> None:
        ddl = classify_ddl(sql, Context("shop"))
        names.refuse([AlterOperation(ddl, (ddl,))])

    refuse("CREATE TABLE a (id INT)")
    assert routed["t7"] == 1
    refuse("CREATE TABLE b (id INT)")
    refuse("DROP TABLE t8")
    assert routed["t7"] == 1
    with pytest.raises(DdlError, match="DDL-049"):
        refuse("CREATE TABLE T7 (id INT)")
    refuse("RENAME TABLE t7 TO t9_old, t9 TO t7")
    refuse("CREATE TABLE T10_old (id INT)")
