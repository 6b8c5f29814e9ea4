"""Statements on merged tables with `shard-mode: optimistic`.

The module handles what each statement does to its shard, and the change of the merged table that it may lead to.

| statement | on the target | the shard |
|---|---|---|
| ALTER TABLE, CREATE INDEX, DROP INDEX | what it changes in the join of all shards, once allowed | waits for that |
| CREATE TABLE | run where the target has no such table | is registered; refused where the target can't take its rows |
| one that is left out, on an existing table | nothing | has its new structure |
| any other | as in pessimistic mode | as there |

A change of a merged table is made by one source: it begins the change, runs its statement and closes it.

| change | statement on the target |
|---|---|
| a shard's request, or what the join has become because a shard came or went | `shard.merged_step` |
| columns that no shard has any more | DROP COLUMN |
| a barrier | the statement that all shards have met, without IGNORE |

A change without a statement is done at once. Where the source was taken out of the task in the middle of a change, the
next source finishes it by its intent.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from unshard.ddl.backfill import filled_by_the_run
from unshard.ddl.evaluate import evaluate, operations
from unshard.ddl.intent import Intent
from unshard.ddl.parse import classify_ddl
from unshard.ddl.pieces import AlterOperation, StatementRules
from unshard.ddl.plan import plan_intent
from unshard.ddl.prepare import RoutedDdl, UpstreamTable, in_targets_words
from unshard.ddl.rewrite import without_ignore
from unshard.ddl.statement import Context
from unshard.ddl.tracker import SchemaTracker
from unshard.errors import ShardError, UnshardError, Where
from unshard.model.position import Location, Position
from unshard.model.table import Table, TableName
from unshard.mysql.tidb import is_tidb
from unshard.schema.definition import TableDefinition
from unshard.schema.lex import NotUnderstoodError
from unshard.schema.text import to_table
from unshard.shard.group import ShardingGroup
from unshard.shard.merged_form import structure_text
from unshard.shard.merged_parts import MergedChange, MergedDecision, Runner, ShardId
from unshard.shard.merged_step import barrier_of, difference
from unshard.shard.merged_table import MergedTable
from unshard.shard.sequence import DdlItem
from unshard.sync.checkpoint.store import Also, CheckpointStore
from unshard.sync.sharding.optimistic import OptimisticGroups, new_request_id, request_of, request_payload
from unshard.sync.sharding.owner import item_payload, statements_of
from unshard.sync.sharding.statements import Met, ShardedStatements
from unshard.sync.source_log.reader import LoggedDdl
from unshard.sync.statements.backfill import has_rows
from unshard.sync.statements.uncoordinated import Passing
from unshard.target.sharding import move_merged


@dataclass(slots=True)
class OptimisticStatements(ShardedStatements):
    """Carries statements of the log into merged tables (`groups`: OptimisticGroups). Used by the sync unit's thread."""

    def meet(self, met: Met, work: LoggedDdl, at: Location, copied: Location | None = None) -> Also:
        """Make the table wait after the statement until the target takes its rows. Returns what writes the group.

        A statement that the table's copy has (`copied`) does not wait: the shard was registered with the structure
        after it. Raises ShardError SHARD-041 for a structure that is not understood, SHARD-044 in strict mode for a
        statement that would wait, SHARD-038 as `ShardingGroups.refuse_connected`.
        """
        groups, table = self._merged_groups, met.table
        where = Where(groups.store.source, str(table), str(work.begin))
        text = "; ".join(one.ddl.text for one in met.statements)[:500]
        target = groups.rules.route(table)
        if copied is not None:
            return groups.put()
        group = groups.keeper.group(target)
        groups.refuse_connected(target, work.begin)
        before = groups.structure(table)
        assert before is not None, "a statement was run on a table that is not there"
        after, barrier = self._asked(met.pieces, before, met.after, where)
        merged = groups.merged.get(target)
        if merged is not None and merged.has_one_shard and not groups.silent:
            barrier = barrier or "the target has this table's rows alone: the statement is run as it is"
        form = structure_text(groups.definition(after, where), groups.dialect)
        asked = request_payload(new_request_id(), form, barrier)
        stamp = datetime.fromtimestamp(work.statement.timestamp, UTC).isoformat(timespec="seconds")
        payload = {**item_payload(before, met.statements), "request": asked}
        item = DdlItem(
            Location(work.begin, at.gtid), work.end, tuple(one.ddl.text for one in met.statements), payload, stamp
        )
        shard = ShardId(groups.store.source, table)
        why = groups.waits_for(shard, request_of(item, groups.dialect))
        if why and groups.strict:
            raise ShardError("SHARD-044", where, text, {"target": str(target), "why": why})
        if why:
            groups.tell_waits(shard, item, why)
        groups.look_now()
        return groups.put(group.hold(table, item))

    def _asked(self, found: Sequence[AlterOperation], before: Table, after: Table, where: Where) -> tuple[Table, str]:
        """Return the structure that the shard asks for, and why it needs a barrier (empty: it needs none).

        Only what is for the target counts: an operator's statements in its place, or what the event filter lets
        through.
        """
        run = [part for piece in found for part in piece.run]
        whole = all(piece.run == (piece.ddl,) and not piece.given for piece in found if piece.run)
        groups, table = self._merged_groups, before
        try:
            for ddl in () if whole else run:
                made = evaluate(ddl, lambda _: table, _no_schema, groups.dialect).get(ddl.tables[0])  # noqa: B023
                table = made if made is not None else table
            after = after if whole else table
            first, last = groups.definition(before, where), groups.definition(after, where)
            steps = [step for ddl in run for step in operations(ddl)]
        except NotUnderstoodError as error:
            return after, f"its effect is not computed: {error}"
        return after, barrier_of(first, last, steps)

    def pass_by(self, passing: Passing) -> Also | None:
        """Do as in pessimistic mode, and change the shards' structures and names in the merged table.

        Raises ShardError SHARD-045 for a new table whose rows the target can't take, SHARD-046 for a table that waits
        and is altered by a statement that is left out.
        """
        groups = self._merged_groups
        source, route, allows = groups.store.source, groups.rules.route, groups.rules.allows
        where = Where(source, position=str(passing.begin.position))
        renamed: dict[TableName, dict[ShardId, ShardId]] = {}
        for old, new in passing.renamed.items():
            if allows(old) and allows(new) and route(old) == route(new):
                renamed.setdefault(route(old), {})[ShardId(source, old)] = ShardId(source, new)
        altered: list[tuple[ShardId, Table]] = []
        for name, table in passing.changes.items():
            merged = groups.merged.get(route(name)) if name.table and allows(name) else None
            shard = ShardId(source, name)
            if table is None or merged is None or shard not in merged.shards:
                continue
            if name in passing.renamed.values() or (name not in passing.made and groups.structure(name) == table):
                continue
            if not groups.keeper.group(route(name)).tables[name].idle:
                raise ShardError("SHARD-046", replace(where, table=str(name)), values={"target": str(route(name))})
            altered.append((shard, table))
        also = ShardedStatements.pass_by(self, passing)
        groups.look_now()
        if not renamed and not altered:
            return also
        structures = [(shard, groups.definition(table, where)) for shard, table in altered]

        def write(cursor: Any) -> None:
            if also is not None:
                also(cursor)
            for target in {route(shard.table) for shard, _ in structures} | renamed.keys():

                def step(merged: MergedTable, _: frozenset[str], target: TableName = target) -> MergedTable:
                    merged = merged.renamed(renamed.get(target, {}))
                    for shard, structure in structures:
                        if route(shard.table) == target and shard in merged.shards:
                            merged = merged.altered(shard, structure)
                    return merged

                move_merged(cursor, groups.store.meta, target, step)

        return write

    def _met(self, group: ShardingGroup, made: Table, like: TableName | None, begin: Position) -> int:
        """Return 0: a new table has met none of the waiting statements. The target must take its rows as it is.

        Raises ShardError SHARD-045 where it can't.
        """
        groups = self._merged_groups
        groups.load()
        merged = groups.merged.get(group.target)
        where = Where(groups.store.source, str(made.name), str(begin))
        shard = ShardId(groups.store.source, made.name)
        if merged is not None and (fault := merged.fits(shard, groups.definition(made, where))):
            raise ShardError("SHARD-045", where, made.create_sql[:500], {"target": str(group.target), "why": fault})
        return 0

    def _refuse_unlike_target(self, first: Table, begin: Position) -> None:
        """Do nothing: `_met` has compared the table with the target."""

    @property
    def _merged_groups(self) -> OptimisticGroups:
        assert isinstance(self.groups, OptimisticGroups)
        return self.groups


