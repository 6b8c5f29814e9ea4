"""A change of a merged table, made by one source: begun in the merged table, run as a statement, done with its close.

| change | statement on the target |
|---|---|
| a shard's request, or what the join has become by a shard that came or went | `shard.merged_difference` |
| columns that no shard has any more | DROP COLUMN |
| a barrier | the statement that all shards have met, without IGNORE |

A change without a statement is done at once. Where the source was taken out of the task in the middle of a change, the
next one finishes it by its intent.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from unshard.ddl.backfill import filled_by_the_run
from unshard.ddl.context import Context
from unshard.ddl.evaluate import evaluate
from unshard.ddl.intent import Intent
from unshard.ddl.parse import classify_ddl
from unshard.ddl.pieces import StatementRules
from unshard.ddl.plan import plan_intent
from unshard.ddl.prepare import RoutedDdl, UpstreamTable, in_targets_words
from unshard.ddl.rewrite import without_ignore
from unshard.ddl.tracker import SchemaTracker
from unshard.errors import ShardError, UnshardError, Where
from unshard.model.position import Location
from unshard.model.table import Table, TableName
from unshard.mysql.tidb import is_tidb
from unshard.schema.definition import TableDefinition
from unshard.schema.lex import NotUnderstoodError
from unshard.schema.text import to_table
from unshard.shard.merged_difference import difference
from unshard.shard.merged_parts import MergedChange, MergedDecision, Runner
from unshard.shard.merged_table import MergedTable
from unshard.shard.sequence import DdlItem
from unshard.sync.checkpoint.store import Also, CheckpointStore
from unshard.sync.sharding.optimistic import OptimisticGroups
from unshard.sync.sharding.owner import statements_of
from unshard.sync.statements.backfill import has_rows
from unshard.target.merged_tables import move_merged


def begin_change(
    groups: OptimisticGroups,
    target: TableName,
    at: Location,
    tracker: SchemaTracker,
    rules: StatementRules,
    store: CheckpointStore,
) -> tuple[Intent, bool] | None:
    """Become the runner of the next change of a merged table; its intent, and whether an earlier one may have run some.

    None where nothing is to be run: the change is done then, or another source makes it. Raises what stops the source
    in front of it: DdlError DDL-003, DDL-005, DDL-037, DDL-038, DDL-040 as `plan_intent` and `in_targets_words`,
    ShardError SHARD-036 where rows of several shards would get what none of them has, SHARD-047 for a statement at a
    barrier whose effect is not computed. The change is given up then, so that others may go on.
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
    """The target has the change that this source was the runner of; said again, or by another one, it is nothing."""
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
    """The statement of a barrier, as a shard of this source has met it."""
    shards = change.barrier if isinstance(change, MergedDecision) else change.shards
    tables = groups.keeper.group(target).tables
    own = next(shard for shard in shards if shard.source == groups.store.source)
    return tables[own.table].sequence.items[0]


def _behind_barrier(groups: OptimisticGroups, merged: MergedTable, decision: MergedDecision) -> TableDefinition:
    """The target structure behind the statement of a barrier. Raises ShardError SHARD-047."""
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
        raise ShardError("SHARD-036", where, cause, {"target": str(target), "columns": ", ".join(columns)})
    return intent
