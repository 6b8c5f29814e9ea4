"""Finds the sharding DDL that a copy has already, where its tables have several snapshots.

Runs before anything of the copy is loaded, so that a DDL that the copy can't contain stops the task there
(`ddl.in_snapshot` has the rule).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from threading import Event

from unshard.ddl.alter_parts import alter_parts
from unshard.ddl.in_snapshot import DdlInSnapshot, is_kept
from unshard.ddl.online import OnlineDdl
from unshard.ddl.parse import classify, classify_ddl
from unshard.ddl.statement import Ddl, Skipped, StatementKind
from unshard.ddl.tracker import NOT_FOLLOWED, SchemaTracker
from unshard.errors import DdlError, ShardError, Where
from unshard.model.position import Position
from unshard.model.table import Table, TableName
from unshard.sync.checkpoint.store import CheckpointStore
from unshard.sync.sharding.coordinator import ShardingGroups
from unshard.sync.source_log.failover import ANY
from unshard.sync.source_log.reader import LoggedDdl, Relay, next_work
from unshard.sync.statements.crossings import awaited
from unshard.sync.statements.reader import StatementReader, logged_context
from unshard.target.checkpoint import Checkpoint

_BUDGET = 64 << 20


def copied_ddl(
    start: Checkpoint,
    reading: StatementReader,
    groups: ShardingGroups,
    store: CheckpointStore,
    relay: Relay,
    stop: Event,
) -> DdlInSnapshot | None:
    """Declare to the task's other sources which sharding DDL the copy has from which sync begins at `start`.

    Waits until the relay log reaches the copy's last snapshot; None when `stop` came first. Raises ShardError SHARD-029
    for a DDL that can't be reconciled with the copies that lack it.
    """
    copies = {name: state.table for name, state in start.tables.items() if state.table is not None}
    tables = {name: table for name, table in copies.items() if not table.is_absent}
    places = {name: state.location.position for name, state in start.tables.items() if state.location is not None}
    after = {name: place for name, place in places.items() if place > start.location.position}
    met: dict[TableName, tuple[tuple[Ddl, ...], ...]] = {}
    if after and not awaited(relay, ANY, stop):
        return None
    if after and relay.upstream == store.upstream():
        tracker = SchemaTracker(reading.tracker.place)
        tracker.begin(tables)
        rules = replace(reading.rules, online=OnlineDdl(reading.rules.online.tables))
        reader = replace(reading, tracker=tracker, rules=rules)
        end, at = max(after.values()), start.location
        if not awaited(relay, end, stop):
            return None
        while at.position < end and (work := next_work(relay.log, at, end, _BUDGET, reading.source)) is not None:
            if isinstance(work, LoggedDdl) and store.operator_in(work.begin, work.end.position) is None:
                for name, parts in _met(work, reader, after, groups):
                    met[name] = (*met.get(name, ()), parts)
            at = work.end
        for name, statements_met in met.items():
            for part in (part for parts in statements_met for part in parts):
                _refuse(part, tables[name], tracker, reader, store)
    furthest: dict[TableName, int] = {}
    for name, found in met.items():
        target = groups.rules.route(name)
        furthest[target] = max(furthest.get(target, 0), len(found))
    joined = groups.join_copies(tables, stop)
    return DdlInSnapshot(met, groups.copies(furthest), joined) if joined is not None else None


def _met(
    work: LoggedDdl, reader: StatementReader, after: Mapping[TableName, Position], groups: ShardingGroups
) -> Iterator[tuple[TableName, tuple[Ddl, ...]]]:
    """Yield, by table, the operations of a statement that the copy of the table has.

    Raises ShardError SHARD-029 for a ghost table of online DDL that was created before the log begins.
    """
    where = Where(source=reader.source, position=str(work.begin))
    parsed = classify(work.statement.sql, logged_context(work.statement, reader.traits, where))
    online = reader.rules.online
    if isinstance(parsed, Skipped) or parsed.kind is StatementKind.TEMPORARY_TABLE:
        return
    if not any(name in after or not online.tables.is_real(name) for name in parsed.tables):
        return
    try:
        wanted = reader.own(work, where, after, sharded=True)
    except DdlError as error:
        if error.code != "DDL-025":
            raise
        name = next(name for name in parsed.tables if name in after)
        why = f"gh-ost or pt-osc altered {name} while it was copied, and had begun before: {parsed.text[:200]}"
        values = {"target": str(groups.rules.route(name)), "why": why}
        raise ShardError("SHARD-029", replace(where, table=str(name)), values=values) from error
    online.apply(wanted.online)
    parts = [part for piece in wanted.found if not piece.tracked for one in piece.run for part in alter_parts(one)]
    for name in {part.tables[0] for part in parts}:
        yield name, tuple(part for part in parts if part.tables[0] == name)


def _refuse(part: Ddl, copy: Table, tracker: SchemaTracker, reader: StatementReader, store: CheckpointStore) -> None:
    """Raise ShardError SHARD-029 if copies with and without the operation can't be loaded into one target."""

    def shown_after(ddl: Ddl) -> Table | None:
        return store.on_target(lambda connection: tracker.after(connection, ddl)).get(copy.name)

    def leaves_as_it_is(part: Ddl) -> bool:
        """Compare what the target's server says before and after it: the source's may write the same otherwise."""
        nothing = classify_ddl(f"ALTER TABLE {copy.name.quoted}", part.context)
        try:
            before, after = shown_after(nothing), shown_after(part)
        except DdlError as error:
            if error.code not in NOT_FOLLOWED:
                raise
            return False
        return before is None or after is None or (after.columns, after.indexes) == (before.columns, before.indexes)

    if not is_kept(part, copy, leaves_as_it_is):
        why = f"`{part.text[:200]}` ran on it while it was copied, and the copy of another shard may not have it"
        where = replace(part.context.where, table=str(copy.name))
        raise ShardError("SHARD-029", where, values={"target": str(reader.rules.route(copy.name)), "why": why})
