"""Waits of the tests: what moves is waited for, what stands still is not."""

from __future__ import annotations

import itertools
from types import SimpleNamespace

import pytest

from support import waiting
from support.waiting import ExpiredWait, wait_until


@pytest.fixture
def seconds(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time of a clock that passes while somebody sleeps."""
    now = [0.0]

    def sleep(duration: float) -> None:
        now[0] += duration

    monkeypatch.setattr(waiting, "time", SimpleNamespace(monotonic=lambda: now[0], sleep=sleep))
    return now


def test_what_moves_is_waited_for(seconds: list[float]) -> None:
    wait_until(lambda: seconds[0] >= 35, "done", 10.0, every=1.0, progress=lambda: seconds[0] // 8)


def test_what_stands_still_is_given_up(seconds: list[float]) -> None:
    with pytest.raises(ExpiredWait, match="not in 34 s: done\nit stands"):
        wait_until(lambda: False, "done", 10.0, lambda: "it stands", 1.0, progress=lambda: min(seconds[0] // 8, 3))


def test_what_moves_for_ever_is_given_up(seconds: list[float]) -> None:
    numbers = itertools.count()
    with pytest.raises(ExpiredWait, match="not in 100 s"):
        wait_until(lambda: False, "done", 10.0, every=1.0, progress=lambda: next(numbers))
