"""The event filter judges what an online DDL tool ran by the tool's own statement, not by the RENAME at its end."""

from __future__ import annotations

from typing import Any

import pytest

from unshard.binlog.query import QueryEvent
from unshard.binlog.transaction_range import PlainStatement
from unshard.config.rules import FilterRule
from unshard.config.task import TaskConfig
from unshard.ddl.context import Context
from unshard.ddl.online import Kept, OnlineDdl
from unshard.ddl.pieces import StatementRules
from unshard.ddl.sandbox import ScratchPlace
from unshard.ddl.tracker import SchemaTracker
from unshard.errors import DdlError, Where
from unshard.model.position import Location, Position
from unshard.model.table import TableName
from unshard.sync.source_log.reader import LoggedDdl
from unshard.sync.statements.reader import SourceTraits, StatementReader
from unshard.transform.event_filter import EventFilter
from unshard.transform.online_tables import OnlineTables

FIELDS = TaskConfig.model_fields
TABLES = OnlineTables.compile(FIELDS["shadow_table_rules"].default, FIELDS["trash_table_rules"].default)
GHOST = TableName("shop", "_t_gho")
CUT_OVER = "RENAME TABLE shop.t TO shop._t_del, shop._t_gho TO shop.t"


def run(rule: dict[str, Any], *kept: str, at: str = CUT_OVER) -> list[str]:
    """Return what runs on the target at the tool's RENAME, after these statements on its ghost table."""
    rules = StatementRules(
        allows=lambda name: True,
        allows_schema=lambda schema: True,
        route=lambda name: name,
        route_schema=lambda schema: schema,
        online=OnlineDdl(TABLES, {GHOST: tuple(Kept(sql, Context("shop")) for sql in kept)} if kept else {}),
    )
    events = EventFilter({"f": FilterRule.model_validate({"schema-pattern": "*", "action": "Ignore", **rule})})
    tracker = SchemaTracker(ScratchPlace("dm_meta", "task", "s1"))
    reader = StatementReader("s1", SourceTraits(True, False, "UTC"), tracker, rules, events)
    statement = PlainStatement(QueryEvent("shop", at), 4, 50, 99, 0, "", 0, True)
    work = LoggedDdl(Position("binlog.000001", 4), Location(Position("binlog.000001", 99), ""), statement)
    found = reader.own(work, Where(source="s1", position="binlog.000001:4"), {}).found
    return [part.text for piece in found for part in piece.run]


def test_an_alter_that_a_rule_stops_stops_the_task_at_the_cut_over() -> None:
    guard = {"sql-pattern": [r"DROP\s+COLUMN"], "action": "Error"}
    with pytest.raises(DdlError) as caught:
        run(guard, "ALTER TABLE shop._t_gho DROP COLUMN secret")
    assert caught.value.code == "DDL-020"
    assert "ALTER TABLE shop._t_gho DROP COLUMN secret" in str(caught.value)
    assert caught.value.where.table == "shop.t"


@pytest.mark.parametrize(
    ("rule", "left"),
    [
        ({"sql-pattern": [r"DROP\s+COLUMN"]}, 0),
        ({"sql-pattern": ["_t_gho`? DROP"]}, 0),  # as the source logged it
        ({"sql-pattern": ["^RENAME"]}, 1),
        ({"events": ["alter table", "drop column"], "sql-pattern": ["^ALTER"], "action": "Do"}, 1),
        ({"events": ["alter table", "drop column"], "sql-pattern": ["^RENAME"], "action": "Do"}, 0),
    ],
)
def test_the_text_that_a_pattern_is_tried_on_is_that_of_the_tools_statement(rule: dict[str, Any], left: int) -> None:
    found = run(rule, "ALTER TABLE shop._t_gho DROP COLUMN secret")
    assert found == ["ALTER TABLE `shop`.`t` DROP COLUMN secret"] * left


def test_each_of_several_statements_is_judged_by_its_own_text() -> None:
    kept = ("ALTER TABLE shop._t_gho ADD a INT", "CREATE INDEX i ON shop._t_gho (a)")
    assert run({"sql-pattern": ["^CREATE"]}, *kept) == ["ALTER TABLE `shop`.`t` ADD a INT"]


def test_several_parts_of_the_tools_alter_are_a_multi_schema_change() -> None:
    several = {"events": ["multi schema change"]}
    assert run(several, "ALTER TABLE shop._t_gho ADD a INT, ADD b INT") == []
    assert run(several, "ALTER TABLE shop._t_gho ADD a INT") == ["ALTER TABLE `shop`.`t` ADD a INT"]


def test_parts_beside_the_rename_are_judged_by_the_statement_that_they_stand_in() -> None:
    beside = "ALTER TABLE shop._t_gho ADD a INT, RENAME TO shop.t"
    assert run({"sql-pattern": ["RENAME TO"]}, at=beside) == []
    assert run({"events": ["multi schema change"]}, at=beside) == []
