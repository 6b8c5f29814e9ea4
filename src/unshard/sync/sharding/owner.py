"""What the owner of a sharding DDL runs: the DDL that all tables have, or what a human has given since it was met.

An operator for a statement that is not met yet is that table's item, and waits (`sync.statement`). One that is given
later, for the task has stopped at the DDL, is met here:

| operator for the place of the DDL in a table of the owner | on the target | the lock |
|---|---|---|
| none | the DDL | executed |
| `skip` | nothing | executed: the others skip it too |
| `replace` | what is given, by the routes of this source | the same |
| `inject` | what is given, then the DDL | the same |

Where an earlier owner was taken out of the task in the middle of it (`Lock.begun`), its intent is what is run: the
target's structure tells how far it came, as after a death of the same owner.

Of a DDL that nobody has given, two things are not as upstream: IGNORE is left out, for rows of two shards may double a
key where the shards don't; and one that fills rows with what only its own run gives (`ddl.fills`) is refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from unshard.ddl.backfill import filled_by_the_run
from unshard.ddl.context import Context
from unshard.ddl.in_snapshot import left_to_run
from unshard.ddl.intent import Intent
from unshard.ddl.operator_statements import given_pieces, parse_given
from unshard.ddl.parse import classify_ddl
from unshard.ddl.pieces import StatementRules
from unshard.ddl.plan import plan_intent
from unshard.ddl.prepare import RoutedDdl, UpstreamTable, for_target, in_targets_words
from unshard.ddl.rewrite import without_ignore
from unshard.ddl.statement import Ddl
from unshard.ddl.tracker import SchemaTracker
from unshard.errors import DdlError, ShardError, Where
from unshard.model.table import Table
from unshard.mysql.structure import read_table
from unshard.shard.group import ShardingGroup
from unshard.shard.lock_keeper import LockKeeper
from unshard.shard.sequence import DdlItem
from unshard.sync.checkpoint.store import CheckpointStore
from unshard.sync.statements.backfill import has_rows, refuse_unlike_fills
from unshard.target.operators import Operator, OperatorKind


def operator_for(group: ShardingGroup, store: CheckpointStore) -> Operator | None:
    """The pending operator for the DDL that the group has in front, at its place in any of the source's tables."""
    items = [state.sequence.items[0] for state in group.tables.values() if state.sequence.items]
    return next((one for one in store.operators() if any(_is_in(item, one) for item in items)), None)


def _is_in(item: DdlItem, operator: Operator) -> bool:
    """An item that a copy has ends at the copy, far behind its statement."""
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
    """What is run on the target of the group's DDL, None: nothing; and whether an earlier owner may have run some.

    Raises as `statements_for`, `plan_intent`, `refuse_fills`; DdlError DDL-027 where an operator is given for what an
    earlier owner has run in part.
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
    intent = store.on_target(lambda c: plan_intent(c, tracker.place, statements, begin, end, keeper.names))
    if operator is None:
        refuse_fills(intent, group, keeper, store)
    return intent, False


def statements_for(
    group: ShardingGroup,
    keeper: LockKeeper,
    operator: Operator | None,
    tracker: SchemaTracker,
    rules: StatementRules,
    store: CheckpointStore,
) -> tuple[Ddl, ...]:
    """What is run on the target of the group's DDL, in order and in its names; copies may have brought all of it.

    Raises DdlError DDL-026, DDL-033, DDL-011 for what is given; as `for_target`.
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
    """What is left to run of the DDL itself. TiDB's words for it depend on its table of now."""
    if keeper.several:
        met = [replace(one, ddl=without_ignore(one.ddl)) for one in met]
    own = store.on_target(lambda c: in_targets_words(c, met, rules))
    if not keeper.is_copied(group.source):
        return own
    there = store.on_target(lambda c: read_table(c, group.target))
    return own if there is None else list(left_to_run(own, there))


def refuse_fills(intent: Intent, group: ShardingGroup, keeper: LockKeeper, store: CheckpointStore) -> None:
    """Raises ShardError SHARD-036 where rows of several shards would get what none of them has.

    And DdlError DDL-034 as `refuse_unlike_fills` where the target table has one source table.
    """
    assert group.ready is not None
    if not keeper.several:
        before = group.ready.payload["before"]
        refuse_unlike_fills(intent, lambda _: Table.from_dict(before) if before else None, store)
        return
    columns = [name for step in intent.steps for name in filled_by_the_run(step)]
    if not columns:
        return
    if store.on_target(lambda c: has_rows(c, group.target)):
        where = Where(group.source, str(group.target), intent.position_begin)
        cause = "; ".join(step.statement for step in intent.steps)[:500]
        values = {"target": str(group.target), "columns": ", ".join(columns)}
        raise ShardError("SHARD-036", where, cause, values)


def item_payload(before: Table | None, statements: Sequence[RoutedDdl]) -> dict[str, Any]:
    """What an item keeps of a statement: the table's structure before it, None where its copy has it, and its forms.

    An upstream table is written only where it is not the one from before.
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
    """What an item is on the target, before it is brought into the target's words."""
    found = []
    for text, context, *more in item.payload["statements"]:
        upstream = None
        if more:
            form = more[0]["table"] or item.payload["before"]
            upstream = UpstreamTable(Table.from_dict(form) if form else None, more[0]["schema"])
        found.append(RoutedDdl(classify_ddl(text, Context.from_dict(context)), upstream))
    return tuple(found)
