"""Plans the values that each source writes into its own rows after a DDL of a merged table.

A statement for several tables runs once on the target. If it fills existing rows with values that differ in each run
(`ddl.backfill`), such as UUID() or NOW(), the sources' own runs have given other values. For the statement of a single
table, the run on the target has the time of the event. It gives other values only where that is not enough, as for
UUID().
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial

from unshard.ddl.backfill import filled_by_the_run, filled_unlike_upstream, numbered
from unshard.ddl.conversions import converted_unlike_upstream
from unshard.ddl.evaluate import definition_of, dialect_of
from unshard.ddl.intent import Again, Intent, Step
from unshard.ddl.parse import classify_ddl
from unshard.ddl.statement import StatementKind
from unshard.errors import ShardError, UnshardError, Where
from unshard.model.table import Table, TableName
from unshard.mysql.tidb import is_tidb
from unshard.shard.group import ShardingGroup
from unshard.shard.lock_keeper import LockKeeper
from unshard.shard.sequence import DdlItem, ShardingSequence
from unshard.sync.checkpoint.store import CheckpointStore
from unshard.sync.sharding.owner import statements_of
from unshard.sync.statements.backfill import NUMBERED, Backfiller, has_rows, refused_fill, unlike_fills
from unshard.sync.statements.plan_record import ColumnBackfill

StructureOf = Callable[[TableName], Table | None]
"""Returns a table of the source as of the main stream."""


def fills_of(
    group: ShardingGroup,
    intent: Intent | None,
    keeper: LockKeeper,
    store: CheckpointStore,
    backfiller: Backfiller,
    structure: StructureOf,
) -> tuple[ColumnBackfill, ...]:
    """Plan the column values that this source writes into its own rows after the group's DDL, whichever source runs it.

    A table whose copy has the DDL needs none. `intent` is the owner's, None where another source runs the DDL. Raises
    ShardError SHARD-036 where rows of several shards would get values that none of them has, DdlError DDL-034 where
    rows of a single shard would, and the values can't be written.
    """
    if not store.on_target(lambda c: has_rows(c, group.target)):
        return ()
    fills, why, tidb = [], "", store.on_target(is_tidb)
    for name in sorted(group.tables):
        rewritten = backfiller.rewritten(name)
        fill, after = item_fill(group, name, structure, rewritten, several=keeper.several, tidb=tidb)
        if fill is not None:
            fills.append(fill)
            why = why or backfiller.hindrance(fill, after, store)
    counted = _numbered(intent, group, keeper, store) if intent is not None else ()
    if why or counted:
        assert group.ready is not None
        columns = tuple(dict.fromkeys((*counted, *(column for fill in fills for column in fill.columns))))
        cause = NUMBERED if counted else why
        raise refused_fills(group.source, group.target, group.ready, columns, cause, several=keeper.several)
    return tuple(fills)


def item_fill(
    group: ShardingGroup,
    name: TableName,
    structure: StructureOf,
    rewritten: frozenset[str],
    *,
    several: bool,
    tidb: bool,
) -> tuple[ColumnBackfill | None, Table | None]:
    """Return the columns that the first statement of a table fills with other values on the target than on the source.

    And the table's structure after the statement. Rows of a table that was renamed meanwhile are those of its new name,
    which waits with the same statement; nothing is filled under the old one. `rewritten`: as `Backfiller.rewritten`.
    `several`: one run fills the rows of several tables. `tidb`: the target is TiDB, which converts some values
    otherwise than the source. AUTO_INCREMENT columns are not among them.
    """
    state = group.tables[name]
    if state.gone is not None and any(one.name == name and one.became in group.tables for one in group.gone):
        return None, None
    item = state.sequence.items[0]
    if (form := item.payload["before"]) is None:
        return None, None
    others = replace(state, sequence=ShardingSequence(state.sequence.items[1:]))
    later = others.next_behind(item.end.position)  # of a renamed table, the item begins where it ends
    known = later.payload["before"] if later is not None else state.last
    after = Table.from_dict(known) if known is not None else structure(name)
    before = Table.from_dict(form)
    steps = list(_upstream_steps(item, before, after)) if after is not None else []
    columns = []
    for step in steps:
        found = filled_by_the_run(step, rewritten) if several else filled_unlike_upstream(step, None, rewritten)
        columns += [name for name in found if name not in (numbered(step) or ())]
    if tidb and steps and after is not None:
        sides = (definition_of(table, dialect_of(steps[0].context)) for table in (before, after))
        columns += converted_unlike_upstream([classify_ddl(step.statement, step.context) for step in steps], *sides)
    return ColumnBackfill(name, tuple(dict.fromkeys(columns))) if columns else None, after


def _upstream_steps(item: DdlItem, before: Table, after: Table) -> Iterator[Step]:
    """Yield the steps that the item's statements were on the source's table, under the target's name."""
    for one in statements_of(item):
        if one.ddl.kind is StatementKind.ALTER_TABLE:
            name = one.ddl.tables[0].quoted
            texts = {name: before.create_sql}, {name: after.create_sql}
            yield Step(one.ddl.text, one.ddl.kind, Again.HARMLESS, *texts, one.ddl.context)


def _numbered(intent: Intent, group: ShardingGroup, keeper: LockKeeper, store: CheckpointStore) -> tuple[str, ...]:
    assert group.ready is not None
    return numbered_by(intent, group.target, group.ready, store, several=keeper.several)


def numbered_by(
    intent: Intent, target: TableName, item: DdlItem, store: CheckpointStore, *, several: bool
) -> tuple[str, ...]:
    """Return the columns that the intent fills with AUTO_INCREMENT numbers that differ from the source's."""
    if several:
        names = {name for step in intent.steps for name in filled_by_the_run(step)}
        return tuple(found[0] for step in intent.steps if (found := numbered(step)) and found[0] in names)
    form = item.payload["before"]
    before = Table.from_dict(form) if form else None
    find = partial(unlike_fills, target=target, upstream=before)
    return tuple(name for step in intent.steps for name in store.on_target(partial(find, step=step))[1])


def refused_fills(
    source: str, target: TableName, item: DdlItem, columns: Sequence[str], why: str, *, several: bool
) -> UnshardError:
    """Return ShardError SHARD-036, or DdlError DDL-034 where the target has a single shard."""
    where = Where(source, str(target), str(item.begin.position))
    statement = "; ".join(item.ddls)[:500]
    if not several:
        return refused_fill(where, columns, statement, why)
    values = {"target": str(target), "columns": ", ".join(columns), "why": why}
    return ShardError("SHARD-036", where, statement, values)
