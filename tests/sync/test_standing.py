"""What a source's place is told with: by whom it is seen, all else that is told is of that place."""

from __future__ import annotations

import time
from typing import Any

import pytest

from unshard.model.position import Location, Position
from unshard.sync.safe_mode import Delivery, SafeMode
from unshard.sync.standing import Standing
from unshard.sync.status import Meter
from unshard.target.checkpoint import Checkpoint, ExitPoint


def at(offset: int) -> Location:
    return Location(Position("bin.000001", offset))


class Moves:
    """Takes the place of a journal; `told` has the meter's place at each move of the checkpoint."""

    exit_point: ExitPoint | None = None

    def __init__(self, meter: Meter) -> None:
        self.meter = meter
        self.told: list[Location | None] = []

    def move(self, end: Location, changed: object, also: object) -> None:
        self.told.append(self.meter.location)


@pytest.fixture
def standing() -> Standing:
    """At least once, as a new task begins."""
    meter = Meter()
    journal: Any = Moves(meter)
    delivery = Delivery(exactly_once=False)
    found = Standing("s1", journal, lambda place: {}, 1000.0, delivery, meter)
    found.restore(Checkpoint(at(100), exit_point=ExitPoint(at(500)), exact=True))
    return found


def test_the_place_is_told_when_safe_mode_has_ended_there(standing: Standing) -> None:
    assert "until bin.000001:500" in standing.meter.safe_mode
    standing.arrive(at(500))
    assert standing.journal.told == [at(100)]  # type: ignore[attr-defined]
    assert (standing.meter.location, standing.meter.safe_mode) == (at(500), "")


def test_safe_mode_ends_by_the_clock_while_nothing_comes(standing: Standing) -> None:
    standing.turn(SafeMode(seconds=60, ends=time.monotonic() + 1000))
    standing.arrive(at(200))
    assert "safe-mode-duration" in standing.meter.safe_mode
    standing.turn(SafeMode(seconds=60, ends=time.monotonic()))
    standing.idle()
    assert standing.meter.safe_mode == ""
