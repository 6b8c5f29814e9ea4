"""Looking again at keys, in a made-up world: a source that is written to, and a target that follows it with a lag."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any, cast

import pytest

from unshard.compare import chase, places
from unshard.compare.chase import ChasedTable, KeyChase
from unshard.compare.executor.canonical import ValueForm
from unshard.compare.executor.look import KeyLook, LookOrder, SeenRow
from unshard.compare.places import LogPlace, SourceWatch
from unshard.compare.result import RowClass, TableOutcome
from unshard.compare.tables import ComparedColumn, ComparedShard, ComparedTable
from unshard.errors import enclose
from unshard.model.position import Position
from unshard.model.table import Column, Table, TableName
from unshard.mysql.connection import Endpoint

HERE = Endpoint("nowhere", 1, "nobody")
KEYS = 12


@dataclass(slots=True)
class World:
    """Rows are numbers under keys. Changes of `lost` keys never reach the target, whose rows of them stay."""

    random: Random
    busy: bool
    lost: frozenset[int] = frozenset()
    hot: frozenset[int] = frozenset()
    source: dict[int, int] = field(default_factory=lambda: dict.fromkeys(range(KEYS), 0))
    target: dict[int, int] = field(default_factory=lambda: dict.fromkeys(range(KEYS), 0))
    log: list[tuple[int, int | None]] = field(default_factory=list)
    applied: int = 0

    def pass_time(self, seconds: float = 0.0) -> None:
        """Some writes, and some of what is not applied yet."""
        del seconds
        for _ in range(self.random.randrange(4) if self.busy else 0):
            key = self.random.choice([*self.hot, self.random.randrange(KEYS)])
            if key not in self.lost:
                self.write(key, self.random.choice((None, 0, 1, 1, 0)))
        for _ in range(self.random.randrange(6)):
            self.apply()

    def write(self, key: int, value: int | None) -> None:
        self.log.append((key, value))
        put(self.source, key, value)

    def apply(self) -> None:
        if self.applied < len(self.log):
            key, value = self.log[self.applied]
            self.applied += 1
            if key not in self.lost:
                put(self.target, key, value)

    def run(self, payloads: Sequence[bytes], task: Callable[[bytes], bytes], *, barrier: bool = False) -> list[bytes]:
        """In place of Spark: the source is read, time passes, the target is read."""
        del task, barrier
        found = []
        for payload in payloads:
            keys = cast(LookOrder, pickle.loads(payload)).keys
            before = [seen(self.source.get(int(key)), 0) for (key,) in keys]
            self.pass_time()
            after = [seen(self.target.get(int(key)), None) for (key,) in keys]
            looks = [KeyLook(*one).to_dict() for one in zip(keys, before, after, strict=True)]
            found.append(enclose(lambda looks=looks: {"looks": looks, "source_seconds": 0.0}))  # type: ignore[misc]
            self.pass_time()
        return found


@dataclass(slots=True)
class WorldSide:
    source: str = "s"


@dataclass(slots=True)
class WorldWatch:
    """In place of a SourceWatch. The target's checkpoint may lag behind what is applied."""

    world: World
    side: WorldSide = field(default_factory=WorldSide)
    followed: bool = True

    def newest(self) -> LogPlace:
        return LogPlace("uuid", Position("log.000001", len(self.world.log)))

    def has_passed(self, place: LogPlace) -> bool:
        return self.world.applied - self.world.random.randrange(2) >= place.position.offset

    def left_for_another(self, place: LogPlace) -> None:
        """The source never fails over."""


def put(rows: dict[int, int], key: int, value: int | None) -> None:
    if value is None:
        rows.pop(key, None)
    else:
        rows[key] = value


def seen(value: int | None, shard: int | None) -> tuple[tuple[SeenRow, int], ...]:
    if value is None:
        return ()
    return ((SeenRow(value + 7, value, (1, value), {"id": "?", "v": str(value)}, shard), 1),)


def table() -> ComparedTable:
    read = Table(TableName("d", "t"), (Column("id", "int", "int"), Column("v", "int", "int")))
    shard = ComparedShard("s", HERE, read, read)
    columns = tuple(ComparedColumn(name, ValueForm("plain"), True) for name in ("id", "v"))
    return ComparedTable(read.name, HERE, read, False, columns, ("id",), ("id",), (shard,))


def settled(world: World, monkeypatch: pytest.MonkeyPatch, patience: float = 30.0) -> TableOutcome:
    """What comes of all keys of the world."""
    clock = [0.0]

    def rest(seconds: float) -> None:
        clock[0] += seconds
        world.pass_time()

    class Time:
        sleep = staticmethod(rest)
        monotonic = staticmethod(lambda: clock[0])

    monkeypatch.setattr(chase, "time", Time)
    monkeypatch.setattr(places, "time", Time)
    watch: Any = WorldWatch(world)
    one = ChasedTable(table(), TableOutcome(TableName("d", "t")))
    one.add([(str(key),) for key in range(KEYS)], 1000)
    watches = [cast(SourceWatch, watch)]
    KeyChase(world.run, watches, patience, 100, lambda line: None, lambda: False).settle([one])
    return one.outcome


@pytest.mark.parametrize("seed", range(60))
def test_no_key_that_follows_is_told_as_different(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    random = Random(seed)
    lost = frozenset(random.sample(range(KEYS), 2))
    world = World(random, busy=True, lost=lost, hot=frozenset({0, 1}) - lost)
    first, second = sorted(lost)
    world.target[first] = 5
    del world.target[second]
    found = settled(world, monkeypatch)
    told = {one.key: one.kind for one in found.differences if one.kind is not RowClass.IN_FLIGHT}
    assert told == {f"id={first}": RowClass.CHANGED, f"id={second}": RowClass.MISSING}


def test_while_nobody_writes_two_looks_are_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(Random(1), busy=False, lost=frozenset({3}))
    world.write(3, None)
    world.write(4, 1)
    found = settled(world, monkeypatch)
    assert {one.key: one.kind for one in found.differences} == {"id=3": RowClass.EXTRA}


def test_a_target_that_stands_still_leaves_its_keys_in_flight(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(Random(1), busy=False)
    world.write(4, 1)
    monkeypatch.setattr(World, "apply", lambda self: None)
    found = settled(world, monkeypatch, patience=3.0)
    assert {one.key: one.kind for one in found.differences} == {"id=4": RowClass.IN_FLIGHT}
