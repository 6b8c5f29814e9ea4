"""MergedRecord: the known state of one target table of `shard-mode: optimistic`, and its changes. Pure.

| word | meaning |
|---|---|
| shard | one table of one source that is routed to the target table |
| structure of a shard | the structure of its changes, as far as they go to the target |
| request | a statement that a shard has met and that is not in force yet; the shard's later changes wait |
| target structure | the join of all shards (`shard.join`); what the target has, in the dialect of a source |
| rule | the value that rows of a shard get in a column which the shard lacks |
| leaving column | one that no shard has any more; it is dropped when no source writes it any more |
| kept column | one that a shard has dropped by a statement that was left out of the target; it is never leaving |
| absent shard | one that exists, and that the task leaves out now; the target keeps all columns of its rows |

`shard.merged_table` decides by the record what is changed next.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Self

from unshard.model.table import TableName
from unshard.schema.definition import Dialect, KeyKind, TableDefinition
from unshard.shard.carried import carried
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
        kept: the kept columns of the target, in lower case.
        absent: the absent shards, as they were when they were taken out, without their requests.
        has_dropped: a shard was dropped; the target may still have its rows.
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
    kept: frozenset[str] = frozenset()
    absent: Mapping[ShardId, MergedShard] = field(default_factory=dict)
    has_dropped: bool = False

    @property
    def sources(self) -> frozenset[str]:
        """Sources that have a shard of the target."""
        return frozenset(shard.source for shard in self.shards)

    @property
    def awaited(self) -> tuple[str, ...]:
        """Sources that may have shards which the record lacks: their tables are not declared, or not registered yet."""
        return tuple(sorted(self.silent | {shard.source for shard in self.declared - self.shards.keys()}))

    @property
    def has_rows_of_others(self) -> bool:
        """True if the target may have rows that no shard has; a statement that the shards took may cut their values."""
        return bool(self.absent) or self.has_dropped

    @property
    def is_of_one_shard(self) -> bool:
        """True if the target has the rows and the structure of a single table, whose statements are run as they are."""
        return len(self.shards) == 1 and not self.absent and not self.awaited and self.has_equal_shards

    @property
    def has_equal_shards(self) -> bool:
        """True if every shard has the columns and keys of the target structure."""
        forms = [self.after, *distinct(self.shards)]
        return all(one is not None and _form(one) == _form(forms[0]) for one in forms)

    @property
    def is_settled(self) -> bool:
        """True if all shards have the same structure, and none waits.

        A column that the target has for absent shards alone does not count: rows of no shard are written with it.
        """
        waits = any(state.request is not None for state in self.shards.values())
        had = {name for state in self.shards.values() for name in state.names}
        return not (waits or self.rules.keys() & had or self.leaving or self.runner is not None)

    def runs(self, shard: ShardId) -> bool:
        """Return whether the change that is made now is of this shard's request."""
        return self.runner is not None and shard in self.runner.change.shards

    def register(self, shard: ShardId, structure: TableDefinition, there: Collection[str] = ()) -> Self:
        """Add a shard that exists with this structure; `there` are the target's own columns, in lower case.

        What the shard's rows have in a column that it lacks and that has had no rule so far is unknown, so the shard
        counts as one that has dropped it. An absent shard is in the record again as it was when it was taken out.
        Raises IncompatibleError where no structure takes its rows and those of the others.
        """
        if self.after is None:
            return self._to({shard: MergedShard(structure)}, structure, {})
        if shard in self.absent:
            made, structure = self._back(shard), self.absent[shard].structure
        else:
            made = self._with_kept(structure)
            made = replace(made, dropped=made.kept)
        shards = {**self.shards, shard: made}
        self._target(shards)
        known = names_of(self.after)
        more = [one for one in structure.columns if one.name.lower() in there and one.name.lower() not in known]
        after = replace(self.after, columns=(*self.after.columns, *more))
        for one, state in shards.items():
            unknown = names_of(after) - names_of(state.structure) - self.rules.keys() - self.leaving.keys()
            if unknown and (one == shard or unknown & {column.name.lower() for column in more}):
                shards[one] = replace(state, dropped=state.dropped | unknown)
        return self._present(shard)._to(shards, after, self.rules)

    def joined(self, shard: ShardId, structure: TableDefinition) -> Self:
        """Add a shard whose copy has this structure; the target gets the join before any of its rows. May be repeated.

        Raises IncompatibleError where no structure takes its rows and those of the others.
        """
        if self.after is None:
            return self._to({**self.shards, shard: MergedShard(structure)}, structure, {})
        shards = {**self.shards, shard: self._with_kept(structure)}
        return self._present(shard)._to(shards, *self._target(shards))

    def with_copied(self, shard: ShardId, ddls: Sequence[str]) -> Self:
        """Record that the shard's copy had a DDL which others may meet; not where all copies had it."""
        state = self.shards.get(shard)
        if state is None or state.has_copied(ddls):
            return self
        shards = {**self.shards, shard: replace(state, copied=(*state.copied, tuple(ddls)))}
        return replace(self, shards=_still_to_be_met(shards))

    def created(self, shard: ShardId, structure: TableDefinition, *, fits: bool = True) -> Self:
        """Add a shard that is a new table. It has no rows, so it has dropped none of the columns it lacks.

        One that does not fit is added with a structure that joins with the other shards' (`shard.forced`); the target
        gets the join before any of its rows. Raises IncompatibleError where one is said to fit, and does not.
        """
        if self.after is None:
            return self._to({shard: MergedShard(structure)}, structure, {})
        if not fits:
            structure, is_fitted = self._joining(shard, structure)
            shards = {**self.shards, shard: MergedShard(structure, fitted=is_fitted)}
            return self._present(shard)._to(shards, self.after, self.rules)
        shards = {**self.shards, shard: self._with_kept(structure)}
        _, rules = self._target(shards)
        return self._present(shard)._to(shards, self.after, rules)

    def like(self, shard: ShardId, model: ShardId) -> Self:
        """Add a shard that is a new table, made like another shard of its source: it waits with the same request.

        It has no rows, so it has dropped none of the columns it lacks.
        """
        state = replace(self.shards[model], dropped=frozenset())
        made = replace(self._present(shard), shards={**self.shards, shard: state})
        if self.runner is None or not self.runs(model):
            return made
        change = replace(self.runner.change, shards=(*self.runner.change.shards, shard))
        return replace(made, runner=replace(self.runner, change=change))

    def without(self, shard: ShardId) -> Self:
        """Take out a shard that was dropped. Columns that only it had are leaving."""
        return replace(self._without(shard), has_dropped=self.has_dropped or shard in self.shards)

    def _without(self, shard: ShardId) -> Self:
        if shard not in self.shards:
            return self
        shards = _still_to_be_met({one: state for one, state in self.shards.items() if one != shard})
        seen = {source: columns for source, columns in self.seen.items() if any(one.source == source for one in shards)}
        if not shards or self.after is None:
            return replace(self, shards=shards, seen=seen)
        return replace(self, seen=seen)._to(shards, self.after, self.rules)

    def leave(self, shard: ShardId) -> Self:
        """Take out a shard that still exists, and that the task leaves out from now on: it becomes an absent one."""
        if shard not in self.shards:
            return self
        absent = {**self.absent, shard: replace(self.shards[shard], request=None)}
        return replace(self, absent=absent)._without(shard)

    def ask(
        self,
        shard: ShardId,
        request: StructureRequest,
        before: TableDefinition | None = None,
        own: frozenset[str] | None = None,
    ) -> Self:
        """Add the shard's request. The target has all of the shard's changes before it. May be repeated.

        `before` is the table's structure upstream before the statement, where it may be another one than that in force;
        `own` are the columns that the table upstream has behind it, where it is not that of `after`.

        One that a human has forced before it is asked for gets the structure that joins with the other shards'.
        """
        state = self.shards[shard]
        if state.done == request.id:
            return self
        own = names_of(request.after) if own is None else own
        if before is not None and not state.fitted:
            request = replace(request, after=carried(state.structure, before, request.after))
        left = names_of(state.structure) if request.forced else frozenset()
        request = replace(request, kept=(state.kept | names_of(request.after) | left) - own)
        if (state.fitted or request.forced) and not request.barrier:
            request = self._fitted(shard, request)
        return replace(self, shards={**self.shards, shard: replace(state, request=request)})

    def altered(
        self,
        shard: ShardId,
        before: Collection[str],
        own: Collection[str],
        structure: TableDefinition | None = None,
    ) -> Self:
        """Record a statement that is left out of the target; `before` and `own` are the table's columns around it.

        The target changes nothing because of it. So the structure in force stays, and the target keeps columns that the
        shard has dropped; the sync stops at the first row that does not fit. `structure` is that of a table whose
        statement a human has skipped: the target takes its rows as far as it can, so the shard gets the structure that
        joins with the other shards' (`shard.forced`). That may lack columns, whose values are then left out too.
        """
        assert self.after is not None
        state = self.shards[shard]
        kept = (state.kept | (set(before) - set(own))) - (set(own) - set(before))
        is_fitted, after = state.fitted, state.structure
        if structure is not None:
            plain = (key for key in after.keys if key.kind is KeyKind.PLAIN)
            rest = (key for key in structure.keys if key.kind is not KeyKind.PLAIN)
            after, is_fitted = self._joining(shard, replace(structure, keys=(*rest, *plain)))
        state = replace(self._behind(shard, after, "", kept & names_of(self.after)), fitted=is_fitted)
        return self._to({**self.shards, shard: state}, self.after, self.rules)

    def renamed(self, names: Mapping[ShardId, ShardId], waiting: Collection[ShardId] = ()) -> Self:
        """Rename shards, each from its old id to its new one.

        One of `waiting` has changes under its old name that wait with the same request. It stays until these are in the
        target, beside the shard of the new name.
        """
        shards = {names.get(one, one): state for one, state in self.shards.items()}
        stay = {one: state for one, state in self.shards.items() if one in names and one in waiting}
        named = replace(self, shards={**shards, **stay})
        if self.runner is None:
            return named
        change = self.runner.change
        both = (*(names.get(one, one) for one in change.shards), *(one for one in change.shards if one in stay))
        return replace(named, runner=replace(self.runner, change=replace(change, shards=both)))

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

    def take_out(self, source: str, begun: Form | None = None, *, forget: bool = False) -> Self:
        """Take the source out of the task. `begun`: the intent of this target's change that it has open.

        `forget`: its tables are no shards of this record any more, rather than absent ones.
        """
        left = self
        if self.runner is not None and self.runner.source == source:
            left = replace(self, runner=replace(self.runner, source="", begun=begun) if begun is not None else None)
        for shard in [one for one in self.shards if one.source == source]:
            left = left._without(shard) if forget else left.leave(shard)
        return left if left.shards or not forget else replace(left, absent={})

    def done(self, change: MergedChange) -> Self:
        """Record that the target has the change."""
        shards, met = dict(self.shards), set[tuple[str, ...]]()
        for shard in change.shards:
            request = shards[shard].request if shard in shards else None  # its source may have been taken out
            if request is not None:
                behind = self._behind(shard, request.after, request.id, request.kept)
                shards[shard] = replace(behind, old_rows=change.old_rows, fitted=request.fitted)
                met.add(request.ddls)
        there, absent = names_of(change.after), dict(self.absent)
        for states in (shards, absent):
            for shard, state in states.items():
                state = state.without_copied(met) if state.copied and met else state
                states[shard] = replace(state, dropped=state.dropped & there, kept=state.kept & there)
        leaving = {name: since for name, since in self.leaving.items() if name not in change.dropped}
        return replace(self, absent=absent, leaving=leaving, runner=None)._to(shards, change.after, change.rules)

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

    def _with_kept(self, structure: TableDefinition) -> MergedShard:
        """Return a new shard of this structure, which lacks kept columns as others do."""
        assert self.after is not None
        lacking = self.kept - names_of(structure)
        more = [column for column in self.after.columns if column.name.lower() in lacking]
        return MergedShard(replace(structure, columns=(*structure.columns, *more)), kept=lacking)

    def _back(self, shard: ShardId) -> MergedShard:
        """Return an absent shard as it is in the record again; one that was fitted fits what the target is now."""
        was = self.absent[shard]
        structure = self._joining(shard, was.structure)[0] if was.fitted else was.structure
        made = self._with_kept(structure)
        kept, dropped = was.kept | made.kept, was.dropped | made.kept
        return replace(was, structure=made.structure, kept=kept, dropped=dropped)

    def _present(self, shard: ShardId) -> Self:
        return replace(self, absent={one: state for one, state in self.absent.items() if one != shard})

    def _behind(self, shard: ShardId, structure: TableDefinition, done: str, kept: frozenset[str]) -> MergedShard:
        state = self.shards[shard]
        gone = (state.names | state.dropped) - (names_of(structure) - kept)
        return MergedShard(structure, gone, None, done, kept=kept, copied=state.copied)

    def _target(self, shards: Mapping[ShardId, MergedShard]) -> tuple[TableDefinition, dict[str, str]]:
        """Return the target structure for these shards, and the rules. Raises IncompatibleError."""
        return joined_structure(distinct(shards), self.after, self.rules)

    def _to(self, shards: Mapping[ShardId, MergedShard], after: TableDefinition, rules: Mapping[str, str]) -> Self:
        """Return the record with this target structure; the leaving columns and the version follow from it."""
        absent = {one: _unknown(state, after, rules) for one, state in self.absent.items()}
        states = (*shards.values(), *absent.values())
        had = {name for state in states for name in names_of(state.structure)}
        kept = self.kept.union(*(state.kept for state in states)) & names_of(after)
        kept = kept.difference(frozenset.intersection(*(state.names for state in states)) if states else ())
        gone = names_of(after) - had - kept
        leaving = {name: self.leaving.get(name, self.version + 1) for name in gone}
        same_columns = self.after is not None and columns_of(after) == columns_of(self.after)
        moved = not (same_columns and dict(rules) == dict(self.rules) and leaving == dict(self.leaving))
        version = self.version + 1 if moved else self.version
        made = replace(self, shards=shards, after=after, rules=rules, leaving=leaving, version=version, kept=kept)
        return replace(made, absent=absent)


