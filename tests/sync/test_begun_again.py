"""A unit that begins again in the same process knows no more than what its checkpoint says, as after a death."""

from __future__ import annotations

from dataclasses import replace

from unshard.ddl.pieces import StatementRules
from unshard.ddl.sandbox import ScratchPlace
from unshard.ddl.tracker import SchemaTracker
from unshard.model.position import Location, Position
from unshard.model.table import Column, Index, Table, TableName
from unshard.sync.planning.table_plans import TableRules
from unshard.sync.planning.target_tables import TargetTables
from unshard.sync.statements.tracked_tables import TrackedTables
from unshard.target.checkpoint import Checkpoint, TableCheckpoint
from unshard.transform.block_allow import BlockAllowList
from unshard.transform.column_mapper import ColumnMapper
from unshard.transform.route import Router

ID, V = Column("id", "int", "int(11)", nullable=False), Column("v", "int", "int(11)")
OLD = Table(TableName("d", "t"), (ID,), (Index("PRIMARY", ("id",), (0,), unique=True),))
NEW = replace(OLD, columns=(ID, V))
LATER = replace(OLD, name=TableName("d", "later"))
BEGIN = Position("b.000001", 4)


def test_structures_of_behind_the_checkpoint_are_forgotten() -> None:
    """A statement that changes nothing in the target is durable only with the next checkpoint."""
    tracker = SchemaTracker(ScratchPlace("meta", "task", "s"))
    rules = StatementRules(lambda name: True, lambda schema: True, lambda name: name, lambda schema: schema)
    tables = TrackedTables("s", tracker, rules)
    checkpoint = Checkpoint(Location(BEGIN), {OLD.name: TableCheckpoint(OLD)})
    tables.restore(checkpoint)
    tracker.apply({OLD.name: NEW, LATER.name: LATER})
    tables.restore(checkpoint)
    assert tables.structure(OLD.name) == OLD
    assert tracker.names == {OLD.name}
    assert [tables.names_in(name) for name in (OLD.name, LATER.name)] == [1, 0]


def test_plans_are_made_anew() -> None:
    now = {"source": OLD, "target": OLD}
    rules = TableRules(
        "s",
        BlockAllowList(),
        Router({}),
        ColumnMapper({}),
        lambda name: now["source"],
        TargetTables(lambda name: now["target"]),
        {},
    )
    assert rules.plans([OLD.name], BEGIN)[0].target.columns == ("id",)
    now |= {"source": NEW, "target": NEW}
    rules.begin({OLD.name: Position("b.000001", 99)})
    (plan,) = rules.plans([OLD.name], BEGIN)
    assert (plan.table.columns, plan.target.columns) == (NEW.columns, ("id", "v"))
    assert plan.after == Position("b.000001", 99)
