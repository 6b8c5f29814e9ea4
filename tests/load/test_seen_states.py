"""The progress of a load is read at its own pace, however many want to know it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest

from support.waiting import wait_until
from unshard.load import seen_states
from unshard.load.checkpoint import FileState, LoadTables
from unshard.load.seen_states import SeenStates
from unshard.mysql.connection import Endpoint


class Target:
    """A target whose checkpoint has one file, a row further at each look."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.looks = 0
        monkeypatch.setattr(seen_states, "session", self.session)
        monkeypatch.setattr(LoadTables, "exist", lambda tables, connection: True)
        monkeypatch.setattr(LoadTables, "states", lambda tables, connection: self.states())

    @contextmanager
    def session(self, *given: Any, **named: Any) -> Iterator[None]:
        yield

    def states(self) -> dict[str, FileState]:
        self.looks += 1
        return {"a.sql": FileState(1, 0, 0, 0, self.looks, 100, False)}


def test_who_only_wants_to_know_asks_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    target = Target(monkeypatch)
    monkeypatch.setattr(seen_states, "OWN_PACE_SECONDS", 3600.0)
    seen = SeenStates(LoadTables("meta", "task", "s1"), Endpoint("h", 1, "u"))
    assert seen.last == {}
    with seen.looking():
        wait_until(lambda: bool(seen.last), "the load looks by itself")
        for _ in range(1000):
            assert seen.last["a.sql"].done_rows == 1
    assert target.looks == 1


def test_it_looks_again_and_rests_behind_a_look_that_took_long(monkeypatch: pytest.MonkeyPatch) -> None:
    target, clock, took = Target(monkeypatch), [1000.0], [0.0]
    monkeypatch.setattr(seen_states, "OWN_PACE_SECONDS", 0.0)
    monkeypatch.setattr(seen_states, "SEEN_SECONDS", 0.0)
    monkeypatch.setattr(seen_states, "_REST", 36_000.0)
    monkeypatch.setattr(seen_states, "time", SimpleNamespace(monotonic=lambda: clock[0]))

    def states(tables: LoadTables, connection: Any) -> dict[str, FileState]:
        clock[0] += took[0]
        return target.states()

    monkeypatch.setattr(LoadTables, "states", states)
    seen = SeenStates(LoadTables("meta", "task", "s1"), Endpoint("h", 1, "u"))
    with seen.looking():
        wait_until(lambda: target.looks > 20, "it looks again and again")
    ended, took[0] = target.looks, 0.1
    with seen.looking():
        wait_until(lambda: target.looks > ended, "it looks at once")
    assert target.looks == ended + 1