def _unknown(state: MergedShard, after: TableDefinition, rules: Mapping[str, str]) -> MergedShard:
    """Return an absent shard, with what its rows may have other values in than the rule that comes again later."""
    return replace(state, dropped=state.dropped | (names_of(after) - names_of(state.structure) - rules.keys()))


def _still_to_be_met(shards: Mapping[ShardId, MergedShard]) -> dict[ShardId, MergedShard]:
    """Return the shards without the record of copied DDL that no shard is left to meet."""
    known = {ddls for state in shards.values() for ddls in state.copied}
    met = [ddls for ddls in known if all(state.has_copied(ddls) for state in shards.values())]
    return {shard: state.without_copied(met) if met else state for shard, state in shards.items()}


def distinct(shards: Mapping[ShardId, MergedShard]) -> list[TableDefinition]:
    """Return the structures of the shards in their order, each object once: thousands of shards have few of them."""
    return list({id(state.structure): state.structure for _, state in sorted(shards.items())}.values())


def columns_of(table: TableDefinition) -> dict[str, tuple[object, ...]]:
    """Return by name in lower case what a column takes: its type, NULL, and the value that it has by default."""
    return {one.name.lower(): (one.type, bool(one.nullable), one.default) for one in table.columns}


def _form(table: TableDefinition | None) -> tuple[object, ...]:
    return () if table is None else (columns_of(table), {key.name.lower(): key for key in table.keys})
