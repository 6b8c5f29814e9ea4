"""Row events of a sequence, by which a MariaDB logs that it has taken values, are left out."""

from __future__ import annotations

from contextlib import closing

import pytest

from support.log_to_target import Log
from support.task_runs import newest
from unshard.errors import SyncError
from unshard.model.position import Location, Position
from unshard.model.table import Column, Index, Table, TableName
from unshard.mysql.structure import is_sequence
from unshard.sync.planning.table_plans import SEQUENCE, TableRules
from unshard.sync.planning.target_tables import TargetTables
from unshard.sync.source_log.reader import TransactionRows, next_work
from unshard.testing.mariadb_server import MariadbServer
from unshard.transform.block_allow import BlockAllowList
from unshard.transform.column_mapper import ColumnMapper
from unshard.transform.route import Router

BEGIN = Position("b.000001", 4)
KEY = Index("PRIMARY", ("id",), (0,), unique=True)
TABLE = Table(TableName("d", "t"), (Column("id", "int", "int(11)", nullable=False),), (KEY,))
NUMBERS = TableName("d", "numbers")


def structure(name: TableName) -> Table:
    if name != TABLE.name:
        raise SyncError("SYNC-009")
    return TABLE


def rules(asked: list[TableName], sequences: set[TableName]) -> TableRules:
    def ask(name: TableName) -> bool:
        asked.append(name)
        return name in sequences

    targets = TargetTables(lambda name: TABLE)
    return TableRules("s1", BlockAllowList(), Router({}), ColumnMapper({}), structure, targets, {}, is_sequence=ask)


def test_a_sequence_is_left_out_and_asked_for_once() -> None:
    asked: list[TableName] = []
    ours = rules(asked, {NUMBERS})
    for _ in range(3):
        assert [plan.table.name for plan in ours.plans([NUMBERS, TABLE.name], BEGIN)] == [TABLE.name]
    assert ours.passes_over(NUMBERS) == SEQUENCE
    assert asked == [NUMBERS, TABLE.name]


def test_a_name_that_is_no_sequence_any_more_is_asked_for_again() -> None:
    asked: list[TableName] = []
    sequences = {NUMBERS}
    ours = rules(asked, sequences)
    ours.plans([NUMBERS], BEGIN)
    sequences.clear()
    ours.forget([NUMBERS])
    with pytest.raises(SyncError, match=r"SYNC-009[\s\S]*block-allow-list"):
        ours.plans([NUMBERS], BEGIN)
    sequences.add(NUMBERS)
    ours.begin({})
    assert ours.plans([NUMBERS], BEGIN) == ()
    assert asked == [NUMBERS] * 3


@pytest.mark.server
def test_which_names_are_sequences(source_server: MariadbServer, schema: str) -> None:
    source_server.run(f"CREATE DATABASE {schema}", f"CREATE TABLE {schema}.t (a INT)")
    source_server.run(f"CREATE SEQUENCE {schema}.numbers", f"CREATE VIEW {schema}.v AS SELECT 1")
    with closing(source_server.connection()) as connection:
        found = [name for name in ("t", "numbers", "v", "none") if is_sequence(connection, TableName(schema, name))]
    assert found == ["numbers"]
    begin = newest(source_server)
    source_server.query(f"SELECT NEXT VALUE FOR {schema}.numbers")
    work = next_work(Log(source_server), Location(begin, ""), newest(source_server), 1 << 20, "s1")
    assert isinstance(work, TransactionRows)
    assert work.log_range.tables == {TableName(schema, "numbers")}