def _no_schema(_: str) -> str | None:
    """Return no structure: the effect on a table depends on the table's character set, not on its schema's."""
    return None


# A change of a merged table in optimistic mode, made by one source: begin it, run its statement, close it.


def begin_change(
    groups: OptimisticGroups,
    target: TableName,
    at: Location,
    tracker: SchemaTracker,
    rules: StatementRules,
    store: CheckpointStore,
) -> tuple[Intent, bool] | None:
    """Become the runner of the merged table's next change.

    Returns its intent, and whether an earlier runner may have run part of it; None where nothing is to be run, because
    the change is done already or another source makes it.

    Raises what stops the source before the change: DdlError DDL-003, DDL-005, DDL-037, DDL-038, DDL-040 as
    `plan_intent` and `in_targets_words`, ShardError SHARD-036 where rows of several shards would get values that none
    of them has, SHARD-047 for a statement at a barrier whose effect is not computed. The change is given up then, so
    that other sources may go on.
    """
    source = store.source
    merged = groups.step(target, lambda one, silent: _begun(groups, one, silent, source))
    runner = merged.runner
    if runner is None or runner.source != source:
        return None
    if runner.begun is not None:
        begun = Intent.from_dict(runner.begun)
        place = str(at.position)
        return replace(begun, position_begin=place, position_end=place), True
    try:
        intent = _intent(groups, merged, runner, at, tracker, rules, store)
    except UnshardError:
        groups.step(target, lambda one, _: one.given_up(source))
        raise
    if intent is None:
        groups.step(target, lambda one, _: _ended(one, source))
        groups.look_now()
    return (intent, False) if intent is not None else None


