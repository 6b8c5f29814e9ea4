"""Searches the log, before a re-sync, for rows that moved between shards while a sharding DDL waited.

When the re-sync applies the changes that waited, the target has changes of unblocked tables that come later in the log
(`changed_keys`). The log shows which keys both have changed. It is kept from where the first table's changes began to
wait, and is read once more. First the hashes of all keys show whether two tables have changed one key. If no row has
moved, there is no such key, and the search is over. Otherwise the changes of those keys show which ones the re-sync
must leave out. With several DDL in flight the hashes are kept, if they are not too many, and the next search continues
where this one ended.

| what can't be read, or has a key that can't be compared | exactly once | where a row would be overwritten unseen |
|---|---|---|
| changes of a table | logged, and not searched: the target refuses a second row of a key | SHARD-032 |
| the same, with `binlog skip` for the position that SHARD-032 names | | logged, and not searched |

Keys are compared by their texts. In the modes of the last column, changes are looked for, too, that may remove a row
which has moved to a key of another text that the target takes for the same (`sync.sharding.equal_keys`): SHARD-032.

If the process dies, the next one finds the same again. Only a batch that leaves changes out has a record of it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from unshard.errors import ShardError, UnshardError, Where
from unshard.log import logger
from unshard.model.position import Location, Position
from unshard.model.table import Column, Table, TableName
from unshard.shard.group import Resync, ShardingGroup
from unshard.sync.batch.plan import BatchPlan, TablePlan, TargetPlan
from unshard.sync.changes.map import mapped
from unshard.sync.planning.planner import Planner
from unshard.sync.planning.table_plans import TableRules
from unshard.sync.sharding.changed_keys import ChangedKeys, changed_keys, own_key
from unshard.sync.sharding.equal_keys import compared_otherwise
from unshard.sync.sharding.left_out_moves import LeftOutChanges, SharedChange, UnsureChange, decided, unsure, without
from unshard.sync.sharding.move_outcomes import KeyChange, When
from unshard.sync.sharding.shared_keys import SharedKeys
from unshard.sync.source_log.prepared_xa import rows_behind
from unshard.sync.source_log.reader import Log, TransactionRows, next_work
from unshard.target.operators import Operator, OperatorKind

STRETCH_BYTES = 16 << 20
"""Bytes of the log that are decoded at a time."""
MOST_UNSURE = 200_000
"""The most changes of keys that may be equal which are compared; with more it can't be told whether a row has moved."""
LOOK_SECONDS = 1.0
"""Seconds that one call of `looked` reads the log, so that a stop is seen soon."""


@dataclass(slots=True)
class _Look:
    """One search through a group's log up to `at`.

    `strict`: the target replaces a row of an equal key, so a moved row that the search misses would be lost unnoticed.
    A table that can't be searched then stops the source, unless one of `operators` is for the position. `sure`: equal
    keys mean the same row. `there`: the target's columns of the key, if keys are compared as the target does. `aside`:
    the tables that are not searched.
    """

    group: ShardingGroup
    resync: Resync
    at: Location
    log: Log
    target: TargetPlan
    strict: bool
    operators: Sequence[Operator]
    sure: bool = True
    there: Sequence[Column] = ()
    aside: set[TableName] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class _Learnt:
    """The result of a search, from which the next one continues: the keys that a group changed from `since` to `upto`.

    `shared` has the hashes of the keys; `numbers` the number of each table in it.
    """

    group: TableName
    key: tuple[str, ...]
    since: Position
    upto: Position
    numbers: dict[TableName, int] = field(default_factory=dict)
    shared: SharedKeys = field(default_factory=SharedKeys)

    def serves(self, look: _Look) -> bool:
        """Return whether a look may go on from `upto`: the key is the same, and no table was renamed or dropped."""
        since = look.resync.since.position
        gone = look.group.gone[-1].at.position if look.group.gone else since
        same = (self.group, self.key) == (look.group.target, look.target.key)
        return same and self.since <= since <= self.upto <= look.at.position and gone <= self.upto


class _FewerColumns(Exception):
    """Raised for a table that has only these columns of the target's key, so all tables must be compared by them."""

    def __init__(self, key: tuple[str, ...]) -> None:
        self.key = key


