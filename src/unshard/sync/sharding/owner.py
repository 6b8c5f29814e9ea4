"""The statements of a sharding DDL's owner: the DDL that all tables have met, or an operator's in its place.

An operator that is given before a table meets the statement is that table's item, and waits
(`sync/sharding/statements.py`). One that is given later, because the task has stopped at the DDL, is applied here:

| operator at the position of the DDL in a table of the owner | on the target | the lock |
|---|---|---|
| none | the DDL | executed |
| `skip` | nothing | executed: the others skip it too |
| `replace` | the operator's statements, by the routes of this source | the same |
| `inject` | the operator's statements, then the DDL | the same |

Where an earlier owner was taken out of the task in the middle of the DDL (`Lock.begun`), that owner's intent is run:
the target's structure shows how far it came, as after a death of the same owner.

A DDL that no operator has given differs from the upstream statement in two ways. IGNORE is left out, because keys that
are distinct in each shard may be duplicates in the target. And where the statement fills rows with values that only its
own run makes (`ddl.backfill`), each source sets the values of its own rows after it (`sync.statements.backfill`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from unshard.ddl.backfill import filled_by_the_run, filled_unlike_upstream, numbered
from unshard.ddl.in_snapshot import left_to_run
from unshard.ddl.intent import Again, Intent, Step
from unshard.ddl.parse import classify_ddl
from unshard.ddl.pieces import StatementRules, given_pieces, parse_given
from unshard.ddl.plan import plan_intent
from unshard.ddl.prepare import RoutedDdl, UpstreamTable, for_target, in_targets_words
from unshard.ddl.rewrite import without_ignore
from unshard.ddl.statement import Context, Ddl, StatementKind
from unshard.ddl.tracker import SchemaTracker
from unshard.errors import DdlError, ShardError, UnshardError, Where
from unshard.model.table import Table, TableName
from unshard.mysql.structure import read_table
from unshard.shard.group import ShardingGroup
from unshard.shard.lock_keeper import LockKeeper
from unshard.shard.sequence import DdlItem
from unshard.sync.checkpoint.store import CheckpointStore
from unshard.sync.statements.backfill import (
    NUMBERED,
    Backfiller,
    has_rows,
    refused_fill,
    unlike_fills,
)
from unshard.sync.statements.plan_record import ColumnBackfill
from unshard.target.operators import Operator, OperatorKind


def operator_for(group: ShardingGroup, store: CheckpointStore) -> Operator | None:
    """Return the pending operator at the position of the group's first DDL in any of the source's tables, or None."""
    items = [state.sequence.items[0] for state in group.tables.values() if state.sequence.items]
    return next((one for one in store.operators() if any(_is_in(item, one) for item in items)), None)


def _is_in(item: DdlItem, operator: Operator) -> bool:
    """Return whether an operator's position is in an item. An item that a copy has ends far after its statement."""
    begin, end = item.begin.position, item.end.position
    copied = item.payload["before"] is None
    return operator.position == begin if copied else begin <= operator.position < end


def intent_for(
    group: ShardingGroup,
    keeper: LockKeeper,
    operator: Operator | None,
    tracker: SchemaTracker,
    rules: StatementRules,
    store: CheckpointStore,
) -> tuple[Intent | None, bool]:
    """Return the intent that runs the group's DDL, and whether an earlier owner may have run part of it.

    The intent is None where nothing is run. Raises as `statements_for`, `plan_intent`; DdlError DDL-027 where an
    operator is given for what an earlier owner has run in part.
    """
    assert group.ready is not None
    lock, item = keeper.lock_of(group.source), group.ready
    begin, end = item.begin.position, item.end.position
    if lock is not None and lock.begun is not None:
        begun = Intent.from_dict(lock.begun)
        where = statements_of(item)[0].ddl.context.where
        if operator is None:
            context = replace(begun.context, where=where)
            return replace(begun, position_begin=str(begin), position_end=str(end), context=context), True
        if begun.done and operator.op is not OperatorKind.SKIP:
            raise DdlError("DDL-027", where, values={"done": begun.done, "all": len(begun.steps)})
    statements = statements_for(group, keeper, operator, tracker, rules, store)
    if not statements:
        return None, False
    return store.on_target(lambda c: plan_intent(c, tracker.place, statements, begin, end, keeper.names)), False


def statements_for(
    group: ShardingGroup,
    keeper: LockKeeper,
    operator: Operator | None,
    tracker: SchemaTracker,
    rules: StatementRules,
    store: CheckpointStore,
) -> tuple[Ddl, ...]:
    """Return the statements that run the group's DDL on the target, in the target's names and in order.

    There are none where copies have brought all of it. Raises DdlError DDL-026, DDL-033, DDL-011 for an operator's
    statements; as `for_target`.
    """
    assert group.ready is not None
    met = statements_of(group.ready)
    if operator is not None and operator.op is OperatorKind.SKIP:
        return ()
    own: list[Ddl] = []
    if operator is None or operator.op is OperatorKind.INJECT:
        own = _own(group, met, keeper, rules, store)
    if operator is None:
        return tuple(own)
    context = replace(met[0].ddl.context, schema="")
    parsed = (parse_given(text, context) for text in operator.sqls)
    found = [replace(piece, tracked=False) for ddl in parsed for piece in given_pieces(ddl, rules, tracker.get)]
    _, given = store.on_target(lambda c: for_target(c, found, tracker, rules))
    return (*store.on_target(lambda c: in_targets_words(c, given, rules)), *own)


