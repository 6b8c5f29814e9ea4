"""Coordinates one source in `shard-mode: optimistic`: the DDL of its shards, and its changes of the merged tables.

The decisions are those of `shard.merged_table`. A shard requests a change of the merged table by each DDL. One source,
the runner, executes the change on the target. Each step here is one transaction of the target:

| step | what is written | if the process ends before or after it |
|---|---|---|
| **meet** | the log has reached a DDL of a table: it is stored as the table's pending item, the table's later changes \
wait, and the checkpoint passes the DDL | the DDL is read again |
| **ask** | the first pending item becomes the shard's request in the merged table | requested again, with the same id |
| **begin** | this source becomes the runner of the change | it is the runner without an open batch: begun again |
| **run** | intent, steps and close, as for every statement; then the change is done | the open batch is finished |
| **bring** | old rows of the table get the values of the source, if the run gave others | written again |
| **release** | the item is removed; the table is free, or its waiting changes are re-synced | released again |
| **operate** | a binlog operator replaces the statement with which the table waits, or skips it | applied again |
| **note** | the source writes rows with the columns of this version | rows have the columns of the version before |

A change that runs nothing on the target is begun and done in one transaction. A new table is registered when its CREATE
is passed. A dropped table is removed when none of its changes wait any more.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from unshard.api.status import UnresolvedGroup
from unshard.crash_point import reach
from unshard.errors import ShardError, Where
from unshard.log import logger
from unshard.model.position import Location, Position
from unshard.model.table import Table, TableName
from unshard.schema.definition import Dialect
from unshard.shard.group import ShardingGroup
from unshard.shard.merged_form import structure_of
from unshard.shard.merged_parts import MergedChange, MergedDecision, ShardId, StructureRequest, Wait, WaitKind
from unshard.shard.merged_table import MergedTable
from unshard.shard.sequence import DdlItem
from unshard.shard.show import overdue
from unshard.shard.show_merged import waiting_shards
from unshard.sync.checkpoint.store import Also
from unshard.sync.sharding.coordinator import IDLE_LOOK_SECONDS, LOOK_SECONDS
from unshard.sync.sharding.merged_members import MergedMembers
from unshard.sync.sharding.owner import operator_in
from unshard.target.operators import Operator


@dataclass(frozen=True, slots=True)
class ReleaseTable:
    """Next step: release the table, because its request is in force."""

    group: ShardingGroup
    table: TableName

    @property
    def place(self) -> Position:
        """The statement that the table waits with."""
        return self.group.tables[self.table].sequence.items[0].begin.position


@dataclass(frozen=True, slots=True)
class ChangeTarget:
    """Next step: change the merged table; this source is the one to run the change.

    `place`: the position of its shard's statement that leads to the change; None where a shard was added or removed.
    """

    target: TableName
    place: Position | None = None


@dataclass(frozen=True, slots=True)
class ReadAgain:
    """Next step: re-sync the waiting changes of the group's tables."""

    group: ShardingGroup


@dataclass(frozen=True, slots=True)
class AwaitTarget:
    """Next step: wait and check again, as another source is about to make a change that this source's rows need."""

    target: TableName


@dataclass(frozen=True, slots=True)
class OperateRequest:
    """Next step: apply an operator to the statement that the table waits with."""

    group: ShardingGroup
    table: TableName
    operator: Operator

    @property
    def place(self) -> Position:
        """The statement that the table waits with."""
        return self.group.tables[self.table].sequence.items[0].begin.position


@dataclass(frozen=True, slots=True)
class StopAtConflict:
    """Next step: stop the source at the statement that a table waits with, because the task is strict."""

    place: Position
    error: ShardError


Decided = ReleaseTable | ChangeTarget | OperateRequest | StopAtConflict
"""Next steps that follow from the record of a merged table, or from what a human has decided about it."""
NextStep = Decided | ReadAgain | AwaitTarget


