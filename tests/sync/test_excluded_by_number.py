"""Changes that an operator excludes by their numbers in the log: the same ones in every attempt."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from support.log_to_target import SOURCE, Carrier, _own
from unshard.model.position import Location, Position
from unshard.sync.batch.plan import BatchPlan, BatchShape
from unshard.sync.batch.stored_plan import RowsRecord, record_of
from unshard.sync.planning import planner as planning
from unshard.sync.planning.operators import as_kept, leave_out
from unshard.sync.planning.planner import Planner
from unshard.sync.source_log.reader import TransactionRows, next_work
from unshard.target import receipts
from unshard.target.operators import Operator, OperatorKind
from unshard.testing.mariadb_server import MariadbServer

pytestmark = pytest.mark.server
TABLE = "(id INT PRIMARY KEY, u INT UNIQUE)"


@pytest.fixture
def carrier(source_server: MariadbServer, target_server: MariadbServer, schema: str) -> Iterator[Carrier]:
    """A table with the row (1, 1) at both ends."""
    for server in (source_server, target_server):
        server.run(
            f"CREATE DATABASE {schema}", f"CREATE TABLE {schema}.t {TABLE}", f"INSERT INTO {schema}.t VALUES (1, 1)"
        )
    target_server.run(f"CREATE DATABASE {schema}_meta")
    found = Carrier(source_server, target_server, f"{schema}_meta")
    yield found
    found.close()


def work_of(carrier: Carrier) -> TransactionRows:
    work = next_work(carrier.log, Location(carrier.begin), carrier.now(), 1 << 20, SOURCE)
    assert isinstance(work, TransactionRows)
    return work


def planner_of(carrier: Carrier, partitions: int, *, slots: int = 2) -> Planner:
    shape = BatchShape(partitions, 100, slice_bytes=64 << 20)
    return Planner(SOURCE, carrier.meta, carrier.endpoint, shape, slots, "stop", here=False)


def without(plan: BatchPlan, work: TransactionRows, *skipped: Position) -> BatchPlan:
    operators = [Operator(number, SOURCE, OperatorKind.SKIP, at) for number, at in enumerate(skipped, 1)]
    found, used = leave_out(plan, work, operators, {})
    assert used == {1: "left out: 1 changes"}
    return found


def opened(carrier: Carrier, plan: BatchPlan) -> receipts.OpenBatch:
    batch = receipts.OpenBatch(1, plan.begin, plan.end, {**record_of(plan), "end_gtid": ""})
    receipts.open_batch(carrier.ends[1], carrier.meta, SOURCE, plan.epoch, batch, plan.shape.partitions)
    return batch


@pytest.mark.parametrize("partitions", [1, 4])
def test_a_value_that_only_the_targets_row_has_is_taken_over_in_order(
    partitions: int, carrier: Carrier, schema: str
) -> None:
    at = carrier.now()
    carrier.source.run(
        f"UPDATE {schema}.t SET u = 2 WHERE id = 1",
        f"UPDATE {schema}.t SET u = 3 WHERE id = 1",
        f"INSERT INTO {schema}.t VALUES (2, 1)",
    )
    work = work_of(carrier)
    tables = carrier.rules().plans(work.log_range.tables, work.begin)
    plan = without(planner_of(carrier, partitions).plan(work, tables, carrier.claim.epoch, 1, whole=True), work, at)
    opened(carrier, plan)
    _own(plan)
    assert carrier.target.query(f"SELECT * FROM {schema}.t ORDER BY id") == [(1, 3), (2, 1)]


def test_a_batch_from_which_changes_are_excluded_is_not_cut(
    carrier: Carrier, schema: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process that takes it up counts the changes of one range."""
    monkeypatch.setattr(planning, "SHUFFLE_BYTES", 1)
    for end in (carrier.source, carrier.target):
        end.run(f"ALTER TABLE {schema}.t DROP KEY u")
    carrier.begin = carrier.now()
    places = []
    for number in range(10, 40):
        places.append(carrier.now())
        carrier.source.run(f"INSERT INTO {schema}.t VALUES ({number}, {number})")
    work = work_of(carrier)
    tables = carrier.rules().plans(work.log_range.tables, work.begin)
    planner = planner_of(carrier, 3, slots=8)
    assert planner.plan(work, tables, carrier.claim.epoch, 1).shuffled
    plan = planner.plan(work, tables, carrier.claim.epoch, 1, whole=True)
    assert not plan.shuffled
    plan = without(plan, work, places[25])
    kept = RowsRecord.of(opened(carrier, plan))
    again = planner.plan_again(work, as_kept(tables, kept), carrier.claim.epoch, 1, kept)
    _own(again)
    _own(replace(plan, epoch=again.epoch))
    wanted = [(1, 1), *((number, number) for number in range(10, 40) if number != 35)]
    assert carrier.target.query(f"SELECT * FROM {schema}.t ORDER BY id") == wanted


def test_the_second_attempt_of_a_batch_without_receipts_is_planned_for_safe_mode(carrier: Carrier, schema: str) -> None:
    carrier.source.run(f"UPDATE {schema}.t SET u = 2 WHERE id = 1")
    work = work_of(carrier)
    tables = tuple(
        replace(table, kept=frozenset({"u"})) for table in carrier.rules().plans(work.log_range.tables, work.begin)
    )
    planner = planner_of(carrier, 1)
    plan = planner.plan(work, tables, carrier.claim.epoch, 1)
    wanted = planner.plan(work, tables, carrier.claim.epoch, 1, safe=True)
    assert planner.in_safe_mode(plan) == wanted
    assert plan.tables != wanted.tables
