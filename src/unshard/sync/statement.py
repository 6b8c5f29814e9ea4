"""Runs statements of the log: each is tracked, filtered, routed and executed once, as a batch of its own.

The intent (`ddl.intent`) is the plan of that batch. It is stored before anything runs, the number of finished steps is
noted after each step, and closing the batch moves checkpoint and structures together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from unshard.ddl.context import Context
from unshard.ddl.intent import Intent
from unshard.ddl.online import Records
from unshard.ddl.partition_rows import check_partitions
from unshard.ddl.pieces import AlterOperation, StatementRules, with_routed_away
from unshard.ddl.plan import plan_intent
from unshard.ddl.prepare import RoutedDdl, for_target, in_targets_words, upstream_names
from unshard.ddl.provenance import unmarked
from unshard.ddl.sandbox import drop_leftovers
from unshard.ddl.tracker import NOT_FOLLOWED, Changes, schema_row
from unshard.errors import DdlError, UnshardError, Where
from unshard.log import logger
from unshard.model.position import Location
from unshard.model.table import Table, TableName
from unshard.shard.group import ShardingGroup
from unshard.shard.lock_keeper import LockKeeper, Outcome
from unshard.sync.batch.row_counts import Account
from unshard.sync.checkpoint.store import Also, CheckpointStore, nothing
from unshard.sync.sharding.coordinator import ShardingGroups
from unshard.sync.sharding.item_fills import fills_of, refused_fills
from unshard.sync.sharding.owner import intent_for, operator_for
from unshard.sync.sharding.statements import Met, ShardedStatements, Shared
from unshard.sync.sharding.table_owners import Ownership
from unshard.sync.source_log.reader import LoggedDdl
from unshard.sync.statements.backfill import Backfiller, planned_fills, refused_fill
from unshard.sync.statements.names_by_case import NamesByCase
from unshard.sync.statements.plan_record import ColumnBackfill, StatementPlan, write_down
from unshard.sync.statements.reader import RoutedStatement, SourceTraits, StatementReader
from unshard.sync.statements.refused import refuse_sharding, refuse_unlike_read, taken_to_be_there
from unshard.sync.statements.steps import MadeTables, StepsRun
from unshard.sync.statements.tracked_tables import TrackedTables
from unshard.sync.statements.uncoordinated import Passing
from unshard.target.filled import FilledTables
from unshard.target.operators import Operator, OperatorKind
from unshard.target.receipts import OpenBatch
from unshard.transform.event_filter import EventFilter

_UNTRACKED = NOT_FOLLOWED | {"DDL-004"}
"""The error codes of a statement whose resulting structures can't be determined."""