def end_change(groups: OptimisticGroups, target: TableName) -> Also:
    """Return the write that records that the target has the change of this source.

    It changes nothing if it runs twice, or if another source is the runner.
    """
    meta, source = groups.store.meta, groups.store.source

    def write(cursor: Any) -> None:
        move_merged(cursor, meta, target, lambda one, _: _ended(one, source))

    return write


def _begun(groups: OptimisticGroups, merged: MergedTable, silent: frozenset[str], source: str) -> MergedTable:
    runner = merged.runner
    if runner is not None:
        return replace(merged, runner=replace(runner, source=source)) if not runner.source else merged
    chosen = groups.chosen(merged, silent)
    if isinstance(chosen, MergedDecision):
        chosen = merged.at_barrier(chosen, _behind_barrier(groups, merged, chosen))
    return merged.begun(source, chosen) if chosen is not None else merged


def _ended(merged: MergedTable, source: str) -> MergedTable:
    runner = merged.runner
    if runner is None or runner.source != source:
        return merged
    return merged.done(runner.change).noted(source)


def _own_item(groups: OptimisticGroups, target: TableName, change: MergedChange | MergedDecision) -> DdlItem:
    """Return the statement of a barrier or of a shard's change, as a shard of this source has met it."""
    shards = change.barrier if isinstance(change, MergedDecision) else change.shards
    tables = groups.keeper.group(target).tables
    own = next(shard for shard in shards if shard.source == groups.store.source)
    return tables[own.table].sequence.items[0]


def _behind_barrier(groups: OptimisticGroups, merged: MergedTable, decision: MergedDecision) -> TableDefinition:
    """Return the target's structure after the statement of a barrier. Raises ShardError SHARD-047."""
    assert merged.after is not None
    item = _own_item(groups, merged.target, decision)
    where = Where(groups.store.source, str(merged.target), str(item.begin.position))
    table = to_table(merged.after, merged.target, merged.dialect)
    for one in statements_of(item):
        try:
            made = evaluate(one.ddl, _only(table), lambda _: None, merged.dialect).get(merged.target)
        except NotUnderstoodError as error:
            values = {"target": str(merged.target), "why": str(error)}
            raise ShardError("SHARD-047", where, one.ddl.text[:500], values) from error
        table = made if made is not None else table
    return groups.definition(table, where)


def _only(table: Table) -> Any:
    return lambda name: table if name == table.name else None


def _intent(
    groups: OptimisticGroups,
    merged: MergedTable,
    runner: Runner,
    at: Location,
    tracker: SchemaTracker,
    rules: StatementRules,
    store: CheckpointStore,
) -> Intent | None:
    """Return the intent that runs the change; None where it needs no statement. Raises as `begin_change`."""
    assert merged.after is not None
    change, target = runner.change, merged.target
    where = Where(store.source, str(target), str(at.position))
    if change.barrier:
        met = [replace(one, ddl=without_ignore(one.ddl)) for one in statements_of(_own_item(groups, target, change))]
    else:
        text = difference(target, merged.after, change.after, merged.dialect)
        if not text:
            return None
        context = Context(target.schema, mariadb=merged.dialect.value == "mariadb", where=where)
        upstream = UpstreamTable(to_table(merged.after, target, merged.dialect))
        met = [RoutedDdl(classify_ddl(text, context), upstream if store.on_target(is_tidb) else None)]
    statements = store.on_target(lambda c: in_targets_words(c, met, rules))
    if not statements:
        return None
    names = frozenset(shard.table.table for shard in merged.shards)
    place = at.position
    intent = store.on_target(lambda c: plan_intent(c, tracker.place, statements, place, place, names))
    columns = [name for step in intent.steps for name in filled_by_the_run(step)]
    if columns and len(merged.shards) > 1 and store.on_target(lambda c: has_rows(c, target)):
        cause = "; ".join(step.statement for step in intent.steps)[:500]
        values = {"target": str(target), "columns": ", ".join(columns), "why": "the task is in optimistic mode"}
        raise ShardError("SHARD-036", where, cause, values)
    return intent
