"""One source's side of `shard-mode: optimistic`: what its shards ask for, what it runs, by which columns it writes.

`shard.merged_table` decides. Each step here is one transaction of the target:

| step | what is written | if the process dies before or after it |
|---|---|---|
| **meet** | the statement is its table's item; the table's changes wait; the checkpoint passes it | it is read again |
| **ask** | the first item is the shard's request in the merged table | asked again, with the same id |
| **begin** | this source is the runner of the change | it is the runner without an open batch: begun again |
| **run** | intent, steps, close, as of every statement; then the change is done | the open batch is finished |
| **release** | the item goes; the table is free, or its waiting changes are re-synced | released again |
| **note** | the source writes rows by the columns of this version | rows have the columns of the version before |

A change that runs nothing on the target is begun and done in one transaction. A new table is registered when its CREATE
is passed. A dropped one is taken out when none of its changes wait any more.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from threading import Event
from typing import Any

from unshard.api.status import UnresolvedGroup
from unshard.ddl.evaluate import definition_of
from unshard.errors import ShardError, Where
from unshard.log import logger
from unshard.model.position import Location
from unshard.model.table import Table, TableName
from unshard.schema.definition import Dialect, TableDefinition
from unshard.schema.lex import NotUnderstoodError
from unshard.schema.text import to_column, to_table
from unshard.shard.group import ShardingGroup, TableState
from unshard.shard.join import IncompatibleError
from unshard.shard.merged_form import structure_of
from unshard.shard.merged_parts import MergedChange, MergedDecision, ShardId, StructureRequest
from unshard.shard.merged_table import MergedTable
from unshard.shard.sequence import DdlItem
from unshard.shard.show import overdue, waiting_shards
from unshard.sync.checkpoint.store import Also
from unshard.sync.sharding.coordinator import IDLE_LOOK_SECONDS, LOOK_SECONDS, ShardingGroups
from unshard.target.sharding import Step, load_merged, move_merged
from unshard.transform.extract import Constant


@dataclass(frozen=True, slots=True)
class ReleaseTable:
    """Next step: release the table, because its request is in force."""

    group: ShardingGroup
    table: TableName


@dataclass(frozen=True, slots=True)
class ChangeTarget:
    """Next step: change the merged table; this source is to run the change."""

    target: TableName


@dataclass(frozen=True, slots=True)
class ReadAgain:
    """Next step: re-sync the waiting changes of the group's tables."""

    group: ShardingGroup


@dataclass(frozen=True, slots=True)
class AwaitTarget:
    """Next step: wait and look again. Another source is about to give the merged table what this one's rows need."""

    target: TableName


NextStep = ReleaseTable | ChangeTarget | ReadAgain | AwaitTarget


