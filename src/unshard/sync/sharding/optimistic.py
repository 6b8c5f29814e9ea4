"""One source's side of `shard-mode: optimistic`: what its shards ask for, what it runs, which columns it writes by.

`shard.merged_table` decides. Each step here is one transaction of the target:

| step | what is written | if it dies before or behind it |
|---|---|---|
| **meet** | the statement is an item of its table, which is held; the checkpoint passes it | it is read again |
| **ask** | the item in front is the shard's request in the merged table | asked again, with the same id |
| **begin** | this source is the runner of the change | it is the runner without an open batch: begun again |
| **run** | intent, steps, close, as of every statement; then the change is done | the open batch is finished |
| **release** | the item goes, and the table is free, or what was held of it is read again | released again |
| **note** | the source writes rows by the columns of this version | rows have those of the version before |

A change that runs nothing on the target is begun and done in one transaction. A new table is registered when its CREATE
is passed, a dropped one taken out when nothing of it is held any more.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from unshard.api.status import UnresolvedGroup
from unshard.ddl.evaluate import definition_of
from unshard.errors import ShardError, Where
from unshard.log import logger
from unshard.model.position import Location
from unshard.model.table import Table, TableName
from unshard.schema.definition import Dialect, TableDefinition
from unshard.schema.lex import NotUnderstoodError
from unshard.schema.text import to_column
from unshard.shard.group import ShardingGroup, TableState
from unshard.shard.join import IncompatibleError
from unshard.shard.merged_form import structure_of
from unshard.shard.merged_parts import MergedChange, MergedDecision, ShardId, StructureRequest
from unshard.shard.merged_show import waiting_shards
from unshard.shard.merged_table import MergedTable
from unshard.shard.sequence import DdlItem
from unshard.shard.show import overdue
from unshard.sync.checkpoint.store import Also
from unshard.sync.sharding.coordinator import IDLE_LOOK_SECONDS, LOOK_SECONDS, ShardingGroups
from unshard.target.merged_tables import Step, load_merged, move_merged
from unshard.transform.extract import Constant


@dataclass(frozen=True, slots=True)
class ReleaseTable:
    """The request of this table is in force: it is held no more."""

    group: ShardingGroup
    table: TableName


@dataclass(frozen=True, slots=True)
class ChangeTarget:
    """This source is to change a merged table."""

    target: TableName


@dataclass(frozen=True, slots=True)
class ReadAgain:
    """What was held of the group's tables is read again."""

    group: ShardingGroup


NextStep = ReleaseTable | ChangeTarget | ReadAgain


