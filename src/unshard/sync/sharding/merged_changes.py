"""A change of a merged table in optimistic mode, made by one source: it begins the change, runs it and closes it.

| change | statement on the target |
|---|---|
| a shard's request, or what the join has become because a shard came or went | `shard.merged_step` |
| columns that no shard has any more | DROP COLUMN, of those that the target has |
| a barrier | the statement that all shards have met, without IGNORE; in a strict session where the target has rows \
of shards that are absent or dropped |

A change without a statement is done at once. Where the source was taken out of the task in the middle of a change, the
next source finishes it by its intent.

A change that is not for a shard's statement has no place in the log, so no operator is for it.

| operator at the statement of a shard of the runner | on the target | the record |
|---|---|---|
| none | as above | the structure after it |
| `skip` | nothing | at a barrier the same: a human has made the target what it is to be; else `MergedTable.skipped` |
| `replace` | the operator's statements | at a barrier the columns after these, else the same |
| `inject` | the operator's statements, then as above | the same |
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from unshard.crash_point import reach
from unshard.ddl.context import Context
from unshard.ddl.evaluate import definition_of, evaluate
from unshard.ddl.intent import Intent
from unshard.ddl.parse import classify_ddl
from unshard.ddl.pieces import StatementRules
from unshard.ddl.plan import plan_intent
from unshard.ddl.prepare import RoutedDdl, UpstreamTable, for_target, in_targets_words
from unshard.ddl.rewrite import without_ignore
from unshard.ddl.statement import Ddl
from unshard.ddl.tracker import SchemaTracker
from unshard.errors import DdlError, ShardError, UnshardError, Where
from unshard.model.position import Location
from unshard.model.table import Table, TableName
from unshard.mysql.structure import read_table
from unshard.mysql.tidb import is_tidb
from unshard.schema.definition import Dialect, TableDefinition
from unshard.schema.text import to_table
from unshard.schema.words import NotUnderstoodError
from unshard.shard.join import IncompatibleError
from unshard.shard.merged_difference import difference
from unshard.shard.merged_parts import MergedChange, MergedDecision, OldRows, Runner, ShardId
from unshard.shard.merged_table import MergedTable
from unshard.shard.sequence import DdlItem
from unshard.sync.checkpoint.store import Also, CheckpointStore
from unshard.sync.sharding.item_fills import item_fill, numbered_by, refused_fills
from unshard.sync.sharding.optimistic import OptimisticGroups
from unshard.sync.sharding.owner import (
    in_logged_zone,
    operator_in,
    operator_pieces,
    statements_of,
    without_copied,
)
from unshard.sync.statements.backfill import NUMBERED, Backfiller, has_rows
from unshard.target.operators import Operator, OperatorKind, load_operators
from unshard.target.sharding import move_merged
from unshard.target.sharding_groups import load_groups


@dataclass(frozen=True, slots=True)
class BegunChange:
    """A change of a merged table that this source has begun.

    `intent`: the statements that it runs, None for none. `resumed`: an earlier runner may have run a part of them.
    `operator`: the operator that is applied with it.
    """

    intent: Intent | None
    resumed: bool = False
    operator: Operator | None = None


@dataclass(slots=True)
class MergedChanges:
    """The changes of merged tables that one source makes. Used by the sync unit's thread."""

    groups: OptimisticGroups
    tracker: SchemaTracker
    rules: StatementRules
    store: CheckpointStore
    backfiller: Backfiller

    def begin(self, target: TableName, at: Location, *, again: bool = False) -> BegunChange | None:
        """Become the runner of the merged table's next change; `again`: go on with the one that this source has open.

        None where nothing is to be run, because the change is done already or another source makes it.

        Raises what stops the source before the change: DdlError DDL-003, DDL-005, DDL-037, DDL-038, DDL-040 as
        `plan_intent` and `in_targets_words`, DDL-026, DDL-033, DDL-011 for an operator's statements, DDL-027 where an
        operator is given for what an earlier runner has run in part, ShardError SHARD-036 or DdlError DDL-034 where
        rows would get other values than the sources have and those can't be brought, SHARD-047 for a statement at a
        barrier whose effect is not computed, SHARD-053 where a column of the target was altered by hand and would lose
        digits, SHARD-054 for a change without a shard that the target refuses. The change is given up then, so that
        other sources may go on.
        """
        source, operators = self.store.source, self.store.operators()
        if not again and self._is_given_elsewhere(target, operators):
            return None
        reach("merged-begin-before")
        merged = self.groups.step(target, lambda one: self._begun(one, operators, again=again))
        reach("merged-begin-after")
        runner = merged.runner
        if runner is None or runner.source != source:
            return None
        items = self._own_items(target, runner.change)
        operator = operator_in(items.values(), operators)
        if runner.begun is not None and (found := self._handed_on(runner, items, operator, at)) is not None:
            return found
        try:
            change, intent = self._planned(merged, runner.change, items, operator, at)
        except UnshardError as error:
            if not again:
                reach("merged-give-up-before")
                self.groups.step(target, lambda one: one.given_up(source))
                reach("merged-give-up-after")
            if isinstance(error, DdlError) and not runner.change.shards:
                values = {"target": str(target), "statement": error.values.get("statement", "")}
                raise ShardError(
                    "SHARD-054", Where(source, str(target)), error.cause or error.message, values
                ) from error
            raise
        is_skipped = operator is not None and operator.op is OperatorKind.SKIP and not change.barrier
        if is_skipped:
            there = self._there(target)
            self.groups.step(target, lambda one: _begun_without(one, source, change, there))
        elif change != runner.change:
            self.groups.step(target, lambda one: one.begun(source, change))
        if intent is None and operator is None and not again:
            reach("merged-end-before")
            self.groups.step(target, lambda one: _ended(one, source))
            reach("merged-end-after")
            self.groups.look_now()
            return None
        return BegunChange(intent, operator=operator)

    def _is_given_elsewhere(self, target: TableName, operators: Sequence[Operator]) -> bool:
        """Return whether another source has an operator for the statement of the barrier that may run now.

        It is given once for all shards, so that source is the one to apply it, unless this one has been given one too.
        """
        merged = self.groups.merged.get(target)
        barrier = merged.evaluate().barrier if merged is not None else ()
        if operator_in(self._own_items(target, barrier).values(), operators) is not None:
            return False
        others = sorted({shard.source for shard in barrier} - {self.store.source})
        return any(self.store.on_target(partial(self._has_operator, target=target, source=one)) for one in others)

    def _has_operator(self, connection: Any, target: TableName, source: str) -> bool:
        operators = load_operators(connection, self.store.meta, source)
        if not operators:
            return False
        tables = load_groups(connection, self.store.meta, source).group(target).tables
        items = [state.sequence.items[0] for state in tables.values() if state.sequence.items]
        return operator_in(items, operators) is not None

    def operator_of(self, merged: MergedTable) -> Operator | None:
        """Return the pending operator for the change that this source runs; None if there is none."""
        assert merged.runner is not None
        items = self._own_items(merged.target, merged.runner.change)
        return operator_in(items.values(), self.store.operators())

    def end(self, target: TableName) -> Also:
        """Return the write that records that the target has the change of this source.

        It changes nothing if it runs twice, or if another source is the runner.
        """
        meta, source = self.groups.store.meta, self.groups.store.source

        def write(cursor: object) -> None:
            move_merged(cursor, meta, target, lambda one: _ended(one, source))

        return write

    def _begun(self, merged: MergedTable, operators: Sequence[Operator], *, again: bool) -> MergedTable:
        source, runner = self.store.source, merged.runner
        if runner is not None and (runner.source not in (source, "") or again):
            return merged
        if runner is not None and runner.begun is not None:
            return replace(merged, runner=replace(runner, source=source))
        free = replace(merged, runner=None)
        chosen = self.groups.chosen(free)
        if isinstance(chosen, MergedDecision):
            chosen = self._at_barrier(free, chosen, operators)
        return free.begun(source, chosen) if chosen is not None else free

    def _at_barrier(self, merged: MergedTable, decision: MergedDecision, operators: Sequence[Operator]) -> MergedChange:
        """Return the change of a barrier. Raises ShardError SHARD-047, unless an operator stands in for it."""
        items = self._own_items(merged.target, decision.barrier)
        item = next(iter(items.values()))
        after, why = None, ""
        try:
            after = self._behind(merged, self._left_to_run(merged, item))
        except NotUnderstoodError as error:
            why = str(error)
        try:
            return merged.at_barrier(decision, after)
        except IncompatibleError as error:
            if operator_in(items.values(), operators) is not None:
                assert merged.after is not None
                return MergedChange(decision.barrier, merged.after, merged.rules, barrier=True)
            where = Where(self.store.source, str(merged.target), str(item.begin.position))
            values = {"target": str(merged.target), "why": f"{why}; after it the shards differ: {error}"}
            raise ShardError("SHARD-047", where, "; ".join(item.ddls)[:500], values) from error

    def _behind(self, merged: MergedTable, met: Iterable[RoutedDdl]) -> TableDefinition:
        """Return the target's structure after the statements, in the record's words. Raises NotUnderstoodError."""
        assert merged.after is not None
        table = to_table(merged.after, merged.target, merged.dialect)
        for one in met:
            made = evaluate(one.ddl, _only(table), lambda _: None, merged.dialect).get(merged.target)
            table = made if made is not None else table
        return self.groups.definition(table, Where(self.store.source, str(merged.target)))

    def _left_to_run(self, merged: MergedTable, item: DdlItem) -> Sequence[RoutedDdl]:
        """Return an item's statements; without operations whose outcome the load has brought, where a copy had them."""
        met = statements_of(item)
        if not any(state.has_copied(item.ddls) for state in merged.shards.values()):
            return met
        return without_copied(met, merged.target, self.store)

    def _own_items(self, target: TableName, change: MergedChange | tuple[ShardId, ...]) -> dict[TableName, DdlItem]:
        """Return the statements of the change as shards of this source have met them, by shard."""
        shards = change.shards if isinstance(change, MergedChange) else change
        tables = self.groups.keeper.group(target).tables
        own = [shard.table for shard in shards if shard.source == self.store.source]
        return {name: tables[name].sequence.items[0] for name in own if name in tables and tables[name].sequence.items}

    def _handed_on(
        self, runner: Runner, items: dict[TableName, DdlItem], operator: Operator | None, at: Location
    ) -> BegunChange | None:
        """Return the change that an earlier runner has begun; None where an operator is given in its place."""
        begun = Intent.from_dict(runner.begun or {})
        begin, end = _place(items, at)
        if operator is None:
            return BegunChange(replace(begun, position_begin=begin, position_end=end), resumed=True)
        if begun.done and operator.op is not OperatorKind.SKIP:
            where = Where(self.store.source, position=begin)
            raise DdlError("DDL-027", where, values={"done": begun.done, "all": len(begun.steps)})
        return None

    def _planned(
        self,
        merged: MergedTable,
        change: MergedChange,
        items: dict[TableName, DdlItem],
        operator: Operator | None,
        at: Location,
    ) -> tuple[MergedChange, Intent | None]:
        """Return the change with what an operator makes of it, and the intent that runs it (None: nothing is run)."""
        if operator is not None and operator.op is OperatorKind.SKIP:
            return replace(change, old_rows=OldRows.SAME), None
        own = self._own(merged, change, items, at) if operator is None or operator.op is OperatorKind.INJECT else []
        if operator is None:
            intent = self._intent(merged, own, items, at)
            if intent is not None and change.barrier:
                self._refuse_fills(merged, intent, items)
            return change, intent
        item = next(iter(items.values()))
        pieces = operator_pieces(operator, item, self.tracker, self.rules)
        _, given = self.store.on_target(lambda c: for_target(c, pieces, self.tracker, self.rules))
        change = replace(change, old_rows=OldRows.SAME)
        if change.barrier:
            try:
                change = replace(change, after=_as_given(self._behind(merged, [*given, *own]), change.after))
            except NotUnderstoodError as error:
                where = Where(self.store.source, str(merged.target), str(operator.position))
                values = {"target": str(merged.target), "why": str(error)}
                raise ShardError("SHARD-047", where, "; ".join(operator.sqls)[:500], values) from error
        return change, self._intent(merged, [*given, *own], items, at)

    def _own(
        self, merged: MergedTable, change: MergedChange, items: dict[TableName, DdlItem], at: Location
    ) -> list[RoutedDdl]:
        assert merged.after is not None
        if change.barrier:
            item = next(iter(items.values()))
            met = in_logged_zone(self._left_to_run(merged, item), items.values())
            return [replace(one, ddl=_for_all_rows(one.ddl, merged)) for one in met]
        where = Where(self.store.source, str(merged.target), _place(items, at)[0] if items else None)
        try:
            text = difference(merged.target, merged.after, change.after, merged.dialect, self._there(merged.target))
        except IncompatibleError as error:
            raise ShardError("SHARD-053", where, values={"target": str(merged.target), "why": str(error)}) from error
        if not text:
            return []
        mariadb = merged.dialect.value == "mariadb"
        context = Context(merged.target.schema, mariadb=mariadb, where=where, strict=True)
        upstream = UpstreamTable(to_table(merged.after, merged.target, merged.dialect))
        return [RoutedDdl(classify_ddl(text, context), upstream if self.store.on_target(is_tidb) else None)]

    def _there(self, target: TableName) -> TableDefinition | None:
        """Return the table that the target really has; None where there is none, or it is not understood."""
        found = self.store.on_target(lambda c: read_table(c, target))
        own = Dialect.TIDB if self.store.on_target(is_tidb) else self.groups.dialect
        try:
            return definition_of(found, own) if found is not None else None
        except NotUnderstoodError:
            return None

    def _intent(
        self, merged: MergedTable, met: list[RoutedDdl], items: dict[TableName, DdlItem], at: Location
    ) -> Intent | None:
        statements = self.store.on_target(lambda c: in_targets_words(c, met, self.rules)) if met else []
        if not statements:
            return None
        names, (begin, end) = frozenset(shard.table.table for shard in merged.shards), _place(items, at)
        place = self.tracker.place
        intent = self.store.on_target(lambda c: plan_intent(c, place, statements, at.position, at.position, names))
        return replace(intent, position_begin=begin, position_end=end)

    def _refuse_fills(self, merged: MergedTable, intent: Intent, items: dict[TableName, DdlItem]) -> None:
        """Raise SHARD-036 or DDL-034 where rows would get values that the sources don't have and can't bring."""
        target, store, several = merged.target, self.store, len(merged.shards) > 1
        if not store.on_target(lambda c: has_rows(c, target)):
            return
        group, tidb = self.groups.keeper.group(target), store.on_target(is_tidb)
        for name, item in items.items():
            counted = numbered_by(intent, target, item, store, several=several)
            rewritten, structure = self.backfiller.rewritten(name), self.groups.structure
            fill, after = item_fill(group, name, structure, rewritten, several=several, tidb=tidb)
            why = NUMBERED if counted else self.backfiller.hindrance(fill, after, store) if fill is not None else ""
            if why:
                columns = tuple(dict.fromkeys((*counted, *(fill.columns if fill is not None else ()))))
                raise refused_fills(store.source, target, item, columns, why, several=several)


