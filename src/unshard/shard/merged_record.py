"""MergedRecord: the known state of one target table of `shard-mode: optimistic`, and its changes. Pure.

| word | meaning |
|---|---|
| shard | one table of one source that is routed to the target table |
| structure of a shard | the structure of its changes, as far as they go to the target |
| request | a statement that a shard has met and that is not in force yet; the shard's later changes wait |
| target structure | the join of all shards (`shard.join`); what the target has, in the dialect of a source |
| rule | the value that rows of a shard get in a column which the shard lacks |
| leaving column | one that no shard has any more; it is dropped when no source writes it any more |

`shard.merged_table` decides by the record what is changed next.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Self

from unshard.model.table import TableName
from unshard.schema.definition import Dialect, TableDefinition
from unshard.shard.forced import fitted
from unshard.shard.join import IncompatibleError, joined_structure
from unshard.shard.merged_parts import (
    MergedChange,
    MergedColumns,
    MergedShard,
    Runner,
    ShardId,
    StructureRequest,
    names_of,
)
from unshard.shard.sequence import Form


@dataclass(frozen=True, slots=True)
class MergedRecord:
    """The record of one target table: its shards, its structure, and the change that is being made.

    Args:
        shards: the source tables that are routed to the target table.
        after: the target structure; None before the first shard is known.
        rules: by column, the SQL text of the value that rows of shards without the column get.
        leaving: by column, the version since which it is a leaving column.
        version: the number of changes of the target structure, its rules and its leaving columns.
        seen: by source, the columns of the rows that it writes.
        runner: the source that changes the target now.
        dialect: the dialect in which the structures are written.
        silent: the sources of the task that have not declared their tables; not stored in the record, but read with it.
        declared: the tables that the remaining sources have declared for this target; read with the record, too.
    """

    target: TableName
    shards: Mapping[ShardId, MergedShard] = field(default_factory=dict)
    after: TableDefinition | None = None
    rules: Mapping[str, str] = field(default_factory=dict)
    leaving: Mapping[str, int] = field(default_factory=dict)
    version: int = 0
    seen: Mapping[str, MergedColumns] = field(default_factory=dict)
    runner: Runner | None = None
    dialect: Dialect = Dialect.MARIADB
    silent: frozenset[str] = frozenset()
    declared: frozenset[ShardId] = frozenset()

    @property
    def sources(self) -> frozenset[str]:
        """Sources that have a shard of the target."""
        return frozenset(shard.source for shard in self.shards)

    @property
    def awaited(self) -> tuple[str, ...]:
        """Sources that may have shards which the record lacks: their tables are not declared, or not registered yet."""
        return tuple(sorted(self.silent | {shard.source for shard in self.declared - self.shards.keys()}))

    @property
    def is_of_one_shard(self) -> bool:
        """True if the target has the rows and the structure of a single table, whose statements are run as they are."""
        return len(self.shards) == 1 and not self.awaited and self.has_equal_shards

    @property
    def has_equal_shards(self) -> bool:
        """True if every shard has the columns and keys of the target structure."""
        forms = [self.after, *distinct(self.shards)]
        return all(one is not None and _form(one) == _form(forms[0]) for one in forms)

    @property
    def is_settled(self) -> bool:
        """True if all shards have the target structure, and none waits."""
        waits = any(state.request is not None for state in self.shards.values())
        return not (waits or self.rules or self.leaving or self.runner is not None)

    def runs(self, shard: ShardId) -> bool:
        """Return whether the change that is made now is of this shard's request."""
        return self.runner is not None and shard in self.runner.change.shards

    def register(self, shard: ShardId, structure: TableDefinition, there: Collection[str] = ()) -> Self:
        """Add a shard that exists with this structure; `there` are the target's own columns, in lower case.

        What the shard's rows have in a column that it lacks and that has had no rule so far is unknown, so the shard
        counts as one that has dropped it. Raises IncompatibleError where no structure takes its rows and those of the
        others.
        """
        if self.after is None:
            return self._to({shard: MergedShard(structure)}, structure, {})
        shards = {**self.shards, shard: MergedShard(structure)}
        self._target(shards)
        known = names_of(self.after)
        more = [one for one in structure.columns if one.name.lower() in there and one.name.lower() not in known]
        after = replace(self.after, columns=(*self.after.columns, *more))
        for one, state in shards.items():
            unknown = names_of(after) - names_of(state.structure) - self.rules.keys() - self.leaving.keys()
            if unknown and (one == shard or unknown & {column.name.lower() for column in more}):
                shards[one] = replace(state, dropped=state.dropped | unknown)
        return self._to(shards, after, self.rules)

    def joined(self, shard: ShardId, structure: TableDefinition) -> Self:
        """Add a shard whose copy has this structure; the target gets the join before any of its rows. May be repeated.

        Raises IncompatibleError where no structure takes its rows and those of the others.
        """
        shards = {**self.shards, shard: MergedShard(structure)}
        if self.after is None:
            return self._to(shards, structure, {})
        return self._to(shards, *self._target(shards))

    def created(self, shard: ShardId, structure: TableDefinition, *, fits: bool = True) -> Self:
        """Add a shard that is a new table. It has no rows, so it has dropped none of the columns it lacks.

        One that does not fit is added with a structure that joins with the other shards' (`shard.forced`); the target
        gets the join before any of its rows. Raises IncompatibleError where one is said to fit, and does not.
        """
        if self.after is None:
            return self._to({shard: MergedShard(structure)}, structure, {})
        if not fits:
            structure, is_fitted = self._joining(shard, structure)
            return self._to({**self.shards, shard: MergedShard(structure, fitted=is_fitted)}, self.after, self.rules)
        shards = {**self.shards, shard: MergedShard(structure)}
        _, rules = self._target(shards)
        return self._to(shards, self.after, rules)

    def like(self, shard: ShardId, model: ShardId) -> Self:
        """Add a shard that is a new table, made like another shard of its source: it waits with the same request.

        It has no rows, so it has dropped none of the columns it lacks.
        """
        state = replace(self.shards[model], dropped=frozenset())
        made = replace(self, shards={**self.shards, shard: state})
        if self.runner is None or not self.runs(model):
            return made
        change = replace(self.runner.change, shards=(*self.runner.change.shards, shard))
        return replace(made, runner=replace(self.runner, change=change))

    def without(self, shard: ShardId) -> Self:
        """Take out a shard that was dropped, or whose source has left the task. Columns only it had are leaving."""
        if shard not in self.shards:
            return self
        shards = {one: state for one, state in self.shards.items() if one != shard}
        seen = {source: columns for source, columns in self.seen.items() if any(one.source == source for one in shards)}
        if not shards or self.after is None:
            return replace(self, shards=shards, seen=seen)
        return replace(self, seen=seen)._to(shards, self.after, self.rules)

    def ask(self, shard: ShardId, request: StructureRequest) -> Self:
        """Add the shard's request. The target has all of the shard's changes before it. May be repeated.

        One that a human has forced before it is asked for gets the structure that joins with the other shards'.
        """
        state = self.shards[shard]
        if state.done == request.id:
            return self
        if (state.fitted or request.forced) and not request.barrier:
            request = self._fitted(shard, request)
        return replace(self, shards={**self.shards, shard: replace(state, request=request)})

    def altered(self, shard: ShardId, structure: TableDefinition, *, skipped: bool) -> Self:
        """Give the shard another structure, by a statement that is left out of the target.

        Where a human has `skipped` it and it does not join with the other shards', the shard gets one that does
        (`shard.forced`). That may lack columns, whose values are then left out too. A statement that an event filter
        leaves out is not so treated: the sync stops at the first row that does not fit.
        """
        assert self.after is not None
        structure, is_fitted = self._joining(shard, structure) if skipped else (structure, False)
        state = replace(self._behind(shard, structure, ""), fitted=is_fitted)
        return self._to({**self.shards, shard: state}, self.after, self.rules)

    def renamed(self, names: Mapping[ShardId, ShardId]) -> Self:
        """Rename shards, each from its old id to its new one."""
        return replace(self, shards={names.get(one, one): state for one, state in self.shards.items()})

    def noted(self, source: str) -> Self:
        """Record that the source writes by the columns of this version from now on."""
        if source not in self.sources or self.after is None:
            return self
        columns = MergedColumns(self.version, self.after, self.rules, frozenset(self.leaving))
        return replace(self, seen={**self.seen, source: columns})

    def begun(self, source: str, change: MergedChange) -> Self:
        """Make the source the runner of the change; no other source changes the target before it is done."""
        return replace(self, runner=Runner(source, change))

    def given_up(self, source: str) -> Self:
        """Take back a change that the source has begun and run nothing of. One that it was handed is handed on."""
        if self.runner is None or self.runner.source != source:
            return self
        return replace(self, runner=replace(self.runner, source="") if self.runner.begun is not None else None)

    def take_out(self, source: str, begun: Form | None = None) -> Self:
        """Take the source out of the task. `begun`: the intent of this target's change that it has open."""
        left = self
        if self.runner is not None and self.runner.source == source:
            left = replace(self, runner=replace(self.runner, source="", begun=begun) if begun is not None else None)
        for shard in [one for one in self.shards if one.source == source]:
            left = left.without(shard)
        return left

    def done(self, change: MergedChange) -> Self:
        """Record that the target has the change."""
        shards = dict(self.shards)
        for shard in change.shards:
            request = shards[shard].request if shard in shards else None  # its source may have been taken out
            if request is not None:
                behind = self._behind(shard, request.after, request.id)
                shards[shard] = replace(behind, old_rows=change.old_rows, fitted=request.fitted)
        for shard, state in shards.items():
            kept = state.dropped & names_of(change.after)
            shards[shard] = replace(state, dropped=kept)
        leaving = {name: since for name, since in self.leaving.items() if name not in change.dropped}
        return replace(self, leaving=leaving, runner=None)._to(shards, change.after, change.rules)

    def _fitted(self, shard: ShardId, request: StructureRequest) -> StructureRequest:
        """Return the request with the structure that joins with the other shards'."""
        after, is_fitted = self._joining(shard, request.after)
        return replace(request, after=after, fitted=True) if is_fitted else request

    def _joining(self, shard: ShardId, structure: TableDefinition) -> tuple[TableDefinition, bool]:
        """Return the structure that joins with the other shards', and whether it is another one, by `shard.forced`."""
        assert self.after is not None
        others = distinct({one: state for one, state in self.shards.items() if one != shard})
        try:
            joined_structure([structure, *others], self.after, self.rules)
        except IncompatibleError:
            return fitted(structure, self.after, others), True
        return structure, False

    def _behind(self, shard: ShardId, structure: TableDefinition, done: str) -> MergedShard:
        state = self.shards[shard]
        gone = (names_of(state.structure) - names_of(structure)) | (state.dropped - names_of(structure))
        return MergedShard(structure, gone, None, done)

    def _target(self, shards: Mapping[ShardId, MergedShard]) -> tuple[TableDefinition, dict[str, str]]:
        """Return the target structure for these shards, and the rules. Raises IncompatibleError."""
        return joined_structure(distinct(shards), self.after, self.rules)

    def _to(self, shards: Mapping[ShardId, MergedShard], after: TableDefinition, rules: Mapping[str, str]) -> Self:
        """Return the record with this target structure; the leaving columns and the version follow from it."""
        had = {name for state in shards.values() for name in names_of(state.structure)}
        gone = names_of(after) - had
        leaving = {name: self.leaving.get(name, self.version + 1) for name in gone}
        same_columns = self.after is not None and columns_of(after) == columns_of(self.after)
        moved = not (same_columns and dict(rules) == dict(self.rules) and leaving == dict(self.leaving))
        version = self.version + 1 if moved else self.version
        return replace(self, shards=shards, after=after, rules=rules, leaving=leaving, version=version)


def distinct(shards: Mapping[ShardId, MergedShard]) -> list[TableDefinition]:
    """Return the structures of the shards in their order, each object once: thousands of shards have few of them."""
    return list({id(state.structure): state.structure for _, state in sorted(shards.items())}.values())


def columns_of(table: TableDefinition) -> dict[str, tuple[object, ...]]:
    """Return by name in lower case what a column takes: its type, NULL, and the value that it has by default."""
    return {one.name.lower(): (one.type, bool(one.nullable), one.default) for one in table.columns}


def _form(table: TableDefinition | None) -> tuple[object, ...]:
    return () if table is None else (columns_of(table), {key.name.lower(): key for key in table.keys})