def _own(
    group: ShardingGroup, met: Sequence[RoutedDdl], keeper: LockKeeper, rules: StatementRules, store: CheckpointStore
) -> list[Ddl]:
    """Return the statements of the DDL itself that remain to be run.

    For TiDB they are translated by the target table's own structure.
    """
    if keeper.several:
        met = [replace(one, ddl=without_ignore(one.ddl)) for one in met]
    own = store.on_target(lambda c: in_targets_words(c, met, rules))
    if not keeper.is_copied(group.source):
        return own
    there = store.on_target(lambda c: read_table(c, group.target))
    return own if there is None else list(left_to_run(own, there))


def fills_of(
    group: ShardingGroup,
    intent: Intent | None,
    keeper: LockKeeper,
    store: CheckpointStore,
    backfiller: Backfiller,
    structure: Callable[[TableName], Table | None],
) -> tuple[ColumnBackfill, ...]:
    """Plan the column values that this source writes into its own rows after the group's DDL, whichever source runs it.

    A table whose copy has the DDL needs none. `intent` is the owner's, None where another source runs the DDL.
    `structure` returns a table of the source as of the main stream. Raises ShardError SHARD-036 where rows of several
    shards would get values that none of them has, DdlError DDL-034 where rows of a single shard would, and the values
    can't be written.
    """
    if not store.on_target(lambda c: has_rows(c, group.target)):
        return ()
    by_run = filled_by_the_run if keeper.several else filled_unlike_upstream
    fills, why = [], ""
    for name, state in sorted(group.tables.items()):
        item = state.sequence.items[0]
        if (form := item.payload["before"]) is None:
            continue
        later = state.next_behind(item.end.position)
        known = later.payload["before"] if later is not None else state.last
        after = Table.from_dict(known) if known is not None else structure(name)
        steps = _upstream_steps(item, Table.from_dict(form), after) if after is not None else ()
        if columns := tuple(
            column for step in steps for column in by_run(step) if column not in (numbered(step) or ())
        ):
            fills.append(ColumnBackfill(name, columns))
            why = why or backfiller.hindrance(fills[-1], after, store)
    counted = _numbered(intent, group, keeper, store) if intent is not None else ()
    if why or counted:
        columns = tuple(dict.fromkeys((*counted, *(column for fill in fills for column in fill.columns))))
        raise refused_fills(group, columns, NUMBERED if counted else why, several=keeper.several)
    return tuple(fills)


def _upstream_steps(item: DdlItem, before: Table, after: Table) -> Iterator[Step]:
    """Yield the steps that the item's statements were on the source's table, under the target's name."""
    for one in statements_of(item):
        if one.ddl.kind is StatementKind.ALTER_TABLE:
            name = one.ddl.tables[0].quoted
            texts = {name: before.create_sql}, {name: after.create_sql}
            yield Step(one.ddl.text, one.ddl.kind, Again.HARMLESS, *texts, one.ddl.context)


def _numbered(intent: Intent, group: ShardingGroup, keeper: LockKeeper, store: CheckpointStore) -> tuple[str, ...]:
    """Return the columns that the intent fills with AUTO_INCREMENT numbers that differ from the source's."""
    assert group.ready is not None
    if keeper.several:
        names = {name for step in intent.steps for name in filled_by_the_run(step)}
        return tuple(found[0] for step in intent.steps if (found := numbered(step)) and found[0] in names)
    form = group.ready.payload["before"]
    before = Table.from_dict(form) if form else None
    find = partial(unlike_fills, target=group.target, upstream=before)
    return tuple(name for step in intent.steps for name in store.on_target(partial(find, step=step))[1])


def refused_fills(group: ShardingGroup, columns: Sequence[str], why: str, *, several: bool) -> UnshardError:
    """Return ShardError SHARD-036, or DdlError DDL-034 where the target has a single shard."""
    assert group.ready is not None
    where = Where(group.source, str(group.target), str(group.ready.begin.position))
    statement = "; ".join(group.ready.ddls)[:500]
    if not several:
        return refused_fill(where, columns, statement, why)
    values = {"target": str(group.target), "columns": ", ".join(columns), "why": why}
    return ShardError("SHARD-036", where, statement, values)


def item_payload(before: Table | None, statements: Sequence[RoutedDdl]) -> dict[str, Any]:
    """Build an item's payload: the table's structure before the statement, and the statement's texts.

    The structure is None where the table's copy has the statement. The upstream table of a statement is stored only
    where it differs from the structure before.
    """
    return {
        "before": before.to_dict() if before is not None else None,
        "statements": [[one.ddl.text, one.ddl.context.to_dict(), *_upstream_form(one, before)] for one in statements],
    }


def _upstream_form(one: RoutedDdl, before: Table | None) -> list[dict[str, Any]]:
    if one.upstream is None:
        return []
    table = one.upstream.table if one.upstream.table != before else None
    return [{"table": table.to_dict() if table is not None else None, "schema": one.upstream.create_schema}]


def statements_of(item: DdlItem) -> tuple[RoutedDdl, ...]:
    """Return an item's statements for the target, before they are translated for the target's product."""
    found = []
    for text, context, *more in item.payload["statements"]:
        upstream = None
        if more:
            form = more[0]["table"] or item.payload["before"]
            upstream = UpstreamTable(Table.from_dict(form) if form else None, more[0]["schema"])
        found.append(RoutedDdl(classify_ddl(text, Context.from_dict(context)), upstream))
    return tuple(found)
