"""Registers a source's shards in the merged tables of optimistic mode, at a start or before a load, and removes them.

`merged` are the merged tables as last loaded. Each decision is made in the transaction that writes it (`step`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from threading import Event
from typing import Any

from unshard.crash_point import reach
from unshard.ddl.evaluate import definition_of
from unshard.errors import ShardError, Where
from unshard.log import logger
from unshard.model.table import Table, TableName
from unshard.schema.definition import Dialect, TableDefinition
from unshard.schema.text import to_column, to_table
from unshard.schema.words import NotUnderstoodError
from unshard.shard.group import TableState
from unshard.shard.join import IncompatibleError
from unshard.shard.merged_form import structure_of, structure_text
from unshard.shard.merged_parts import MergedChange, ShardId, names_of
from unshard.shard.merged_table import MergedTable
from unshard.shard.shown_text import as_shown, has_certain_members, without_uncertain_defaults
from unshard.sync.sharding.coordinator import LOOK_SECONDS, ShardingGroups
from unshard.target.sharding import Step, load_merged, move_merged
from unshard.transform.extract import Constant


@dataclass(slots=True)
class MergedMembers(ShardingGroups):
    """The groups of a source whose shards are registered in merged tables. `dialect` is the source's."""

    dialect: Dialect = Dialect.MARIADB
    merged: Mapping[TableName, MergedTable] = field(default_factory=dict)

    def definition(self, table: Table, where: Where) -> TableDefinition:
        """Return a table's structure as the join needs it. Raises ShardError SHARD-041 where it is not understood."""
        try:
            return as_shown(definition_of(table, self.dialect))
        except NotUnderstoodError as error:
            values = {"target": str(self.rules.route(table.name)), "why": str(error)}
            raise ShardError("SHARD-041", where, table.create_sql[:500], values) from error

    def fills(self, upstream: Table) -> tuple[tuple[Constant, ...], Table]:
        """Return the constants that rows of this table get in columns of the target that the table lacks.

        And the table without its own columns that are not written (`shard.forced`): it counts as one that lacks them.
        A column that such a table counts as having, and lacks, is written with the target's own default, or NULL where
        that differs by row and somebody has let the column be NULL: rows of several tables share a statement.
        """
        target = self.rules.route(upstream.name)
        merged, there = self.merged.get(target), self.tables.targets.get(target)
        columns = merged.seen.get(self.store.source) if merged is not None else None
        if merged is None or columns is None or there is None:
            return (), upstream
        shard = merged.shards.get(ShardId(self.store.source, upstream.name))
        own = frozenset(column.name.lower() for column in upstream.columns)
        counted = own | (shard.kept & names_of(shard.structure)) if shard is not None else own
        if shard is not None and shard.fitted:
            counted = names_of(shard.structure)
        left_out, absent = own - counted, counted - own
        lacking = columns.absent(absent) | columns.fills(counted)
        known = {column.name.lower(): column for column in there.columns}
        found = []
        for name, (column, fill) in lacking.items():
            if name in known and (fill is not None or known[name].nullable):
                shown = to_column(column, self.dialect)
                made = replace(shown, name=known[name].name, auto_increment=False, nullable=not column.auto_increment)
                kept = name in absent or (shard is not None and name in shard.dropped)
                found.append(Constant(made, fill.value if fill is not None else None, kept=kept))
        written = tuple(column for column in upstream.columns if column.name.lower() not in left_out)
        return tuple(found), replace(upstream, columns=written)

    def begin_merged(self) -> None:
        """Load the merged tables at a start, and register the source's shards.

        Raises ShardError SHARD-040, SHARD-041, SHARD-042 as `register`.
        """
        self.load()
        self.register()

    def register(self) -> None:
        """Add the source's new shards to the merged tables, and take out those that were dropped.

        One that the task's lists or routes leave out now is an absent one: its rows stay in the target as they are.

        Raises ShardError SHARD-040 where no structure takes a shard's rows and those of the others, SHARD-041 where its
        structure is not understood, SHARD-042 where its source is of another product than the others.
        """
        source = self.store.source
        without_group = [one.target for one in self.merged.values() if source in one.sources]  # as no table is left
        for target in dict.fromkeys([*self.keeper.groups, *without_group]):
            group, merged = self.keeper.group(target), self.merged.get(target) or MergedTable(target)
            live = {name for name, state in group.tables.items() if state.gone is None or not state.idle}
            known = {shard.table for shard in merged.shards if shard.source == source}
            found: dict[ShardId, TableDefinition] = {}
            for name in sorted(live - known):
                table = self._structure_in_force(name, group.tables[name])
                if table is not None:
                    found[ShardId(source, name)] = self.definition(table, Where(source, str(name)))
            gone = [ShardId(source, name) for name in sorted(known - live)]
            if found or gone:
                self._write(target, found, gone)

    def copies(self, counts: Mapping[TableName, int]) -> frozenset[TableName]:
        """Return no table: the join brings copies with and without a statement together, so none waits for it."""
        return frozenset()

    def join_copies(self, copies: Mapping[TableName, Table], stop: Event) -> dict[TableName, Table] | None:
        """Register a copy's shards before it is loaded. Return the structure of each merged table whose shards differ.

        Nobody changes these tables until `end_join`. `copies`: the tables as their rows were read. The source need not
        be claimed. None when `stop` came first. Raises ShardError SHARD-040, SHARD-041, SHARD-042 as `register`.
        """
        source, found = self.store.source, dict[TableName, dict[ShardId, TableDefinition]]()
        for name, table in sorted(copies.items()):
            if name.table and self.rules.allows(name):
                own = found.setdefault(self.rules.route(name), {})
                own[ShardId(source, name)] = self.definition(table, Where(source, str(name)))
        joined = {}
        for target, own in found.items():
            merged = self._unclaimed_step(target, partial(self._copied, found=own))
            while merged.runner is not None and merged.runner.source != source:
                if stop.wait(LOOK_SECONDS):
                    return None
                merged = self._unclaimed_step(target, partial(self._copied, found=own))
            if merged.after is not None and not merged.has_equal_shards:
                after = without_uncertain_defaults(merged.after)
                pairs = zip(merged.after.columns, after.columns, strict=True)
                if lost := [column.name for column, other in pairs if column != other]:
                    why = "the shards differ, and a default has ? that may stand for other letters"
                    log = logger("sync", source=source, table=str(target))
                    log.warning("a default is left out", columns=", ".join(lost), why=why)
                joined[target] = to_table(after, target, self.dialect)
        return joined

    def end_join(self, targets: Iterable[TableName]) -> None:
        """End what `join_copies` began: the target tables take the rows of all shards. May be repeated."""
        for target in targets:
            self._unclaimed_step(target, lambda one: one.given_up(self.store.source))

    def _copied(self, merged: MergedTable, *, found: Mapping[ShardId, TableDefinition]) -> MergedTable:
        source = self.store.source
        if merged.runner is not None and merged.runner.source != source:
            return merged
        for shard, structure in found.items():
            merged = self.with_shard(merged, shard, structure, MergedTable.joined)
        if merged.has_equal_shards or merged.after is None:
            return merged
        if uncertain := [column.name for column in merged.after.columns if not has_certain_members(column)]:
            why = f"they differ, and the server may show members of {', '.join(uncertain)} with ? for other letters"
            raise ShardError("SHARD-040", Where(source), values={"target": str(merged.target), "why": why})
        return merged.begun(source, MergedChange((), merged.after, merged.rules))

    def _unclaimed_step(self, target: TableName, step: Step) -> MergedTable:
        """Change a merged table in a transaction of its own, whether or not this process has claimed the source."""

        def attempt(connection: Any) -> MergedTable:
            with connection.cursor() as cursor:
                cursor.execute("BEGIN")
                made = move_merged(cursor, self.store.meta, target, step)
                cursor.execute("COMMIT")
                return made

        return self.store.on_target(attempt)

    def with_shard(
        self,
        merged: MergedTable,
        shard: ShardId,
        structure: TableDefinition,
        take: Callable[[MergedTable, ShardId, TableDefinition], MergedTable],
    ) -> MergedTable:
        """Add a shard by `take`. Raises ShardError SHARD-040, SHARD-042.

        Its structure is recorded in the words of the merged table, which may be those of another release of MySQL.
        """
        if not merged.shards and merged.after is None:
            merged = replace(merged, dialect=self.dialect)
        where = Where(shard.source, str(shard.table))
        if merged.dialect.of_mysql is not self.dialect.of_mysql:
            raise ShardError("SHARD-042", where, values={"target": str(merged.target)})
        structure = self.in_words_of(merged, structure)
        try:
            return take(merged, shard, structure)
        except IncompatibleError as error:
            values = {"target": str(merged.target), "why": str(error)}
            raise ShardError("SHARD-040", where, values=values) from error

    def in_words_of(self, merged: MergedTable, structure: TableDefinition) -> TableDefinition:
        """Return a structure of the source as the merged table's record would have it."""
        same = merged.dialect is self.dialect
        return structure if same else structure_of(structure_text(structure, merged.dialect), merged.dialect)

    def _structure_in_force(self, name: TableName, state: TableState) -> Table | None:
        """Return the structure of the table's changes that go to the target now; None where it is not on record."""
        if state.sequence.items:
            form = state.sequence.items[0].payload["before"]
            return Table.from_dict(form) if form is not None else None
        return self.structure(name)

    def _write(self, target: TableName, found: Mapping[ShardId, TableDefinition], gone: Collection[ShardId]) -> None:
        there = self.tables.targets.get(target)
        columns = {column.name.lower() for column in there.columns} if there is not None else set()
        faults: list[ShardError] = []

        def step(merged: MergedTable) -> MergedTable:
            faults.clear()
            for shard, structure in found.items():
                try:
                    merged = self.with_shard(merged, shard, structure, partial(MergedTable.register, there=columns))
                except ShardError as error:
                    faults.append(error)
            for shard in gone:
                is_dropped = self.rules.allows(shard.table) and self.rules.route(shard.table) == target
                merged = merged.without(shard) if is_dropped else merged.leave(shard)
            return merged

        reach("merged-register-before")
        self.step(target, step)
        reach("merged-register-after")
        if faults:
            raise faults[0]

    def step(self, target: TableName, step: Step) -> MergedTable:
        """Change a merged table in a transaction of its own, and return it."""
        found: list[MergedTable] = []

        def write(cursor: Any) -> None:
            found.append(move_merged(cursor, self.store.meta, target, step))

        self.store.in_one(write)
        self._take_merged(target, found[-1])
        return found[-1]

    def _take_merged(self, target: TableName, merged: MergedTable) -> None:
        self.merged = {**self.merged, target: merged}
        self.tables.forget(name for name in self.keeper.group(target).tables)

    def load(self) -> None:
        """Load the merged tables as they are now."""
        meta = self.store.meta
        merged = self.store.on_target(lambda c: load_merged(c, meta))
        before, self.merged = self.merged, merged
        source = self.store.source
        for target, one in merged.items():
            if target not in before or before[target].seen.get(source) != one.seen.get(source):
                self.tables.forget(name for name in self.keeper.group(target).tables)
