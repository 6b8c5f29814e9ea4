"""Batches of row changes: each is planned, its plan is stored, Spark runs it, and it is closed with its row counts."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from unshard.errors import SyncError, TargetError, UnshardError, Where
from unshard.log import fields, logger
from unshard.model.position import Location
from unshard.sync.batch.plan import BatchPlan, TablePlan
from unshard.sync.batch.row_counts import Account, LedgerReport, applied_chunks, balance
from unshard.sync.batch.stored_plan import RowsRecord, record_of
from unshard.sync.checkpoint import safe_mode
from unshard.sync.checkpoint.progress import SyncProgress
from unshard.sync.planning.batch_size import Flow
from unshard.sync.planning.operators import as_kept, leave_out, located, refuse_ahead, take_up
from unshard.sync.planning.pending_operators import PendingOperators, Used
from unshard.sync.planning.planner import Planner
from unshard.sync.planning.refused_events import refuse_forbidden
from unshard.sync.planning.skipped_events import SkippedTables, pass_over, recorded_tables
from unshard.sync.planning.table_plans import TableRules
from unshard.sync.source_log.open_batch import rows_again
from unshard.sync.source_log.prepared_xa import PreparedXas, look_back, no_prepare
from unshard.sync.source_log.reader import Complete, Log, TransactionRows
from unshard.target.operators import Operator
from unshard.target.receipts import OpenBatch


@dataclass(slots=True)
class RowBatches:
    """The batches of row changes of one source: planned, run and closed here. Used by the sync unit's thread.

    The thread sets `prepared` to the recorded ones. `run_batch` runs the Spark job of a batch. `flow`
    is the size of the next batch.
    """

    progress: SyncProgress
    planner: Planner
    rules: TableRules
    run_batch: Callable[[BatchPlan], list[LedgerReport]]
    flow: Flow = field(default_factory=Flow)
    prepared: PreparedXas = field(init=False)
    operators: PendingOperators = field(init=False)
    _skipped: SkippedTables = field(init=False)

    def __post_init__(self) -> None:
        self._skipped = SkippedTables(self.rules.passes_over, partial(recorded_tables, self.progress.store))
        self.operators = PendingOperators(self.progress)

    def apply(self, work: TransactionRows) -> None:
        """Apply a range of changes, and move to its end."""
        progress, store = self.progress, self.progress.store
        tables = self._tables(work)
        if tables:
            progress.meter.doing = "batch"
            safe = self._is_safe(work, tables)
            planned = partial(self._planned, work, tables, safe=safe)
            if progress.delivery.exactly_once:
                begin = Location(work.begin, progress.at.gtid)
                self._run(self.operators.opened(planned, begin, work.end, partial(record_of, xid=work.xid)), work)
            else:
                self._run_at_least_once(self.operators.unrecorded(planned), work)
        else:
            plan = self.planner.plan(work, (), store.epoch, 0)
            account = pass_over(plan, self._skipped, Where(progress.source, position=str(plan.begin)))
            store.owe(account)
            log_range = work.log_range
            progress.meter.passed(account, time.monotonic(), transactions=log_range.transactions, size=log_range.size)
            if work.xid:
                progress.cross_xa(work.end, xid=work.xid)
        progress.arrive(work.end)

    def _planned(
        self, work: TransactionRows, tables: tuple[TablePlan, ...], operators: Sequence[Operator], *, safe: bool
    ) -> tuple[BatchPlan, Used]:
        store = self.progress.store
        whole = any(work.holds(one.position) for one in operators)
        plan = self.planner.plan(work, tables, store.epoch, store.batch_id + 1, safe=safe, whole=whole)
        plan, used = leave_out(plan, work, operators, self.rules.held)
        refuse_forbidden(plan, self.rules.forbidden(table.table.name for table in tables))
        refuse_ahead(plan)
        return plan, used

    def complete(self, work: Complete, log: Log) -> None:
        """End a prepared transaction: apply its rows if it is committed.

        Raises BinlogError BINLOG-034, BINLOG-035 where its prepare can't be found.
        """
        xid = work.completed.xid
        if work.completed.committed and xid not in self.prepared.known:
            found = look_back(log, work, self.progress.source)
            if found is None:
                raise no_prepare(work, self.progress.source)
            self.prepared.known[xid] = found
            self.progress.cross_xa(self.progress.at, prepared=found)
        if work.completed.committed:
            self.apply(self.prepared.rows(log, work))
        else:
            self.progress.cross_xa(work.end, xid=xid)
        self.prepared.known.pop(xid, None)

    def work_again(self, batch: OpenBatch, log: Log) -> TransactionRows:
        """Return the changes of a batch that an earlier process left open."""
        if batch.plan.get("xid"):
            return self.prepared.rows_again(log, batch)
        return rows_again(log, batch, self.progress.source)

    def again(self, batch: OpenBatch, work: TransactionRows) -> None:
        """Finish a batch that an earlier process left open, by the same plan."""
        kept = RowsRecord.of(batch)
        tables = as_kept(self._tables(work), kept)
        store = self.progress.store
        plan = self.planner.plan_again(work, tables, store.epoch, batch.batch_id, kept)
        self._run(take_up(plan, work, self.operators, batch, store, self.rules.held), work)
        self.prepared.known.pop(work.xid, None)
        self.progress.arrive(work.end)

    def applied(self, plan: BatchPlan, work: TransactionRows) -> Account:
        """Run the batch. Return its row counts, which add up. Log lines of the run have the batch's number."""
        with fields(batch=f"{plan.epoch}/{plan.batch_id}"):
            return self._in_balance(plan, work)

    def _is_safe(self, work: TransactionRows, tables: tuple[TablePlan, ...]) -> bool:
        """Return whether these changes may be in the target already. Raises SyncError where they can't be repeated."""
        now = time.monotonic()
        self.progress.safe = self.progress.safe.first_change(now)
        reasons = self.progress.safe.reasons(work.begin, now)
        self.progress.meter.safe_mode = "; ".join(reasons)
        where = Where(source=self.progress.source, position=str(work.begin))
        safe_mode.check_repeatable(tables, self.progress.delivery, where, safe=bool(reasons))
        return bool(reasons)

    def _run_at_least_once(self, plan: BatchPlan, work: TransactionRows) -> None:
        """Run a batch without plan and receipts: only the next checkpoint records that it is done."""
        self.progress.apply_in_doubt(work.begin, work.end)
        try:
            account = self.applied(plan, work)
        except (SyncError, TargetError) as error:
            if not error.retryable or work.log_range.partial_images:
                raise
            account = self.applied(self.planner.in_safe_mode(plan), work)
        self.progress.in_hand = None
        self.progress.store.owe(account)
        if work.xid:
            self.progress.cross_xa(work.end, xid=work.xid)

    def _tables(self, work: TransactionRows) -> tuple[TablePlan, ...]:
        log_range = work.log_range
        plans = self.rules.plans(log_range.tables, work.begin, partial_images=log_range.partial_images)
        # a snapshot after the commit of prepared rows has all of them, one before it none, wherever they lie
        return tuple(plan for plan in plans if plan.after is None) if work.xid else plans

    def _run(self, plan: BatchPlan, work: TransactionRows) -> None:
        account = self.applied(plan, work)
        self.progress.close(work.end, account, work.xid)

    def _in_balance(self, plan: BatchPlan, work: TransactionRows) -> Account:
        where = Where(source=self.progress.source, position=f"{plan.begin} to {plan.end}")
        begun = time.monotonic()
        if self.progress.store.validates:
            plan = replace(plan, reports_keys=True)
        try:
            reports = self.run_batch(plan)
        except UnshardError as error:
            raise located(plan, error).at(source=self.progress.source, position=where.position) from error
        seconds = time.monotonic() - begun
        self.flow = self.flow.after(work.size, seconds)
        self.progress.meter.batch_seconds.observe(seconds)
        total, skipped = balance(reports, shuffled=plan.shuffled, row_events=plan.row_events, where=where)
        targets = plan.targets()
        named = {str(targets[target].name): entry for target, entry in total.items()}
        for name, entry in named.items():
            if entry.missing:
                log = logger("sync", source=self.progress.source, table=name, binlog=str(where.position))
                log.warning("changes found no row", changes=entry.missing, one_of_them=entry.example)
        account = Account(named, self._skipped.by_rule(skipped))
        clamped = tuple(dict.fromkeys(value for report in reports for value in report.seen.clamped))
        if clamped:
            log = logger("sync", source=self.progress.source, binlog=str(where.position))
            log.warning("times were clamped", values=len(clamped), one_of_them=clamped[0].key, table=clamped[0].target)
        self.progress.store.clamped += clamped
        self.progress.store.chunks = sum(applied_chunks(reports).values()) if plan.receipts else None
        self.progress.store.keys += tuple(keys for report in reports for keys in report.seen.keys)
        counts = {"transactions": work.log_range.transactions, "size": work.size}
        self.progress.meter.applied(account, work.log_range.last_timestamp, time.monotonic(), **counts)
        self.progress.meter.spent(report.seconds for report in reports)
        return account
