"""Statements of the log: tracked, filtered, routed and carried out once, as a batch of their own.

The intent (`ddl.intent`) is the plan of that batch: it is written before anything runs, how many of its steps are
done is noted behind each, and closing the batch moves checkpoint and structures together.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from unshard.crash_point import reach
from unshard.ddl.execute import carry_out
from unshard.ddl.intent import Intent
from unshard.ddl.online import Records
from unshard.ddl.pieces import AlterOperation, StatementRules
from unshard.ddl.plan import plan_intent
from unshard.ddl.prepare import RoutedDdl, for_target, in_targets_words, upstream_names
from unshard.ddl.provenance import unmarked
from unshard.ddl.sandbox import drop_leftovers
from unshard.ddl.statement import StatementKind
from unshard.ddl.tracker import NOT_FOLLOWED, Changes
from unshard.errors import DdlError, Where
from unshard.log import logger
from unshard.model.position import Location, Position
from unshard.model.table import Table, TableName
from unshard.shard.group import ShardingGroup
from unshard.shard.lock import Outcome
from unshard.sync.batch.row_counts import Account
from unshard.sync.checkpoint.store import Also, CheckpointStore, nothing
from unshard.sync.sharding.merged_change import begin_change, end_change
from unshard.sync.sharding.optimistic import OptimisticGroups
from unshard.sync.sharding.owner import intent_for, operator_for
from unshard.sync.sharding.statements import Met, ShardedStatements, Shared
from unshard.sync.sharding.table_owners import Ownership
from unshard.sync.source_log.reader import LoggedDdl
from unshard.sync.statements.backfill import refuse_unlike_fills
from unshard.sync.statements.plan_record import StatementPlan
from unshard.sync.statements.reader import RoutedStatement, SourceTraits, StatementReader
from unshard.sync.statements.tracked_tables import TrackedTables
from unshard.sync.statements.uncoordinated import Passing, refuse_merged, refuse_shared_schema
from unshard.target.operators import Operator, OperatorKind
from unshard.target.receipts import OpenBatch
from unshard.transform.event_filter import EventFilter

_UNTRACKED = NOT_FOLLOWED | {"DDL-004"}
"""What comes of a statement whose structures can't be found out."""