@dataclass(slots=True)
class OptimisticGroups(MergedMembers):
    """The groups of a source in optimistic mode, in which each table waits and is released independently of the others.

    `strict`: a statement that conflicts with other shards stops the source.
    """

    strict: bool = False

    def restore(self, names: Iterable[TableName], ahead: Iterable[TableName] = ()) -> None:
        """Do as `ShardingGroups.restore`. Raises ShardError SHARD-051 where a statement waits from pessimistic mode."""
        MergedMembers.restore(self, names, ahead)
        for group in self.keeper.unresolved:
            if any("request" not in item.payload for item in group.sequence.items):
                raise ShardError("SHARD-051", Where(self.store.source), values={"targets": str(group.target)})

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
        operators = self.store.operators() if self.keeper.unresolved else ()
        for group in self.keeper.unresolved:
            for name, state in group.tables.items():
                if state.behind is not None or not state.sequence.items:
                    continue
                if (found := self._given_first(group, name, operators) or self._ask(group, name)) is not None:
                    return found
        for group in self.keeper.unresolved if operators or self.strict else ():
            if (decided := self._decided(group, operators)) is not None:
                return decided
        mine = next((step for one in self.merged.values() if (step := self._change_of(one)) is not None), None)
        lacking = (AwaitTarget(one.target) for one in self.merged.values() if one.lacks(self.store.source))
        return mine or next(lacking, None)

    def _given_first(
        self, group: ShardingGroup, name: TableName, operators: Sequence[Operator]
    ) -> OperateRequest | None:
        """Return the operator for a statement that is not asked for yet, because an earlier one of its table waited.

        One that is for all shards stands in for the statement where that is run.
        """
        item = group.tables[name].sequence.items[0]
        operator, merged = operator_in([item], operators), self.merged.get(group.target)
        state = merged.shards.get(ShardId(self.store.source, name)) if merged is not None else None
        if operator is None or merged is None or state is None or item.payload["request"]["barrier"]:
            return None
        known = {state.done, state.request.id if state.request is not None else ""}
        if item.payload["request"]["id"] in known or merged.is_of_one_shard:
            return None
        return OperateRequest(group, name, operator)

    def _ask(self, group: ShardingGroup, name: TableName) -> ReleaseTable | None:
        item = group.tables[name].sequence.items[0]
        shard = ShardId(self.store.source, name)
        merged = self.merged.get(group.target)
        state = merged.shards.get(shard) if merged is not None else None
        if merged is None or state is None:
            return None
        asked = item.payload["request"]["id"]
        if state.done == asked:
            return None if precedes_waiting(group, name) else ReleaseTable(group, name)
        if state.request is None or state.request.id != asked:  # what is asked already may be forced by now
            reach("merged-ask-before")
            self.step(group.target, lambda one: self.asked(one, shard, item) if shard in one.shards else one)
            reach("merged-ask-after")
        return None

    def asked(self, merged: MergedTable, shard: ShardId, item: DdlItem) -> MergedTable:
        """Return the record with the request that the item of a shard holds."""
        request = request_of(item, self.dialect)
        request = replace(request, after=self.in_words_of(merged, request.after))
        table, own = item.payload["before"], item.payload["request"].get("own")
        where = Where(shard.source, str(shard.table), str(item.begin.position))
        before = self.definition(Table.from_dict(table), where) if table is not None else None
        before = self.in_words_of(merged, before) if before is not None else None
        return merged.ask(shard, request, before, frozenset(own) if own is not None else None)

    def _decided(self, group: ShardingGroup, operators: Sequence[Operator]) -> OperateRequest | StopAtConflict | None:
        """Return what a human or the strict mode has decided about a statement that a table of the group waits with."""
        merged = self.merged.get(group.target)
        waits = merged.evaluate().waits if merged is not None else {}
        for name, state in group.tables.items():
            shard = ShardId(self.store.source, name)
            wait = waits.get(shard)
            if merged is None or wait is None or state.behind is not None or not state.sequence.items:
                continue
            item = state.sequence.items[0]
            if wait.kind is WaitKind.BUSY and not merged.may_leave_out(shard):
                continue
            if (operator := operator_in([item], operators)) is not None:
                return OperateRequest(group, name, operator)
            if self.strict and wait.is_conflict:
                where = Where(self.store.source, str(name), str(item.begin.position))
                return StopAtConflict(item.begin.position, self.refused(where, item.ddls, group.target, wait))
        return None

    def refused(self, where: Where, ddls: Sequence[str], target: TableName, wait: Wait) -> ShardError:
        """Return ShardError SHARD-044, for a statement that conflicts in strict mode."""
        return ShardError("SHARD-044", where, "; ".join(ddls)[:500], {"target": str(target), "why": wait.why})

    def _change_of(self, merged: MergedTable) -> ChangeTarget | None:
        """Return the change of the merged table that this source has to make; None if there is none."""
        source, runner = self.store.source, merged.runner
        if source not in merged.sources or (runner is not None and runner.source not in (source, "")):
            return None
        chosen = runner.change if runner is not None else self.chosen(merged)
        if chosen is None:
            return None
        shards = chosen.barrier if isinstance(chosen, MergedDecision) else chosen.shards
        tables = self.keeper.group(merged.target).tables
        own = (tables.get(shard.table) for shard in shards if shard.source == source)
        places = (state.sequence.items[0].begin.position for state in own if state and state.sequence.items)
        return ChangeTarget(merged.target, next(places, None))

    def chosen(self, merged: MergedTable) -> MergedChange | MergedDecision | None:
        """Return the change that this source makes next: one without a shard, its own shard's, or that of a barrier."""
        source = self.store.source
        decision = merged.evaluate()
        for change in decision.changes:
            if all(shard.source == source for shard in change.shards):
                return change
        return decision if any(shard.source == source for shard in decision.barrier) else None

    def wait_of(self, shard: ShardId, item: DdlItem) -> Wait | None:
        """Return why a statement that the shard is about to meet would not be in force at once; None if it would."""
        self.load()
        merged = self.merged.get(self.rules.route(shard.table))
        state = self.keeper.group(self.rules.route(shard.table)).tables.get(shard.table)
        if merged is None or shard not in merged.shards:
            return None
        if state is not None and not state.idle:
            return Wait(WaitKind.BUSY, "the table waits with an earlier statement")
        return self.asked(merged, shard, item).evaluate().waits.get(shard)

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
                reach("merged-note-before")
                self.step(target, lambda one: one.noted(source))
                reach("merged-note-after")

    @property
    def shown(self) -> tuple[UnresolvedGroup, ...]:
        """The waiting statements of this source's shards as `query-status` shows them, with the reasons."""
        found = waiting_shards(self.store.meta.task, self.keeper, self.merged)
        if not self.alert_seconds:
            return found
        return tuple(overdue(one, self.alert_seconds, datetime.now(UTC)) for one in found)

    def tell_waits(self, shard: ShardId, item: DdlItem, why: str) -> None:
        """Log that a statement waits, once, when its shard meets it."""
        words = {"table": str(shard.table), "ddl": "; ".join(item.ddls), "waits": why}
        logger("sync", source=self.store.source).warning("a shard waits with its statement", **words)


def precedes_waiting(group: ShardingGroup, name: TableName) -> bool:
    """Return whether a release would write changes of a renamed table before those that wait under its old name."""
    first, *rest = group.tables[name].sequence.items
    if rest and rest[0].begin == first.end:  # the table has no changes between the two
        return False
    return any(
        one.became == name and group.tables[one.name].sequence.items for one in group.gone if one.name in group.tables
    )


def request_payload(after: str, barrier: str, own: Iterable[str]) -> dict[str, Any]:
    """Build what an item's payload holds of a new request; `after` is the stored text of the structure.

    `own` are the columns that the table upstream has behind the statement, in lower case.
    """
    return {"id": secrets.token_hex(8), "after": after, "barrier": barrier, "own": sorted(own)}


def request_of(item: DdlItem, dialect: Dialect) -> StructureRequest:
    """Return the request that an item's payload holds."""
    form = item.payload["request"]
    after = structure_of(form["after"], dialect)
    skipped = form.get("skipped", False)
    return StructureRequest(form["id"], after, form["barrier"], item.ddls, item.time, forced=skipped)
