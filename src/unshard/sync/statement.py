"""Statements of the log: tracked, filtered, routed and carried out once, as a batch of their own.

The intent (`ddl.intent`) is the plan of that batch: it is written before anything runs, how many of its steps are
done is noted behind each, and closing the batch moves checkpoint and structures together.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass, field, replace
from functools import partial
from typing import Any

from unshard.crash_point import reach
from unshard.ddl.carry_out import carry_out
from unshard.ddl.intent import Intent
from unshard.ddl.marks import unmarked
from unshard.ddl.online import Kept, Records
from unshard.ddl.pieces import Piece, Rules
from unshard.ddl.plan import plan_intent
from unshard.ddl.prepare import for_target, upstream_names
from unshard.ddl.scratch import drop_leftovers
from unshard.ddl.statement import Ddl as Parsed
from unshard.ddl.statement import Kind
from unshard.ddl.tracker import Changes, SchemaTracker
from unshard.errors import DdlError, SyncError, Where
from unshard.log import logger
from unshard.model.position import Location, Position
from unshard.model.table import Table, TableName
from unshard.shard.group import ShardingGroup
from unshard.shard.lock import Outcome
from unshard.sync.fills import refuse_unlike_fills
from unshard.sync.follow import Ddl
from unshard.sync.group_ddl import intent_for, operator_for
from unshard.sync.journal import Also, Journal, nothing
from unshard.sync.ledger import Account
from unshard.sync.logged import SourceTraits, from_form, to_form
from unshard.sync.no_shard_mode import refuse_merged, refuse_shared_schema
from unshard.sync.ownership import Ownership
from unshard.sync.sharded_statements import Passing, ShardedStatements, Shared
from unshard.sync.wanted import StatementReader, Wanted
from unshard.target.checkpoint import Checkpoint, TableCheckpoint
from unshard.target.operators import Op, Operator
from unshard.target.receipts import OpenBatch
from unshard.transform.event_filter import EventFilter

_UNTRACKED = frozenset({"DDL-003", "DDL-004"})
"""What comes of a statement whose structures can't be found out."""


