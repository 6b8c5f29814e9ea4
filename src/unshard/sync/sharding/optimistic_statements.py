"""Statements on tables that are merged, with `shard-mode: optimistic`: what each does to its shard.

| statement | on the target | the shard |
|---|---|---|
| ALTER TABLE, CREATE INDEX, DROP INDEX | what the join of all shards changes by it, when it may | waits for that |
| CREATE TABLE | run where the target has no such table | is registered; refused where the target can't take its rows |
| one that is left out on an existing table | nothing | has its new structure |
| any other | as in pessimistic mode | as there |
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from unshard.ddl.evaluate import evaluate, operations
from unshard.ddl.pieces import AlterOperation
from unshard.errors import ShardError, Where
from unshard.model.position import Location, Position
from unshard.model.table import Table, TableName
from unshard.schema.lex import NotUnderstoodError
from unshard.shard.group import ShardingGroup
from unshard.shard.merged_form import structure_text
from unshard.shard.merged_parts import ShardId
from unshard.shard.merged_step import barrier_of
from unshard.shard.merged_table import MergedTable
from unshard.shard.sequence import DdlItem
from unshard.sync.checkpoint.store import Also
from unshard.sync.sharding.optimistic import OptimisticGroups, new_request_id, request_of, request_payload
from unshard.sync.sharding.owner import item_payload
from unshard.sync.sharding.statements import Met, ShardedStatements
from unshard.sync.source_log.reader import LoggedDdl
from unshard.sync.statements.uncoordinated import Passing
from unshard.target.merged_tables import move_merged


@dataclass(slots=True)
class OptimisticStatements(ShardedStatements):
    """Used by the sync unit's thread. `groups` are `OptimisticGroups`."""

    def meet(self, met: Met, work: LoggedDdl, at: Location, copied: Location | None = None) -> Also:
        """The table waits behind the statement until the target takes its rows.

        Raises ShardError SHARD-041 for a structure that is not understood, SHARD-043 for a statement that the copy of
        the table has, SHARD-044 in strict mode for one that would wait, SHARD-038 as
        `ShardingGroups.refuse_connected`.
        """
        groups, table = self._merged_groups, met.table
        where = Where(groups.store.source, str(table), str(work.begin))
        text = "; ".join(one.ddl.text for one in met.statements)[:500]
        target = groups.rules.route(table)
        if copied is not None:
            raise ShardError("SHARD-043", where, text, {"target": str(target)})
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
        """The structure that the shard asks for, and why it needs a barrier.

        By what of it is for the target: what an operator has given in its place, or what the event filter has left.
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
        """As in pessimistic mode; and the shards' structures and names in the merged table.

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
        """A new table has met nothing that others wait with: the target has to take its rows as it is."""
        groups = self._merged_groups
        groups.load()
        merged = groups.merged.get(group.target)
        where = Where(groups.store.source, str(made.name), str(begin))
        shard = ShardId(groups.store.source, made.name)
        if merged is not None and (fault := merged.fits(shard, groups.definition(made, where))):
            raise ShardError("SHARD-045", where, made.create_sql[:500], {"target": str(group.target), "why": fault})
        return 0

    def _refuse_unlike_target(self, first: Table, begin: Position) -> None:
        """`_met` has looked at it."""

    @property
    def _merged_groups(self) -> OptimisticGroups:
        assert isinstance(self.groups, OptimisticGroups)
        return self.groups


def _no_schema(_: str) -> str | None:
    """The structure of a schema is not needed for what a table becomes: its own character set counts."""
    return None
