"""The binlog of a real source carried to a real target by the pipeline's own steps, in any of its ways; no Spark."""

from __future__ import annotations

import itertools
import pickle
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from unshard.errors import Where, error_from_dict
from unshard.model.change import LOG_ORDER
from unshard.model.position import Location, Position
from unshard.model.table import Table, TableName
from unshard.mysql.structure import families, read_table
from unshard.sync.batch.plan import BatchPlan, BatchShape
from unshard.sync.batch.row_counts import Ledger, LedgerReport, Seen, add_up, applied_chunks, balance
from unshard.sync.batch.stored_plan import record_of
from unshard.sync.planning import planner as planning
from unshard.sync.planning.planner import Planner
from unshard.sync.planning.table_plans import TableRules
from unshard.sync.planning.target_tables import TargetTables
from unshard.sync.source_log.reader import TransactionRows, next_work
from unshard.sync.steps.pipeline import after_exchange, before_exchange, run_share
from unshard.target import receipts
from unshard.target.meta import MetaTables
from unshard.testing.throwaway_server import ThrowawayServer
from unshard.transform.block_allow import BlockAllowList
from unshard.transform.column_mapper import ColumnMapper
from unshard.transform.route import Router

SOURCE = "s1"


@dataclass(frozen=True, slots=True)
class Way:
    """How a log is carried over: switches, exchange (`own`, `shuffled`, `sliced` or `here`), and where it is cut.

    `twice` runs every task of a batch a second time; `again` carries the whole log a second time, in safe mode.
    """

    compact: bool = True
    multiple_rows: bool = True
    partitions: int = 3
    shares: int = 2
    exchange: str = "own"
    chunk_rows: int = 4
    budget: int = 3000
    twice: bool = False
    again: bool = False
    range_digits: int = 0


class Log:
    """A server's own binlog files."""

    def __init__(self, server: ThrowawayServer) -> None:
        self.server = server

    def path(self, file: str) -> Path:
        return self.server.data / file

    def next_file(self, file: str) -> str | None:
        base, _, number = file.rpartition(".")
        following = f"{base}.{int(number) + 1:06d}"
        return following if self.path(following).exists() else None


