"""What a source says of itself, for the status line, also when it is slow to say it."""

from __future__ import annotations

from contextlib import nullcontext
from math import inf
from threading import Event
from typing import Any

import pytest

from support.waiting import wait_until
from unshard.mysql.connection import Endpoint
from unshard.sync.checkpoint.store import CheckpointStore
from unshard.target.meta import MetaTables
from unshard.worker import watch
from unshard.worker.watch import TargetWatch, UpstreamWatch


def test_a_slow_source_does_not_hold_up_the_status(monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = object(), object()
    answers = [first, second]
    slow = Event()
    slow.set()

    def look(self: UpstreamWatch) -> Any:
        slow.wait()
        return answers.pop(0)

    monkeypatch.setattr(UpstreamWatch, "_look", look)
    monkeypatch.setattr(watch, "REFRESH_SECONDS", 0.0)
    source = UpstreamWatch(Endpoint("h", 1, "u"))
    wait_until(lambda: source.look() is first, "the first answer")
    slow.clear()
    assert source.look() is first
    assert source.look() is first
    slow.set()
    wait_until(lambda: source.look() is second, "the second answer")


def test_what_holds_up_a_step_is_asked_of_no_short_one_and_shown_of_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch, "standstill", lambda *_: "connection 7 holds it")
    monkeypatch.setattr(watch, "session", lambda *_, **__: nullcontext())
    store = CheckpointStore(Endpoint("h", 1, "u"), MetaTables("m", "t"), "s1", failed="tried again")
    target = TargetWatch(store.endpoint, store)
    assert target.note(inf) == "", "it has not begun yet"
    old, other = -2e6, -1e6
    wait_until(lambda: target.note(old) == "tried again; connection 7 holds it", "told", told=lambda: target.note(old))
    assert target.note(other) == "tried again"


def test_a_target_that_is_away_is_told() -> None:
    store = CheckpointStore(Endpoint("127.0.0.1", 1, "u"), MetaTables("m", "t"), "s1")
    target, begun = TargetWatch(store.endpoint, store), -1e6
    wait_until(
        lambda: "can't be asked what holds it up: 2002" in target.note(begun), "told", told=lambda: target.note(begun)
    )