def _for_all_rows(ddl: Ddl, merged: MergedTable) -> Ddl:
    """Return the statement as it is run for the rows of all shards: it fails rather than lose or cut one of them."""
    strict = ddl.context.strict or merged.has_rows_of_others
    return replace(without_ignore(ddl), context=replace(ddl.context, strict=strict))


def _as_given(given: TableDefinition, wanted: TableDefinition) -> TableDefinition:
    """Return the target structure after an operator's statements, in place of a statement that leads to `wanted`.

    What a human has chosen for keys and defaults is not held against what the shards have.
    """
    pairs = ((column, wanted.column(column.name)) for column in given.columns)
    columns = tuple(replace(one, default=other.default) if other is not None else one for one, other in pairs)
    return replace(given, columns=columns, keys=wanted.keys)


def _place(items: dict[TableName, DdlItem], at: Location) -> tuple[str, str]:
    """Return where the change begins and ends in the log: at a shard's statement, or where the main stream is."""
    item = next(iter(items.values()), None)
    return (str(item.begin.position), str(item.end.position)) if item is not None else (str(at.position),) * 2


def _begun_without(
    merged: MergedTable, source: str, change: MergedChange, there: TableDefinition | None
) -> MergedTable:
    """Return the record where the source runs nothing for the change, because its statement is left out."""
    left, change = merged.skipped(change, there)
    return left.begun(source, change)


def _ended(merged: MergedTable, source: str) -> MergedTable:
    runner = merged.runner
    if runner is None or runner.source != source:
        return merged
    return merged.done(runner.change).noted(source)


def _only(table: Table) -> Callable[[TableName], Table | None]:
    return lambda name: table if name == table.name else None
