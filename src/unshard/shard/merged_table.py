"""MergedTable: one target table of `shard-mode: optimistic`, and the decision about its next change. Pure.

`evaluate` is called after every event: a statement, a shard that is new, dropped or stopped, a source that has noted a
version. It depends on the record alone (`shard.merged_record`), so the order of events does not matter where their
outcome is the same.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from unshard.errors import ShardError, Where
from unshard.model.table import TableName
from unshard.schema.definition import TableDefinition
from unshard.shard.forced import as_it_is, keys_left
from unshard.shard.join import IncompatibleError, fill_of, is_computed, joined_structure
from unshard.shard.merged_parts import (
    MergedChange,
    MergedDecision,
    OldRows,
    ShardId,
    StructureRequest,
    Wait,
    WaitKind,
    names_of,
)
from unshard.shard.merged_record import MergedRecord, columns_of, distinct
from unshard.shard.merged_step import converts_unlike, is_met_by
from unshard.shard.same_ddl import but_for_places, same_but_for_places
from unshard.shard.shard_structures import ShardStructures


@dataclass(frozen=True, slots=True)
class MergedTable(MergedRecord):
    """The record of one target table, with the decisions that follow from it."""

    def fits(self, shard: ShardId, structure: TableDefinition) -> str:
        """Return why a new shard of this structure does not fit the target, in words; "" if it does.

        Where the target is being changed, the shard has to fit what it was before and what it is to become.
        """
        if self.after is None:
            return ""
        found = self._misfit(shard, structure)
        if found or self.runner is None:
            return found
        change = self.runner.change
        return replace(self, after=change.after, rules=change.rules)._misfit(shard, structure)

    def _misfit(self, shard: ShardId, structure: TableDefinition) -> str:
        assert self.after is not None
        try:
            after, _ = self._target({**self.shards, shard: self._with_kept(structure)})
        except IncompatibleError as error:
            return str(error)
        added = sorted(names_of(after) - names_of(self.after))
        if added:
            return f"the target has no column {', '.join(added)}"
        return (
            ""
            if columns_of(after) == columns_of(self.after)
            else "columns of the target are narrower, or have no default"
        )

    def lacks(self, source: str) -> bool:
        """Return whether rows of this source's shards can't be written before the target's next change.

        This is so after a shard has come back.
        """
        settled = next(iter(self._settling()), None) if self.after is not None else None
        if self.after is None or settled is None:
            return False
        now, then = columns_of(self.after), columns_of(settled.after)
        for own in distinct({shard: state for shard, state in self.shards.items() if shard.source == source}):
            if any(now.get(name) != then.get(name) for name in names_of(own)):
                return True
            if (settled.rules.keys() - self.rules.keys()) - names_of(own):
                return True
        return False

    def force(self, shard: ShardId, *, skip: bool = False) -> MergedTable:
        """Force the shard's request: a human accepts that its old rows have other values in what it adds or converts.

        `skip`: a human leaves its statement out of the target, which takes the shard's rows as far as it can
        (`shard.forced`). Raises ShardError SHARD-050 where the shard waits for nothing that this would end.
        """
        state = self.shards.get(shard)
        request = state.request if state is not None else None
        if state is None or request is None or self.runs(shard) or not (skip or self._takes_values(shard, request)):
            raise _not_forced(shard, self.target)
        forced = replace(request, forced=True)
        if skip:
            forced = replace(self._fitted(shard, self._left_out(shard, forced)), barrier="")
        made = replace(self, shards={**self.shards, shard: replace(state, request=forced)})
        wait = made.evaluate().waits.get(shard)
        if not forced.barrier and wait is not None and wait.kind is not WaitKind.BUSY:
            raise _not_forced(shard, self.target)
        return made

    def may_leave_out(self, shard: ShardId) -> bool:
        """Return whether the shard's own statement, which waits until the target is free, may be left out before it.

        Not one for all shards, and not one that a human has decided about already.
        """
        state = self.shards.get(shard)
        request = state.request if state is not None else None
        if request is None or request.forced or self.runs(shard):
            return False
        return not self._is_at_barrier(request)

    def skipped(self, change: MergedChange, there: TableDefinition | None) -> tuple[MergedTable, MergedChange]:
        """Return the record and the change where a human leaves out the statement of a shard that may run now.

        Nothing is run for it. So the target keeps what the statement drops, and lacks what it adds or widens, unless a
        human has changed that: `there` is the table that the target really has, None where that is not known. What rows
        of the shard need is brought by the next change.
        """
        assert self.after is not None
        shards = dict(self.shards)
        for shard in change.shards:
            if shard in shards and (request := shards[shard].request) is not None:
                shards[shard] = replace(shards[shard], request=self._left_out(shard, request, there))
        columns = [as_it_is(column, self.after, there) for column in change.after.columns]
        keys = keys_left(self.after, change.after, there)
        after = replace(change.after, columns=tuple(column for column in columns if column is not None), keys=keys)
        lacking = names_of(change.after) - names_of(after)
        return replace(self, shards=shards), replace(change, after=after, rules=_left(change.rules, lacking))

    def _left_out(
        self, shard: ShardId, request: StructureRequest, there: TableDefinition | None = None
    ) -> StructureRequest:
        """Return the request of a statement that a human leaves out: it drops no column and changes no plain key.

        `there` is as in `skipped`.
        """
        state = self.shards[shard]
        known = names_of(there or self.after) if self.after is not None else frozenset()
        left = (names_of(state.structure) - request.names) & known
        after = replace(request.after, keys=keys_left(state.structure, request.after, there))
        return replace(request, after=after, kept=request.kept | left)

    def _takes_values(self, shard: ShardId, request: StructureRequest) -> bool:
        """Return whether the request may be in force where a human accepts other values in old rows."""
        if not request.barrier or request.forced or self.after is None:
            return not request.barrier
        known = ShardStructures(self.shards, self.absent, self.after, self.rules)
        return bool(self._other_values(shard, request, known))

    def at_barrier(self, decision: MergedDecision, after: TableDefinition | None) -> MergedChange:
        """Return the change of a barrier; `after` is the target structure after the statement of all shards.

        Where that is not computed it is None: every column and key that is another one in the shards after the
        statement is then as it is in them. Raises IncompatibleError where the shards have no common structure.
        """
        after = after or self._as_the_shards(decision.barrier)
        kept = {name: rule for name, rule in self.rules.items() if name in names_of(after)}
        old_rows = OldRows.OF_ANOTHER_SESSION if len(self.shards) == 1 else OldRows.OF_ONE_RUN
        return MergedChange(decision.barrier, after, kept, barrier=True, old_rows=old_rows)

    def _as_the_shards(self, at_barrier: Iterable[ShardId]) -> TableDefinition:
        assert self.after is not None
        states = (self.shards[shard] for shard in at_barrier)
        pairs = [(state.structure, state.request.after) for state in states if state.request is not None]
        joined, _ = joined_structure(list({id(after): after for _, after in pairs}.values()), None, {})
        changed: set[str] = set()
        for before, after in {(id(one), id(other)): (one, other) for one, other in pairs}.values():
            had, has = columns_of(before), columns_of(after)
            changed |= {name for name in had.keys() | has.keys() if had.get(name) != has.get(name)}
        columns = [column for column in self.after.columns if column.name.lower() not in changed]
        columns += [column for column in joined.columns if column.name.lower() in changed]
        return replace(joined, columns=tuple(columns))

    def evaluate(self) -> MergedDecision:
        """Decide what may run now, and why everything else waits."""
        asked = {shard: state.request for shard, state in sorted(self.shards.items()) if state.request is not None}
        if self.after is None or self.runner is not None:
            why = f"{self.runner.source or 'nobody'} changes the target" if self.runner is not None else ""
            return MergedDecision(waits=dict.fromkeys(asked, Wait(WaitKind.BUSY, why)))
        known = ShardStructures(self.shards, self.absent, self.after, self.rules)
        at_barrier = tuple(shard for shard, request in asked.items() if self._is_at_barrier(request))
        changes = self._settling()
        waits: dict[ShardId, Wait] = {}
        barred = frozenset(at_barrier)  # the tuple may hold thousands
        for shard, request in asked.items():
            if shard in barred:
                continue
            found = self._admitted(shard, request, known)
            if isinstance(found, MergedChange):
                changes.append(found)
            else:
                waits[shard] = found
        if self._is_stuck(asked, barred, waits):
            at_barrier, barred, waits = tuple(asked), frozenset(asked), {}
        if self.leaving and not self.awaited and all(self._has_noted(source) for source in self.sources):
            gone = tuple(sorted(self.leaving))
            changes.append(MergedChange((), _without_columns(self.after, gone), _left(self.rules, gone), dropped=gone))
        alone = self._alone(at_barrier, known)
        others = tuple(sorted(barred.difference(alone)))
        for shards, wait in ((alone, self._unready() if alone else None), (others, self._barred(others))):
            waits |= dict.fromkeys(shards, wait) if wait is not None else self._valued(shards, known)
        ready = alone or others
        return MergedDecision(tuple(changes), waits, ready if ready and ready[0] not in waits else ())

    def _alone(self, at_barrier: tuple[ShardId, ...], known: ShardStructures) -> tuple[ShardId, ...]:
        """Return the shards of one statement at the barrier that no other shard needs to meet; empty if none is such.

        All others have what it leads to (`merged_step.is_met_by`).
        """
        met: dict[tuple[str, ...], list[ShardId]] = {}
        for shard in at_barrier:
            met.setdefault(but_for_places(self._request(shard).ddls), []).append(shard)
        for shards in met.values():
            others = known.without(shards)
            if others and not any(self.shards[shard].fitted for shard in shards):
                asked = [(self.shards[shard].structure, self._request(shard).after) for shard in shards]
                changes = {(id(before), id(after)): (before, after) for before, after in asked}.values()
                if all(is_met_by(one, *change) for change in changes for one in others):
                    return tuple(shards)
        return ()

    def _request(self, shard: ShardId) -> StructureRequest:
        request = self.shards[shard].request
        assert request is not None
        return request

    def _is_at_barrier(self, request: StructureRequest) -> bool:
        """Return whether the request's own statement is run, once all shards have met it.

        So is every statement of a target's only shard, as long as it is the only one.
        """
        return bool(request.barrier) or (self.is_of_one_shard and not request.forced)

    def _is_stuck(
        self, asked: Mapping[ShardId, StructureRequest], barred: frozenset[ShardId], waits: Mapping[ShardId, Wait]
    ) -> bool:
        """Return whether all shards have met one statement that no shard can have alone, for lack of a join.

        It is run as that of a barrier then.
        """
        stuck = [shard for shard, wait in waits.items() if wait.kind is WaitKind.STRUCTURES]
        if not stuck or len(stuck) + len(barred) < len(self.shards):
            return False
        first = next(iter(asked.values())).ddls
        return bool(first) and all(same_but_for_places(request.ddls, first) for request in asked.values())

    def _settling(self) -> list[MergedChange]:
        """Return the change that the join needs without a request: a shard came or went, or all have a column."""
        assert self.after is not None
        try:
            after, rules = self._target(self.shards)
        except IncompatibleError:
            return []
        changed = (columns_of(after), after.keys, rules) != (columns_of(self.after), self.after.keys, dict(self.rules))
        return [MergedChange((), after, rules)] if changed else []

    def _has_noted(self, source: str) -> bool:
        return source in self.seen and self.seen[source].version >= max(self.leaving.values())

    def _barred(self, at_barrier: tuple[ShardId, ...]) -> Wait | None:
        """Return why the requests at the barrier can't run yet; None if they can."""
        if not at_barrier:
            return None
        if self.awaited:
            return self._unready()
        requests = list(map(self._request, at_barrier))
        others = self.shards.keys() - set(at_barrier)
        if missing := sorted(one for one in others if not self.shards[one].has_copied(requests[0].ddls)):
            cannot = [why for shard in missing if (why := self._cannot(shard, at_barrier[0], requests[0]))]
            if cannot:
                return Wait(WaitKind.CANNOT, _named(cannot, "; "))
            return Wait(WaitKind.SHARDS, f"not met by {_named(list(map(str, missing)), ', ')}")
        for shard, request in zip(at_barrier, requests, strict=True):
            if not same_but_for_places(request.ddls, requests[0].ddls):
                first = "; ".join(requests[0].ddls)
                why = f"{shard} has met {'; '.join(request.ddls)}, and {at_barrier[0]} {first}"
                return Wait(WaitKind.STATEMENTS, why)
        return self._unready()

    def _valued(self, at_barrier: tuple[ShardId, ...], known: ShardStructures) -> dict[ShardId, Wait]:
        """Return the waits of a barrier that all have met, where old rows would have other values than upstream."""
        found = {one: why for one in at_barrier if (why := self._other_values(one, self._request(one), known))}
        if not found:
            return {}
        others = Wait(WaitKind.BUSY, f"values in old rows of {_named(list(map(str, found)), ', ')} are decided first")
        return {one: Wait(WaitKind.VALUES, found[one]) if one in found else others for one in at_barrier}

    def _unready(self) -> Wait | None:
        """Return why no statement of a barrier can run now, whichever shards have met it; None if one can."""
        if self.awaited:
            why = f"{', '.join(self.awaited)}: not started, or at its start, so nobody knows all of its tables"
            return Wait(WaitKind.UNKNOWN, why)
        if self.leaving:
            return Wait(WaitKind.BUSY, f"columns are dropped first: {', '.join(sorted(self.leaving))}")
        return None

    def _cannot(self, shard: ShardId, other: ShardId, request: StructureRequest) -> str:
        """Return why a shard can't meet the statement that another one has met; "" if nothing tells that it can't."""
        state = self.shards[shard]
        own = state.request.names if state.request is not None else state.names
        before, after = self.shards[other].names, request.names
        lacks, has = sorted(before - after - own), sorted((after - before) & own)
        parts = [f"has no column {', '.join(lacks)}"] if lacks else []
        parts += [f"has column {', '.join(has)} already"] if has else []
        return f"{shard} can't meet it: it {' and '.join(parts)}" if parts else ""

    def _admitted(self, shard: ShardId, request: StructureRequest, known: ShardStructures) -> MergedChange | Wait:
        """Return the change by which the request comes into force, or the reason why it can't."""
        state = self.shards[shard]
        assert self.after is not None
        if leaving := sorted((request.names - state.names) & self.leaving.keys()):
            return Wait(WaitKind.BUSY, f"column {leaving[0]} is dropped first")
        try:
            after, rules = known.joined_with(shard, request.after)
        except IncompatibleError as error:
            return Wait(WaitKind.STRUCTURES, str(error))
        if other := self._other_values(shard, request, known):
            return Wait(WaitKind.VALUES, other)
        return MergedChange((shard,), after, rules)

    def _other_values(self, shard: ShardId, request: StructureRequest, known: ShardStructures) -> str:
        """Return why old rows of the shard may have other values than upstream in a column of the target; else "".

        What a statement at a barrier computes is no reason, for its source brings that (`MergedShard.old_rows`).
        """
        state = self.shards[shard]
        assert self.after is not None
        for name in sorted(request.names - state.names) if not request.forced else ():
            column, there = request.after.column(name), self.after.column(name)
            assert column is not None
            if there is None or (request.barrier and is_computed(column)):
                continue
            if name in state.dropped:
                owners = known.owners(name) or ["a statement that was left out"]
                return (
                    f"rows of this shard may have other values in column {name} of the target, for the shard has"
                    f" dropped it, or lacked it from the beginning; the target keeps it for {_named(owners, ', ')}"
                )
            mine, rule = fill_of(column), fill_of(there)
            same = fill_of(replace(there, default=column.default, nullable=column.nullable))  # in the target's type
            if mine is None or rule is None or same is None or same.value != rule.value:
                theirs = rule.text if rule is not None else "no constant"
                own = mine.text if mine is not None else "no constant"
                return (
                    f"rows of this shard have {theirs} in column {name} of the target, and {own} is what the statement"
                    " has filled in upstream"
                )
        converts = request.barrier and not request.forced  # a statement that converts a column has a barrier
        wider = converts_unlike(state.structure, request.after, self.after) if converts else None
        if wider is not None:
            return f"column {wider.name} is wider in the target, which would make other values of this shard's old rows"
        return ""


def _not_forced(shard: ShardId, target: TableName) -> ShardError:
    return ShardError("SHARD-050", Where(shard.source, str(shard.table)), values={"target": str(target)})


def _named(names: Sequence[str], between: str) -> str:
    more = f" and {len(names) - 10} more" if len(names) > 10 else ""
    return between.join(names[:10]) + more


def _left(rules: Mapping[str, str], gone: Collection[str]) -> dict[str, str]:
    return {name: rule for name, rule in rules.items() if name not in gone}


def _without_columns(table: TableDefinition, gone: Collection[str]) -> TableDefinition:
    return replace(table, columns=tuple(column for column in table.columns if column.name.lower() not in gone))