@dataclass(slots=True)
class OptimisticGroups(ShardingGroups):
    """The groups of a source in optimistic mode: each of its tables is held and released by itself.

    `dialect` is that of the source, `strict`: a statement that would wait stops the source.
    """

    dialect: Dialect = Dialect.MARIADB
    strict: bool = False
    merged: Mapping[TableName, MergedTable] = field(default_factory=dict)
    silent: frozenset[str] = frozenset()

    def restore(self, names: Iterable[TableName]) -> None:
        """As `ShardingGroups.restore`. Raises ShardError SHARD-051 where a statement waits from pessimistic mode."""
        ShardingGroups.restore(self, names)
        for group in self.keeper.unresolved:
            if any("request" not in item.payload for item in group.sequence.items):
                raise ShardError("SHARD-051", Where(self.store.source), values={"targets": str(group.target)})

    def definition(self, table: Table, where: Where) -> TableDefinition:
        """A structure as the pure part takes it. Raises ShardError SHARD-041."""
        try:
            return definition_of(table, self.dialect)
        except NotUnderstoodError as error:
            values = {"target": str(self.rules.route(table.name)), "why": str(error)}
            raise ShardError("SHARD-041", where, table.create_sql[:500], values) from error

    def fills(self, upstream: Table) -> tuple[Constant, ...]:
        """The values that rows of this table get in columns of the target that it lacks."""
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
        """Register the source's shards at a start, and write by the columns that are on record for it.

        Raises ShardError SHARD-040, SHARD-041 as `register`.
        """
        self.load()
        self.register()

    def register(self) -> None:
        """Make the merged tables know the shards that this source has now.

        Raises ShardError SHARD-040 where no structure takes a shard's rows and those of the others, SHARD-041 where
        its structure is not understood, SHARD-042 where its source is of another product than the others.
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

    def _structure_in_force(self, name: TableName, state: TableState) -> Table | None:
        """The structure that a table's changes have which go to the target now."""
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
            if not merged.shards and merged.after is None:
                merged = replace(merged, dialect=self.dialect)
            for shard, structure in found.items():
                where = Where(shard.source, str(shard.table))
                if merged.dialect is not self.dialect:
                    faults.append(ShardError("SHARD-042", where, values={"target": str(target)}))
                    continue
                try:
                    merged = merged.register(shard, structure, columns)
                except IncompatibleError as error:
                    values = {"target": str(target), "why": str(error)}
                    faults.append(ShardError("SHARD-040", where, values=values))
            for shard in gone:
                merged = merged.without(shard)
            return merged

        self.step(target, step)
        if faults:
            raise faults[0]

    def next_step(self, at: Location) -> NextStep | None:
        """What there is to do before the main stream goes on behind `at`. Short transactions are made in here."""
        self.alert()
        busy = self.unresolved or any(one.runner is not None or one.leaving for one in self.merged.values())
        if time.monotonic() - self._looked >= (LOOK_SECONDS if busy else IDLE_LOOK_SECONDS):
            self.load()
            self.register()
            self._note()
            found = self._next_change()
            self._looked = time.monotonic()
            if found is not None:
                return found
        resync = self.keeper.next_resync(at)
        return ReadAgain(self.keeper.group(resync[0])) if resync is not None else None

    def look_now(self) -> None:
        """Something has happened: the next step looks at the merged tables at once."""
        self._looked = 0.0

    def _next_change(self) -> NextStep | None:
        for group in self.keeper.unresolved:
            for name, state in group.tables.items():
                if state.behind is None and state.sequence.items and (step := self._ask(group, name)) is not None:
                    return step
        return next((ChangeTarget(one.target) for one in self.merged.values() if self._runs(one)), None)

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
        """Whether this source has a change of the merged table to make."""
        source = self.store.source
        if source not in merged.sources:
            return False
        if merged.runner is not None:
            return merged.runner.source in (source, "")
        return self.chosen(merged, self.silent) is not None

    def chosen(self, merged: MergedTable, silent: Collection[str]) -> MergedChange | MergedDecision | None:
        """The change that this source makes next: one without a shard, its own shard's, or that of a barrier."""
        source = self.store.source
        decision = merged.evaluate(silent)
        for change in decision.changes:
            if all(shard.source == source for shard in change.shards):
                return change
        return decision if any(shard.source == source for shard in decision.barrier) else None

    def waits_for(self, shard: ShardId, request: StructureRequest) -> str:
        """Why a statement that the shard is about to meet would not be in force at once; empty where it would."""
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
        """The target has the request of the table."""
        save = self.put(self.keeper.group(step.group.target).release(step.table, at))
        self.tables.forget(step.group.tables)
        self.look_now()
        return save

    def _note(self) -> None:
        """From here on rows are written by the columns of now. No batch of this source is open."""
        source = self.store.source
        for target, merged in self.merged.items():
            columns = merged.seen.get(source)
            if source in merged.sources and (columns is None or columns.version != merged.version):
                self.step(target, lambda one, _: one.noted(source))

    def step(self, target: TableName, step: Step) -> MergedTable:
        """One step of a merged table in a transaction of its own."""
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
        """See the merged tables as they are now."""
        meta = self.store.meta
        merged, self.silent = self.store.on_target(lambda c: load_merged(c, meta))
        before, self.merged = self.merged, merged
        source = self.store.source
        for target, one in merged.items():
            if target not in before or before[target].seen.get(source) != one.seen.get(source):
                self.tables.forget(name for name in self.keeper.group(target).tables)

    @property
    def shown(self) -> tuple[UnresolvedGroup, ...]:
        """What `query-status` shows: the statements of this source's shards that wait, and why."""
        found = waiting_shards(self.keeper, self.merged, self.silent)
        if not self.alert_seconds:
            return found
        return tuple(overdue(one, self.alert_seconds, datetime.now(UTC)) for one in found)

    def tell_waits(self, shard: ShardId, item: DdlItem, why: str) -> None:
        """Tell of a statement that waits, once, when it is met."""
        words = {"table": str(shard.table), "ddl": "; ".join(item.ddls), "waits": why}
        logger("sync", source=self.store.source).warning("a shard waits with its statement", **words)


def new_request_id() -> str:
    """A word that no other request has."""
    return secrets.token_hex(8)


def request_payload(request_id: str, after: str, barrier: str) -> dict[str, Any]:
    """What an item keeps of a request; `request_of` reads it back. `after` is the stored text of the structure."""
    return {"id": request_id, "after": after, "barrier": barrier}


def request_of(item: DdlItem, dialect: Dialect) -> StructureRequest:
    form = item.payload["request"]
    after = structure_of(form["after"], dialect)
    return StructureRequest(form["id"], after, form["barrier"], item.ddls, item.time)
