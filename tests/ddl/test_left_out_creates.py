"""A CREATE OR REPLACE that a filter leaves out and the target can't run: the old structure counts no longer."""

from __future__ import annotations

from dataclasses import replace

import pytest

from unshard.ddl.context import Context
from unshard.ddl.parse import classify_ddl
from unshard.ddl.pieces import StatementRules, pieces
from unshard.ddl.prepare import PreparedDdl, prepare
from unshard.ddl.sandbox import ScratchPlace
from unshard.ddl.tracker import SchemaTracker
from unshard.model.position import Position
from unshard.model.table import Table, TableName
from unshard.testing.mariadb_server import MariadbServer

pytestmark = pytest.mark.server


def test_its_table_is_not_known(target_server: MariadbServer, schema: str) -> None:
    name = TableName(schema, "t")
    tracker = SchemaTracker(ScratchPlace("dm_meta", "task", "left"), schema_default=lambda schema: None)
    tracker.apply({name: Table(name, (), create_sql="CREATE TABLE `t` (`a` int)")})
    statement = "create or replace table t (b int) collate utf8mb4_of_no_server_ci"
    ddl = classify_ddl(statement, Context(schema, mariadb=True))
    rules = StatementRules(lambda name: True, lambda name: True, lambda name: name, lambda name: name)
    left = [replace(piece, run=()) for piece in pieces(ddl, rules, tracker.get)]
    connection = target_server.connection()
    begin, end = Position("bin.000001", 100), Position("bin.000001", 200)
    try:
        assert prepare(connection, left, tracker, rules, begin, end) == PreparedDdl({name: None}, None)
    finally:
        connection.close()
