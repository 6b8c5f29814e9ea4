"""Batches with tied tables: never shuffled, one task where they are sliced, in order in safe mode."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from unshard.errors import SyncError, Where
from unshard.explain.examples import example_statements
from unshard.model.position import Location, Position
from unshard.model.table import Column, Index, Table, TableName
from unshard.mysql.connection import Endpoint
from unshard.sync.batch.plan import BatchPlan, BatchShape, TablePlan
from unshard.sync.planning import planner as planning
from unshard.sync.planning.planner import Planner
from unshard.sync.planning.target_plan import plan_target
from unshard.target.meta import MetaTables

COLUMNS = (Column("id", "int", "int(11)", nullable=False), Column("n", "int", "int(11)"))
KEYS = (Index("PRIMARY", ("id",), (0,), unique=True), Index("n", ("n",), (0,), unique=True))
PLANNER = Planner("s", MetaTables("m", "t"), Endpoint("h", 1, "u"), BatchShape(16, 100, slice_bytes=64 << 20), 9)


def table_plan(keys: int) -> TablePlan:
    table = Table(TableName("d", "t"), COLUMNS, KEYS[:keys])
    return TablePlan(table, plan_target(table, table, Where()))


def planned(
    table: TablePlan, size: int, monkeypatch: pytest.MonkeyPatch, *, safe: bool = False, planner: Planner = PLANNER
) -> BatchPlan:
    monkeypatch.setattr(planning, "_ranges", lambda work, pieces: ())
    monkeypatch.setattr(planning, "_slices", lambda work, size: ())
    begin = Position("b.000001", 4)
    log_range = SimpleNamespace(start=4, end=4 + size, row_events=0)
    work: Any = SimpleNamespace(begin=begin, end=Location(begin, ""), checksum=True, log_range=log_range, size=size)
    return planner.plan(work, (table,), 1, 1, safe=safe)


def test_tied_tables_are_not_shuffled(monkeypatch: pytest.MonkeyPatch) -> None:
    assert planned(table_plan(1), 32 << 20, monkeypatch).shuffled
    tied = planned(table_plan(2), 32 << 20, monkeypatch)
    assert not tied.shuffled
    assert tied.shares == 9


def test_nothing_is_shuffled_into_a_target_that_limits_connections(monkeypatch: pytest.MonkeyPatch) -> None:
    planner = replace(PLANNER, limited=True)
    assert not planned(table_plan(1), 32 << 20, monkeypatch, planner=planner).shuffled


def test_nothing_is_shuffled_without_receipts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Spark attempts a stage behind a shuffle again, and its tasks count their attempts anew."""
    planner = replace(PLANNER, exactly_once=False)
    plan = planned(table_plan(1), 32 << 20, monkeypatch, planner=planner)
    assert not plan.shuffled
    assert plan.shares == 9


def test_one_task_applies_the_slices_of_tied_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    assert planned(table_plan(1), 128 << 20, monkeypatch).shares == 9
    tied = planned(table_plan(2), 128 << 20, monkeypatch)
    assert tied.sliced
    assert tied.shares == 1


def test_slices_leave_a_slot_to_other_sources(monkeypatch: pytest.MonkeyPatch) -> None:
    several = replace(PLANNER, alone=False)
    assert planned(table_plan(1), 128 << 20, monkeypatch, planner=several).shares == 8
    assert planned(table_plan(1), 1 << 20, monkeypatch, planner=several).shares == 9
    single = replace(several, slots=1)
    assert planned(table_plan(1), 128 << 20, monkeypatch, planner=single).shares == 1


def test_safe_mode_keeps_tied_tables_in_order_and_refuses_families(monkeypatch: pytest.MonkeyPatch) -> None:
    tied = table_plan(2)
    (plan,) = planned(tied, 1000, monkeypatch, safe=True).tables
    assert plan.target.ordered
    assert not plan.target.tied
    family = replace(tied, target=replace(tied.target, ordered=True, family=tied.target.name))
    with pytest.raises(SyncError, match="SYNC-040"):
        planned(family, 1000, monkeypatch, safe=True)


def test_without_multiple_rows_an_explained_update_is_one() -> None:
    written = list(example_statements(table_plan(1), BatchShape(16, 100, multiple_rows=False), safe=False))
    assert [one.sql for one in written] == [
        "INSERT INTO `d`.`t` (`id`,`n`) VALUES (1,1)",
        "UPDATE `d`.`t` SET `id`=1,`n`=2 WHERE `id` IN (1) LIMIT 1",
        "DELETE FROM `d`.`t` WHERE `id` IN (1) LIMIT 1",
    ]
