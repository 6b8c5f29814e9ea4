"""What a source says of itself, for the status line, also when it is slow to say it."""

from __future__ import annotations

import time
from threading import Event
from typing import Any

import pytest

from unshard.mysql.connection import Endpoint
from unshard.worker import watch
from unshard.worker.watch import UpstreamWatch


def test_a_slow_source_does_not_hold_up_the_status(monkeypatch: pytest.MonkeyPatch) -> None:
    answers: list[Any] = ["first", "second"]
    slow = Event()
    slow.set()

    def look(self: UpstreamWatch) -> Any:
        slow.wait(10)
        return answers.pop(0)

    monkeypatch.setattr(UpstreamWatch, "_look", look)
    monkeypatch.setattr(watch, "REFRESH_SECONDS", 0.0)
    source = UpstreamWatch(Endpoint("h", 1, "u"))
    assert source.look() == "first"
    slow.clear()
    begun = time.monotonic()
    assert source.look() == "first"
    assert source.look() == "first"
    assert time.monotonic() - begun < 5
    slow.set()
    while source.look() != "second":
        assert time.monotonic() - begun < 10
