"""Spark task: look at single rows again, by key, on both sides.

The target is read after the sources: where both are equal, the target has caught up. Keys that the target's collation
takes for one are one. So the sources are read once more by the keys as the target spells them, in the same snapshot: a
source may distinguish keys that the target does not, and both rows of such a pair are found.

A table without a key is read whole, and only the rows with the hashes in question are counted. Where the copy had a
condition (`where`), the target has the rows that it takes, and of the others those that changed after the copy: any
number between is right.
"""

from __future__ import annotations

import pickle
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from unshard.compare.executor.keys import Key, is_spelled, one_for_all, shard_condition, target_condition
from unshard.compare.executor.rows import (
    SideConnections,
    as_target,
    asked_again,
    key_literals,
    reading_shard,
    row_hashes,
    shard_batches,
    target_batches,
)
from unshard.compare.tables import ComparedShard, ComparedTable
from unshard.dump.read import read_rows
from unshard.errors import enclose
from unshard.model.change import IMAGE_FIELDS, Op

_SHOWN_BYTES = 200
"""Characters of a value that a look tells."""


@dataclass(frozen=True, slots=True)
class LookOrder:
    """The keys of one table that a Spark task is to look at.

    `shown`: rows are reported with their values; else only with their hashes.
    """

    table: ComparedTable
    keys: tuple[Key, ...]
    shown: bool = True


@dataclass(frozen=True, slots=True)
class SeenRow:
    """A row as it was read under one key. `shard` is the number of its source table, None on the target.

    `digest` is the hash of all columns, `rest` of those outside of the key, and of those that are written where there
    is no key. `each` has a hash for each column. `values` are texts, None for NULL. A row that is not to be shown has
    neither `each` nor `values`. `left_out` names the rule of the task that leaves the INSERT of this row out, "" for
    none.
    """

    digest: int
    rest: int
    each: tuple[int, ...]
    values: dict[str, str | None]
    shard: int | None = None
    left_out: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form, which `from_dict` reads."""
        digests = {"digest": self.digest, "rest": self.rest, "each": list(self.each)}
        return {**digests, "values": self.values, "shard": self.shard, "left_out": self.left_out}

    @classmethod
    def from_dict(cls, form: dict[str, Any]) -> SeenRow:
        """Read the form of `to_dict`."""
        digests = form["digest"], form["rest"], tuple(form["each"])
        return cls(*digests, form["values"], form["shard"], form["left_out"])


@dataclass(frozen=True, slots=True)
class KeyLook:
    """The rows under one key on both sides, each with its count, which is 1 for a table with a key.

    `spellings` are the other keys of the rows and of the order that the target takes for this one.
    """

    key: Key
    source: tuple[tuple[SeenRow, int], ...] = ()
    target: tuple[tuple[SeenRow, int], ...] = ()
    spellings: tuple[Key, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form, which `from_dict` reads."""
        sides = ("source", self.source), ("target", self.target)
        rows = {name: [[row.to_dict(), n] for row, n in side] for name, side in sides}
        return {"key": list(self.key), **rows, "spellings": [list(key) for key in self.spellings]}

    @classmethod
    def from_dict(cls, form: dict[str, Any]) -> KeyLook:
        """Read the form of `to_dict`."""
        source, target = (
            tuple((SeenRow.from_dict(row), count) for row, count in form[side]) for side in ("source", "target")
        )
        return cls(tuple(form["key"]), source, target, tuple(map(tuple, form["spellings"])))


def look_again(payload: bytes) -> bytes:
    """Spark task: look at the keys of a pickled LookOrder. Safe to run again.

    The outcome has a list of KeyLook, and how long the sources were busy with it, in seconds.
    """
    order: LookOrder = pickle.loads(payload)
    return enclose(lambda: asked_again(partial(_looked, order)))


def _looked(order: LookOrder) -> dict[str, Any]:
    with SideConnections() as connections:
        found = _Look(order, connections)
        looks = found.look() if order.table.key else found.by_hash()
    return {"looks": [look.to_dict() for look in looks], "source_seconds": round(found.source_seconds, 4)}


