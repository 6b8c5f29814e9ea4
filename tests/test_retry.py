"""The retry policy by itself."""

from __future__ import annotations

import itertools
from threading import Event, Timer

import pytest

from unshard import retry
from unshard.errors import TargetError
from unshard.retry import ATTEMPTS, FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS, given_up_by, pauses, retrying

BUSY = TargetError("TARGET-005", values={"host": "h", "port": 1, "user": "u"})
REFUSED = TargetError("TARGET-004", values={"statement": "INSERT"})


class Operation:
    """Fails with the errors given, then gives 7."""

    def __init__(self, *errors: Exception) -> None:
        self.errors = list(errors)
        self.calls = 0

    def __call__(self) -> int:
        self.calls += 1
        if self.errors:
            raise self.errors.pop(0)
        return 7


def test_pauses_are_drawn_from_nothing_to_a_ceiling_that_doubles() -> None:
    drawn = [list(itertools.islice(pauses(), 12)) for _ in range(300)]
    for number, column in enumerate(zip(*drawn, strict=True)):
        ceiling = min(LONGEST_PAUSE_SECONDS, FIRST_PAUSE_SECONDS * 2**number)
        assert 0 <= min(column) < ceiling / 4
        assert ceiling * 3 / 4 < max(column) <= ceiling


def test_a_transient_failure_is_tried_again() -> None:
    waited: list[float] = []
    operation = Operation(BUSY, BUSY, BUSY)
    assert retrying(operation, pause=waited.append) == 7
    assert len(waited) == 3


def test_what_is_not_transient_stops_at_once() -> None:
    operation = Operation(REFUSED)
    with pytest.raises(TargetError, match="TARGET-004"):
        retrying(operation, pause=lambda _: None)
    assert operation.calls == 1


def test_the_last_error_goes_up_when_attempts_are_used_up() -> None:
    operation = Operation(*[BUSY] * 99)
    with pytest.raises(TargetError, match="TARGET-005"):
        retrying(operation, pause=lambda _: None)
    assert operation.calls == ATTEMPTS


def test_who_is_told_to_give_up_tries_no_more_and_its_pause_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retry, "pauses", lambda: itertools.repeat(1000.0))
    operation, stop = Operation(*[BUSY] * 99), Event()
    with given_up_by(stop):
        timer = Timer(0.3, stop.set)
        timer.start()
        with pytest.raises(TargetError, match="TARGET-005"):
            retrying(operation)
        timer.join()
        assert operation.calls == 1
        with pytest.raises(TargetError, match="TARGET-005"):
            retrying(operation)
        assert operation.calls == 2
        assert retrying(Operation()) == 7
    assert retrying(Operation(BUSY), pause=lambda _: None) == 7