@dataclass(slots=True)
class Statements:
    """One source's statements and the structures that they lead to. Used by the sync unit's thread.

    `upstream` are the tables that the source has at the start: another source may meet a statement on a merged table
    before this one has read its own. With `sharded`, DDL of merged tables is brought together.
    `touched` are the tables that the last statement changed upstream, under old and new names.
    """

    source: str
    traits: SourceTraits
    tracker: SchemaTracker
    rules: Rules
    ownership: Ownership
    upstream: frozenset[TableName] = frozenset()
    events: EventFilter = field(default_factory=lambda: EventFilter({}))
    after: dict[TableName, Position] = field(default_factory=dict)
    touched: frozenset[TableName] = frozenset()
    sharded: ShardedStatements | None = None
    _locations: dict[TableName, Location] = field(default_factory=dict)
    _changed: Changes = field(default_factory=dict)
    _names: set[TableName] = field(default_factory=set)
    _reader: StatementReader = field(init=False)

    def __post_init__(self) -> None:
        self._reader = StatementReader(self.source, self.traits, self.tracker, self.rules, self.events)
        self._names |= self.upstream

    def tidy(self, connection: Any) -> None:
        """Drop the scratch schemas that a killed process left. Only for the driver that has claimed the source."""
        drop_leftovers(connection, self.tracker.place)

    def restore(self, checkpoint: Checkpoint) -> None:
        """Be at a checkpoint: take over its structures and later snapshots, and forget all that is known behind it.

        DM's rows tell only how far a table is: one that is ahead gets the target's structure, the others go.
        """
        tables = {name: state.table for name, state in checkpoint.tables.items()}
        self.tracker.begin({name: table for name, table in tables.items() if table is not None})
        self._names = set(self.upstream | self.tracker.names)
        self._changed = {}
        self._locations = {
            name: state.location
            for name, state in checkpoint.tables.items()
            if state.location and state.location.position > checkpoint.location.position
        }
        for name in [name for name, table in tables.items() if table is None]:
            found = self.tracker.get(name) if name in self._locations and self.rules.allows(name) else None
            self._note({name: found})
            if found is None:
                self._locations.pop(name, None)
        self.after = {name: location.position for name, location in self._locations.items()}

    def table(self, name: TableName) -> Table:
        """The structure of an upstream table here. Raises SyncError SYNC-009 where nobody knows it."""
        known = self.tracker.knows(name)
        found = self.tracker.get(name)
        if found is None:
            raise SyncError("SYNC-009", Where(source=self.source, table=str(name)))
        if not known:
            self._note({name: found})
        return found

    @property
    def names(self) -> frozenset[TableName]:
        """All known tables of this source."""
        return frozenset(self._names)

    def names_in(self, target: TableName) -> int:
        """How many known tables of this source land in that target table. Any thread may ask."""
        return sum(
            self.rules.route(name) == target for name in tuple(self._names) if name.table and self.rules.allows(name)
        )

    def take_changes(self, at: Position) -> dict[TableName, TableCheckpoint]:
        """What the checkpoint at `at` has to record of tables; handed out once.

        A table whose own snapshot lies behind `at` needs its location no longer.
        """
        passed = {name for name, location in self._locations.items() if location.position <= at}
        for name in passed:
            del self._locations[name]
        changes = {name: self.tracker.get(name) for name in passed} | self._changed
        self._changed = {}
        return {name: TableCheckpoint(table, self._locations.get(name)) for name, table in changes.items()}

    def carry_out(
        self, work: Ddl, at: Location, journal: Journal, *, unlocked: bool = False, again: OpenBatch | None = None
    ) -> bool:
        """Do what the statement, or an operator for it, asks for; whether it moved the checkpoint.

        Else it changed nothing in the target. `unlocked`: it was run during a dump without a lock, which may hold
        structures of before it or behind it. `again`: the batch that is open with what was to be done before.
        """
        self.touched = frozenset()
        where = Where(source=self.source, position=str(work.begin))
        operator = journal.operator_in(work.begin, work.end.position)
        if operator is None:
            sharded = self.sharded is not None
            wanted = self._reader.own(work, where, self.after, unlocked=unlocked, sharded=sharded)
            self._refuse_sharding(wanted.found, journal)
            ready = self._prepared(work, wanted.found, self.rules, journal)
            if ready.intent is not None:
                refuse_unlike_fills(ready.intent, partial(self._upstream, wanted.found), journal)
        else:
            wanted, ready = self._operated(work, where, operator, journal, unlocked=unlocked)
            journal.used = {operator.number: wanted.note or "; ".join(operator.sqls) or "left out"}
        changes, also, passing = ready.changes, None, None
        if self.sharded is not None and ready.shared.meets is not None and ready.statements:
            snapshot = self._locations.get(ready.shared.meets)
            copied = snapshot if snapshot is not None and snapshot.position > work.begin else None
            also = self.sharded.meet(ready.shared.meets, ready.statements, work, at, copied)
        elif self.sharded is not None:
            skipped = operator is not None and operator.op is Op.SKIP
            left = self._reader.made(work, where) if skipped else None
            passing = Passing.of(ready.shared.pieces, changes, work, at, left)
            also = self.sharded.pass_by(passing)
        if ready.intent is None:
            self._take_over(changes)
            told = also if self.sharded is not None else self.ownership.changed(self._names, changes)
            return self._pass(work, journal, wanted.online, again, told)
        plan = _plan(ready.intent, changes, work.end, wanted.online, operator, passing)
        self._open(work, at, journal, plan, wanted.online, ready.intent, changes, again, also)
        return True

    def execute(self, group: ShardingGroup, at: Location, journal: Journal, again: OpenBatch | None = None) -> None:
        """Run the DDL that all tables of all sources have, as the owner of its lock; the main stream stands `at`.

        What a human has given for it since it was met is run instead. `again`: the batch that is open with what was to
        be done before.
        """
        assert self.sharded is not None and group.ready is not None
        keeper = self.sharded.groups.locks(group)
        operator = operator_for(group, journal)
        intent, resumed = intent_for(group, keeper, operator, self.tracker, self.rules, journal)
        if operator is not None:
            steps = intent.steps if intent is not None else ()
            journal.used = {operator.number: "; ".join(step.statement for step in steps) or "left out"}
        plan: dict[str, Any] = {"kind": "ddl", "changes": [], "end_gtid": at.gtid}
        plan["group"] = [group.target.schema, group.target.table]
        if operator is not None:
            plan["operator"] = operator.number
        if intent is not None:
            plan["intent"] = intent.to_dict()
            if again is None:
                journal.open(at, at, plan, partitions=0)
            else:
                journal.note(plan)
            self._run(intent, plan, journal, resumed=resumed)
        self.touched = frozenset(group.tables)
        also, changes = self.sharded.groups.resolve(group, at), self.take_changes(at.position)
        if intent is not None or again is not None:
            journal.close(at, changes, Account(), also=also)
        else:
            journal.move(at, changes, also=also)

    def group_of(self, batch: OpenBatch) -> ShardingGroup | None:
        """The group whose DDL an open batch is, where this source is still the one to run it."""
        if self.sharded is None or "group" not in batch.plan:
            return None
        group = self.sharded.groups.keeper.group(TableName(*batch.plan["group"]))
        executes = group.ready is not None and self.sharded.groups.outcome(group) is Outcome.EXECUTE
        return group if executes else None

    def _open(
        self,
        work: Ddl,
        at: Location,
        journal: Journal,
        plan: dict[str, Any],
        online: Records,
        intent: Intent,
        changes: Changes,
        again: OpenBatch | None,
        also: Also | None = None,
    ) -> None:
        """Write the intent, carry it out, close the batch."""
        if again is None:
            journal.open(at, work.end, plan, partitions=0)
        else:
            journal.note(plan)
        self._run(intent, plan, journal, resumed=False)
        self._take_over(changes)
        also = also or self._told(changes)
        journal.close(work.end, self.take_changes(work.end.position), Account(), online=online, also=also)
        self.rules.online.apply(online)

    def _operated(
        self, work: Ddl, where: Where, operator: Operator, journal: Journal, *, unlocked: bool
    ) -> tuple[Wanted, _Ready]:
        """What an operator makes of a statement: what it gives is run first, and of itself nothing but for inject.

        The source ran the statement and nothing else, so it is tracked in any case; only where it can't be, what is
        given is tracked in its place, as DM does.
        """
        given = [piece for text in operator.sqls for piece in self._reader.given(text, work, where)]
        own = Wanted()
        rules = replace(self.rules, marks=unmarked)
        try:
            if operator.op is Op.INJECT:
                rules = self.rules
                sharded = self.sharded is not None
                own = self._reader.own(work, where, self.after, unlocked=unlocked, sharded=sharded)
                self._refuse_sharding(own.found, journal)
            else:
                own = self._reader.followed(work, where, rules)
            found = (*(replace(piece, tracked=False) for piece in given), *own.found)
            return own, self._prepared(work, found, rules, journal)
        except DdlError as error:
            if operator.op is Op.INJECT and (not own.found or error.code not in _UNTRACKED):
                raise
            failure = error
        kept = own.found if operator.op is Op.INJECT else ()
        prepared = self._prepared(work, (*given, *kept), rules, journal)
        note = f"the structure behind the statement could not be found out: {failure.code} {failure.cause}"
        log = logger("sync", source=self.source)
        log.warning("tracked by what an operator gives", position=str(work.begin), op=str(operator.op), note=note)
        return Wanted(note=note), prepared

    def _prepared(self, work: Ddl, found: Sequence[Piece], rules: Rules, journal: Journal) -> _Ready:
        if not found:
            return _Ready()
        shared = Shared(tuple(found))
        if self.sharded is not None:
            shared = self.sharded.share(found, Where(source=self.source, position=str(work.begin)))
        changes, statements = journal.on_target(lambda c: for_target(c, shared.pieces, self.tracker, rules))
        if not statements or shared.meets is not None:
            return _Ready(changes, None, shared, tuple(statements))
        place, begin, end = self.tracker.place, work.begin, work.end.position
        names = upstream_names(found)
        intent = journal.on_target(lambda c: plan_intent(c, place, statements, begin, end, names))
        return _Ready(changes, intent, shared, tuple(statements))

    def _upstream(self, found: Sequence[Piece], target: TableName) -> Table | None:
        """The first table of the pieces that is `target` there, as it is before them."""
        names = (name for piece in found for name in piece.ddl.tables)
        return next((self.tracker.get(name) for name in names if self.rules.route(name) == target), None)

    def finish(self, batch: OpenBatch, journal: Journal) -> None:
        """Bring a statement to its end that an earlier process left open."""
        if "operator" in batch.plan:
            journal.used = {
                batch.plan["operator"]: "; ".join(step["statement"] for step in batch.plan["intent"]["steps"])
            }
        also, runs = self.sharded.again(batch) if self.sharded is not None else (None, True)
        if runs:
            self._run(Intent.from_dict(batch.plan["intent"]), batch.plan, journal, resumed=True)
        self._take_over(from_form(batch.plan["changes"]))
        also = also or self._told(from_form(batch.plan["changes"]))
        form = batch.plan.get("online", [])
        online = {TableName(schema, table): tuple(map(Kept.from_dict, kept)) for schema, table, kept in form}
        end = Location(batch.end, batch.plan["end_gtid"])
        journal.close(end, self.take_changes(batch.end), Account(), online=online, also=also)
        self.rules.online.apply(online)

    def _pass(
        self, work: Ddl, journal: Journal, online: Records, again: OpenBatch | None, also: Also | None = None
    ) -> bool:
        """Nothing is run. What changes for a ghost, a group or a structure, and an operator's use, is durable with it.

        A batch that is open behind it may be finished by a process that doesn't read the statement again.
        """
        moves = bool(online or journal.used or also or self._changed)
        changes = self.take_changes(work.end.position) if moves or again else {}
        if again is not None:
            journal.close(work.end, changes, Account(), online=online, also=also or nothing)
        elif moves:
            journal.move(work.end, changes, online=online, also=also or nothing)
        else:
            return False
        self.rules.online.apply(online)
        return True

    def _run(self, intent: Intent, plan: dict[str, Any], journal: Journal, *, resumed: bool) -> None:
        done = intent.done
        tried = resumed

        def note(connection: Any, count: int) -> None:
            nonlocal done
            done = count
            journal.note({**plan, "intent": replace(intent, done=count).to_dict()}, connection)

        def attempt(connection: Any) -> None:
            nonlocal tried
            again, tried = tried, True
            carry_out(connection, replace(intent, done=done), reach, partial(note, connection), resumed=again)

        journal.change(attempt)

    def _told(self, changes: Changes) -> Also:
        return self.ownership.changed(self._names, changes) or nothing

    def _take_over(self, changes: Changes) -> None:
        self.touched = frozenset(changes)
        self.tracker.apply(changes)
        self._note(changes)

    def _note(self, changes: Mapping[TableName, Table | None]) -> None:
        self._changed |= changes
        self._names |= {name for name, table in changes.items() if table is not None}
        self._names -= {name for name, table in changes.items() if table is None}

    def _refuse_sharding(self, found: Sequence[Piece], journal: Journal) -> None:
        """Raises SyncError SYNC-011 where what is to be run would change tables of others too, and does not wait."""
        if self.sharded is not None:
            return
        for ddl in (part for piece in found for part in piece.run):
            if ddl.kind is Kind.DROP_DATABASE:
                journal.on_target(partial(refuse_shared_schema, ddl=ddl, names=self._names, rules=self.rules))
            refuse_merged(ddl, self._names, self.rules, self._is_merged)

    def _is_merged(self, target: TableName) -> bool:
        """Whether more than one source table, of any source, lands in that target table."""
        return self.names_in(target) + self.ownership.others(target) > 1


def _plan(
    intent: Intent, changes: Changes, end: Location, online: Records, operator: Operator | None, passing: Passing | None
) -> dict[str, Any]:
    """What a statement's batch keeps, in JSON."""
    plan: dict[str, Any] = {"kind": "ddl", "intent": intent.to_dict(), "changes": to_form(changes)}
    plan["end_gtid"] = end.gtid
    if online:
        plan["online"] = [[*astuple(ghost), [one.to_dict() for one in kept]] for ghost, kept in online.items()]
    if operator is not None:
        plan["operator"] = operator.number
    if passing is not None:
        plan["passing"] = passing.to_dict()
    return plan


@dataclass(frozen=True, slots=True)
class _Ready:
    """What a statement comes to: the structures behind it, and what is to be run at once (`intent`) or waits."""

    changes: Changes = field(default_factory=dict)
    intent: Intent | None = None
    shared: Shared = field(default_factory=lambda: Shared(()))
    statements: tuple[Parsed, ...] = ()