@dataclass(slots=True)
class OptimisticGroups(ShardingGroups):
    """The groups of a source in optimistic mode: each of its tables waits and is released by itself.

    `dialect` is the source's. `strict`: a statement that would wait stops the source. `merged`: the merged tables as
    last loaded. `silent`: sources that have not declared their tables yet.
    """

    dialect: Dialect = Dialect.MARIADB
    strict: bool = False
    merged: Mapping[TableName, MergedTable] = field(default_factory=dict)
    silent: frozenset[str] = frozenset()

    def restore(self, names: Iterable[TableName], ahead: Iterable[TableName] = ()) -> None:
        """Do as `ShardingGroups.restore`. Raises ShardError SHARD-051 where a statement waits from pessimistic mode."""
        ShardingGroups.restore(self, names, ahead)
        for group in self.keeper.unresolved:
            if any("request" not in item.payload for item in group.sequence.items):
                raise ShardError("SHARD-051", Where(self.store.source), values={"targets": str(group.target)})

    def definition(self, table: Table, where: Where) -> TableDefinition:
        """Return a table's structure as the join needs it. Raises ShardError SHARD-041 where it is not understood."""
        try:
            return definition_of(table, self.dialect)
        except NotUnderstoodError as error:
            values = {"target": str(self.rules.route(table.name)), "why": str(error)}
            raise ShardError("SHARD-041", where, table.create_sql[:500], values) from error

    def fills(self, upstream: Table) -> tuple[Constant, ...]:
        """Return the constants that rows of this table get in columns of the target that the table lacks."""
        target = self.rules.route(upstream.name)
        merged, there = self.merged.get(target), self.tables.targets.get(target)
        columns = merged.seen.get(self.store.source) if merged is not None else None
        if columns is None or there is None:
            return ()
        lacking = columns.fills(self.definition(upstream, Where(self.store.source, str(upstream.name))))
        known = {column.name.lower(): column for column in there.columns}
        found = []
        for name, (column, fill) in lacking.items():
            if name in known:
                shown = to_column(column, self.dialect)
                made = replace(shown, name=known[name].name, auto_increment=False, nullable=True)
                found.append(Constant(made, fill.value))
        return tuple(found)

    def begin_merged(self) -> None:
        """Load the merged tables at a start, and register the source's shards.

        Raises ShardError SHARD-040, SHARD-041, SHARD-042 as `register`.
        """
        self.load()
        self.register()

    def register(self) -> None:
        """Add the source's new shards to the merged tables, and take out those that were dropped.

        Raises ShardError SHARD-040 where no structure takes a shard's rows and those of the others, SHARD-041 where its
        structure is not understood, SHARD-042 where its source is of another product than the others.
        """
        source = self.store.source
        for target, group in self.keeper.groups.items():
            merged = self.merged.get(target) or MergedTable(target)
            live = {name for name, state in group.tables.items() if state.gone is None or not state.idle}
            known = {shard.table for shard in merged.shards if shard.source == source}
            found: dict[ShardId, TableDefinition] = {}
            for name in sorted(live - known):
                table = self._structure_in_force(name, group.tables[name])
                if table is not None:
                    found[ShardId(source, name)] = self.definition(table, Where(source, str(name)))
            gone = [ShardId(source, name) for name in sorted(known - live)]
            if found or gone:
                self._write(target, found, gone)

    def copies(self, counts: Mapping[TableName, int]) -> frozenset[TableName]:
        """Return no table: the join brings copies with and without a statement together, so none waits for it."""
        return frozenset()

    def join_copies(self, copies: Mapping[TableName, Table], stop: Event) -> dict[TableName, Table] | None:
        """Register a copy's shards before it is loaded. Return the structure of each merged table whose shards differ.

        Nobody changes these tables until `end_join`. `copies`: the tables as their rows were read. The source need not
        be claimed. None when `stop` came first. Raises ShardError SHARD-040, SHARD-041, SHARD-042 as `register`.
        """
        source, found = self.store.source, dict[TableName, dict[ShardId, TableDefinition]]()
        for name, table in sorted(copies.items()):
            if name.table and self.rules.allows(name):
                own = found.setdefault(self.rules.route(name), {})
                own[ShardId(source, name)] = self.definition(table, Where(source, str(name)))
        joined = {}
        for target, own in found.items():
            merged = self._unclaimed_step(target, partial(self._copied, found=own))
            while merged.runner is not None and merged.runner.source != source:
                if stop.wait(LOOK_SECONDS):
                    return None
                merged = self._unclaimed_step(target, partial(self._copied, found=own))
            if merged.after is not None and not merged.has_equal_shards:
                joined[target] = to_table(merged.after, target, self.dialect)
        return joined

    def end_join(self, targets: Iterable[TableName]) -> None:
        """End what `join_copies` began: the target tables take the rows of all shards. May be repeated."""
        for target in targets:
            self._unclaimed_step(target, lambda one, _: one.given_up(self.store.source))

    def _copied(
        self, merged: MergedTable, _: frozenset[str], *, found: Mapping[ShardId, TableDefinition]
    ) -> MergedTable:
        source = self.store.source
        if merged.runner is not None and merged.runner.source != source:
            return merged
        for shard, structure in found.items():
            merged = self._with_shard(merged, shard, structure, MergedTable.copied)
        if merged.has_equal_shards or merged.after is None:
            return merged
        return merged.begun(source, MergedChange((), merged.after, merged.rules))

    def _unclaimed_step(self, target: TableName, step: Step) -> MergedTable:
        """Change a merged table in a transaction of its own, whether or not this process has claimed the source."""

        def attempt(connection: Any) -> MergedTable:
            with connection.cursor() as cursor:
                cursor.execute("BEGIN")
                made = move_merged(cursor, self.store.meta, target, step)
                cursor.execute("COMMIT")
                return made

        return self.store.on_target(attempt)

    def _with_shard(
        self,
        merged: MergedTable,
        shard: ShardId,
        structure: TableDefinition,
        take: Callable[[MergedTable, ShardId, TableDefinition], MergedTable],
    ) -> MergedTable:
        """Add a shard by `take`. Raises ShardError SHARD-040, SHARD-042."""
        if not merged.shards and merged.after is None:
            merged = replace(merged, dialect=self.dialect)
        where = Where(shard.source, str(shard.table))
        if merged.dialect is not self.dialect:
            raise ShardError("SHARD-042", where, values={"target": str(merged.target)})
        try:
            return take(merged, shard, structure)
        except IncompatibleError as error:
            values = {"target": str(merged.target), "why": str(error)}
            raise ShardError("SHARD-040", where, values=values) from error

    def _structure_in_force(self, name: TableName, state: TableState) -> Table | None:
        """Return the structure of the table's changes that go to the target now; None where it is not on record."""
        if state.sequence.items:
            form = state.sequence.items[0].payload["before"]
            return Table.from_dict(form) if form is not None else None
        return self.structure(name)

    def _write(self, target: TableName, found: Mapping[ShardId, TableDefinition], gone: Collection[ShardId]) -> None:
        there = self.tables.targets.get(target)
        columns = {column.name.lower() for column in there.columns} if there is not None else set()
        faults: list[ShardError] = []

        def step(merged: MergedTable, _: frozenset[str]) -> MergedTable:
            faults.clear()
            for shard, structure in found.items():
                try:
                    merged = self._with_shard(merged, shard, structure, partial(MergedTable.register, there=columns))
                except ShardError as error:
                    faults.append(error)
            for shard in gone:
                merged = merged.without(shard)
            return merged

        self.step(target, step)
        if faults:
            raise faults[0]

    def next_step(self, at: Location) -> NextStep | None:
        """Return the next step before the main stream goes on after `at`. Makes short transactions on the way."""
        self.alert()
        busy = self.unresolved or any(one.runner is not None or one.leaving for one in self.merged.values())
        if time.monotonic() - self._looked >= (LOOK_SECONDS if busy else IDLE_LOOK_SECONDS):
            self.load()
            self.register()
            self._note()
            found = self._next_change()
            self._looked = 0.0 if isinstance(found, AwaitTarget) else time.monotonic()
            if found is not None:
                return found
        resync = self.keeper.next_resync(at)
        return ReadAgain(self.keeper.group(resync[0])) if resync is not None else None

    def look_now(self) -> None:
        """Make the next step read the merged tables at once, because something has changed."""
        self._looked = 0.0

    def _next_change(self) -> NextStep | None:
        for group in self.keeper.unresolved:
            for name, state in group.tables.items():
                if state.behind is None and state.sequence.items and (step := self._ask(group, name)) is not None:
                    return step
        mine = next((ChangeTarget(one.target) for one in self.merged.values() if self._runs(one)), None)
        lacking = (AwaitTarget(one.target) for one in self.merged.values() if one.lacks(self.store.source))
        return mine or next(lacking, None)

    def _ask(self, group: ShardingGroup, name: TableName) -> ReleaseTable | None:
        item = group.tables[name].sequence.items[0]
        shard = ShardId(self.store.source, name)
        merged = self.merged.get(group.target)
        state = merged.shards.get(shard) if merged is not None else None
        if merged is None or state is None:
            return None
        request = request_of(item, merged.dialect)
        if state.done == request.id:
            return ReleaseTable(group, name)
        if state.request is None or state.request.id != request.id:  # what is asked already may be forced by now
            self.step(group.target, lambda one, _: one.ask(shard, request) if shard in one.shards else one)
        return None

    def _runs(self, merged: MergedTable) -> bool:
        """Return whether this source has a change of the merged table to make."""
        source = self.store.source
        if source not in merged.sources:
            return False
        if merged.runner is not None:
            return merged.runner.source in (source, "")
        return self.chosen(merged, self.silent) is not None

    def chosen(self, merged: MergedTable, silent: Collection[str]) -> MergedChange | MergedDecision | None:
        """Return the change that this source makes next: one without a shard, its own shard's, or that of a barrier."""
        source = self.store.source
        decision = merged.evaluate(silent)
        for change in decision.changes:
            if all(shard.source == source for shard in change.shards):
                return change
        return decision if any(shard.source == source for shard in decision.barrier) else None

    def waits_for(self, shard: ShardId, request: StructureRequest) -> str:
        """Return why a statement that the shard is about to meet would not be in force at once; empty if it would."""
        self.load()
        merged = self.merged.get(self.rules.route(shard.table))
        state = self.keeper.group(self.rules.route(shard.table)).tables.get(shard.table)
        if merged is None or shard not in merged.shards:
            return ""
        if state is not None and not state.idle:
            return "the table waits with an earlier statement"
        decision = merged.ask(shard, request).evaluate(self.silent)
        return decision.waits.get(shard, "")

    def release(self, step: ReleaseTable, at: Location) -> Also:
        """Release the table: the target has its request. Returns what writes the group."""
        save = self.put(self.keeper.group(step.group.target).release(step.table, at))
        self.tables.forget(step.group.tables)
        self.look_now()
        return save

    def _note(self) -> None:
        """Record that this source writes rows by the present columns. Called while it has no open batch."""
        source = self.store.source
        for target, merged in self.merged.items():
            columns = merged.seen.get(source)
            if source in merged.sources and (columns is None or columns.version != merged.version):
                self.step(target, lambda one, _: one.noted(source))

    def step(self, target: TableName, step: Step) -> MergedTable:
        """Change a merged table in a transaction of its own, and return it."""
        found: list[MergedTable] = []

        def write(cursor: Any) -> None:
            found.append(move_merged(cursor, self.store.meta, target, step))

        self.store.in_one(write)
        self._take_merged(target, found[-1])
        return found[-1]

    def _take_merged(self, target: TableName, merged: MergedTable) -> None:
        self.merged = {**self.merged, target: merged}
        self.tables.forget(name for name in self.keeper.group(target).tables)

    def load(self) -> None:
        """Load the merged tables as they are now."""
        meta = self.store.meta
        merged, self.silent = self.store.on_target(lambda c: load_merged(c, meta))
        before, self.merged = self.merged, merged
        source = self.store.source
        for target, one in merged.items():
            if target not in before or before[target].seen.get(source) != one.seen.get(source):
                self.tables.forget(name for name in self.keeper.group(target).tables)

    @property
    def shown(self) -> tuple[UnresolvedGroup, ...]:
        """The waiting statements of this source's shards as `query-status` shows them, with the reasons."""
        found = waiting_shards(self.keeper, self.merged, self.silent)
        if not self.alert_seconds:
            return found
        return tuple(overdue(one, self.alert_seconds, datetime.now(UTC)) for one in found)

    def tell_waits(self, shard: ShardId, item: DdlItem, why: str) -> None:
        """Log that a statement waits, once, when its shard meets it."""
        words = {"table": str(shard.table), "ddl": "; ".join(item.ddls), "waits": why}
        logger("sync", source=self.store.source).warning("a shard waits with its statement", **words)


def new_request_id() -> str:
    """Return an id that no other request has."""
    return secrets.token_hex(8)


def request_payload(request_id: str, after: str, barrier: str) -> dict[str, Any]:
    """Build what an item's payload holds of a request; `after` is the stored text of the structure."""
    return {"id": request_id, "after": after, "barrier": barrier}


def request_of(item: DdlItem, dialect: Dialect) -> StructureRequest:
    """Return the request that an item's payload holds."""
    form = item.payload["request"]
    after = structure_of(form["after"], dialect)
    return StructureRequest(form["id"], after, form["barrier"], item.ddls, item.time)
