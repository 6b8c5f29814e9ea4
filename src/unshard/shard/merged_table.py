"""MergedTable: one target table of `shard-mode: optimistic`, the structures of its shards, and what runs now. Pure.

| word | meaning |
|---|---|
| shard | one table of one source that is routed to the target table |
| structure of a shard | the structure of its changes, as far as they go to the target |
| request | a statement that a shard has met and that is not in force yet; the shard's later changes wait |
| target structure | the join of all shards (`shard.join`); what the target has, in the dialect of a source |
| rule | the value that rows of a shard get in a column which the shard lacks |
| leaving column | one that no shard has any more; it is dropped when no source writes it any more |

`evaluate` is called after every event: a statement, a shard that is new, dropped or stopped, a source that has noted a
version. It depends on the state alone, so the order of events does not matter where their outcome is the same.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

from unshard.errors import ShardError, Where
from unshard.model.table import TableName
from unshard.schema.definition import ColumnDefinition, Dialect, TableDefinition
from unshard.shard.join import IncompatibleError, fill_of, joined_column, joined_keys
from unshard.shard.merged_parts import (
    MergedChange,
    MergedColumns,
    MergedDecision,
    MergedShard,
    Runner,
    ShardId,
    StructureRequest,
    names_of,
)
from unshard.shard.sequence import Form, same


@dataclass(frozen=True, slots=True)
class MergedTable:
    """The record of one target table.

    `shards`: the source tables that are routed to it. `after`: the target structure, None before the first shard is
    known. `rules`: by column, the SQL text of the value that rows of shards without it get. `leaving`: by column, the
    version since which it is leaving. `version` counts the changes of the target structure, its rules and its leaving
    columns. `seen`: the columns that each source writes by. `runner`: the source that changes the target now.
    `dialect`: the one that the structures are written in.
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

    @property
    def sources(self) -> frozenset[str]:
        """Sources that have a shard of the target."""
        return frozenset(shard.source for shard in self.shards)

    def register(self, shard: ShardId, structure: TableDefinition, there: Collection[str] = ()) -> MergedTable:
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

    def copied(self, shard: ShardId, structure: TableDefinition) -> MergedTable:
        """Add a shard whose copy has this structure; the target gets the join before any of its rows. May be repeated.

        Raises IncompatibleError where no structure takes its rows and those of the others.
        """
        shards = {**self.shards, shard: MergedShard(structure)}
        if self.after is None:
            return self._to(shards, structure, {})
        return self._to(shards, *self._target(shards))

    @property
    def has_equal_shards(self) -> bool:
        """True if every shard has the columns and keys of the target structure."""
        forms = [self.after, *_distinct(self.shards)]
        return all(one is not None and _form(one) == _form(forms[0]) for one in forms)

    @property
    def is_settled(self) -> bool:
        """True if all shards have the target structure, and none waits."""
        waits = any(state.request is not None for state in self.shards.values())
        return not (waits or self.rules or self.leaving or self.runner is not None)

    @property
    def has_one_shard(self) -> bool:
        """True if the target has the rows of a single table, whose statements are run as they are."""
        return len(self.shards) == 1

    def fits(self, shard: ShardId, structure: TableDefinition) -> str:
        """Return why a new shard of this structure does not fit the target, in words; "" if it does."""
        if self.after is None:
            return ""
        try:
            after, _ = self._target({**self.shards, shard: MergedShard(structure)})
        except IncompatibleError as error:
            return str(error)
        added = sorted(names_of(after) - names_of(self.after))
        if added:
            return f"the target has no column {', '.join(added)}"
        return (
            "" if _columns(after) == _columns(self.after) else "columns of the target are narrower, or have no default"
        )

    def lacks(self, source: str) -> bool:
        """Return whether rows of this source's shards can't be written before the target's next change.

        This is so after a shard has come back.
        """
        settled = next(iter(self._settling()), None) if self.after is not None else None
        if self.after is None or settled is None:
            return False
        now, then = _columns(self.after), _columns(settled.after)
        for own in _distinct({shard: state for shard, state in self.shards.items() if shard.source == source}):
            if any(now.get(name) != then.get(name) for name in names_of(own)):
                return True
            if (settled.rules.keys() - self.rules.keys()) - names_of(own):
                return True
        return False

    def without(self, shard: ShardId) -> MergedTable:
        """Take out a shard that was dropped, or whose source has left the task. Columns only it had are leaving."""
        if shard not in self.shards:
            return self
        shards = {one: state for one, state in self.shards.items() if one != shard}
        seen = {source: columns for source, columns in self.seen.items() if any(one.source == source for one in shards)}
        if not shards or self.after is None:
            return replace(self, shards=shards, seen=seen)
        return replace(self, seen=seen)._to(shards, self.after, self.rules)

    def ask(self, shard: ShardId, request: StructureRequest) -> MergedTable:
        """Add the shard's request. The target has all of the shard's changes before it. May be repeated."""
        state = self.shards[shard]
        if state.done == request.id:
            return self
        return replace(self, shards={**self.shards, shard: replace(state, request=request)})

    def force(self, shard: ShardId, *, skip: bool = False) -> MergedTable:
        """Force the shard's request: a human accepts that its old rows have other values in the columns it adds.

        `skip`: a human also accepts that the target goes without a statement that waits for all shards. Raises
        ShardError SHARD-050 where the shard waits for nothing that this would end.
        """
        state = self.shards.get(shard)
        request = state.request if state is not None else None
        forced = replace(request, barrier="", forced=True) if request and (skip or not request.barrier) else None
        if state is None or forced is None or not isinstance(self._admitted(shard, forced), MergedChange):
            raise ShardError("SHARD-050", Where(shard.source, str(shard.table)), values={"target": str(self.target)})
        return replace(self, shards={**self.shards, shard: replace(state, request=forced)})

    def altered(self, shard: ShardId, structure: TableDefinition) -> MergedTable:
        """Give the shard another structure, by a statement that a human has left out on the target."""
        assert self.after is not None
        return self._to({**self.shards, shard: self._behind(shard, structure, "")}, self.after, self.rules)

    def renamed(self, names: Mapping[ShardId, ShardId]) -> MergedTable:
        """Rename shards, each from its old id to its new one."""
        return replace(self, shards={names.get(one, one): state for one, state in self.shards.items()})

    def noted(self, source: str) -> MergedTable:
        """Record that the source writes by the columns of this version from now on."""
        if source not in self.sources or self.after is None:
            return self
        columns = MergedColumns(self.version, self.after, self.rules, frozenset(self.leaving))
        return replace(self, seen={**self.seen, source: columns})

    def begun(self, source: str, change: MergedChange) -> MergedTable:
        """Make the source the runner of the change; no other source changes the target before it is done."""
        return replace(self, runner=Runner(source, change))

    def given_up(self, source: str) -> MergedTable:
        """Take back a change that the source has begun and run nothing of."""
        return replace(self, runner=None) if self.runner is not None and self.runner.source == source else self

    def take_out(self, source: str, begun: Form | None = None) -> MergedTable:
        """Take the source out of the task. `begun`: the intent of this target's change that it has open."""
        left = self
        if self.runner is not None and self.runner.source == source:
            left = replace(self, runner=replace(self.runner, source="", begun=begun) if begun is not None else None)
        for shard in [one for one in self.shards if one.source == source]:
            left = left.without(shard)
        return left

    def done(self, change: MergedChange) -> MergedTable:
        """Record that the target has the change."""
        shards = dict(self.shards)
        for shard in change.shards:
            request = shards[shard].request if shard in shards else None  # its source may have been taken out
            if request is not None:
                shards[shard] = self._behind(shard, request.after, request.id)
        for shard, state in shards.items():
            kept = state.dropped & names_of(change.after)
            shards[shard] = replace(state, dropped=kept)
        leaving = {name: since for name, since in self.leaving.items() if name not in change.dropped}
        return replace(self, leaving=leaving, runner=None)._to(shards, change.after, change.rules)

    def at_barrier(self, decision: MergedDecision, after: TableDefinition) -> MergedChange:
        """Return the change of a barrier; `after` is the target structure after the statement of all shards."""
        kept = {name: rule for name, rule in self.rules.items() if name in names_of(after)}
        return MergedChange(decision.barrier, after, kept, barrier=True)

    def evaluate(self, silent: Collection[str] = ()) -> MergedDecision:
        """Decide what may run now, and why everything else waits. `silent`: sources whose shards are not known yet."""
        if self.after is None or self.runner is not None:
            why = f"{self.runner.source or 'nobody'} changes the target" if self.runner is not None else ""
            return MergedDecision(
                waits={shard: why for shard, state in self.shards.items() if state.request is not None}
            )
        asked = {shard: state.request for shard, state in sorted(self.shards.items()) if state.request is not None}
        changes = self._settling()
        waits: dict[ShardId, str] = {}
        for shard, request in asked.items():
            if request.barrier:
                continue
            found = self._admitted(shard, request)
            if isinstance(found, MergedChange):
                changes.append(found)
            else:
                waits[shard] = found
        if self.leaving and not silent and all(self._has_noted(source) for source in self.sources):
            gone = tuple(sorted(self.leaving))
            changes.append(MergedChange((), _without_columns(self.after, gone), _left(self.rules, gone), dropped=gone))
        at_barrier = tuple(shard for shard, request in asked.items() if request.barrier)
        why = self._barred(at_barrier, silent)
        if at_barrier and not why:
            return MergedDecision(tuple(changes), waits, at_barrier)
        waits |= dict.fromkeys(at_barrier, why)
        return MergedDecision(tuple(changes), waits)

    def _settling(self) -> list[MergedChange]:
        """Return the change that the join needs without a request: a shard came or went, or all have a column."""
        assert self.after is not None
        try:
            after, rules = self._target(self.shards)
        except IncompatibleError:
            return []
        changed = (_columns(after), after.keys, rules) != (_columns(self.after), self.after.keys, dict(self.rules))
        return [MergedChange((), after, rules)] if changed else []

    def _has_noted(self, source: str) -> bool:
        return source in self.seen and self.seen[source].version >= max(self.leaving.values())

    def _barred(self, at_barrier: tuple[ShardId, ...], silent: Collection[str]) -> str:
        """Return why the requests at the barrier can't run yet; empty if they can."""
        if silent:
            return f"{', '.join(sorted(silent))}: not started, so nobody knows its tables"
        if missing := sorted(self.shards.keys() - set(at_barrier)):
            more = f" and {len(missing) - 10} more" if len(missing) > 10 else ""
            return f"not met by {', '.join(map(str, missing[:10]))}{more}"
        requests = [one for shard in at_barrier if (one := self.shards[shard].request) is not None]
        for shard, request in zip(at_barrier, requests, strict=True):
            if not same(request.ddls, requests[0].ddls):
                first = "; ".join(requests[0].ddls)
                return f"{shard} has met {'; '.join(request.ddls)}, and {at_barrier[0]} {first}"
        return f"columns are dropped first: {', '.join(sorted(self.leaving))}" if self.leaving else ""

    def _admitted(self, shard: ShardId, request: StructureRequest) -> MergedChange | str:
        """Return the change by which the request comes into force, or the reason why it can't."""
        state = self.shards[shard]
        assert self.after is not None
        had, has = names_of(state.structure), names_of(request.after)
        for name in sorted(has - had):
            column, there = request.after.column(name), self.after.column(name)
            assert column is not None
            if name in self.leaving:
                return f"column {name} is dropped first"
            if there is None or request.forced:
                continue
            if name in state.dropped:
                owners = sorted(str(one) for one, other in self.shards.items() if name in names_of(other.structure))
                return (
                    f"rows of this shard may have other values in column {name} of the target, for the shard has"
                    f" dropped it, or lacked it from the beginning; the target keeps it for {', '.join(owners[:10])}"
                )
            mine, rule = fill_of(column), fill_of(there)
            if mine is None or rule is None or mine.value != rule.value:
                theirs = rule.text if rule is not None else "no constant"
                own = mine.text if mine is not None else "no constant"
                return (
                    f"rows of this shard have {theirs} in column {name} of the target, and {own} is what the statement"
                    " has filled in upstream"
                )
        try:
            after, rules = self._target({**self.shards, shard: self._behind(shard, request.after, request.id)})
        except IncompatibleError as error:
            return str(error)
        return MergedChange((shard,), after, rules)

    def _behind(self, shard: ShardId, structure: TableDefinition, done: str) -> MergedShard:
        state = self.shards[shard]
        gone = (names_of(state.structure) - names_of(structure)) | (state.dropped - names_of(structure))
        return MergedShard(structure, gone, None, done)

    def _target(self, shards: Mapping[ShardId, MergedShard]) -> tuple[TableDefinition, dict[str, str]]:
        """Return the target structure for these shards, and the rules. Raises IncompatibleError."""
        tables = _distinct(shards)
        base = self.after or tables[0]
        rules: dict[str, str] = {}
        columns: list[ColumnDefinition] = []
        order = [column.name for column in base.columns]
        order += [column.name for table in tables for column in table.columns]
        for name in dict.fromkeys(one.lower() for one in order):
            there = base.column(name)
            having = [column for table in tables if (column := table.column(name)) is not None]
            rule = None
            if not having and there is not None and fill_of(there) is None:
                columns.append(there)  # rows without it get what the target makes of its default
                continue
            if len(having) < len(tables):
                rule = self.rules.get(name) or _rule(there or having[0], tables)
                rules[name] = rule
            columns.append(joined_column(having or [there], rule, there) if there else joined_column(having, rule))
        keys = joined_keys(tables)
        kept = [key for key in base.keys if key.name.lower() not in _plain_names(base)]
        return replace(base, columns=tuple(columns), keys=(*kept, *(keys[name] for name in sorted(keys)))), rules

    def _to(
        self, shards: Mapping[ShardId, MergedShard], after: TableDefinition, rules: Mapping[str, str]
    ) -> MergedTable:
        """Return the record with this target structure; the leaving columns and the version follow from it."""
        had = {name for state in shards.values() for name in names_of(state.structure)}
        gone = names_of(after) - had
        leaving = {name: self.leaving.get(name, self.version + 1) for name in gone}
        same_columns = self.after is not None and _columns(after) == _columns(self.after)
        moved = not (same_columns and dict(rules) == dict(self.rules) and leaving == dict(self.leaving))
        version = self.version + 1 if moved else self.version
        return replace(self, shards=shards, after=after, rules=rules, leaving=leaving, version=version)


