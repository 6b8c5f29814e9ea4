"""Changes of rows in batches: planned, written down, run by Spark, and closed with what became of all of them."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from unshard.errors import SyncError, TargetError, UnshardError, Where
from unshard.log import fields, logger
from unshard.model.position import Location
from unshard.sync import safe_mode
from unshard.sync.batch import BatchPlan, TablePlan
from unshard.sync.batch_record import RowsRecord, record_of
from unshard.sync.flow import Flow
from unshard.sync.follow import Complete, Log, TransactionRows
from unshard.sync.forbidden import refuse_forbidden
from unshard.sync.leave_out import as_kept, leave_out, located, take_up
from unshard.sync.ledger import Account, LedgerReport, balance
from unshard.sync.passed import by_rule, pass_over
from unshard.sync.plan import Planner
from unshard.sync.prepared import PreparedXas, look_back, no_prepare
from unshard.sync.reread import rows_again
from unshard.sync.standing import Standing
from unshard.sync.tables import TableRules
from unshard.target.operators import Operator
from unshard.target.receipts import OpenBatch


@dataclass(slots=True)
class RowBatches:
    """Used by the sync unit's thread, which sets `prepared` and `operators` to those on record."""

    standing: Standing
    planner: Planner
    rules: TableRules
    run_batch: Callable[[BatchPlan], list[LedgerReport]]
    flow: Flow = field(default_factory=Flow)
    prepared: PreparedXas = field(init=False)
    operators: tuple[Operator, ...] = ()

    def apply(self, work: TransactionRows) -> None:
        """Carry out a stretch of changes, and be at its end."""
        standing, journal = self.standing, self.standing.journal
        tables = self._tables(work)
        if tables:
            standing.meter.doing = "batch"
            safe = self._is_safe(work, tables)
            plan = self.planner.plan(work, tables, journal.epoch, journal.batch_id + 1, safe=safe)
            plan = leave_out(plan, work, self.operators, journal, self.rules.held)
            refuse_forbidden(plan, self.rules.forbidden(table.table.name for table in tables))
            if standing.delivery.exactly_once:
                begin = Location(work.begin, standing.at.gtid)
                journal.open(begin, work.end, record_of(plan, work.xid), plan.shape.partitions)
                self._run(plan, work)
            else:
                self._run_at_least_once(replace(plan, receipts=False), work)
        else:
            plan = self.planner.plan(work, (), journal.epoch, 0)
            account = pass_over(plan, self.rules.passes_over, Where(standing.source, position=str(plan.begin)))
            journal.owe(account)
            extent = work.extent
            standing.meter.passed(account, time.monotonic(), transactions=extent.transactions, size=extent.size)
            if work.xid:
                standing.cross_xa(work.end, xid=work.xid)
        standing.arrive(work.end)

    def complete(self, work: Complete, log: Log) -> None:
        """The end of a prepared transaction: its rows are applied now, or never."""
        xid = work.completed.xid
        if work.completed.committed and xid not in self.prepared.known:
            found = look_back(log, work, self.standing.source)
            if found is None:
                raise no_prepare(work, self.standing.source)
            self.prepared.known[xid] = found
            self.standing.cross_xa(self.standing.at, prepared=found)
        if work.completed.committed:
            self.apply(self.prepared.rows(log, work))
        else:
            self.standing.cross_xa(work.end, xid=xid)
        self.prepared.known.pop(xid, None)

    def work_again(self, batch: OpenBatch, log: Log) -> TransactionRows:
        """The changes of a batch that an earlier process left open."""
        if batch.plan.get("xid"):
            return self.prepared.rows_again(log, batch)
        return rows_again(log, batch, self.standing.source)

    def again(self, batch: OpenBatch, work: TransactionRows) -> None:
        """Bring that batch to its end, by the same plan."""
        kept = RowsRecord.of(batch)
        tables = as_kept(self._tables(work), kept)
        journal = self.standing.journal
        plan = self.planner.plan_again(work, tables, journal.epoch, batch.batch_id, kept)
        self._run(take_up(plan, work, self.operators, batch, journal, self.rules.held), work)
        self.prepared.known.pop(work.xid, None)
        self.standing.arrive(work.end)

    def applied(self, plan: BatchPlan, work: TransactionRows) -> Account:
        """Run the batch; what became of all of it, which adds up. Lines of the log tell meanwhile which batch it is."""
        with fields(batch=f"{plan.epoch}/{plan.batch_id}"):
            return self._in_balance(plan, work)

    def _is_safe(self, work: TransactionRows, tables: tuple[TablePlan, ...]) -> bool:
        """Whether these changes may be in the target already. Raises SyncError where they can't be repeated."""
        now = time.monotonic()
        self.standing.safe = self.standing.safe.first_change(now)
        reasons = self.standing.safe.reasons(work.begin, now)
        self.standing.meter.safe_mode = "; ".join(reasons)
        where = Where(source=self.standing.source, position=str(work.begin))
        partial = work.extent.partial_images
        safe_mode.check_repeatable(tables, self.standing.delivery, where, safe=bool(reasons), partial_images=partial)
        return bool(reasons)

    def _run_at_least_once(self, plan: BatchPlan, work: TransactionRows) -> None:
        """A batch without plan and receipts: only the next checkpoint tells that it is done."""
        self.standing.apply_in_doubt(work.begin, work.end)
        try:
            account = self.applied(plan, work)
        except (SyncError, TargetError) as error:
            if not error.retryable or work.extent.partial_images:
                raise
            account = self.applied(replace(plan, safe=True), work)
        self.standing.in_hand = None
        self.standing.journal.owe(account)
        if work.xid:
            self.standing.cross_xa(work.end, xid=work.xid)

    def _tables(self, work: TransactionRows) -> tuple[TablePlan, ...]:
        extent = work.extent
        plans = self.rules.plans(extent.tables, work.begin, partial_images=extent.partial_images)
        # a snapshot behind the commit of prepared rows has all of them, one before it none, wherever they lie
        return tuple(plan for plan in plans if plan.after is None) if work.xid else plans

    def _run(self, plan: BatchPlan, work: TransactionRows) -> None:
        account = self.applied(plan, work)
        self.standing.close(work.end, account, work.xid)

    def _in_balance(self, plan: BatchPlan, work: TransactionRows) -> Account:
        where = Where(source=self.standing.source, position=f"{plan.begin} to {plan.end}")
        begun = time.monotonic()
        try:
            reports = self.run_batch(plan)
        except UnshardError as error:
            raise located(plan, error).at(source=self.standing.source, position=where.position) from error
        seconds = time.monotonic() - begun
        self.flow = self.flow.after(work.size, seconds)
        self.standing.meter.batch_seconds.observe(seconds)
        total, skipped = balance(reports, shuffled=plan.shuffled, row_events=plan.row_events, where=where)
        targets = plan.targets()
        named = {str(targets[target].name): entry for target, entry in total.items()}
        for name, entry in named.items():
            if entry.missing:
                log = logger("sync", source=self.standing.source, table=name, binlog=str(where.position))
                log.warning("changes found no row", changes=entry.missing, one_of_them=entry.example)
        account = Account(named, by_rule(skipped, self.rules.passes_over))
        counts = {"transactions": work.extent.transactions, "size": work.size}
        self.standing.meter.applied(account, work.extent.last_timestamp, time.monotonic(), **counts)
        self.standing.meter.spent(report.seconds for report in reports)
        return account
