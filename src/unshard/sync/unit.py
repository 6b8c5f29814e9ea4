"""The sync unit: follows one source's relay log and applies it batch by batch, exactly once.

With `delivery: at-least-once` batches have no plan and no receipts in the target, and the checkpoint moves once an
interval; what was applied after it is applied again after a crash, in safe mode (`checkpoint.safe_mode`).

It only decides what comes next. The work is done in `source_log`, `rows`, `statements`, `sharding` and `checkpoint`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from threading import Event

from unshard.crash_point import reach
from unshard.ddl.in_snapshot import DdlInSnapshot
from unshard.errors import SyncError, UnshardError, Where
from unshard.log import logger
from unshard.model.position import Location, Position
from unshard.model.table import TableName
from unshard.sync.batch.plan import BatchPlan
from unshard.sync.batch.row_counts import LedgerReport
from unshard.sync.checkpoint import safe_mode
from unshard.sync.checkpoint.progress import SyncProgress
from unshard.sync.checkpoint.safe_mode import Delivery
from unshard.sync.checkpoint.store import CheckpointStore, nothing
from unshard.sync.merged_runs import MergedRuns
from unshard.sync.operate import finish_statement, record_stop, refuse_pending
from unshard.sync.planning.planner import Planner
from unshard.sync.planning.table_plans import TableRules
from unshard.sync.rows import RowBatches
from unshard.sync.sharding.coordinator import LOOK_SECONDS, Next, ShardingGroups, leave_optimistic_mode, refuse_held
from unshard.sync.sharding.moved_rows import MovedRows
from unshard.sync.sharding.optimistic import AwaitTarget, OptimisticGroups, ReadAgain
from unshard.sync.sharding.resync import Resyncer
from unshard.sync.sharding.snapshot import copied_ddl
from unshard.sync.sharding.table_owners import held_clash
from unshard.sync.source_log.failover import ANY, IDLE_SECONDS, RecordedNames, needed_by, translate
from unshard.sync.source_log.open_batch import rows_end
from unshard.sync.source_log.prepared_xa import PreparedXas
from unshard.sync.source_log.reader import (
    Complete,
    LoggedDdl,
    Move,
    Prepare,
    Relay,
    TransactionRows,
    Work,
    WrittenLog,
)
from unshard.sync.source_log.seek import logged_at
from unshard.sync.source_log.tail import TailReader
from unshard.sync.statement import Statements
from unshard.sync.statements.crossings import crossed
from unshard.sync.statements.plan_record import KIND, StatementPlan
from unshard.sync.status import FailOver, Meter
from unshard.target.checkpoint import Checkpoint, ExitPoint
from unshard.target.receipts import OpenBatch
from unshard.target.transactions import GIVEN_UP
from unshard.target.unfinished_dm import refuse_unfinished


@dataclass(slots=True)
class SyncUnit:
    """One source's incremental replication. `run` is called by one thread; `meter` may be read by any."""

    source: str
    store: CheckpointStore
    planner: Planner
    rules: TableRules
    statements: Statements
    relay: Relay
    run_batch: Callable[[BatchPlan], list[LedgerReport]]
    newest: Callable[[], Location]
    flush_seconds: float
    delivery: Delivery = field(default_factory=Delivery)
    meter: Meter = field(default_factory=Meter)
    _batches: RowBatches = field(init=False)
    _standing: SyncProgress = field(init=False)
    _moved: MovedRows = field(init=False)
    groups: ShardingGroups | None = None
    _place: Position = ANY
    _sure: bool = True
    _left_open: OpenBatch | None = None
    _upstream: str | None = None
    _crossing: bool = False
    _of_log: bool = False
    _shown: float = 0.0
    _read: WrittenLog = field(init=False)
    _tail: TailReader = field(default_factory=TailReader)

    def __post_init__(self) -> None:
        self._standing = SyncProgress(
            self.source, self.store, self.statements.tables.take_changes, self.flush_seconds, self.delivery, self.meter
        )

    def begin(self, start: Checkpoint | None) -> None:
        """Claim the source and go to its checkpoint, or make `start` its first one, durably.

        Called once before `run`. Raises SyncError SYNC-012 where there is neither.
        """
        self._batches = RowBatches(self._standing, self.planner, self.rules, self._run_batch)
        found, self._left_open = self.store.claim()
        self.store.on_target(self.statements.tidy)
        checkpoint = found if found is not None else start
        if checkpoint is None:
            raise SyncError("SYNC-012", Where(source=self.source))
        if checkpoint.by_dm:
            self.store.on_target(lambda c: refuse_unfinished(c, self.store.meta, self.source))
        if safe_mode.needs_bound(self.delivery, checkpoint):
            checkpoint = replace(checkpoint, exit_point=ExitPoint(self.newest(), safe_mode.TAKEOVER))
        self._read, self._tail = self.relay, TailReader()
        self._upstream, self._crossing = self.store.upstream(), False
        self._of_log = found is not None and not found.by_dm
        self._restore(checkpoint, fresh=found is None)
        self.store.exact = self.delivery.exactly_once
        if found is None:
            read = self.statements.tables.take_changes(checkpoint.location.position)
            self.store.move(checkpoint.location, {**checkpoint.tables, **read})
        elif (found.exit_point, found.exact, found.by_dm) != (self._standing.safe.exit_point, self.store.exact, False):
            # the row must be ours before anything is applied: else its exit point may mean "off" again after a crash
            self._standing.move(checkpoint.location)
        self.store.goes_on()

    def announce(self) -> None:
        """Declare to the task's other sources which tables this one owns, also before there is a checkpoint."""
        self.statements.ownership.announce(self.statements.tables.names)

    def _run_batch(self, plan: BatchPlan) -> list[LedgerReport]:
        try:
            return self.run_batch(plan)
        except UnshardError as error:
            clash = held_clash(error, plan, self.store) if self.groups is not None else None
            if clash is None:
                raise
            raise clash from error

    def copied(self, start: Checkpoint, stop: Event) -> DdlInSnapshot | None:
        """Return the sharding DDL that the copy ending in `start` has, and declare it to the task's other sources.

        Called before the copy is loaded; None when `stop` came first. Raises ShardError SHARD-029.
        """
        if self.groups is None:
            return DdlInSnapshot()
        try:
            return copied_ddl(start, self.statements.reader, self.groups, self.store, self.relay, stop)
        finally:
            self.store.drop()

    def crossed(
        self, begin: Location, places: Mapping[TableName, Location], stop: Event
    ) -> frozenset[TableName] | None:
        """Return the tables of a copy that statements of the log cross; `places` are the locations of their snapshots.

        Called before the copy is finished; None when `stop` came first.
        """
        try:
            upstream = self.store.upstream()
            return crossed(begin, places, self.statements.reader.crossing, self.relay, upstream, self.source, stop)
        finally:
            self.store.drop()

    def _restore(self, checkpoint: Checkpoint, *, fresh: bool = False) -> None:
        self._standing.restore(checkpoint)
        self._batches.prepared = PreparedXas(self.source, self.store.prepared())
        self.statements.rules.online.records = self.store.online_ddl()
        tables, ownership = self.statements.tables, self.statements.ownership
        tables.restore(checkpoint)
        self.rules.begin(tables.after, tables.absent)
        if not isinstance(self.groups, OptimisticGroups):
            leave_optimistic_mode(self.store)
        if self.groups is not None:
            self._moved = MovedRows(self.source, self.planner, self.rules, self.groups.structure)
            known = (tables.first if checkpoint.tables else tables.names) if fresh else tables.tracker.names
            brought = frozenset() if isinstance(self.groups, OptimisticGroups) or tables.lazy else tables.first
            ahead = frozenset() if fresh else (ownership.declared() | brought) - ownership.left() - known
            self.groups.restore(known if fresh else known - ownership.left(), ahead)
            tables.refuse_other_rules()
            ownership.announce(self.groups.names)
            if isinstance(self.groups, OptimisticGroups):
                for name in self.groups.names if fresh else ():  # others change the merged table from here on
                    tables.find_or_presume(name)
                self.groups.begin_merged()
        else:
            refuse_held(self.store)
            tables.refuse_other_rules()
            self.announce()
        self.statements.names.refuse_known()

    def run(self, stop: Event) -> None:
        """Follow the log until `stop` is set; the batch under way is finished before it returns.

        Raises the UnshardError that stopped it; a new `begin` and `run` go on from where it stopped.
        """
        try:
            self._resume(stop)
            while not stop.is_set():
                self._step()
            self._standing.leave()
        except UnshardError as error:
            if error.code == GIVEN_UP:
                self.store.attempts = 1
            if not self._crossing:
                self._standing.leave_by(error)
            record_stop(self.store, error, self._place, sure=self._sure)
            raise
        finally:
            self.meter.doing = "stopped"
            self.store.leave()

    def _resume(self, stop: Event) -> None:
        """Finish the batch that was left open, and change to another server if the source has failed over."""
        if not self._await(ANY, stop):
            return
        batch, before = self._left_open, self._upstream
        crosses = before is not None and before != self.relay.upstream
        if crosses and batch is not None and batch.plan["kind"] != KIND:
            self._read = self.relay.earlier(str(before), needed_by(batch, self._batches.prepared.known))
        there = crosses or self._await(self._standing.at.position, stop)
        if there and not crosses:
            self._standing.at = logged_at(self._read.log, self._standing.at, self.source, compare=self._of_log)
        if there and batch is not None:
            self._finish(batch, stop)
        self._read = self.relay
        self._batches.operators.read()
        self._batches.operators.give_up_passed()
        if crosses and not stop.is_set():
            self._cross(str(before), stop)

    def _cross(self, before: str, stop: Event) -> None:
        """Replace the recorded binlog names of server `before` by those of the server that the relay follows now."""
        self.meter.doing = "going over to another server"
        refuse_pending(self.source, self._batches.operators.known, before)
        held = self.groups.keeper.unresolved if self.groups is not None else ()
        checkpoint = self.store.checkpoint()
        assert checkpoint is not None, "a source whose server is on record has a checkpoint"
        names = RecordedNames(checkpoint, self._batches.prepared.known, held)
        there = translate(names, before, self.relay, self.source, stop)
        if there is None:
            return
        also = self.groups.put(*there.groups) if self.groups is not None else nothing
        self._crossing = True  # after an error it is unknown which names are on record: nothing may be written then
        self.store.cross(self.relay.upstream, there.checkpoint, there.prepared.values(), also)
        self._crossing = False
        found = self.store.checkpoint()
        assert found is not None
        self._restore(found)
        over = FailOver(before, self.relay.upstream, str(self._standing.at.position))
        self.meter.failovers += (over,)
        words = {"before": over.before, "now": over.now, "binlog": over.place}
        logger("sync", source=self.source).info("the source has failed over", **words)

    def _step(self) -> None:
        self.meter.step_since = time.monotonic()
        self._place = self._standing.at.position
        self.relay.check()
        if self.groups is not None and self._unresolved(self.groups):
            self.meter.behind = False
            return
        work = self._tail.next_work(self._read, self._standing.at, self._batches.flow.budget_bytes, self.source)
        if work is None:
            self._wait()
        else:
            self._carry_out(work)
        self.meter.behind = False

    def _unresolved(self, groups: ShardingGroups) -> bool:
        """Make one step of sharding DDL; return whether there was one to make."""
        progress = self._standing
        self._show(groups)
        if isinstance(groups, OptimisticGroups):
            return self._optimistic(groups)
        found = groups.next(progress.at) if groups.unresolved else None
        if found is None:
            return False
        what, group = found
        assert group.first is not None, "a group in which there is something to do holds tables"
        self._place, self._sure = group.first.position, False
        self.meter.doing = "re-sync" if what is Next.RESYNC else "sharding DDL"
        if what is Next.EXECUTE:
            assert group.ready is not None
            self._place, self._sure = group.ready.begin.position, True
            self.statements.execute(group, progress.at, self.store)
            progress.arrived_durably(progress.at)
        elif what is Next.SKIP:
            self.statements.pass_behind(group, progress.at, self.store)
            progress.arrived_durably(progress.at)
        else:
            self._resyncer(groups).step(group, self._read.log, self._batches.flow.budget_bytes)
            return True
        self.rules.forget(group.tables)
        return True

    def _optimistic(self, groups: OptimisticGroups) -> bool:
        """Make one step of sharding DDL in optimistic mode; return whether there was one to make."""
        progress = self._standing
        self._sure = False
        match groups.next_step(progress.at):
            case None:
                return False
            case AwaitTarget(target):
                self.meter.doing = f"waiting for columns of {target}"
                time.sleep(LOOK_SECONDS)
            case ReadAgain(group):
                self.meter.doing = "re-sync"
                self._resyncer(groups).step(group, self._read.log, self._batches.flow.budget_bytes)
            case step:
                self.meter.doing = "sharding DDL"
                self._place, self._sure = step.place or self._place, step.place is not None
                if MergedRuns(self.statements, groups, self.store).make(step, progress.at):
                    progress.arrived_durably(progress.at)
                self.rules.forget(self.statements.touched)
        return True

    def _show(self, groups: ShardingGroups) -> None:
        """Show the meter what waits, not at each step: for ten thousand shards it takes longer than a step."""
        now = time.monotonic()
        if now - self._shown >= LOOK_SECONDS:
            self.meter.waits(groups.waiting(), now)
            self.meter.groups, self._shown = groups.shown, now

    def _resyncer(self, groups: ShardingGroups) -> Resyncer:
        own, batches = (groups, self.planner, self.rules, self._standing), self._batches
        return Resyncer(self.source, *own, batches.applied, self._moved, batches.operators)

    def _carry_out(self, work: Work) -> None:
        self.meter.behind = True
        if not isinstance(work, Move):
            one = not isinstance(work, TransactionRows) or work.log_range.transactions == 1
            self._place, self._sure = work.begin, one
        match work:
            case TransactionRows():
                self._batches.apply(work)
            case LoggedDdl():
                self._state(work)
            case Move(end):
                self._standing.arrive(end)
            case Prepare():
                reach("sync-prepare-before")
                self._standing.cross_xa(work.end, prepared=self._batches.prepared.record(work, self._standing.at.gtid))
                reach("sync-prepare-after")
            case Complete():
                self.meter.doing = "XA"
                self._batches.complete(work, self._read.log)

    def _state(self, work: LoggedDdl) -> None:
        progress = self._standing
        self.meter.doing = "statement"
        if not self.delivery.exactly_once:
            progress.save()
        unlocked = progress.safe.after_dump(work.begin)
        moved = self.statements.carry_out(work, progress.at, self.store, unlocked=unlocked)
        self.rules.forget(self.statements.touched)
        if moved:
            progress.arrived_durably(work.end)
        else:
            progress.arrive(work.end)

    def _finish(self, batch: OpenBatch, stop: Event) -> None:
        """Finish the batch that an earlier process left open, by the same plan."""
        self.meter.doing = "finishing the open batch"
        self._place, self._sure = batch.begin, False
        if batch.plan["kind"] == KIND:
            plan = StatementPlan.of(batch)
            self._place, self._sure = Position.parse(plan.intent.position_begin), plan.is_of_log
            ready = partial(self._await, batch.end, stop)
            log = self._read.log if self._upstream in (None, self.relay.upstream) else None
            if isinstance(self.groups, OptimisticGroups) and (plan.merged or plan.released) is not None:
                MergedRuns(self.statements, self.groups, self.store).finish(batch)
            elif not finish_statement(self.statements, self.store, batch, log, self._standing.at.gtid, ready):
                return
            self.rules.forget(self.statements.touched)
            self._standing.arrived_durably(plan.end)
            return
        if "group" in batch.plan:
            assert self.groups is not None
            if self._await(batch.end, stop):
                self._resyncer(self.groups).again(batch, self._read.log)
            return
        if not self._await(batch.end if batch.plan.get("xid") else rows_end(batch), stop):
            return
        work = self._batches.work_again(batch, self._read.log)
        self._place, self._sure = work.begin, work.log_range.transactions == 1
        self._batches.again(batch, work)

    def _wait(self) -> None:
        self.meter.doing = "waiting"
        if not self._tail.wait(self.relay, IDLE_SECONDS):
            self.store.rest()
        self._standing.idle()

    def _await(self, position: Position, stop: Event) -> bool:
        """Wait until the relay log has `position`, which may have to be fetched again; False: stopped first."""
        while not self._read.wait_for(position, IDLE_SECONDS):
            self._read.check()
            if stop.is_set():
                return False
        return True