def _distinct(shards: Mapping[ShardId, MergedShard]) -> list[TableDefinition]:
    """Return the structures of the shards in their order, each object once: thousands of shards have few of them."""
    return list({id(state.structure): state.structure for _, state in sorted(shards.items())}.values())


def _rule(column: ColumnDefinition, tables: Collection[TableDefinition]) -> str:
    """Return the rule of a column that a shard lacks from now on. Raises IncompatibleError where it has none."""
    for table in tables:
        for key in table.keys:
            if key.kind.unique and column.name.lower() in key.columns:
                raise IncompatibleError(f"column {column.name} is part of {key.name}, and not every shard has it")
    fill = fill_of(column)
    if fill is None:
        raise IncompatibleError(f"column {column.name} has no constant value for rows of shards without it")
    return fill.text


def _plain_names(table: TableDefinition) -> frozenset[str]:
    return frozenset(key.name.lower() for key in table.keys if key.kind.value == "KEY")


def _columns(table: TableDefinition) -> dict[str, tuple[object, ...]]:
    return {one.name.lower(): (one.type, bool(one.nullable), one.default) for one in table.columns}


def _form(table: TableDefinition | None) -> tuple[object, ...]:
    return () if table is None else (_columns(table), {key.name.lower(): key for key in table.keys})


def _left(rules: Mapping[str, str], gone: Collection[str]) -> dict[str, str]:
    return {name: rule for name, rule in rules.items() if name not in gone}


def _without_columns(table: TableDefinition, gone: Collection[str]) -> TableDefinition:
    return replace(table, columns=tuple(column for column in table.columns if column.name.lower() not in gone))
