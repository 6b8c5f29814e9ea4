"""The re-sync: reads the log again from where a sharding DDL blocked tables, and applies the changes that waited.

A batch takes as many ranges of rows as fit, and passes over the statements and other rows between them. Of each of the
group's tables it applies the changes in the table's window, a range of positions. So a DDL that the shards reach one by
one, with rows between, costs one batch and not one batch per shard.

| the process dies | then |
|---|---|
| before a batch is open, or when nothing of it is applied | the group's row has its progress; it resumes there |
| in the batch | its plan names the group, and the same batch is finished (`again`) |
| after the batch is closed | the group's row has moved with it |
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce

from unshard.errors import ShardError, SyncError, Where
from unshard.model.position import Location
from unshard.model.table import Table, TableName
from unshard.shard.group import Resync, ShardingGroup
from unshard.sync.batch.plan import BatchPlan, TablePlan
from unshard.sync.batch.row_counts import Account
from unshard.sync.batch.stored_plan import RowsRecord, record_of
from unshard.sync.checkpoint.progress import SyncProgress
from unshard.sync.checkpoint.safe_mode import check_repeatable
from unshard.sync.planning.operators import as_kept, leave_out, refuse_ahead, take_up
from unshard.sync.planning.pending_operators import PendingOperators, Used
from unshard.sync.planning.planner import Planner
from unshard.sync.planning.refused_events import refuse_forbidden
from unshard.sync.planning.table_plans import TableRules
from unshard.sync.sharding.coordinator import ShardingGroups
from unshard.sync.sharding.moved_rows import MovedRows
from unshard.sync.source_log.open_batch import WHOLE, stretches_again
from unshard.sync.source_log.prepared_xa import rows_behind
from unshard.sync.source_log.reader import Log, TransactionRows, next_work
from unshard.target.operators import Operator
from unshard.target.receipts import OpenBatch

MOST_STRETCHES = 256
"""The most stretches that one call reads over, so that a stop is seen soon and a plan stays small."""
Applied = Callable[[BatchPlan, TransactionRows], Account]


@dataclass(frozen=True, slots=True)
class ResyncRows:
    """Rows that one batch of a re-sync reads.

    `let`: the tables whose changes are applied, each with the structure that its changes have there.
    """

    rows: TransactionRows
    let: Mapping[TableName, Table]

    def takes(self, more: ResyncRows, budget: int) -> bool:
        """Return whether one batch can hold both: the same file and form of rows, and each table with one structure."""
        mine, other = self.rows, more.rows
        return (
            mine.path == other.path
            and not (mine.xid or other.xid)
            and mine.log_range.partial_images == other.log_range.partial_images
            and mine.size + other.size <= budget
            and all(self.let.get(name, table) == table for name, table in more.let.items())
        )

    def and_then(self, more: ResyncRows) -> ResyncRows:
        """Return these rows and `more`, which come later in the same file, as one batch."""
        return ResyncRows(self.rows.and_then(more.rows), {**self.let, **more.let})


@dataclass(slots=True)
class Resyncer:
    """The re-sync of one source's sharding groups. Used by the sync unit's thread.

    `operators` are the source's pending operators. `applied` runs a batch and returns its row counts.
    """

    source: str
    groups: ShardingGroups
    planner: Planner
    rules: TableRules
    progress: SyncProgress
    applied: Applied
    moved: MovedRows
    operators: PendingOperators

    def step(self, group: ShardingGroup, log: Log, budget: int) -> None:
        """Apply the next batch of the group's re-sync, or pass over a range that has no changes for it.

        Returns without a batch while the look for rows that moved between shards is not done (`MovedRows.looked`).
        """
        at = self.progress.at
        resync = group.resync(at)
        assert resync is not None
        exact = self.progress.delivery.exactly_once
        strict = not exact or bool(self.progress.safe.reasons(resync.since.position, time.monotonic()))
        try:
            if not self.moved.looked(group, at, log, self.operators.known, strict=strict):
                return
        except ShardError:
            if not self.operators.renew():
                raise
            return  # the next step looks again, by the operators that are pending now
        found, after = self._find(group, log, budget)
        if found is None:
            self._come_to(group, after)
            return
        rows, tables = found.rows, self._tables(found, resync)
        store = self.progress.store
        safe = not exact or bool(self.progress.safe.reasons(rows.begin, time.monotonic()))
        where = Where(source=self.source, position=str(rows.begin))
        check_repeatable(tables, self.progress.delivery, where, safe=safe)

        def planned(operators: Sequence[Operator]) -> tuple[BatchPlan, Used]:
            plan = self.planner.plan(rows, tables, store.epoch, store.batch_id + 1, safe=safe, whole=True)
            plan, used = leave_out(plan, rows, operators, self._held(after))
            plan = self.moved.without(plan)
            refuse_forbidden(plan, self.rules.forbidden(table.table.name for table in tables))
            refuse_ahead(plan)
            return plan, used

        if exact:
            form = partial(record_of, xid=rows.xid, group=group.target)
            self._close(self.operators.opened(planned, Location(rows.begin), rows.end, form), rows, after)
        else:
            account = self.applied(self.operators.unrecorded(planned), rows)
            store.owe(Account(account.tables))
            self.progress.move(at, also=self.groups.put(after))

    def again(self, batch: OpenBatch, log: Log) -> None:
        """Finish a batch of a re-sync that an earlier process left open, by the same plan.

        Raises SyncError SYNC-008 where the log, or a table, is not what it was.
        """
        kept = RowsRecord.of(batch)
        assert kept.group is not None
        group = self.groups.keeper.group(kept.group)
        resync = group.resync(self.progress.at)
        found = self._found_again(batch, log, resync, group) if resync is not None else None
        if resync is None or found is None:
            raise SyncError("SYNC-008", Where(source=self.source, position=f"{batch.begin} to {batch.end}"))
        rows = found.rows
        tables = as_kept(self._tables(found, resync), kept)
        store = self.progress.store
        plan = self.planner.plan_again(rows, tables, store.epoch, batch.batch_id, kept)
        after = group.resynced(rows.end, self.progress.at)
        plan = take_up(plan, rows, self.operators, batch, store, self._held(after))
        self._close(plan, rows, after)

    def _find(self, group: ShardingGroup, log: Log, budget: int) -> tuple[ResyncRows | None, ShardingGroup]:
        """Return the rows of the next batch (None: none found), and the group after all that was read over."""
        at, left, renamed_between = self.progress.at, budget, group.renamed_between
        found: ResyncRows | None = None
        for _ in range(MOST_STRETCHES):
            resync = group.resync(at)
            if resync is None or left <= 0:
                break
            work = next_work(log, resync.begin, resync.edge.position, left, self.source)
            rows = rows_behind(work, log, resync.since.position, self.source) if work is not None else None
            let = self.groups.again(resync, group, rows) if rows is not None else {}
            if rows is not None and let:
                more = ResyncRows(rows, let)
                if found is not None and (
                    not found.takes(more, budget) or renamed_between(found.rows.begin, rows.begin)
                ):
                    break  # a shard's changes before and after its RENAME would count as those of two shards
                found = found.and_then(more) if found is not None else more
            left -= rows.size if rows is not None else 0
            group = group.resynced(work.end if work is not None else resync.edge, at)
        return found, group

    def _found_again(self, batch: OpenBatch, log: Log, resync: Resync, group: ShardingGroup) -> ResyncRows | None:
        """Return the rows of a batch that is open; None where the log has something else there."""
        if batch.plan.get("xid"):
            work = next_work(log, Location(batch.begin), batch.end, WHOLE, self.source)
            rows = rows_behind(work, log, resync.since.position, self.source) if work is not None else None
            if rows is None or rows.end.position != batch.end:
                return None
            rows = replace(rows, end=Location(batch.end, batch.plan["end_gtid"]))
            return ResyncRows(rows, self.groups.again(resync, group, rows))
        parts = [
            ResyncRows(rows, self.groups.again(resync, group, rows))
            for rows in stretches_again(log, batch, self.source)
        ]
        return reduce(ResyncRows.and_then, parts)

    def _close(self, plan: BatchPlan, rows: TransactionRows, after: ShardingGroup) -> None:
        """Apply the batch and close it. Only tables are counted: excluded rows were counted at the first reading."""
        account = self.applied(plan, rows)
        self.progress.close(self.progress.at, Account(account.tables), also=self.groups.put(after))

    def _held(self, after: ShardingGroup) -> Mapping[TableName, Location]:
        """Return the tables whose changes still wait once the group is as in `after`, and from which location."""
        return self.groups.keeper.with_group(after).held

    def _come_to(self, before: ShardingGroup, after: ShardingGroup) -> None:
        """Take over a group that has no rows to apply. It is written only where a table of it becomes free."""
        if after.held.keys() == before.held.keys() and after.behind:
            self.groups.come_to(after)
        else:
            self.progress.move(self.progress.at, also=self.groups.put(after))

    def _tables(self, found: ResyncRows, resync: Resync) -> tuple[TablePlan, ...]:
        """Return the plans of the tables to apply, each with its window where that does not cover all of the rows."""
        rows, old = found.rows, self.rules.with_structures(found.let)
        plans = old.plans(found.let, rows.begin, partial_images=rows.log_range.partial_images)
        return tuple(_within(plan, resync.windows[plan.table.name], rows) for plan in plans)


def _within(plan: TablePlan, window: tuple[Location, Location], rows: TransactionRows) -> TablePlan:
    """Limit a plan to its window.

    An edge of the window that lies outside of the rows is left out: after a crash the window may have another edge
    there.
    """
    first, last = (edge.position for edge in window)
    return replace(
        plan,
        after=first if first > rows.begin else None,
        until=last if last < rows.end.position else None,
    )
