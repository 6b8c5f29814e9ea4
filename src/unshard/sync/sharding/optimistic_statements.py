"""Statements on merged tables with `shard-mode: optimistic`: the effect of each on its shard.

The module handles what each statement does to its shard, and the change of the merged table that it may lead to.

| statement | on the target | the shard |
|---|---|---|
| ALTER TABLE, CREATE INDEX, DROP INDEX | what it changes in the join of all shards, once allowed | waits for that |
| CREATE TABLE | run where the target has no such table | is registered; refused where the target can't take its rows |
| CREATE TABLE LIKE a shard that waits | the same | waits with the same statements |
| CREATE TABLE that `binlog skip` leaves out | what its rows need, as far as it goes | is registered |
| another one that is left out, on an existing table | nothing; it keeps columns that the shard has dropped | \
keeps the structure in force for it |
| the same, by `binlog skip` | what its rows need, as far as it goes | has its new structure, once it waits no more |
| any other | as in pessimistic mode | as there |

`sync/sharding/merged_changes.py` makes the change of the merged table.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from typing import Any

from unshard.crash_point import reach
from unshard.ddl.evaluate import evaluate, operations
from unshard.ddl.pieces import AlterOperation, StatementRules
from unshard.ddl.prepare import RoutedDdl, for_target
from unshard.ddl.tracker import SchemaTracker
from unshard.errors import ShardError, Where
from unshard.model.position import Location, Position
from unshard.model.table import Table, TableName
from unshard.schema.words import NotUnderstoodError
from unshard.shard.group import ShardingGroup
from unshard.shard.merged_form import structure_text
from unshard.shard.merged_parts import ShardId
from unshard.shard.merged_step import barrier_of
from unshard.shard.merged_table import MergedTable
from unshard.shard.sequence import DdlItem, ShardingSequence
from unshard.sync.checkpoint.store import Also
from unshard.sync.sharding.optimistic import OperateRequest, OptimisticGroups, request_payload
from unshard.sync.sharding.owner import item_payload, operator_pieces, statements_of
from unshard.sync.sharding.statements import Met, ShardedStatements
from unshard.sync.source_log.reader import LoggedDdl
from unshard.sync.statements.uncoordinated import Passing
from unshard.target.operators import Operator, OperatorKind, settle
from unshard.target.sharding import move_merged


@dataclass(slots=True)
class OptimisticStatements(ShardedStatements):
    """The handler of statements on merged tables (`groups`: OptimisticGroups). Used by the sync unit's thread."""

    def meet(self, met: Met, work: LoggedDdl, at: Location, copied: Location | None = None) -> Also:
        """Make the table wait after the statement until the target takes its rows. Returns what writes the group.

        A statement that the table's copy has (`copied`) does not wait: the shard was registered with the structure
        after it, and others need not wait for it to meet the statement. Raises ShardError SHARD-041 for a structure
        that is not understood, SHARD-044 in strict mode for a statement that would wait, SHARD-038 as
        `ShardingGroups.refuse_connected`.
        """
        groups, table = self._merged_groups, met.table
        where = Where(groups.store.source, str(table), str(work.begin))
        target, shard = groups.rules.route(table), ShardId(groups.store.source, table)
        if copied is not None:
            return self._record_copied(target, shard, [one.ddl.text for one in met.statements])
        group = groups.keeper.group(target)
        groups.refuse_connected(target, work.begin)
        before = groups.structure(table)
        assert before is not None, "a statement was run on a table that is not there"
        after, barrier = self._asked(met.pieces, before, met.after, where)
        stamp = datetime.fromtimestamp(work.statement.timestamp, UTC).isoformat(timespec="seconds")
        item = DdlItem(Location(work.begin, at.gtid), work.end, (), {}, stamp)
        item = self._asking(item, before, met.statements, after, barrier, where, own=_names(met.after))
        wait = groups.wait_of(shard, item)
        if wait is not None and wait.is_conflict and groups.strict:
            raise groups.refused(where, item.ddls, target, wait)
        if wait is not None:
            groups.tell_waits(shard, item, wait.why)
        groups.look_now()
        return groups.put(group.hold(table, item))

    def _record_copied(self, target: TableName, shard: ShardId, ddls: Sequence[str]) -> Also:
        save, meta = self._merged_groups.put(), self._merged_groups.store.meta

        def write(cursor: Any) -> None:
            save(cursor)
            move_merged(cursor, meta, target, lambda merged: merged.with_copied(shard, ddls))

        return write

    def _asking(
        self,
        item: DdlItem,
        before: Table,
        met: Sequence[RoutedDdl],
        after: Table,
        barrier: str,
        where: Where,
        *,
        own: Iterable[str],
    ) -> DdlItem:
        """Return the item with these statements, and the request that they are for the merged table.

        `own` are the columns that the table upstream has behind them.
        """
        groups = self._merged_groups
        asked = request_payload(structure_text(groups.definition(after, where), groups.dialect), barrier, own)
        payload = {**item_payload(before, met), "request": asked}
        return replace(item, ddls=tuple(one.ddl.text for one in met), payload=payload)

    def operate(self, step: OperateRequest, tracker: SchemaTracker, rules: StatementRules) -> None:
        """Apply an operator to the statement that a table waits with, and mark the operator as applied.

        `skip` leaves the statement out of the target, as `shard-ddl-lock unlock --action skip` does. `replace` and
        `inject` give the table another statement to wait with, or not to. Raises DdlError DDL-026, DDL-033, DDL-011 for
        an operator's statements, ShardError SHARD-041, SHARD-047 for one whose effect is not computed. Does nothing
        where the target has the table's statement by now, or is about to: then the operator is for that change.
        """
        groups, source = self._merged_groups, self.groups.store.source
        store, target = groups.store, step.group.target
        item = step.group.tables[step.table].sequence.items[0]
        shard, number = ShardId(source, step.table), step.operator.number
        group, note, asked_id = step.group, "left out", item.payload["request"]["id"]
        if step.operator.op is not OperatorKind.SKIP:
            item = self._operated(step.operator, step.table, item, tracker, rules)
            state = group.tables[step.table]
            sequence = ShardingSequence((item, *state.sequence.items[1:]))
            group = replace(group, tables={**group.tables, step.table: replace(state, sequence=sequence)})
            note = "; ".join(item.ddls)
        save = groups.put(group)
        skips, late = step.operator.op is OperatorKind.SKIP, [False]

        def decide(merged: MergedTable) -> MergedTable:
            state = merged.shards.get(shard)
            late[0] = state is None or state.done == asked_id or merged.runs(shard)
            if late[0]:
                return merged
            asked = groups.asked(merged, shard, item)
            return asked.force(shard, skip=True) if skips else asked

        def write(cursor: Any) -> None:
            move_merged(cursor, store.meta, target, decide)
            if not late[0]:
                save(cursor)
                settle(cursor, store.meta, source, [number], "applied", store.epoch, store.batch_id, note)

        reach("merged-operate-before")
        store.in_one(write)
        reach("merged-operate-after")
        if late[0]:
            groups.put(step.group)
        groups.look_now()

    def _operated(
        self, operator: Operator, table: TableName, item: DdlItem, tracker: SchemaTracker, rules: StatementRules
    ) -> DdlItem:
        """Return the item with the operator's statements in place of its own, or before them."""
        store, before = self.groups.store, Table.from_dict(item.payload["before"])
        where = Where(store.source, str(table), str(item.begin.position))
        own = list(statements_of(item)) if operator.op is OperatorKind.INJECT else []
        pieces = operator_pieces(operator, item, tracker, rules)
        _, given = store.on_target(lambda c: for_target(c, pieces, tracker, rules))
        pieces += [AlterOperation(one.ddl, (one.ddl,), tracked=False, given=True) for one in own]
        try:
            after, barrier = self._effect(pieces, before, before, where)
        except NotUnderstoodError as error:
            values = {"target": str(self.groups.rules.route(table)), "why": str(error)}
            raise ShardError("SHARD-047", where, "; ".join(operator.sqls)[:500], values) from error
        names = item.payload["request"].get("own", _names(after))
        return self._asking(item, before, [*given, *own], after, barrier, where, own=names)

    def _asked(self, found: Sequence[AlterOperation], before: Table, after: Table, where: Where) -> tuple[Table, str]:
        """Return the structure that the shard asks for, and why it needs a barrier (empty: it needs none)."""
        try:
            return self._effect(found, before, after, where)
        except NotUnderstoodError as error:
            return after, f"its effect is not computed: {error}"

    def _effect(self, found: Sequence[AlterOperation], before: Table, after: Table, where: Where) -> tuple[Table, str]:
        """Return the structure and the barrier of operations that made `after` of `before`.

        Only what is for the target counts: an operator's statements in its place, or what the event filter lets
        through. Raises NotUnderstoodError.
        """
        run = [part for piece in found for part in piece.run]
        whole = all(piece.run == (piece.ddl,) and not piece.given for piece in found if piece.run or piece.is_filtered)
        groups, table = self._merged_groups, before
        for ddl in () if whole else run:
            made = evaluate(ddl, lambda _: table, _no_schema, groups.dialect).get(ddl.tables[0])  # noqa: B023
            table = made if made is not None else table
        after = after if whole else table
        first, last = groups.definition(before, where), groups.definition(after, where)
        return after, barrier_of(first, last, [step for ddl in run for step in operations(ddl)])

    def pass_by(self, passing: Passing) -> Also | None:
        """Do as in pessimistic mode, and change the shards, their structures and names in the merged table.

        Raises ShardError SHARD-045 for a new table whose rows the target can't take, SHARD-046 for a table that waits
        and is made again, or whose name another table gets.
        """
        groups = self._merged_groups
        source, route, allows = groups.store.source, groups.rules.route, groups.rules.allows
        where = Where(source, position=str(passing.begin.position))
        passing = replace(passing, left=None) if passing.left in passing.changes else passing
        renamed: dict[TableName, dict[ShardId, ShardId]] = {}
        for old, new in passing.renamed.items():
            if allows(old) and allows(new) and route(old) == route(new):
                renamed.setdefault(route(old), {})[ShardId(source, old)] = ShardId(source, new)
        stays = {shard.table for names in renamed.values() for shard in names.values()}
        for name in sorted(filter(self._waits, stays)):
            raise ShardError("SHARD-046", replace(where, table=str(name)), values={"target": str(route(name))})
        waiting = {old for names in renamed.values() for old in names if self._waits(old.table)}
        made = {*passing.made, *passing.renamed.values()} - stays
        found: dict[TableName, list[tuple[ShardId, Table]]] = {}
        for name, table in passing.changes.items():
            if table is None or name in stays or name == passing.left or not (name.table and allows(name)):
                continue
            merged, shard = groups.merged.get(route(name)), ShardId(source, name)
            is_known = merged is not None and shard in merged.shards
            if name not in made and (not is_known or groups.structure(name) == table):
                continue
            if is_known and self._waits(name):
                if name in made:
                    raise ShardError("SHARD-046", replace(where, table=str(name)), values={"target": str(route(name))})
                continue  # `_with_passed` lets it wait with this statement too
            found.setdefault(route(name), []).append((shard, table))
        known = {shard.table: groups.structure(shard.table) for tables in found.values() for shard, _ in tables}
        also = ShardedStatements.pass_by(self, passing)
        groups.look_now()
        if not renamed and not found:
            return also

        def write(cursor: Any) -> None:
            if also is not None:
                also(cursor)
            for target in found.keys() | renamed.keys():

                def step(merged: MergedTable, target: TableName = target) -> MergedTable:
                    merged = merged.renamed(renamed.get(target, {}), waiting)
                    for shard, table in found.get(target, ()):
                        model = passing.models.get(shard.table)
                        if model is not None and self._is_model(merged, model):
                            merged = merged.like(shard, ShardId(source, model))
                        elif shard.table in made:
                            merged = self._with_new(merged, shard, table, where, skipped=passing.skipped)
                        elif shard in merged.shards:
                            before = known[shard.table]
                            merged = self._altered(merged, shard, before, table, where, skipped=passing.skipped)
                    return merged

                try:
                    move_merged(cursor, groups.store.meta, target, step)
                except ShardError:
                    cursor.execute("ROLLBACK")
                    raise

        return write

    def _altered(
        self, merged: MergedTable, shard: ShardId, before: Table | None, table: Table, where: Where, *, skipped: bool
    ) -> MergedTable:
        """Record a statement that is left out; a structure behind it that is not understood is not in force."""
        groups, structure = self._merged_groups, None
        if skipped:
            with suppress(ShardError):
                structure = groups.in_words_of(merged, groups.definition(table, where))
        return merged.altered(shard, _names(before or table), _names(table), structure)

    def _with_new(
        self, merged: MergedTable, shard: ShardId, table: Table, where: Where, *, skipped: bool
    ) -> MergedTable:
        """Add a table that was created. Raises ShardError SHARD-045 where the target can't take its rows.

        A human who has `skipped` the statement lets the target take them as far as it can (`shard.forced`).
        """
        groups = self._merged_groups
        place, structure = replace(where, table=str(shard.table)), groups.definition(table, where)
        if (fault := merged.fits(shard, structure)) and not skipped:
            raise ShardError("SHARD-045", place, table.create_sql[:500], {"target": str(merged.target), "why": fault})
        return groups.with_shard(merged, shard, structure, partial(MergedTable.created, fits=not fault))

    def _waits(self, table: TableName) -> bool:
        """Return whether changes of a table of this source wait."""
        state = self.groups.keeper.group(self.groups.rules.route(table)).tables.get(table)
        return state is not None and not state.idle

    def _is_model(self, merged: MergedTable, table: TableName) -> bool:
        """Return whether the record has another structure of this shard than the one that a CREATE … LIKE it has."""
        state = merged.shards.get(ShardId(self.groups.store.source, table))
        return state is not None and (state.fitted or self._waits(table))

    def _with_made(self, group: ShardingGroup, made: Table, passing: Passing) -> ShardingGroup:
        """Return the group with a new table; one that is made like a shard that waits has met the same statements."""
        group, name = group.add(made.name, passing.end), made.name
        model = group.tables.get(like) if (like := passing.models.get(name)) is not None else None
        for number, item in enumerate(model.sequence.items if model is not None and like != name else ()):
            own = replace(item.at(passing.end), begin=passing.end if number else passing.begin)
            group = group.hold(name, own)
        return group

    def _with_passed(
        self, group: ShardingGroup, item: DdlItem, before: Table, after: Table, *, skipped: bool
    ) -> ShardingGroup:
        """Return the group with a statement that is left out; a table that waits, waits with this one too."""
        groups = self._merged_groups
        if group.tables[after.name].idle:
            return group.pass_by(after.name, item)
        where = Where(groups.store.source, str(after.name), str(item.begin.position))
        asks, own = after if skipped else before, _names(after)
        try:
            item = self._asking(item, before, (), asks, "", where, own=own)
        except ShardError:  # it is not understood
            item = self._asking(item, before, (), before, "", where, own=own)
        request = {**item.payload["request"], "skipped": skipped}
        return group.hold(after.name, replace(item, payload={**item.payload, "request": request}))

    def _refuse_unlike_target(self, first: Table, begin: Position) -> None:
        """Do nothing: `_with_new` compares the table with the target."""

    @property
    def _merged_groups(self) -> OptimisticGroups:
        assert isinstance(self.groups, OptimisticGroups)
        return self.groups


def _names(table: Table) -> frozenset[str]:
    return frozenset(column.name.lower() for column in table.columns)


def _no_schema(_: str) -> str | None:
    """Return no structure: the effect on a table depends on the table's character set, not on its schema's."""
    return None
