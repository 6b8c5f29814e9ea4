"""What a source says of itself, for the status line, also when it is slow to say it."""

from __future__ import annotations

from threading import Event
from typing import Any

import pytest

from task_runs import wait_until
from unshard.mysql.connection import Endpoint
from unshard.worker import watch
from unshard.worker.watch import UpstreamWatch


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