@dataclass(slots=True)
class MovedRows:
    """The search for the moved rows of one re-sync, that of a group after its n-th DDL. Used by the sync unit's thread.

    `structure` returns the current structure of an upstream table.
    """

    source: str
    planner: Planner
    rules: TableRules
    structure: Callable[[TableName], Table | None]
    read: int = 0
    """Bytes of the log that were looked through, for measurements."""
    _left_out: LeftOutChanges = field(default_factory=dict)
    _of: tuple[TableName, int, Position, bool, Sequence[Operator]] | None = None
    _look: Iterator[None] = field(default_factory=lambda: iter(()))
    _learnt: _Learnt | None = None

    def looked(
        self, group: ShardingGroup, at: Location, log: Log, operators: Sequence[Operator], *, strict: bool
    ) -> bool:
        """Go on for a while with the look through the group's log up to `at`. Return whether it is done.

        `strict` is for a source in safe mode or with at-least-once delivery. Raises ShardError SHARD-032 there.
        """
        now = (group.target, group.resolved, at.position, strict, operators if strict else ())
        if self._of != now:
            self._of, self._left_out = now, {}
            self._look = self._through(group, at, log, operators, strict=strict)
        ended = time.monotonic() + LOOK_SECONDS
        return all(time.monotonic() < ended for _ in self._look)

    def without(self, plan: BatchPlan) -> BatchPlan:
        """Return the batch of the re-sync without the changes that the target must not get any more.

        Raises ShardError SHARD-031 for a change that can't be left out, because two shards have the row.
        """
        return without(plan, self._left_out)

    def _through(
        self, group: ShardingGroup, at: Location, log: Log, operators: Sequence[Operator], *, strict: bool
    ) -> Iterator[None]:
        """Look through the log, one stretch at each step, and record the outcome of each change of a moved row."""
        resync = group.resync(at)
        if resync is None:
            return
        target = self._target(group, resync.windows)
        look = _Look(group, resync, at, log, target, strict, operators)
        if target.keyless or not self._several(look):
            return
        while True:
            try:
                yield from self._compared(look)
                yield from self._compared_as_there(look)
                return
            except _FewerColumns as fewer:
                look.target, look.sure = replace(look.target, key=fewer.key), False

    def _several(self, look: _Look) -> bool:
        """Return whether more than one table of the target has changes in the log to look through."""
        if len(look.group.tables) > 1:
            return True
        stretches = self._stretches(look, look.resync.since)
        return len({name for rows in stretches for name in self._members(look, rows)}) > 1

    def _compared(self, look: _Look) -> Iterator[None]:
        """Collect the hashes of all changed keys, then decide on the changes of keys that several tables share."""
        group, since = look.group, look.resync.since
        learnt, self._learnt = self._learnt, None
        if learnt is not None and learnt.serves(look):
            begin = Location(learnt.upto)
            learnt.shared.more()
        else:
            begin, learnt = since, _Learnt(group.target, look.target.key, since.position, since.position)
            learnt.shared.begin()
        shared, numbers = learnt.shared, learnt.numbers
        while True:
            for rows in self._stretches(look, begin):
                for keys in self._keys(look, rows):
                    shard = group.known_as(keys.table, rows.begin)
                    shared.add(keys.coarse, numbers.setdefault(shard, len(numbers)))
                yield
            begin = since
            if not shared.begin():
                break
        if shared.whole and len(group.sequence) and not look.aside:
            self._learnt = replace(learnt, upto=look.at.position)
        if not len(shared.found):
            return
        seen: dict[bytes, list[SharedChange]] = {}
        orders = 0
        for rows in self._stretches(look, since):
            for _, key, one in self._of_shared(look, rows, shared.found):
                change = replace(one.change, order=orders)
                seen.setdefault(key, []).append(replace(one, change=change))
                orders += 1
            yield
        if not look.sure:
            self._untold_keys(look, seen.values())
        else:
            self._left_out = decided(seen.values())

    def _compared_as_there(self, look: _Look) -> Iterator[None]:
        """Look for changes that may remove a row of another text's key, where the target replaces rows unseen.

        Raises ShardError SHARD-032.
        """
        there = self.rules.targets.get(look.group.target)
        columns = [there.column(name) for name in look.target.key] if there is not None else []
        if not look.strict or not compared_otherwise(columns):
            return
        look = replace(look, there=columns)
        shared, numbers = SharedKeys(), dict[TableName, int]()
        while shared.begin():
            for rows in self._stretches(look, look.resync.since):
                for keys in self._keys(look, rows):
                    shard = look.group.known_as(keys.table, rows.begin)
                    shared.add(keys.coarse, numbers.setdefault(shard, len(numbers)))
                yield
        seen: dict[int, list[tuple[bytes, SharedChange]]] = {}
        orders = 0
        for rows in self._stretches(look, look.resync.since) if len(shared.found) else ():
            for number, key, one in self._of_shared(look, rows, shared.found):
                change = replace(one.change, order=orders)
                orders += 1
                if orders <= MOST_UNSURE:
                    seen.setdefault(number, []).append((key, replace(one, change=change)))
                elif change.when is When.NOW:
                    cause = f"more than {MOST_UNSURE} changes are of keys that the target may take for equal"
                    self._untold(look, one.event[0], Position(*one.event[1:]), cause)
                    return
            yield
        found: dict[TableName, list[UnsureChange]] = {}
        for doubt in (doubt for changes in seen.values() for doubt in unsure(changes)):
            if doubt.change.number not in self._left_out.get(doubt.change.event, {}):
                found.setdefault(doubt.change.event[0], []).append(doubt)
        for name, several in found.items():
            self._untold_texts(look, name, sorted(several, key=lambda one: one.change.change.order))

    def _untold_texts(self, look: _Look, name: TableName, several: Sequence[UnsureChange]) -> None:
        """Leave the table aside, if a place of these changes is told. Raises ShardError SHARD-032."""
        told = {one.position for one in look.operators if one.op is OperatorKind.SKIP}
        places = {Position(*one.change.event[1:]): one for one in reversed(several)}
        place = next((place for place in places if place in told), Position(*several[0].change.event[1:]))
        one = places[place]
        key, other = (text.decode(errors="replace")[:200].rstrip(",") for text in (one.key, one.other))
        cause = f"a change of the key {key}, where another shard has {other}: the target may take them for one key"
        self._untold(look, name, place, cause)

    def _untold_keys(self, look: _Look, seen: Iterable[list[SharedChange]]) -> None:
        """Leave a table aside where two tables have changed equal keys that may be of different rows."""
        for found in seen:
            if len({one.change.table for one in found}) > 1:
                table, file, offset = found[-1].event
                cause = "it has a key in common with another shard, while a DDL that waits changes what the key is"
                self._untold(look, table, Position(file, offset), cause)
                return

    def _untold(self, look: _Look, name: TableName, place: Position, cause: str) -> None:
        """Leave the table aside, with a warning. Raises ShardError SHARD-032 where that may lose a row unseen."""
        told = any(one.op is OperatorKind.SKIP and one.position == place for one in look.operators)
        if look.strict and not told:
            values = {"target": str(look.group.target), "position": str(place)}
            raise ShardError("SHARD-032", Where(self.source, str(name), str(place)), cause, values)
        look.aside.add(name)
        words = {"table": str(name), "position": str(place), "error": cause}
        logger("sync", source=self.source).warning("not looked through for rows that have moved", **words)

    def _stretches(self, look: _Look, begin: Location) -> Iterator[TransactionRows]:
        place = begin
        while place.position < look.at.position:
            work = next_work(look.log, place, look.at.position, STRETCH_BYTES, self.source)
            if work is None:
                return
            rows = rows_behind(work, look.log, look.resync.since.position, self.source)
            if rows is not None:
                self.read += rows.size
                yield rows
            place = work.end

    def _members(self, look: _Look, rows: TransactionRows) -> list[TableName]:
        """Return the tables of the target that have changes there, also those that nobody waits for."""
        route = self.rules.router.route
        known = (name for name in rows.log_range.tables if self.rules.takes(name) and route(name) == look.group.target)
        return sorted(known)

    def _of_shared(
        self, look: _Look, rows: TransactionRows, shared: np.ndarray
    ) -> list[tuple[int, bytes, SharedChange]]:
        """Return the changes of those keys in a stretch, in the order of the log, each with its key and the hash."""
        listed: list[tuple[int, int, bytes, SharedChange]] = []
        for keys in self._keys(look, rows):
            name, file = keys.table, keys.piece.file
            shard = look.group.known_as(name, rows.begin)
            for n in np.flatnonzero(np.isin(keys.coarse, shared)):
                event = int(keys.event[n])
                place = rows.begin if rows.xid else Position(file, event)
                when = _when(look.group, name, place, look.at)
                change = KeyChange(0, shard, bool(keys.inserts[n]), bool(keys.lives[n]), when)
                one = SharedChange(change, (name, file, event), int(keys.number[n]), bool(keys.half[n]))
                listed.append((int(keys.seq[n]), int(keys.coarse[n]), keys.key[int(n)].as_py(), one))
        listed.sort(key=lambda found: found[0])
        return [found[1:] for found in listed]

    def _keys(self, look: _Look, rows: TransactionRows) -> list[ChangedKeys]:
        """Return the keys that a stretch changes. Tables that can't be read by their structure then are left aside."""
        while names := [name for name in self._members(look, rows) if name not in look.aside]:
            try:
                return self._read(look, rows, names)  # all at once: numbers of changes are of what is read together
            except UnshardError as error:
                failures = {name: why for name in names if (why := self._failure(look, rows, name)) is not None}
                for name, why in (failures or dict.fromkeys(names, error)).items():
                    self._untold(look, name, _place_of(why, rows), str(why))
        return []

    def _failure(self, look: _Look, rows: TransactionRows, name: TableName) -> UnshardError | None:
        """Return why the changes of that table can't be read by themselves; None if they can."""
        try:
            self._read(look, rows, [name])
        except UnshardError as error:
            return error
        return None

    def _read(self, look: _Look, rows: TransactionRows, names: Sequence[TableName]) -> list[ChangedKeys]:
        key, tables, own = look.target.key, [], {}
        for name in names:
            if (table := self._plan(look, name, rows.end.position)) is None:
                continue
            own[name] = own_key(mapped(table).table, table.table.identity, key)
            if len(own[name].names) < len(key):
                raise _FewerColumns(tuple(column for column in key if column in own[name].names.values()))
            tables.append(table)
        look.sure &= all(one.sure for one in own.values())
        return changed_keys(self.planner.plan(rows, tuple(tables), 0, 0), own, look.there) if tables else []

    def _plan(self, look: _Look, name: TableName, end: Position) -> TablePlan | None:
        """Return the plan to read the table's changes before `end`; None where the table's copy has them.

        Raises ShardError SHARD-020 where their structure is no longer known.
        """
        told, form = look.group.structure_before(name, end)
        if told and form is None:
            return None
        upstream = Table.from_dict(form) if form is not None else self.structure(name)
        if upstream is None:
            raise ShardError("SHARD-020", Where(self.source, str(name), str(end)))
        return self.rules.reading(replace(upstream, name=name), look.target)

    def _target(self, group: ShardingGroup, windows: Mapping[TableName, tuple[Location, Location]]) -> TargetPlan:
        """Return the target table with the key by which it finds rows."""
        name, (first, _) = min(windows.items())
        first = replace(first, position=Position(first.position.file, first.position.offset + 1))
        _, form = group.structure_before(name, first.position)
        upstream = Table.from_dict(form) if form else self.structure(name)
        assert upstream is not None, "a table that is read again has a structure"
        (plan,) = self.rules.with_structures({name: replace(upstream, name=name)}).plans([name], first.position)
        return replace(plan.target, id=0, ordered=True, ties=())


def _place_of(error: UnshardError, rows: TransactionRows) -> Position:
    file, _, offset = (error.where.position or "").rpartition(":")
    return Position(file, int(offset)) if file and offset.isdigit() else rows.begin


def _when(group: ShardingGroup, name: TableName, place: Position, at: Location) -> When:
    """Return when the target gets a change that lies at `place` in the table of that name."""
    state = group.tables.get(name)
    if state is None:
        return When.AHEAD
    if state.since is None:
        held = state.held_from
        return When.AHEAD if held is None or place < held.position else When.LATER
    if place < state.since.position:
        return When.AHEAD
    return When.NOW if place < state.until(at).position else When.LATER
