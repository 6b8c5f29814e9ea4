"""The statements that the owner of a lock runs: the sharding DDL that all tables have reached, or a binlog operator's.

A binlog operator is a user's instruction for one position of the log. If it is recorded before a table reaches the DDL,
it becomes that table's pending item, and waits (`sync/sharding/statements.py`). One that is given later, because the
task has stopped at the DDL, is applied here:

| operator at the position of the DDL in a table of the owner | on the target | the lock |
|---|---|---|
| none | the DDL | executed |
| `skip` | nothing | executed: the others skip it too |
| `replace` | the operator's statements, by the routes of this source | the same |
| `inject` | the operator's statements, then the DDL | the same |

If an earlier owner was taken out of the task in the middle of the DDL (`Lock.begun`), that owner's intent is run. The
target's structure shows how much of it was done, as after a crash of the same owner.

A DDL that comes from no operator differs from the source's statement in three ways. IGNORE is omitted, because keys
that are distinct in each shard may be duplicates in the target. What copies have brought to the target is left out. And
if the statement fills rows with values that differ in each run (`ddl.backfill`), each source sets the values of its own
rows after it (`sync.sharding.item_fills`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from typing import Any

from unshard.ddl.context import Context
from unshard.ddl.in_snapshot import left_to_run
from unshard.ddl.intent import Intent
from unshard.ddl.parse import classify_ddl
from unshard.ddl.pieces import AlterOperation, StatementRules, given_pieces, parse_given
from unshard.ddl.plan import plan_intent
from unshard.ddl.prepare import RoutedDdl, UpstreamTable, for_target, in_targets_words
from unshard.ddl.rewrite import without_ignore
from unshard.ddl.statement import Ddl
from unshard.ddl.tracker import SchemaTracker
from unshard.errors import DdlError, Where
from unshard.model.table import Table, TableName
from unshard.mysql.structure import read_table
from unshard.shard.group import ShardingGroup
from unshard.shard.lock_keeper import LockKeeper
from unshard.shard.sequence import DdlItem
from unshard.sync.checkpoint.store import CheckpointStore
from unshard.target.operators import Operator, OperatorKind


def operator_for(group: ShardingGroup, store: CheckpointStore) -> Operator | None:
    """Return the pending operator at the position of the group's first DDL in any of the source's tables, or None."""
    items = [state.sequence.items[0] for state in group.tables.values() if state.sequence.items]
    return operator_in(items, store.operators())


def operator_in(items: Collection[DdlItem], operators: Iterable[Operator]) -> Operator | None:
    """Return the first of the operators whose position is in one of the items; None if there is none."""
    return next((one for one in operators if any(_is_in(item, one) for item in items)), None)


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
    items = [state.sequence.items[0] for state in group.tables.values() if state.sequence.items]
    met = in_logged_zone(statements_of(group.ready), items)
    if operator is not None and operator.op is OperatorKind.SKIP:
        return ()
    own: list[Ddl] = []
    if operator is None or operator.op is OperatorKind.INJECT:
        own = _own(group, met, keeper, rules, store)
    if operator is None:
        return tuple(own)
    found = operator_pieces(operator, group.ready, tracker, rules)
    _, given = store.on_target(lambda c: for_target(c, found, tracker, rules))
    return (*store.on_target(lambda c: in_targets_words(c, given, rules)), *own)


def operator_pieces(
    operator: Operator, item: DdlItem, tracker: SchemaTracker, rules: StatementRules
) -> list[AlterOperation]:
    """Return the operator's statements in place of those that a table has met. Raises DdlError DDL-026, DDL-033.

    An item without statements is of one that was left out: no session of it is on record.
    """
    met = statements_of(item)
    known = met[0].ddl.context if met else Context(where=Where(operator.source, position=str(item.begin.position)))
    context = replace(known, schema="")
    parsed = (parse_given(text, context) for text in operator.sqls)
    return [replace(piece, tracked=False) for ddl in parsed for piece in given_pieces(ddl, rules, tracker.get)]


def _own(
    group: ShardingGroup, met: Sequence[RoutedDdl], keeper: LockKeeper, rules: StatementRules, store: CheckpointStore
) -> list[Ddl]:
    """Return the statements of the DDL itself that remain to be run, in the target's words."""
    if keeper.several:
        met = [replace(one, ddl=without_ignore(one.ddl)) for one in met]
    if keeper.is_copied(group.source):
        met = without_copied(met, group.target, store)
    return store.on_target(lambda c: in_targets_words(c, met, rules))


def in_logged_zone(met: Sequence[RoutedDdl], items: Iterable[DdlItem]) -> Sequence[RoutedDdl]:
    """Return a DDL's statements, without a time zone on record, in that of the same DDL on another table.

    A server logs the zone only if a value depends on it, so not for an empty table.
    """
    if all(one.ddl.context.time_zone for one in met):
        return met
    contexts = [one.ddl.context for item in items for one in statements_of(item)]
    zone = next((context.time_zone for context in contexts if context.time_zone), "")
    contexts = [replace(one.ddl.context, time_zone=one.ddl.context.time_zone or zone) for one in met]
    return [replace(one, ddl=replace(one.ddl, context=own)) for one, own in zip(met, contexts, strict=True)]


def without_copied(met: Sequence[RoutedDdl], target: TableName, store: CheckpointStore) -> Sequence[RoutedDdl]:
    """Return statements without the operations whose outcome copies have brought to the target's table.

    Called before they are translated for the target: a table that has the outcome does not fit the statement.
    """
    there = store.on_target(lambda c: read_table(c, target))
    if there is None:
        return met
    return [replace(one, ddl=ddl) for one in met for ddl in left_to_run((one.ddl,), there)]


def item_payload(before: Table | None, statements: Sequence[RoutedDdl]) -> dict[str, Any]:
    """Build an item's payload: the table's structure before the statement, and the statement's texts.

    The structure is None where the table's copy has the statement: nobody knows it, as what is known of the table is
    from behind the statement. The upstream table of a statement is stored only where it differs from the structure
    before.
    """
    return {
        "before": before.to_dict() if before is not None else None,
        "statements": [[one.ddl.text, one.ddl.context.to_dict(), *_upstream_form(one, before)] for one in statements],
    }


def _upstream_form(one: RoutedDdl, before: Table | None) -> list[dict[str, Any]]:
    if one.upstream is None:
        return []
    table = one.upstream.table if before is not None and one.upstream.table != before else None
    return [{"table": table.to_dict() if table is not None else None, "schema": one.upstream.create_schema}]


def statements_of(item: DdlItem) -> tuple[RoutedDdl, ...]:
    """Return an item's statements for the target, before they are translated for the target's product.

    Where the table's copy has them, a record of an earlier version may hold the table from behind them: it is not used.
    """
    found = []
    for text, context, *more in item.payload["statements"]:
        upstream = None
        if more:
            before = item.payload["before"]
            form = (more[0]["table"] or before) if before is not None else None
            upstream = UpstreamTable(Table.from_dict(form) if form else None, more[0]["schema"])
        found.append(RoutedDdl(classify_ddl(text, Context.from_dict(context)), upstream))
    return tuple(found)
