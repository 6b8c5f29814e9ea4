"""A rule leaves out an UPDATE: the target's row keeps a value of a unique key that no image of a later batch shows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from support.log_to_target import SOURCE, Carrier, Way
from unshard.model.change import Op
from unshard.model.position import Location
from unshard.sync.batch.plan import BatchShape
from unshard.sync.batch.stored_plan import RowsRecord, digests, record_of
from unshard.sync.planning.planner import Planner, in_log_order
from unshard.sync.planning.table_plans import TableRules
from unshard.sync.source_log.reader import TransactionRows, next_work
from unshard.target import receipts
from unshard.testing.mariadb_server import MariadbServer
from unshard.transform.expressions.filter import ExpressionFilter
from unshard.transform.row_filter import EventRowFilter, RowFilter

pytestmark = pytest.mark.server
DRAFTS = ExpressionFilter("e", ((Op.UPDATE_BEFORE, "status = 'draft'"), (Op.UPDATE_AFTER, "status = 'draft'")))


@pytest.fixture
def carrier(source_server: MariadbServer, target_server: MariadbServer, schema: str) -> Iterator[Carrier]:
    """A table with the draft (1, 'a') at both ends."""
    for server in (source_server, target_server):
        server.run(
            f"CREATE DATABASE {schema}",
            f"CREATE TABLE {schema}.t (id INT PRIMARY KEY, slug VARCHAR(9) UNIQUE, status VARCHAR(9))",
            f"INSERT INTO {schema}.t VALUES (1, 'a', 'draft')",
        )
    target_server.run(f"CREATE DATABASE {schema}_meta")
    found = Carrier(source_server, target_server, f"{schema}_meta")
    yield found
    found.close()


def filtered(carrier: Carrier, rule: RowFilter) -> TableRules:
    return replace(carrier.rules(), row_filters=lambda table: (rule,))


def work_from(carrier: Carrier, begin: Location) -> TransactionRows:
    work = next_work(carrier.log, begin, carrier.now(), 1 << 20, SOURCE)
    assert isinstance(work, TransactionRows)
    return work


def carried(carrier: Carrier, rules: TableRules, partitions: int, begin: Location) -> Location:
    """One batch of all that the log has by now; its end."""
    work = work_from(carrier, begin)
    planner = Planner(SOURCE, carrier.meta, carrier.endpoint, BatchShape(partitions, 100), 2, "stop", here=False)
    tables = rules.plans(work.log_range.tables, work.begin)
    plan = planner.plan(work, tables, carrier.claim.epoch, next(carrier.numbers))
    carrier._apply((plan, Way()))
    return work.end


DRAFT_IS_MOVED = ["UPDATE {}.t SET slug = 'b' WHERE id = 1"]
CASES: list[tuple[RowFilter, list[str], list[tuple[object, ...]]]] = [
    (
        DRAFTS,
        ["UPDATE {}.t SET status = 'paid' WHERE id = 1", "INSERT INTO {}.t VALUES (2, 'a', 'new')"],
        [(1, "b", "paid"), (2, "a", "new")],
    ),
    (
        EventRowFilter("filters.no-update", ("update",)),
        ["DELETE FROM {}.t WHERE id = 1", "INSERT INTO {}.t VALUES (2, 'a', 'new')"],
        [(2, "a", "new")],
    ),
]


@pytest.mark.parametrize("partitions", [1, 4])
@pytest.mark.parametrize(("rule", "later", "wanted"), CASES)
def test_a_later_batch_keeps_the_order_of_the_log(
    rule: RowFilter,
    later: list[str],
    wanted: list[tuple[object, ...]],
    partitions: int,
    carrier: Carrier,
    schema: str,
) -> None:
    rules = filtered(carrier, rule)
    carrier.source.run(*(sql.format(schema) for sql in DRAFT_IS_MOVED))
    end = carried(carrier, rules, partitions, Location(carrier.begin))
    carrier.source.run(*(sql.format(schema) for sql in later))
    carried(carrier, rules, partitions, end)
    assert carrier.target.query(f"SELECT * FROM {schema}.t ORDER BY id") == wanted


def test_a_batch_that_an_earlier_version_left_open_is_finished_as_it_was_planned(carrier: Carrier, schema: str) -> None:
    carrier.source.run(f"UPDATE {schema}.t SET status = 'paid' WHERE id = 1")
    rules, work = filtered(carrier, DRAFTS), work_from(carrier, Location(carrier.begin))
    planner = Planner(SOURCE, carrier.meta, carrier.endpoint, BatchShape(1, 100), 2, "stop", here=False)
    tables = rules.plans(work.log_range.tables, work.begin)
    assert not tables[0].target.ordered
    now = planner.plan(work, tables, carrier.claim.epoch, 1)
    assert now.tables == in_log_order(tables)
    assert now.tables[0].target.ordered
    for plan, version in ((now, 4), (replace(now, tables=tables), 3)):
        form = {**record_of(plan), "version": version, "tables": digests(plan, version), "end_gtid": ""}
        kept = RowsRecord.of(receipts.OpenBatch(1, work.begin, work.end.position, form))
        assert planner.plan_again(work, tables, carrier.claim.epoch, 1, kept).tables == plan.tables


def test_a_table_with_one_unique_key_does_not(carrier: Carrier, schema: str) -> None:
    for server in (carrier.source, carrier.target):
        server.run(f"ALTER TABLE {schema}.t DROP KEY slug")
    carrier.begin = carrier.now()
    carrier.source.run(f"UPDATE {schema}.t SET status = 'paid' WHERE id = 1")
    work = work_from(carrier, Location(carrier.begin))
    (table,) = in_log_order(filtered(carrier, DRAFTS).plans(work.log_range.tables, work.begin))
    assert not table.target.ordered