class Carrier:
    """Tables of one schema with their receipts, carried from `begin`, where the tables are made, to the log's end.

    `foreign_keys` has the target check them.
    """

    def __init__(
        self, source: ThrowawayServer, target: ThrowawayServer, schema: str, *, foreign_keys: bool = False
    ) -> None:
        self.source, self.target, self.foreign_keys = source, target, foreign_keys
        self.endpoint = target.endpoint.with_session(foreign_key_checks="1") if foreign_keys else target.endpoint
        self.ends = (source.connection(), target.connection(schema))
        self.meta = MetaTables(schema, "carried")
        self.meta.create(self.ends[1])
        self.claim = receipts.claim(self.ends[1], self.meta, SOURCE)
        self.numbers = itertools.count(1)
        self.begin = self.now()
        self.log = Log(source)

    def now(self) -> Position:
        ((file, offset, *_),) = self.source.query(self.source.position_query)
        return Position(file, int(offset))

    def close(self) -> None:
        for connection in self.ends:
            connection.close()

    def rules(self) -> TableRules:
        source, target = self.ends

        def structure(name: TableName) -> Table:
            found = read_table(source, name)
            assert found is not None, f"the source has no {name}"
            return found

        return TableRules(
            source=SOURCE,
            allow=BlockAllowList(),
            router=Router({}),
            mapper=ColumnMapper({}),
            structure=structure,
            targets=TargetTables(
                lambda name: read_table(target, name), lambda: families(target) if self.foreign_keys else {}
            ),
            after={},
        )

    def carry(self, way: Way) -> Ledger:
        """Apply all row changes from `begin` to the log's end; the sums of their ledgers."""
        ledgers = [self._apply(plan) for plan in self._plans(way)]
        if way.again and all(_repeatable(plan) for plan, _ in self._plans(way)):
            for plan in self._plans(replace(way, again=False), safe=True):
                self._apply(plan)
        return add_up(ledgers)

    def _plans(self, way: Way, *, safe: bool = False) -> Iterator[tuple[BatchPlan, Way]]:
        sliced = way.exchange == "sliced"
        shape = BatchShape(
            way.partitions, way.chunk_rows, 1 << 20, way.compact, way.multiple_rows, 700 if sliced else 0
        )
        here = way.exchange == "here"
        planner = Planner(SOURCE, self.meta, self.endpoint, shape, way.shares, "stop", here=here)
        rules, end, at = self.rules(), self.now(), Location(self.begin)
        while (work := next_work(self.log, at, end, way.budget, SOURCE)) is not None:
            at = work.end
            if not isinstance(work, TransactionRows):
                continue
            tables = rules.plans(work.log_range.tables, work.begin, partial_images=work.log_range.partial_images)
            plan = planner.plan(work, tables, self.claim.epoch, next(self.numbers), safe=safe)
            plan = replace(plan, shape=replace(plan.shape, range_digits=way.range_digits))
            tied = any(table.target.tied for table in plan.tables)
            if way.exchange == "shuffled" and planning.may_be_shuffled(plan.tables):
                plan = replace(plan, shuffled=True, ranges=planning._ranges(work, 3))
            elif plan.shares == 1 and not (plan.sliced and tied) and not plan.here:
                plan = replace(plan, shares=min(way.shares, way.partitions))
            yield plan, way

    def _apply(self, planned: tuple[BatchPlan, Way]) -> Ledger:
        plan, way = planned
        batch = receipts.OpenBatch(plan.batch_id, plan.begin, plan.end, record_of(plan))
        with self.ends[1].cursor() as cursor:  # plans before it may not have been applied, or refused by the target
            cursor.execute(f"UPDATE {self.meta.batch} SET state = 'done', batch_id = {plan.batch_id - 1}")
        receipts.open_batch(self.ends[1], self.meta, SOURCE, plan.epoch, batch, plan.shape.partitions)
        for _ in range(1 + way.twice):
            reports = _shuffled(plan) if plan.shuffled else _own(plan)
        chunks = sum(applied_chunks(reports).values())
        with self.ends[1].cursor() as cursor:
            receipts.mark_done(cursor, self.meta, SOURCE, plan.epoch, plan.batch_id, None if plan.shuffled else chunks)
        where = Where(SOURCE, position=str(plan.begin))
        return balance(reports, shuffled=plan.shuffled, row_events=plan.row_events, where=where)[0]


def _repeatable(plan: BatchPlan) -> bool:
    """As `safe_mode.check_repeatable`, which refuses the rest."""
    return not any(table.target.keyless or table.defaults for table in plan.tables)


def _own(plan: BatchPlan) -> list[LedgerReport]:
    with ThreadPoolExecutor(plan.shares) as threads:
        found = threads.map(run_share, [pickle.dumps((plan, share)) for share in range(plan.shares)])
        reports = [pickle.loads(report) for report in found]
    for report in reports:
        if report.error is not None:
            raise error_from_dict(report.error)
    return reports


def _shuffled(plan: BatchPlan) -> list[LedgerReport]:
    """The same steps as Spark's shuffle has on its two sides."""
    decoded = [before_exchange(plan, [piece]) for piece in plan.ranges]
    changes: Any = pa.concat_tables([table for table, _ in decoded]).sort_by(LOG_ORDER).combine_chunks()
    seen = sum((here for _, here in decoded), Seen())
    reports = []
    for part in range(plan.shape.partitions):
        share = changes.filter(pc.equal(changes.column("part"), part))
        ledger, _ = after_exchange(plan, part, share, None)
        reports.append(LedgerReport(part, Seen() if part else seen, ledger, {}))
    return reports