@dataclass(slots=True)
class Statements:
    """One source's statements and the structures that they lead to. Used by the sync unit's thread.

    With `sharded`, DDL of merged tables is brought together. `touched` are the tables that the last statement changed
    upstream, under old and new names.
    """

    source: str
    traits: SourceTraits
    tables: TrackedTables
    rules: StatementRules
    ownership: Ownership
    events: EventFilter = field(default_factory=lambda: EventFilter({}))
    touched: frozenset[TableName] = frozenset()
    sharded: ShardedStatements | None = None
    _reader: StatementReader = field(init=False)

    def __post_init__(self) -> None:
        self._reader = StatementReader(self.source, self.traits, self.tables.tracker, self.rules, self.events)

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
        """Do what the statement, or an operator for it, asks for; whether it moved the checkpoint.

        Else it changed nothing in the target. `unlocked`: it was run during a dump without a lock, which may hold
        structures of before it or behind it. `again`: the batch that is open with what was to be done before.
        """
        self.touched = frozenset()
        where = Where(source=self.source, position=str(work.begin))
        operator = store.operator_in(work.begin, work.end.position)
        if operator is None:
            sharded = self.sharded is not None
            wanted = self._reader.own(work, where, self.tables.after, unlocked=unlocked, sharded=sharded)
            self._refuse_sharding(wanted.found, store)
            ready = self._prepared(work, wanted.found, self.rules, store)
            if ready.intent is not None:
                refuse_unlike_fills(ready.intent, partial(self._upstream, wanted.found), store)
        else:
            wanted, ready = self._operated(work, where, operator, store, unlocked=unlocked)
            store.used = {operator.number: wanted.note or "; ".join(operator.sqls) or "left out"}
        changes, also, passing = ready.changes, None, None
        if self.sharded is not None and ready.shared.meets is not None and ready.statements:
            copied = self.tables.later_snapshot(ready.shared.meets, work.begin)
            after = changes.get(ready.shared.meets) or self.tables.structure(ready.shared.meets)
            met = Met(ready.shared.meets, ready.statements, ready.shared.pieces, after)
            also = self.sharded.meet(met, work, at, copied)
        elif self.sharded is not None:
            skipped = operator is not None and operator.op is OperatorKind.SKIP
            left = self._reader.made(work, where) if skipped else None
            passing = Passing.of(ready.shared.pieces, changes, work, at, left)
            also = self.sharded.pass_by(passing)
        if ready.intent is None:
            self._take_over(changes)
            told = also if self.sharded is not None else self.ownership.changed(self.tables.names, changes)
            return self._pass(work, store, wanted.online, again, told)
        number = operator.number if operator is not None else None
        plan = StatementPlan(ready.intent, work.end, changes, wanted.online, number, passing)
        _write_down(plan, at, store, again)
        self._run(plan, store, resumed=False)
        self._close(plan, store, also)
        return True

    def crossed(self, work: LoggedDdl, after: Mapping[TableName, Position]) -> frozenset[TableName]:
        """The tables of a statement that lies between their snapshots, whose places are `after`. Changes nothing."""
        return self._reader.crossed(work, after)

    def execute(
        self, group: ShardingGroup, at: Location, store: CheckpointStore, again: OpenBatch | None = None
    ) -> None:
        """Run the DDL that all tables of all sources have, as the owner of its lock; the main stream stands `at`.

        What a human has given for it since it was met is run instead. `again`: the batch that is open with what was to
        be done before.
        """
        assert self.sharded is not None and group.ready is not None
        keeper = self.sharded.groups.locks(group)
        operator = operator_for(group, store)
        intent, resumed = intent_for(group, keeper, operator, self.tables.tracker, self.rules, store)
        number = operator.number if operator is not None else None
        if number is not None:
            steps = intent.steps if intent is not None else ()
            store.used = {number: "; ".join(step.statement for step in steps) or "left out"}
        if intent is not None:
            plan = StatementPlan(intent, at, operator=number, group=group.target)
            _write_down(plan, at, store, again)
            self._run(plan, store, resumed=resumed)
        self.touched = frozenset(group.tables)
        also, changes = self.sharded.groups.resolve(group, at), self.tables.take_changes(at.position)
        if intent is not None or again is not None:
            store.close(at, changes, Account(), also=also)
        else:
            store.move(at, changes, also=also)

    def change_merged(self, target: TableName, at: Location, store: CheckpointStore) -> None:
        """Make the change of a merged table that is this source's to make; the main stream stands `at`."""
        groups = self._optimistic()
        found = begin_change(groups, target, at, self.tables.tracker, self.rules, store)
        if found is None:
            return
        intent, resumed = found
        plan = StatementPlan(intent, at, merged=target)
        _write_down(plan, at, store, None)
        self._run(plan, store, resumed=resumed)
        self._close_merged(plan, store)

    def finish_merged(self, plan: StatementPlan, store: CheckpointStore) -> None:
        """Bring a change of a merged table to its end that an earlier process of this source has begun.

        Where the source was taken out of the task meanwhile another one goes on with it.
        """
        groups = self._optimistic()
        assert plan.merged is not None
        groups.load()
        merged = groups.merged.get(plan.merged)
        runner = merged.runner if merged is not None else None
        if runner is not None and runner.source == self.source and not plan.handed_on:
            self._run(plan, store, resumed=True)
        self._close_merged(plan, store)

    def _close_merged(self, plan: StatementPlan, store: CheckpointStore) -> None:
        groups = self._optimistic()
        assert plan.merged is not None
        changes = self.tables.take_changes(plan.end.position)
        store.close(plan.end, changes, Account(), also=end_change(groups, plan.merged))
        self.touched = frozenset(groups.keeper.group(plan.merged).tables)
        groups.load()
        groups.look_now()

    def _optimistic(self) -> OptimisticGroups:
        assert self.sharded is not None and isinstance(self.sharded.groups, OptimisticGroups)
        return self.sharded.groups

    def group_of(self, plan: StatementPlan) -> ShardingGroup | None:
        """The group whose DDL an open batch is, where this source is still the one to run it."""
        if self.sharded is None or plan.group is None:
            return None
        group = self.sharded.groups.keeper.group(plan.group)
        executes = group.ready is not None and self.sharded.groups.outcome(group) is Outcome.EXECUTE
        return group if executes else None

    def finish(self, batch: OpenBatch, store: CheckpointStore) -> None:
        """Bring a statement to its end that an earlier process left open."""
        plan = StatementPlan.of(batch)
        if plan.operator is not None:
            store.used = {plan.operator: "; ".join(step.statement for step in plan.intent.steps)}
        also, runs = self.sharded.again(plan, batch.begin) if self.sharded is not None else (None, True)
        if runs:
            self._run(plan, store, resumed=True)
        self._close(plan, store, also)

    def _operated(
        self, work: LoggedDdl, where: Where, operator: Operator, store: CheckpointStore, *, unlocked: bool
    ) -> tuple[RoutedStatement, _Ready]:
        """What an operator makes of a statement: what it gives is run first, and of itself nothing but for inject.

        The source ran the statement and nothing else, so it is tracked in any case; only where it can't be, what is
        given is tracked in its place, as DM does.
        """
        given = [piece for text in operator.sqls for piece in self._reader.given(text, work, where)]
        own = RoutedStatement()
        rules = replace(self.rules, marks=unmarked)
        try:
            if operator.op is OperatorKind.INJECT:
                rules = self.rules
                sharded = self.sharded is not None
                own = self._reader.own(work, where, self.tables.after, unlocked=unlocked, sharded=sharded)
                self._refuse_sharding(own.found, store)
            else:
                own = self._reader.followed(work, where, rules)
            found = (*(replace(piece, tracked=False) for piece in given), *own.found)
            return own, self._prepared(work, found, rules, store)
        except DdlError as error:
            if operator.op is OperatorKind.INJECT and (not own.found or error.code not in _UNTRACKED):
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
        shared = Shared(tuple(found))
        if self.sharded is not None:
            shared = self.sharded.share(found, Where(source=self.source, position=str(work.begin)))
        changes, routed = store.on_target(lambda c: for_target(c, shared.pieces, self.tables.tracker, rules))
        if shared.meets is not None:
            return _Ready(changes, None, shared, tuple(routed))
        statements = store.on_target(lambda c: in_targets_words(c, routed, rules))
        if not statements:
            return _Ready(changes, None, shared)
        place, begin, end = self.tables.tracker.place, work.begin, work.end.position
        names = upstream_names(found)
        intent = store.on_target(lambda c: plan_intent(c, place, statements, begin, end, names))
        return _Ready(changes, intent, shared)

    def _upstream(self, found: Sequence[AlterOperation], target: TableName) -> Table | None:
        """The first table of the pieces that is `target` there, as it is before them."""
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
        """Nothing is run. What changes for a ghost, a group or a structure, and an operator's use, is durable with it.

        A batch that is open behind it may be finished by a process that doesn't read the statement again.
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

    def _run(self, plan: StatementPlan, store: CheckpointStore, *, resumed: bool) -> None:
        done = plan.intent.done
        tried = resumed

        def note(connection: Any, count: int) -> None:
            nonlocal done
            done = count
            store.note(plan.with_done(count).to_dict(), connection)

        def attempt(connection: Any) -> None:
            nonlocal tried
            again, tried = tried, True
            intent, jobs = plan.with_done(done).intent, store.jobs(connection)
            carry_out(connection, intent, reach, partial(note, connection), resumed=again, jobs=jobs)

        store.change(attempt)

    def _close(self, plan: StatementPlan, store: CheckpointStore, also: Also | None) -> None:
        """All of the plan is in the target: the checkpoint goes on to its end, with what it makes of structures."""
        self._take_over(plan.changes)
        also = also or self.ownership.changed(self.tables.names, plan.changes) or nothing
        changes = self.tables.take_changes(plan.end.position)
        store.close(plan.end, changes, Account(), online=plan.online, also=also)
        self.rules.online.apply(plan.online)

    def _take_over(self, changes: Changes) -> None:
        self.touched = frozenset(changes)
        self.tables.apply(changes)

    def _refuse_sharding(self, found: Sequence[AlterOperation], store: CheckpointStore) -> None:
        """Raises SyncError SYNC-011 or 074 where what is to be run would change tables of others, and does not wait."""
        if self.sharded is not None:
            return
        for ddl in (part for piece in found for part in piece.run):
            if ddl.kind is StatementKind.DROP_DATABASE:
                store.on_target(partial(refuse_shared_schema, ddl=ddl, names=self.tables.names, rules=self.rules))
            refuse_merged(ddl, self.tables.names, self.rules, self._is_merged)

    def _is_merged(self, target: TableName) -> bool:
        """Whether more than one source table, of any source, lands in that target table."""
        return self.tables.names_in(target) + self.ownership.others(target) > 1


def _write_down(plan: StatementPlan, at: Location, store: CheckpointStore, again: OpenBatch | None) -> None:
    """Make the plan durable before anything of it runs: as a batch that begins `at`, or in the one that is open."""
    if again is None:
        store.open(at, plan.end, plan.to_dict(), partitions=0)
    else:
        store.note(plan.to_dict())


@dataclass(frozen=True, slots=True)
class _Ready:
    """What a statement comes to: the structures behind it, and what is to be run at once (`intent`) or waits
    (`statements`)."""

    changes: Changes = field(default_factory=dict)
    intent: Intent | None = None
    shared: Shared = field(default_factory=lambda: Shared(()))
    statements: tuple[RoutedDdl, ...] = ()
