"""What a source's place is told with: by whom it is seen, all else that is told is of that place."""

from __future__ import annotations

from math import inf
from typing import Any

import pytest

from unshard.model.position import Location, Position
from unshard.sync.checkpoint.progress import SyncProgress
from unshard.sync.checkpoint.safe_mode import Delivery, SafeMode
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
def progress() -> SyncProgress:
    """At least once, as a new task begins."""
    meter = Meter()
    store: Any = Moves(meter)
    delivery = Delivery(exactly_once=False)
    found = SyncProgress("s1", store, lambda place: {}, 1000.0, delivery, meter)
    found.restore(Checkpoint(at(100), exit_point=ExitPoint(at(500)), exact=True))
    return found


def test_the_place_is_told_when_safe_mode_has_ended_there(progress: SyncProgress) -> None:
    assert "until bin.000001:500" in progress.meter.safe_mode
    progress.arrive(at(500))
    assert progress.store.told == [at(100)]  # type: ignore[attr-defined]
    assert (progress.meter.location, progress.meter.safe_mode) == (at(500), "")


def test_safe_mode_ends_by_the_clock_while_nothing_comes(progress: SyncProgress) -> None:
    progress.turn(SafeMode(seconds=60, ends=inf))
    progress.arrive(at(200))
    assert "safe-mode-duration" in progress.meter.safe_mode
    progress.turn(SafeMode(seconds=60, ends=0.0))
    progress.idle()
    assert progress.meter.safe_mode == ""