@dataclass(slots=True)
class Statements:
    """The handler of one source's statements, which tracks and executes them. Used by the sync unit's thread.

    `sharded` coordinates DDL of merged tables; None without `shard-mode`. `touched`: the upstream tables that the last
    statement changed, under old and new names.
    """

    source: str
    traits: SourceTraits
    tables: TrackedTables
    rules: StatementRules
    ownership: Ownership
    backfiller: Backfiller
    events: EventFilter = field(default_factory=lambda: EventFilter({}))
    touched: frozenset[TableName] = frozenset()
    sharded: ShardedStatements | None = None
    reader: StatementReader = field(init=False)
    names: NamesByCase = field(init=False)

    def __post_init__(self) -> None:
        tracker, was_there = self.tables.tracker, self.tables.was_there
        self.reader = StatementReader(self.source, self.traits, tracker, self.rules, self.events, was_there)
        self.names = NamesByCase(self.tables, self.ownership.like, self.ownership.store.on_target)
        self.tables.refuse_read = self.names.refuse_read

    def tidy(self, connection: Any) -> None:
        """Drop the scratch schemas that a killed process left. Only for the driver that has claimed the source."""
        drop_leftovers(connection, self.tables.tracker.place)

    def carry_out(
        self,
        work: LoggedDdl,
        at: Location,
        store: CheckpointStore,
        *,
        unlocked: bool = False,
        again: OpenBatch | None = None,
    ) -> bool:
        """Execute a statement, or the operator in its place. Return whether that moved the checkpoint.

        If not, it changed nothing in the target. `unlocked`: the statement ran during a dump without a lock, which may
        hold structures from before it or after it. `again`: the batch that is open with what was to be done before.
        """
        self.touched = frozenset()
        where = Where(source=self.source, position=str(work.begin))
        operator = store.operator_in(work.begin, work.end.position)
        backfills: tuple[ColumnBackfill, ...] = ()
        if operator is None:
            sharded = self.sharded is not None
            wanted = self.reader.own(work, where, self.tables.after, unlocked=unlocked, sharded=sharded)
            self._refuse_sharding(wanted.found, store)
            ready = self._prepared(work, wanted.found, self.rules, store)
            refuse_unlike_read(wanted.found, ready.changes, self.tables, work.begin)
            if ready.intent is not None:
                before = partial(self._upstream, wanted.found)
                backfills = planned_fills(ready.intent, before, ready.changes, self.backfiller, store)
        else:
            wanted, ready = self._operated(work, where, operator, store, unlocked=unlocked)
            store.used = {operator.number: wanted.note or "; ".join(operator.sqls) or "left out"}
        changes, also, passing = {**ready.changes, **dict.fromkeys(wanted.entered)}, None, None
        if self.sharded is not None and ready.shared.meets is not None and ready.statements:
            copied = self.tables.later_snapshot(ready.shared.meets, work.begin)
            after = changes.get(ready.shared.meets) or self.tables.structure(ready.shared.meets)
            met = Met(ready.shared.meets, ready.statements, ready.shared.pieces, after)
            also = self.sharded.meet(met, work, at, copied)
        elif self.sharded is not None:
            skipped = operator is not None and operator.op is OperatorKind.SKIP
            left = self.reader.made(work, where) if skipped else None
            passing = replace(Passing.of(ready.shared.pieces, changes, work, at, left), skipped=skipped)
            also = self.sharded.pass_by(passing)
        if ready.intent is None:
            self._take_over(changes)
            self.tables.come(wanted.entered)
            told = also if self.sharded is not None else self.ownership.changed(self.tables.names, changes)
            return self._pass(work, store, wanted.online, again, told)
        number = operator.number if operator is not None else None
        plan = StatementPlan(ready.intent, work.end, changes, wanted.online, number, passing, backfills=backfills)
        write_down(plan, at, store, again)
        self.run(plan, store, resumed=False)
        self.backfiller.bring_planned(plan, store, partial(self._refused, plan))
        self._close(plan, store, also)
        return True

    def execute(
        self, group: ShardingGroup, at: Location, store: CheckpointStore, again: OpenBatch | None = None
    ) -> None:
        """Run the DDL that all tables of all sources have met, as the owner of its lock; the main stream is `at`.

        If an operator was given for it since it was met, the operator's statements run instead. `again`: the batch that
        is open with what was to be done before.
        """
        assert self.sharded is not None
        assert group.ready is not None
        keeper = self.sharded.groups.locks(group)
        operator = operator_for(group, store)
        intent, resumed = intent_for(group, keeper, operator, self.tables.tracker, self.rules, store)
        number = operator.number if operator is not None else None
        if number is not None:
            steps = intent.steps if intent is not None else ()
            store.used = {number: "; ".join(step.statement for step in steps) or "left out"}
        fills = self._fills_of(group, intent, keeper, store) if operator is None else ()
        self._run_and_resolve(group, intent, fills, at, store, again, resumed=resumed, operator=number)

    def pass_behind(self, group: ShardingGroup, at: Location, store: CheckpointStore) -> None:
        """Pass a DDL that another source has run, and write this source's values for it unless an operator is given."""
        assert self.sharded is not None
        keeper = self.sharded.groups.locks(group)
        fills = self._fills_of(group, None, keeper, store) if not self._waived(group.target, store) else ()
        place = str(at.position)
        nothing_to_run = Intent(place, place, Context("", where=Where(source=self.source, position=place)), ())
        self._run_and_resolve(group, nothing_to_run if fills else None, fills, at, store)

    def _waived(self, target: TableName, store: CheckpointStore) -> bool:
        """Return whether an operator is given for a DDL that another source has run; the operator is then used up."""
        assert self.sharded is not None
        operator = operator_for(self.sharded.groups.keeper.group(target), store)
        if operator is not None:
            store.used = {operator.number: "no values are brought from the source"}
        return operator is not None

    def _fills_of(
        self, group: ShardingGroup, intent: Intent | None, keeper: LockKeeper, store: CheckpointStore
    ) -> tuple[ColumnBackfill, ...]:
        return fills_of(group, intent, keeper, store, self.backfiller, self.tables.tracker.get)

    def _run_and_resolve(
        self,
        group: ShardingGroup,
        intent: Intent | None,
        backfills: tuple[ColumnBackfill, ...],
        at: Location,
        store: CheckpointStore,
        again: OpenBatch | None = None,
        *,
        resumed: bool = False,
        operator: int | None = None,
    ) -> None:
        assert self.sharded is not None
        if intent is not None:
            plan = StatementPlan(intent, at, operator=operator, group=group.target, backfills=backfills)
            write_down(plan, at, store, again)
            self.run(plan, store, resumed=resumed)
            self.backfiller.bring_planned(plan, store, partial(self._refused, plan))
        self.touched = frozenset(group.tables)
        also, structures = self.sharded.groups.resolve(group, at), self.tables.take_changes(at.position)
        if intent is not None or again is not None:
            store.close(at, structures, Account(), also=also)
        else:
            store.move(at, structures, also=also)

    def group_of(self, plan: StatementPlan) -> ShardingGroup | None:
        """Return the group whose DDL an open batch is, if this source is still the one to run it."""
        if self.sharded is None or plan.group is None:
            return None
        group = self.sharded.groups.keeper.group(plan.group)
        return group if group.ready is not None and self.sharded.groups.outcome(group) is Outcome.EXECUTE else None

    def finish(self, batch: OpenBatch, store: CheckpointStore) -> None:
        """Finish a statement that an earlier process left open."""
        plan = StatementPlan.of(batch)
        if plan.operator is not None:
            store.used = {plan.operator: "; ".join(step.statement for step in plan.intent.steps)}
        if plan.group is not None and self.sharded is not None:
            self._finish_group(plan, plan.group, self.sharded.groups, store)
            return
        also = self.sharded.again(plan, batch.begin) if self.sharded is not None else None
        self.run(plan, store, resumed=True)
        self.backfiller.bring_planned(plan, store, partial(self._refused, plan))
        self._close(plan, store, also)

    def _finish_group(
        self, plan: StatementPlan, target: TableName, groups: ShardingGroups, store: CheckpointStore
    ) -> None:
        """Finish a sharding DDL that an earlier process left open; the group is resolved after all that may fail.

        The DDL is not run where a human has given up its lock. Nor is it run where the source was taken out of the task
        and has come back: another source has run the DDL or is to run it, and the group waits as before.
        """
        outcome = groups.outcome(groups.keeper.group(target))
        if outcome is Outcome.EXECUTE:
            self.run(plan, store, resumed=True)
        elif outcome is not Outcome.SKIP:
            self._close(plan, store, nothing)
            return
        if outcome is Outcome.EXECUTE or not self._waived(target, store):
            self.backfiller.bring_planned(plan, store, partial(self._refused, plan))
        self._close(plan, store, groups.resolve(groups.keeper.group(target), plan.end))

    def _operated(
        self, work: LoggedDdl, where: Where, operator: Operator, store: CheckpointStore, *, unlocked: bool
    ) -> tuple[RoutedStatement, _Ready]:
        """Prepare a statement that has an operator: its statements run, then for `inject` the statement itself.

        The source ran only the statement, so the statement is tracked in any case. Where it can't be tracked, the
        operator's statements are tracked in its place, as DM does.
        """
        given = [piece for text in operator.sqls for piece in self.reader.given(text, work, where)]
        own = RoutedStatement()
        rules = replace(self.rules, marks=unmarked)
        try:
            if operator.op is OperatorKind.INJECT:
                rules = self.rules
                sharded = self.sharded is not None
                own = self.reader.own(work, where, self.tables.after, unlocked=unlocked, sharded=sharded)
                self._refuse_sharding(own.found, store)
            else:
                own = self.reader.followed(work, where, rules)
                there = taken_to_be_there(own.found, self.tables, work.begin)
                if there and operator.op is OperatorKind.SKIP:
                    return replace(own, found=()), _Ready(there)
            found = (*(replace(piece, tracked=False) for piece in given), *own.found)
            return own, self._prepared(work, found, rules, store)
        except DdlError as error:
            injects = operator.op is OperatorKind.INJECT
            if error.code == "DDL-049" or (injects and (not own.found or error.code not in _UNTRACKED)):
                raise
            failure = error
        kept = own.found if operator.op is OperatorKind.INJECT else ()
        prepared = self._prepared(work, (*given, *kept), rules, store)
        note = f"the structure behind the statement could not be found out: {failure.code} {failure.cause}"
        log = logger("sync", source=self.source)
        log.warning("tracked by what an operator gives", position=str(work.begin), op=str(operator.op), note=note)
        return RoutedStatement(note=note), prepared

    def _prepared(
        self, work: LoggedDdl, found: Sequence[AlterOperation], rules: StatementRules, store: CheckpointStore
    ) -> _Ready:
        if not found:
            return _Ready()
        self.names.refuse(found)
        shared, tracked = Shared(with_routed_away(found, self.tables.names, self.rules)), self.tables.tracker.get
        waiting: Sequence[Table] = ()
        if self.sharded is not None:
            shared = self.sharded.share(found, Where(source=self.source, position=str(work.begin)))
            self._recall(shared.meets)
            waiting = self.sharded.befores(shared.meets)
        if shared.meets is None or self.tables.later_snapshot(shared.meets, work.begin) is None:
            store.on_target(lambda c: check_partitions(c, shared.pieces, tracked, rules, waiting))
        changes, routed = store.on_target(lambda c: for_target(c, shared.pieces, self.tables.tracker, rules))
        changes = self._with_unread(found, changes)
        if shared.meets is not None:
            return _Ready(changes, None, shared, tuple(routed))
        statements = store.on_target(lambda c: in_targets_words(c, routed, rules, strict=True))
        if not statements:
            return _Ready(changes, None, shared)
        place, end, names = self.tables.tracker.place, work.end.position, upstream_names(found)
        intent = store.on_target(lambda c: plan_intent(c, place, statements, work.begin, end, names))
        return _Ready(changes, intent, shared)

    def _with_unread(self, found: Sequence[AlterOperation], changes: Changes) -> Changes:
        """Return the changes with the tables of dropped schemas whose structure was never read: they are dropped too.

        The source may lack them by now; the task's other sources still count on them.
        """
        dropped = {piece.ddl.schema for piece in found if piece.tracked and piece.ddl.drops_schema}
        if not dropped:
            return changes
        names = self.tables.names | (self.sharded.groups.names if self.sharded is not None else frozenset())
        gone = (name for name in names if name.table and name.schema in dropped and self.rules.allows(name))
        return {**dict.fromkeys(map(schema_row, dropped)), **dict.fromkeys(gone), **changes}

    def _recall(self, table: TableName | None) -> None:
        """Track a table again that was dropped while its changes waited, with the structure that it had."""
        last = self.sharded.last_known(table) if self.sharded is not None and table is not None else None
        if table is not None and last is not None:
            self.tables.apply({table: last})

    def _upstream(self, found: Sequence[AlterOperation], target: TableName) -> Table | None:
        """Return the first table of the operations that is routed to `target`, with its structure before them."""
        names = (name for piece in found for name in piece.ddl.tables)
        return next((self.tables.tracker.get(name) for name in names if self.rules.route(name) == target), None)

    def _pass(
        self,
        work: LoggedDdl,
        store: CheckpointStore,
        online: Records,
        again: OpenBatch | None,
        also: Also | None = None,
    ) -> bool:
        """Skip the statement. Changes to ghosts, groups, structures and operators are stored with the checkpoint.

        A batch that is open after it may be finished by a process that doesn't read the statement again.
        """
        moves = bool(online or store.used or also or self.tables.changed)
        changes = self.tables.take_changes(work.end.position) if moves or again else {}
        if again is not None:
            store.close(work.end, changes, Account(), online=online, also=also or nothing)
        elif moves:
            store.move(work.end, changes, online=online, also=also or nothing)
        else:
            return False
        self.rules.online.apply(online)
        return True

    def run(self, plan: StatementPlan, store: CheckpointStore, *, resumed: bool) -> None:
        """Run the steps of an open batch that are not done; `resumed`: an earlier process may have run the next one."""
        made = MadeTables(FilledTables(store.meta.schema, store.meta.task), self.source)
        store.change(StepsRun(plan, store, made, resumed).attempt)

    def _refused(self, plan: StatementPlan, fill: ColumnBackfill, why: str) -> UnshardError:
        if plan.group is not None and self.sharded is not None:
            group = self.sharded.groups.keeper.group(plan.group)
            assert group.ready is not None
            several = self.sharded.groups.locks(group).several
            return refused_fills(self.source, group.target, group.ready, fill.columns, why, several=several)
        where = replace(plan.intent.context.where, table=str(fill.table))
        return refused_fill(where, fill.columns, "; ".join(step.statement for step in plan.intent.steps), why)

    def _close(self, plan: StatementPlan, store: CheckpointStore, also: Also | None) -> None:
        """Close the batch: move the checkpoint to the plan's end, with the structures that the statement made."""
        self._take_over(plan.changes)
        also = also or self.ownership.changed(self.tables.names, plan.changes) or nothing
        changes = self.tables.take_changes(plan.end.position)
        store.close(plan.end, changes, Account(), online=plan.online, also=also)
        self.names.refuse_known(name for name, table in plan.changes.items() if table is not None)
        self.rules.online.apply(plan.online)

    def _take_over(self, changes: Changes) -> None:
        self.touched = frozenset(changes)
        self.tables.apply(changes)

    def _refuse_sharding(self, found: Sequence[AlterOperation], store: CheckpointStore) -> None:
        """Raise SyncError SYNC-011 or 074 where a statement would change tables of others without waiting for them."""
        if self.sharded is None:
            refuse_sharding(found, self.tables, self.ownership.others, store.on_target)


@dataclass(frozen=True, slots=True)
class _Ready:
    """A statement ready to be carried out, after its operations were split.

    `changes` are the structures after it. `intent` is run at once; `statements` are run later, as a sharding DDL.
    """

    changes: Changes = field(default_factory=dict)
    intent: Intent | None = None
    shared: Shared = field(default_factory=lambda: Shared(()))
    statements: tuple[RoutedDdl, ...] = ()
