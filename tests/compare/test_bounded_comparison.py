"""What a comparison costs at most: the sources' time, and the driver's memory where very many keys differ."""

from __future__ import annotations

import pickle
import tracemalloc
from collections.abc import Callable, Sequence
from threading import Event
from typing import Any, cast

import numpy as np
import pytest

from unshard.compare import source_load
from unshard.compare.chase import ChasedTable, KeyChase
from unshard.compare.executor import chunk
from unshard.compare.executor.canonical import ValueForm
from unshard.compare.executor.look import KeyLook, LookOrder, SeenRow
from unshard.compare.places import LogPlace, SourceWatch
from unshard.compare.result import RowClass, TableOutcome
from unshard.compare.source_load import SourceLoad
from unshard.compare.tables import ComparedColumn, ComparedShard, ComparedTable
from unshard.errors import enclose
from unshard.model.position import Position
from unshard.model.table import Column, Table, TableName
from unshard.mysql.connection import Endpoint

KEYS = 1_600
VALUE = "x" * 150


class QuietWatch:
    """In place of a SourceWatch: nobody writes, and the target has all."""

    class side:
        source = "s"

    followed = True

    def newest(self) -> LogPlace:
        return LogPlace("uuid", Position("log.000001", 4))

    def has_passed(self, place: LogPlace) -> bool:
        del place
        return True


def table() -> ComparedTable:
    here = Endpoint("nowhere", 1, "nobody")
    read = Table(TableName("d", "t"), (Column("id", "int", "int"), Column("v", "int", "int")))
    columns = tuple(ComparedColumn(name, ValueForm("plain"), True) for name in ("id", "v"))
    return ComparedTable(
        read.name, here, read, False, columns, ("id",), ("id",), (ComparedShard("s", here, read, read),)
    )


def all_differ(payloads: Sequence[bytes], task: Callable[[bytes], bytes], *, barrier: bool = False) -> list[bytes]:
    """In place of Spark: each key has another row on either side, of twenty columns where it is to be shown."""
    del task, barrier
    outcomes = []
    for payload in payloads:
        order = cast(LookOrder, pickle.loads(payload))
        looks = []
        for (key,) in order.keys:
            names = [f"c{number}" for number in range(12)] if order.shown else []
            sides = [
                (
                    (
                        SeenRow(
                            int(key) * 2 + side, side, (side, 1) if order.shown else (), {n: VALUE + n for n in names}
                        ),
                        1,
                    ),
                )
                for side in (0, 1)
            ]
            looks.append(KeyLook((key,), sides[0], sides[1]).to_dict())
        found = {"looks": looks, "source_seconds": 0.0}
        outcomes.append(enclose(lambda found=found: found))  # type: ignore[misc]
    return outcomes


def test_rows_are_kept_for_as_many_keys_as_are_shown_and_all_keys_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("unshard.compare.chase._PAUSE_SECONDS", 0.0)
    peaks = {}
    for limit in (10, KEYS):
        one = ChasedTable(table(), TableOutcome(table().name))
        one.add([(str(key),) for key in range(KEYS)], KEYS)
        watches = [cast(SourceWatch, cast(Any, QuietWatch()))]
        work = KeyChase(all_differ, watches, 30.0, limit, lambda line: None, lambda: False)
        tracemalloc.start()
        work.settle([one])
        peaks[limit] = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert one.outcome.classes == {RowClass.CHANGED: KEYS}
        assert len(one.outcome.differences) == limit
        assert all(len(difference.target or ()) == 12 for difference in one.outcome.differences)
    assert peaks[10] < peaks[KEYS] / 2, peaks
    assert peaks[10] / KEYS < 6_000, "bytes a key"


def test_rows_beyond_what_a_task_keeps_are_counted_by_their_sums() -> None:
    counts = np.array([5, 0, 3, 4, 6])
    unlike = np.array([True, False, True, True, False])
    kept, left = chunk._within(counts, unlike, 8)
    assert (kept.tolist(), left) == ([True, False, True, False, False], 4)
    kept, left = chunk._within(counts, unlike, 1)
    assert (kept.tolist(), left) == ([True, False, False, False, False], 7), "one sum at least"
    kept, left = chunk._within(counts, unlike, 12)
    assert (kept.tolist(), left) == (unlike.tolist(), 0)


class Hand:
    """A clock that goes on where somebody works or rests, and in place of the event that ends rests."""

    def __init__(self) -> None:
        self.now = 100.0

    def monotonic(self) -> float:
        return self.now

    def wait(self, seconds: float) -> None:
        self.now += seconds


def test_work_on_a_source_is_followed_by_a_rest_in_proportion(monkeypatch: pytest.MonkeyPatch) -> None:
    hand = Hand()
    monkeypatch.setattr(source_load, "time", hand)
    load = SourceLoad(20, hand, _begun=hand.now)  # type: ignore[arg-type]
    for _ in range(4):
        hand.now += 0.02
        load.rest(0.02)
    assert hand.now == pytest.approx(100.0 + 4 * 0.02 * 5)
    assert load.rested == pytest.approx(4 * 0.02 * 4)


def test_a_long_wait_for_a_lock_does_not_make_a_long_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    hand, told = Hand(), list[str]()
    monkeypatch.setattr(source_load, "time", hand)
    load = SourceLoad(10, hand, told.append, _begun=hand.now)  # type: ignore[arg-type]
    hand.now += 60
    load.rest(60)
    assert load.rested == pytest.approx(18)
    assert told == ["a source took 60.0 s, slow or behind a lock: resting for 18 s"]
    hand.now += 2
    load.rest(2)
    assert load.rested == pytest.approx(36)
    assert len(told) == 1


def test_no_rest_without_a_limit_or_once_it_is_stopped() -> None:
    without = SourceLoad(0, Event())
    without.rest(100.0)
    assert without.rested == 0.0
    stop = Event()
    stop.set()
    stopped = SourceLoad(10, stop)
    stopped.rest(100.0)
    assert stopped.rested < 900.0
