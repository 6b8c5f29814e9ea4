"""Runs the changes of merged tables in optimistic mode, and then resumes the shards that waited for them.

| batch | the process dies | then |
|---|---|---|
| a change (`StatementPlan.merged`) | before it is open | it is begun again (`merged_changes`) |
| | while it is open | its plan is finished, or the plan that a later operator makes of it |
| | and the source is taken out | the next source finishes it |
| a shard resumes (`StatementPlan.released`) | before it is open, or in it | the values are brought from the beginning |
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from unshard.ddl.context import Context
from unshard.ddl.intent import Intent
from unshard.errors import DdlError, UnshardError, Where
from unshard.model.position import Location
from unshard.model.table import TableName
from unshard.mysql.tidb import is_tidb
from unshard.shard.merged_parts import OldRows, ShardId
from unshard.sync.batch.row_counts import Account
from unshard.sync.checkpoint.store import CheckpointStore
from unshard.sync.sharding.item_fills import item_fill, refused_fills
from unshard.sync.sharding.merged_changes import BegunChange, MergedChanges
from unshard.sync.sharding.optimistic import (
    ChangeTarget,
    Decided,
    OperateRequest,
    OptimisticGroups,
    ReleaseTable,
    StopAtConflict,
)
from unshard.sync.sharding.optimistic_statements import OptimisticStatements
from unshard.sync.sharding.owner import operator_in
from unshard.sync.statement import Statements
from unshard.sync.statements.backfill import has_rows
from unshard.sync.statements.plan_record import ColumnBackfill, StatementPlan, write_down
from unshard.target.operators import OperatorKind
from unshard.target.receipts import OpenBatch


@dataclass(slots=True)
class MergedRuns:
    """The runner of the batches that change merged tables, for one source. Used by the sync unit's thread."""

    statements: Statements
    groups: OptimisticGroups
    store: CheckpointStore

    def make(self, step: Decided, at: Location) -> bool:
        """Make a step; the main stream is `at`. Return whether the checkpoint moved. Raises what stops the source."""
        self.statements.touched = frozenset()
        match step:
            case ReleaseTable():
                self.release(step, at)
            case ChangeTarget(target):
                return self.change(target, at)
            case OperateRequest():
                assert isinstance(self.statements.sharded, OptimisticStatements)
                self.statements.sharded.operate(step, self.statements.tables.tracker, self.statements.rules)
                return False
            case StopAtConflict(_, error):
                raise error
        return True

    def change(self, target: TableName, at: Location, again: OpenBatch | None = None) -> bool:
        """Run the change of a merged table that this source has to make; the main stream is `at`. Return if it did.

        `again`: the batch that is open with what was to be done before. Raises as `MergedChanges.begin`.
        """
        begun = self._changes.begin(target, at, again=again is not None)
        if begun is None:
            return False
        if begun.operator is not None:
            steps = begun.intent.steps if begun.intent is not None else ()
            self.store.used = {begun.operator.number: "; ".join(step.statement for step in steps) or "left out"}
        plan = self._plan(begun, target, at)
        if begun.intent is not None:
            write_down(plan, at, self.store, again)
            self.statements.run(plan, self.store, resumed=begun.resumed)
        self._close(plan, is_open=begun.intent is not None or again is not None)
        return True

    def finish(self, batch: OpenBatch) -> None:
        """Finish a batch that an earlier process of this source has left open.

        A change is finished by another source where this one was taken out of the task meanwhile. Raises DdlError
        DDL-027 where another operator is given for a change than its plan has, and a part of it is done.
        """
        plan = StatementPlan.of(batch)
        self.groups.load()
        if plan.released is not None:
            self._let_go(plan)
            return
        assert plan.merged is not None
        merged = self.groups.merged.get(plan.merged)
        runner = merged.runner if merged is not None else None
        if merged is None or runner is None or runner.source != self.store.source or plan.handed_on:
            self._close(plan, is_open=True)
            return
        operator = self._changes.operator_of(merged)
        if (operator.number if operator is not None else None) == plan.operator:
            if operator is not None:
                self.store.used = {operator.number: "; ".join(step.statement for step in plan.intent.steps)}
            self.statements.run(plan, self.store, resumed=True)
            self._close(plan, is_open=True)
            return
        if plan.intent.done and (operator is None or operator.op is not OperatorKind.SKIP):
            where = Where(self.store.source, position=plan.intent.position_begin)
            raise DdlError("DDL-027", where, values={"done": plan.intent.done, "all": len(plan.intent.steps)})
        self.change(plan.merged, plan.end, batch)

    def release(self, step: ReleaseTable, at: Location) -> None:
        """Let a shard go on, because its request is in force; the main stream is `at`.

        First its source writes the values of old rows that the statement has filled with others. Raises ShardError
        SHARD-036 or DdlError DDL-034 where that can't be done, unless a human has given an operator for the statement.
        """
        self.statements.touched = frozenset(step.group.tables)
        fill = self._fill(step)
        if fill is None:
            also = self.groups.release(step, at)
            self.store.move(at, self.statements.tables.take_changes(at.position), also=also)
            return
        place = str(step.group.tables[step.table].sequence.items[0].begin.position)
        nothing = Intent(place, place, Context("", where=Where(self.store.source, position=place)), ())
        plan = StatementPlan(nothing, at, backfills=(fill,), released=(step.group.target, step.table))
        write_down(plan, at, self.store, None)
        self._let_go(plan)

    def _fill(self, step: ReleaseTable) -> ColumnBackfill | None:
        """Plan the values to bring; None where the rows have them, or a human gives up on them."""
        target, table, store = step.group.target, step.table, self.store
        merged = self.groups.merged.get(target)
        shard = merged.shards.get(ShardId(store.source, table)) if merged is not None else None
        if shard is None or shard.old_rows is OldRows.SAME or not store.on_target(lambda c: has_rows(c, target)):
            return None
        several, tidb = shard.old_rows is OldRows.OF_ONE_RUN, store.on_target(is_tidb)
        structure, rewritten = self.groups.structure, self.statements.backfiller.rewritten(table)
        fill, after = item_fill(step.group, table, structure, rewritten, several=several, tidb=tidb)
        if fill is None:
            return None
        item = step.group.tables[table].sequence.items[0]
        operator = operator_in([item], store.operators())
        if operator is not None:
            store.used = {operator.number: "no values are brought from the source"}
            return None
        if why := self.statements.backfiller.hindrance(fill, after, store):
            raise refused_fills(store.source, target, item, fill.columns, why, several=several)
        return fill

    def _let_go(self, plan: StatementPlan) -> None:
        assert plan.released is not None
        target, table = plan.released
        step = ReleaseTable(self.groups.keeper.group(target), table)
        item = step.group.tables[table].sequence.items[0]
        if (operator := operator_in([item], self.store.operators())) is not None:
            self.store.used = {operator.number: "no values are brought from the source"}
            plan = replace(plan, backfills=())
        self.statements.touched = frozenset(step.group.tables)

        def refused(fill: ColumnBackfill, why: str) -> UnshardError:
            return refused_fills(self.store.source, target, item, fill.columns, why, several=True)

        self.statements.backfiller.bring_planned(plan, self.store, refused)
        also, changes = self.groups.release(step, plan.end), self.statements.tables.take_changes(plan.end.position)
        self.store.close(plan.end, changes, Account(), also=also)

    @property
    def _changes(self) -> MergedChanges:
        own = self.statements
        return MergedChanges(self.groups, own.tables.tracker, own.rules, self.store, own.backfiller)

    def _plan(self, begun: BegunChange, target: TableName, at: Location) -> StatementPlan:
        number = begun.operator.number if begun.operator is not None else None
        nothing = Intent(str(at.position), str(at.position), Context("", where=Where(self.store.source)), ())
        return StatementPlan(begun.intent or nothing, at, operator=number, merged=target)

    def _close(self, plan: StatementPlan, *, is_open: bool) -> None:
        assert plan.merged is not None
        changes, also = self.statements.tables.take_changes(plan.end.position), self._changes.end(plan.merged)
        if is_open:
            self.store.close(plan.end, changes, Account(), also=also)
        else:
            self.store.move(plan.end, changes, also=also)
        self.statements.touched = frozenset(self.groups.keeper.group(plan.merged).tables)
        self.groups.load()
        self.groups.look_now()