@dataclass(slots=True)
class _Look:
    """The rows of both sides under the keys of one order, while they are read."""

    order: LookOrder
    connections: SideConnections
    source_seconds: float = 0.0
    _source: dict[Key, list[SeenRow]] = field(default_factory=dict)
    _target: dict[Key, list[SeenRow]] = field(default_factory=dict)
    _known: frozenset[tuple[int | None, Key]] = frozenset()

    def look(self) -> list[KeyLook]:
        table = self.order.table
        self._read_sources(self.order.keys)
        condition = target_condition(table, self.order.keys)
        for batch in target_batches(self.connections, table, (condition,)):
            self._add(self._target, batch, None, [""] * len(batch))
        spelled = [key for key in self._target if key not in frozenset(self.order.keys)]
        if spelled:
            self._known = frozenset((row.shard, key) for key, found in self._source.items() for row in found)
            self._read_sources(spelled)
        same = one_for_all(self.connections, table, [*self.order.keys, *self._source, *self._target])
        groups: dict[Key, tuple[list[SeenRow], list[SeenRow]]] = {same[key]: ([], []) for key in self.order.keys}
        for place, side in enumerate((self._source, self._target)):
            for key, found in side.items():
                if same[key] in groups:
                    groups[same[key]][place].extend(found)
        spellings: dict[Key, list[Key]] = {key: [] for key in groups}
        for key, first in same.items():
            if key != first and first in groups:
                spellings[first].append(key)
        return [
            KeyLook(key, _once(source), _once(target), tuple(spellings[key]))
            for key, (source, target) in groups.items()
        ]

    def by_hash(self) -> list[KeyLook]:
        """Count the rows with these hashes, of a table without a key.

        Of rows that the copy left out the sources count as many as the target has, as far as they have them.
        """
        order, table = self.order, self.order.table
        wanted = np.array([int(key[0]) for key in order.keys], dtype=np.uint64)
        seen: dict[int, SeenRow] = {}

        def counted(number: int, shard: ComparedShard, where: str = "") -> Counter[int]:
            found: Counter[int] = Counter()
            batches = shard_batches(self.connections, table, shard, (table.condition, where))
            _count(batches, wanted, order, number, found, seen)
            return found

        least: Counter[int] = Counter()
        most: Counter[int] = Counter()
        target: Counter[int] = Counter()
        begun = time.monotonic()
        for number, shard in enumerate(table.shards):
            whole = counted(number, shard)
            most.update(whole)
            least.update(counted(number, shard, shard.where) if shard.where else whole)
        self.source_seconds = time.monotonic() - begun
        _count(target_batches(self.connections, table, (table.condition,)), wanted, order, None, target, seen)
        source = {one: min(max(target[one], least[one]), most[one]) for one in wanted.tolist()}
        looks = []
        for key, digest in zip(order.keys, wanted.tolist(), strict=True):
            sides = [((seen[digest], side[digest]),) if side[digest] else () for side in (source, target)]
            looks.append(KeyLook(key, sides[0], sides[1]))
        return looks

    def _read_sources(self, keys: Sequence[Key]) -> None:
        """Read the source rows under these keys of the target, but those that an earlier call has read."""
        table = self.order.table
        begun = time.monotonic()
        if is_spelled(table):  # a snapshot that is opened after the target was read could be newer than its rows
            for shard in table.shards:
                self.connections.get(shard.endpoint, "source")
        for number, shard in enumerate(table.shards):
            condition = shard_condition(table, shard, keys)
            if condition:
                self._read_shard(number, shard, condition)
        self.source_seconds += time.monotonic() - begun

    def _read_shard(self, number: int, shard: ComparedShard, condition: str) -> None:
        """Read the rows of one source table, with the rules that exclude them."""
        table = self.order.table
        if not shard.filters and not shard.where:
            for batch in shard_batches(self.connections, table, shard, (condition,)):
                self._add(self._source, batch, number, [""] * len(batch))
            return
        connection = self.connections.get(shard.endpoint, "source")
        copied: set[int] = set()
        if shard.where:
            for batch in shard_batches(self.connections, table, shard, (condition, shard.where)):
                copied.update(row_hashes(batch).tolist())
        with reading_shard(shard):
            for batch in read_rows(connection, shard.table, (condition,)):
                rules = _left_out(shard, batch)
                mapped = as_target(batch, table, shard)
                if shard.where:
                    inside = [digest in copied for digest in row_hashes(mapped).tolist()]
                    rules = [rule or ("" if there else "where") for rule, there in zip(rules, inside, strict=True)]
                self._add(self._source, mapped, number, rules)

    def _add(
        self, side: dict[Key, list[SeenRow]], batch: pa.RecordBatch, shard: int | None, left_out: Sequence[str]
    ) -> None:
        table = self.order.table
        for key, row in zip(key_literals(batch, table), _seen(batch, self.order, shard, left_out), strict=True):
            if (shard, key) not in self._known:
                side.setdefault(key, []).append(row)


def _once(found: Sequence[SeenRow]) -> tuple[tuple[SeenRow, int], ...]:
    return tuple((row, 1) for row in found)


def _left_out(shard: ComparedShard, batch: pa.RecordBatch) -> list[str]:
    """Return, by row, the rule that excludes its INSERT; "" where none does."""
    count = len(batch)
    own = [pa.array(np.full(count, int(Op.INSERT), dtype=np.int8)), pa.array(np.arange(count, dtype=np.int64))]
    fields = [*IMAGE_FIELDS, *batch.schema]
    images = pa.RecordBatch.from_arrays([*own, *batch.columns], schema=pa.schema(fields))
    absent = frozenset(column.name for column in shard.table.columns if column.generated)
    found = [""] * count
    for rule in shard.filters:
        for place in np.flatnonzero(rule.dropped(shard.table, images, absent)).tolist():
            found[place] = found[place] or rule.rule
    return found


def _seen(batch: pa.RecordBatch, order: LookOrder, shard: int | None, left_out: Sequence[str]) -> Iterator[SeenRow]:
    names = [column.name for column in order.table.columns]
    digests, rests = row_hashes(batch).tolist(), row_hashes(batch, order.table.rest).tolist()
    if not order.shown:
        for digest, its, rule in zip(digests, rests, left_out, strict=True):
            yield SeenRow(digest, its, (), {}, shard, rule)
        return
    each = list(zip(*(row_hashes(batch, [name]).tolist() for name in names), strict=True))
    for number, values in enumerate(batch.to_pylist()):
        shown = {name: _shown(value) for name, value in values.items()}
        yield SeenRow(digests[number], rests[number], each[number], shown, shard, left_out[number])


def _shown(value: Any) -> str | None:
    text = value.hex() if isinstance(value, bytes) else None if value is None else str(value)
    return text if text is None or len(text) <= _SHOWN_BYTES else text[:_SHOWN_BYTES] + "…"


def _count(
    batches: Iterable[pa.RecordBatch],
    wanted: np.ndarray,
    order: LookOrder,
    shard: int | None,
    counted: Counter[int],
    seen: dict[int, SeenRow],
) -> None:
    for batch in batches:
        hashes = row_hashes(batch)
        these = np.isin(hashes, wanted)
        if these.any():
            found = batch.filter(pa.array(these))
            for row in _seen(found, order, shard, [""] * len(found)):
                counted[row.digest] += 1
                seen.setdefault(row.digest, row)
