"""Rows that have moved between shards while a sharding DDL waited: found in the log before the re-sync begins.

The re-sync applies changes of held tables behind those of tables that were free (`shard.moved_key`). Which keys both
have changed stands in the log, which is kept from where the first of them was held: it is read once more. First the
hashes of all keys tell whether two tables have changed one; none does where no row has moved, and that is all. Else
the changes of those keys tell what is to be left out of the re-sync.

Row images that lack columns are not looked through: safe mode and `at-least-once` refuse them, and where each change
is written once a row that comes to another one's key is refused by the target.

If it dies: nothing is on record but with a batch that leaves changes out; the next process finds the same again.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from unshard.errors import ShardError, UnshardError, Where
from unshard.kernels.literals import hash_of
from unshard.log import logger
from unshard.model.change import Op
from unshard.model.position import Location, Position
from unshard.model.table import Table, TableName
from unshard.shard.group import ShardingGroup, TableState
from unshard.shard.moved_key import Fate, KeyChange, When, fates
from unshard.sync.batch import BatchPlan, Range, TablePlan, TargetPlan, seqs_of
from unshard.sync.decode import decode
from unshard.sync.encode import keys_of
from unshard.sync.filter import filter_rows
from unshard.sync.follow import Log, Rows, next_work
from unshard.sync.leave_out import without_moved
from unshard.sync.left_out import LeftOut, runs, within
from unshard.sync.map import map_columns
from unshard.sync.plan import Planner
from unshard.sync.prepared import rows_behind
from unshard.sync.shared_keys import SharedKeys
from unshard.sync.tables import TableRules

STRETCH_BYTES = 16 << 20
"""What is decoded at a time."""
LOOK_SECONDS = 1.0
"""How long one look at the log takes, so that a stop is seen soon."""

Event = tuple[TableName, str, int]
"""A table, and the file and offset of an event that holds rows of it."""


@dataclass(frozen=True, slots=True)
class _Keys:
    """The changes of keys that one table has in one range of the log; an UPDATE of a key is two, each a half.

    `number` tells which of its event's changes it is, the offset of which is `event`.
    """

    table: TableName
    piece: Range
    key: pa.Array
    lives: np.ndarray
    half: np.ndarray
    seq: np.ndarray
    event: np.ndarray
    number: np.ndarray


@dataclass(frozen=True, slots=True)
class _Seen:
    """One of them, of a key that two tables have changed."""

    change: KeyChange
    event: Event
    number: int
    half: bool


@dataclass(slots=True)
class MovedRows:
    """Used by the sync unit's thread. What it finds is for one re-sync: that of a group behind its n-th DDL."""

    source: str
    planner: Planner
    rules: TableRules
    structure: Callable[[TableName], Table | None]
    _fates: dict[Event, dict[int, Fate]] = field(default_factory=dict)
    _of: tuple[TableName, int, Position] | None = None
    _look: Iterator[None] = field(default_factory=lambda: iter(()))

    def looked(self, group: ShardingGroup, at: Location, log: Log) -> bool:
        """Whether the group's log up to `at` is looked through; goes on with that for a while."""
        now = (group.target, group.resolved, at.position)
        if self._of != now:
            self._of, self._fates, self._look = now, {}, self._through(group, at, log)
        ended = time.monotonic() + LOOK_SECONDS
        return all(time.monotonic() < ended for _ in self._look)

    def without(self, plan: BatchPlan) -> BatchPlan:
        """The batch of the re-sync without the changes that are not for the target any more.

        Raises ShardError SHARD-031 for one that can't be left out: two shards have the row.
        """
        names = {table.table.name for table in plan.tables}
        files = {piece.file for piece in plan.ranges}
        if not any(table in names and file in files for table, file, _ in self._fates):
            return plan
        meant = [seq for piece in plan.ranges for seq in self._meant(plan, piece)]
        return without_moved(plan, runs(meant))

    def _meant(self, plan: BatchPlan, piece: Range) -> Iterator[int]:
        skipped = seqs_of(LeftOut, plan.tables)
        for table, images in decode(plan, piece, offsets=True)[0]:
            if not isinstance(images, pa.RecordBatch):
                continue
            seqs, offsets, numbers = _numbered(images)
            for offset in np.unique(offsets):
                known = self._fates.get((table.table.name, piece.file, int(offset)), {})
                places = np.flatnonzero((offsets == offset) & np.isin(numbers, list(known)))
                for place in places[~within(seqs[places], skipped)]:
                    if known[int(numbers[place])] is Fate.CLASH or piece.part is not None:
                        where = Where(plan.source, str(table.table.name), str(Position(piece.file, int(offset))))
                        raise ShardError("SHARD-031", where, values={"target": str(table.target.name)})
                    yield int(seqs[place])

    def _through(self, group: ShardingGroup, at: Location, log: Log) -> Iterator[None]:
        """Looks through the log, a stretch at a time, and puts down what becomes of changes."""
        resync = group.resync(at)
        if resync is None or len(group.tables) < 2:
            return
        target = self._target(group, resync.windows)
        if target.keyless:
            return
        numbers = {name: number for number, name in enumerate(sorted(group.tables))}
        shared = SharedKeys()
        while shared.begin():
            for rows in self._stretches(log, resync.since, at):
                for keys in self._keys(group, rows, target) if rows is not None else ():
                    shared.add(hash_of(keys.key), numbers[keys.table])
                yield
        if not len(shared.found):
            return
        seen: dict[bytes, list[_Seen]] = {}
        orders = 0
        for rows in self._stretches(log, resync.since, at):
            for key, one in self._of_shared(group, rows, target, shared.found, at) if rows is not None else ():
                change = replace(one.change, order=orders)
                seen.setdefault(key, []).append(replace(one, change=change))
                orders += 1
            yield
        self._decide(seen.values())

    def _decide(self, seen: Iterable[list[_Seen]]) -> None:
        halves: dict[tuple[Event, int], list[Fate]] = {}
        for found in seen:
            known = fates(one.change for one in found)
            for one in found:
                fate = known.get(one.change.order)
                if fate is not None and one.half:
                    halves.setdefault((one.event, one.number), []).append(fate)
                elif fate is not None:
                    self._fates.setdefault(one.event, {})[one.number] = fate
        for (event, number), both in halves.items():
            whole = both == [Fate.LEFT_OUT, Fate.LEFT_OUT]
            self._fates.setdefault(event, {})[number] = Fate.LEFT_OUT if whole else Fate.CLASH

    def _stretches(self, log: Log, begin: Location, at: Location) -> Iterator[Rows | None]:
        place = begin
        while place.position < at.position:
            work = next_work(log, place, at.position, STRETCH_BYTES, self.source)
            if work is None:
                return
            yield rows_behind(work, log, begin.position, self.source)
            place = work.end

    def _of_shared(
        self, group: ShardingGroup, rows: Rows, target: TargetPlan, shared: np.ndarray, at: Location
    ) -> list[tuple[bytes, _Seen]]:
        """The changes of those keys in a stretch, in the order of the log, each behind its key."""
        listed: list[tuple[int, bytes, _Seen]] = []
        for keys in self._keys(group, rows, target):
            name, file = keys.table, keys.piece.file
            for n in np.flatnonzero(np.isin(hash_of(keys.key), shared)):
                event = int(keys.event[n])
                place = rows.begin if rows.xid else Position(file, event)
                change = KeyChange(0, name, bool(keys.lives[n]), _when(group.tables[name], place, at))
                one = _Seen(change, (name, file, event), int(keys.number[n]), bool(keys.half[n]))
                listed.append((int(keys.seq[n]), keys.key[int(n)].as_py(), one))
        listed.sort(key=lambda found: found[0])
        return [(key, one) for _, key, one in listed]

    def _keys(self, group: ShardingGroup, rows: Rows, target: TargetPlan) -> list[_Keys]:
        """The keys that a stretch changes. A table that can't be read by the structure it is thought to have had is
        told, and left aside."""
        if rows.extent.partial_images:
            return []
        tables = [
            self._plan(group, name, rows.begin, target) for name in sorted(rows.extent.tables & set(group.tables))
        ]
        plans = [table for table in tables if table is not None]
        try:
            return self._read(rows, plans)
        except UnshardError as error:
            if len(plans) > 1:
                return [keys for one in plans for keys in self._keys(_only(group, one), rows, target)]
            words = {"table": str(plans[0].table.name), "position": str(rows.begin), "error": str(error)}
            logger("sync", source=self.source).warning("not looked through for rows that have moved", **words)
            return []

    def _read(self, rows: Rows, tables: list[TablePlan]) -> list[_Keys]:
        if not tables:
            return []
        plan = self.planner.plan(rows, tuple(tables), 0, 0)
        found = []
        for piece in plan.ranges:
            for table, images in decode(plan, piece, offsets=True)[0]:
                if isinstance(images, pa.RecordBatch) and len(images):
                    found += _keys_of(plan, piece, table, images)
        return found

    def _plan(self, group: ShardingGroup, name: TableName, begin: Position, target: TargetPlan) -> TablePlan | None:
        """How the table's changes behind a place were read; None where they are in its copy, or have no such key."""
        item = group.tables[name].next_behind(begin)
        form = item.payload["before"] if item is not None else group.tables[name].last
        upstream = Table.from_dict(form) if form else self.structure(name) if item is None else None
        return self.rules.reading(replace(upstream, name=name), target) if upstream is not None else None

    def _target(self, group: ShardingGroup, windows: Mapping[TableName, tuple[Location, Location]]) -> TargetPlan:
        """What the target's rows are found by."""
        name, (first, _) = min(windows.items())
        item = group.tables[name].next_behind(first.position)
        form = item.payload["before"] if item is not None else group.tables[name].last
        upstream = Table.from_dict(form) if form else self.structure(name)
        assert upstream is not None, "a table that is read again has a structure"
        (plan,) = self.rules.with_structures({name: replace(upstream, name=name)}).plans([name], first.position)
        return replace(plan.target, id=0, ordered=True, ties=())


