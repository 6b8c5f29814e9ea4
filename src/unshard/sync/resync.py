"""Read again what was held for a sharding DDL: batches over an old range with only the tables of its group let through.

| it dies | then |
|---|---|
| before a batch of it is open, or nothing of it is applied | the group's row tells how far it has come; from there |
| in the batch | its plan names the group, and the same batch is brought to its end (`again`) |
| when it is closed | the group's row has moved with it |
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from unshard.errors import SyncError, Where
from unshard.model.position import Location, Position
from unshard.model.table import TableName
from unshard.shard.group import Resync, ShardingGroup
from unshard.sync.batch import BatchPlan, TablePlan
from unshard.sync.follow import Complete, Log, Rows, Work, next_work
from unshard.sync.forbidden import refuse_forbidden
from unshard.sync.groups import ShardingGroups
from unshard.sync.leave_out import as_kept, leave_out, take_up
from unshard.sync.ledger import Account
from unshard.sync.plan import Planner
from unshard.sync.prepared import look_back, no_prepare, rows_of
from unshard.sync.safe_mode import check_repeatable
from unshard.sync.standing import Standing
from unshard.sync.tables import TableRules
from unshard.target.operators import Operator
from unshard.target.receipts import OpenBatch

WHOLE = 1 << 62
Applied = Callable[[BatchPlan, Rows], Account]


@dataclass(slots=True)
class Resyncer:
    """Used by the sync unit's thread. `applied` runs a batch and gives what became of it."""

    source: str
    groups: ShardingGroups
    planner: Planner
    rules: TableRules
    standing: Standing
    applied: Applied

    def step(self, group: ShardingGroup, log: Log, budget: int, operators: Iterable[Operator]) -> None:
        """The next stretch of the group's re-sync: at most one batch."""
        at = self.standing.at
        resync = group.resync(at)
        assert resync is not None
        work = next_work(log, resync.begin, resync.end.position, budget, self.source)
        end = work.end if work is not None else resync.end
        rows = self._rows(work, log, resync.begin.position)
        tables = self._tables(rows, resync, group) if rows is not None else ()
        after = group.resynced(end, at)
        if rows is None or not tables:
            self._come_to(group, after)
            return
        journal = self.standing.journal
        exact = self.standing.delivery.exactly_once
        safe = not exact or bool(self.standing.safe.reasons(rows.begin, time.monotonic()))
        where = Where(source=self.source, position=str(rows.begin))
        partial = rows.extent.partial_images
        check_repeatable(tables, self.standing.delivery, where, safe=safe, partial_images=partial)
        plan = self.planner.plan(rows, tables, journal.epoch, journal.batch_id + 1, safe=safe)
        plan = leave_out(plan, rows, operators, journal)
        refuse_forbidden(plan, self.rules.forbidden(table.table.name for table in tables))
        if exact:
            form = {**plan.to_json(), "xid": rows.xid, "group": [group.target.schema, group.target.table]}
            journal.open(Location(rows.begin, resync.begin.gtid), end, form, plan.shape.partitions)
            self._close(plan, rows, after)
        else:
            account = self.applied(replace(plan, receipts=False), rows)
            journal.owe(Account(account.tables))
            self.standing.move(at, also=self.groups.put(after))

    def again(self, batch: OpenBatch, log: Log, operators: Iterable[Operator]) -> None:
        """Bring a batch of a re-sync to its end that an earlier process left open, by the same plan.

        Raises SyncError SYNC-008 where the log, or a table, is not what it was.
        """
        group = self.groups.keeper.group(TableName(*batch.plan["group"]))
        resync = group.resync(self.standing.at)
        work = next_work(log, Location(batch.begin), batch.end, WHOLE, self.source)
        found = self._rows(work, log, resync.begin.position) if resync is not None else None
        if resync is None or found is None or found.end.position != batch.end:
            raise SyncError("SYNC-008", Where(source=self.source, position=f"{batch.begin} to {batch.end}"))
        end = Location(batch.end, batch.plan["end_gtid"])
        rows = replace(found, end=end)
        tables = as_kept(self._tables(rows, resync, group), batch.plan)
        journal = self.standing.journal
        plan = self.planner.plan_again(rows, tables, journal.epoch, batch.batch_id, batch.plan)
        plan = take_up(plan, rows, operators, batch.plan, journal)
        self._close(plan, rows, group.resynced(end, self.standing.at))

    def _close(self, plan: BatchPlan, rows: Rows, after: ShardingGroup) -> None:
        """What is passed over here was counted when it was read first."""
        account = self.applied(plan, rows)
        self.standing.close(self.standing.at, Account(account.tables), also=self.groups.put(after))

    def _come_to(self, before: ShardingGroup, after: ShardingGroup) -> None:
        """Nothing is let through there; written only where a table is free by it."""
        if after.held.keys() == before.held.keys() and after.behind:
            self.groups.come_to(after)
        else:
            self.standing.move(self.standing.at, also=self.groups.put(after))

    def _rows(self, work: Work | None, log: Log, since: Position) -> Rows | None:
        """The rows of a stretch, or of a prepared transaction whose commit it is; none were kept of its prepare.

        `since` is where the re-sync stands: what lies before it need not be readable.
        """
        if isinstance(work, Rows):
            return work
        if not isinstance(work, Complete) or not work.completed.committed:
            return None
        found = look_back(log, work, self.source, since)
        if found is None:
            raise no_prepare(work, self.source)
        return rows_of(log, found, work.begin, work.end, work.completed.timestamp, self.source)

    def _tables(self, rows: Rows, resync: Resync, group: ShardingGroup) -> tuple[TablePlan, ...]:
        begin = Location(rows.begin, resync.begin.gtid)
        let = self.groups.again(resync, group, begin, rows.end)
        let = {name: table for name, table in let.items() if name in rows.extent.tables}
        if not let:
            return ()
        old = TableRules(
            self.source,
            self.rules.allow,
            self.rules.router,
            self.rules.mapper,
            let.__getitem__,
            self.rules.targets,
            {},
            self.rules.events,
            self.rules.row_filters,
        )
        return old.plans(let, rows.begin, partial_images=rows.extent.partial_images)
