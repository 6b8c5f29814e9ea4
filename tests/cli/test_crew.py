"""The threads of a run: all ends are noticed, the first failure stops the others."""

from __future__ import annotations

from threading import Barrier, Event
from typing import Any

import pytest

from unshard.cli.run import Crew
from unshard.errors import SourceError, UnshardError


class Stub:
    """A subtask that does what it is told."""

    unit = "sync"

    def __init__(self, source: str, work: Any) -> None:
        self.source = source
        self.run = work

    def cancel_copy(self) -> None:
        """There is none."""


def crew(*works: Any) -> Crew:
    return Crew(tuple(Stub(f"s{number}", work) for number, work in enumerate(works)))  # type: ignore[arg-type]


def test_subtasks_that_end_at_the_same_moment_end_the_run() -> None:
    for _ in range(200):
        together = Barrier(4)

        def work(stop: Event, together: Barrier = together) -> None:
            together.wait()

        running = crew(*[work] * 4)
        running.start()
        assert running.ended.wait(5)
        running.join()


def test_the_first_failure_stops_the_others_and_is_raised() -> None:
    def fails(stop: Event) -> None:
        raise SourceError("SOURCE-003")

    def waits(stop: Event) -> None:
        assert stop.wait(5)

    running = crew(waits, fails, waits)
    running.start()
    assert running.ended.wait(5)
    with pytest.raises(UnshardError) as raised:
        running.join()
    assert raised.value.code == "SOURCE-003"