def _keys_of(plan: BatchPlan, piece: Range, table: TablePlan, images: pa.RecordBatch) -> list[_Keys]:
    seqs, events, numbers = _numbered(images)
    columns = pa.RecordBatch.from_arrays(images.columns[:-1], schema=pa.schema(list(images.schema)[:-1]))
    kept, _ = filter_rows([(table, columns)])
    found = []
    for mapped, batch in map_columns(plan, kept):
        assert isinstance(batch, pa.RecordBatch), "whole images stay whole"
        op, seq = (batch.column(place).to_numpy(zero_copy_only=False) for place in (0, 1))
        key = keys_of(mapped, batch)
        before = np.flatnonzero(op == Op.UPDATE_BEFORE)
        same = pc.equal(key.take(pa.array(before)), key.take(pa.array(before + 1))).to_numpy(zero_copy_only=False)
        half = np.isin(op, (Op.UPDATE_BEFORE, Op.UPDATE_AFTER))
        half[before[same]] = half[before[same] + 1] = False
        counts = np.ones(len(op), dtype=bool)
        counts[before[same]] = False
        places = np.searchsorted(seqs, seq)
        index = np.flatnonzero(counts)
        lives = np.isin(op, (Op.INSERT, Op.UPDATE_AFTER))[index]
        event, number = events[places][index], numbers[places][index]
        found.append(
            _Keys(table.table.name, piece, key.take(pa.array(index)), lives, half[index], seq[index], event, number)
        )
    return found


def _numbered(images: pa.RecordBatch) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Of images with offsets: by image its number in the log, its event's offset, and which change of that it is."""
    seq = images.column(1).to_numpy(zero_copy_only=False)
    offset = images.column(images.num_columns - 1).to_numpy(zero_copy_only=False)
    change = np.cumsum(np.diff(seq, prepend=-1) != 0)
    _, first, event = np.unique(offset, return_index=True, return_inverse=True)
    return seq, offset, change - change[first][event]


def _when(state: TableState, place: Position, at: Location) -> When:
    if state.since is None:
        held = state.held_from
        return When.AHEAD if held is None or place < held.position else When.LATER
    if place < state.since.position:
        return When.AHEAD
    return When.NOW if place < state.until(at).position else When.LATER


def _only(group: ShardingGroup, table: TablePlan) -> ShardingGroup:
    return replace(group, tables={table.table.name: group.tables[table.table.name]})
