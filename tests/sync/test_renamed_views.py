"""A RENAME TABLE of views and sequences, which the target has not, in a list with tables."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from unshard.binlog.query import QueryEvent
from unshard.binlog.transaction_range import PlainStatement
from unshard.ddl.pieces import StatementRules
from unshard.ddl.sandbox import ScratchPlace
from unshard.ddl.tracker import SchemaTracker
from unshard.errors import Where
from unshard.model.position import Location, Position
from unshard.model.table import Column, Table, TableName
from unshard.sync.source_log.reader import LoggedDdl
from unshard.sync.statements.reader import SourceTraits, StatementReader
from unshard.testing.mariadb_server import MariadbServer
from unshard.transform.event_filter import EventFilter
from unshard.worker.source_traits import read_traits


def run(sql: str, kinds: Mapping[str, str], tables: tuple[str, ...] = ("t", "u")) -> list[str]:
    """Return what runs on the target; `kinds` is what the source has now, `tables` what it had before."""
    rules = StatementRules(
        allows=lambda name: not name.table.startswith("shut"),
        allows_schema=lambda schema: True,
        route=lambda name: name,
        route_schema=lambda schema: schema,
    )
    tracker = SchemaTracker(ScratchPlace("dm_meta", "task", "s1"))
    names = [TableName("d", name) for name in tables]
    tracker.begin({name: Table(name, (Column("id", "int", "int(11)"),)) for name in names})
    traits = SourceTraits(True, False, "UTC", kind_of=lambda name: kinds.get(name.table, ""))
    reader = StatementReader("s1", traits, tracker, rules, EventFilter({}))
    statement = PlainStatement(QueryEvent("d", sql), 4, 50, 99, 0, "", 0, True)
    work = LoggedDdl(Position("binlog.000001", 4), Location(Position("binlog.000001", 99), ""), statement)
    found = reader.own(work, Where(source="s1", position="binlog.000001:4"), {}).found
    return [part.text for piece in found for part in piece.run]


VIEW, SEQUENCE, TABLE = "VIEW", "SEQUENCE", "BASE TABLE"


@pytest.mark.parametrize(
    ("sql", "kinds"),
    [
        ("RENAME TABLE v TO v_old, v_new TO v", {"v": VIEW, "v_old": VIEW}),
        ("RENAME TABLE v TO v_old, v_new TO v", {"v": VIEW}),  # the old one is dropped since
        ("RENAME TABLE v TO x, w TO v, x TO w", {"v": VIEW, "w": VIEW}),
        ("RENAME TABLE s TO s2", {"s2": SEQUENCE}),
        ("RENAME TABLE shut_v TO v", {"v": VIEW}),
    ],
)
def test_nothing_is_renamed_on_the_target(sql: str, kinds: dict[str, str]) -> None:
    assert run(sql, kinds) == []


@pytest.mark.parametrize(
    ("sql", "kinds", "left"),
    [
        ("RENAME TABLE t TO t2, v TO v2", {"t2": TABLE, "v2": VIEW}, ["RENAME TABLE `d`.`t` TO `d`.`t2`"]),
        ("RENAME TABLE t TO t2, v TO t", {"t2": TABLE, "t": VIEW}, ["RENAME TABLE `d`.`t` TO `d`.`t2`"]),
        ("RENAME TABLE t TO t2", {"t": VIEW}, ["RENAME TABLE t TO t2"]),  # a view of that name was made later
        (
            "RENAME TABLE t TO x, u TO t, x TO u",
            {"x": VIEW, "t": TABLE, "u": TABLE},
            ["RENAME TABLE t TO x", "RENAME TABLE u TO t", "RENAME TABLE x TO u"],
        ),
        ("RENAME TABLE unknown TO t2", {"t2": TABLE}, ["RENAME TABLE unknown TO t2"]),
    ],
)
def test_tables_are_renamed(sql: str, kinds: dict[str, str], left: list[str]) -> None:
    assert run(sql, kinds) == left


@pytest.mark.server
def test_the_source_tells_what_it_has_under_a_name(source_server: MariadbServer, schema: str) -> None:
    source_server.run(
        f"CREATE DATABASE {schema}",
        f"CREATE TABLE {schema}.t (id INT)",
        f"CREATE VIEW {schema}.v AS SELECT * FROM {schema}.t",
        f"CREATE SEQUENCE {schema}.s",
    )
    kind_of = read_traits(source_server.endpoint).kind_of
    found = [kind_of(TableName(schema, name)) for name in ("t", "v", "s", "none")]
    assert found == [TABLE, VIEW, SEQUENCE, ""]
