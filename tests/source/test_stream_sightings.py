"""The end of a source's log as its replica stream shows it."""

from __future__ import annotations

import time

import pytest

from unshard.model.position import Location, Position
from unshard.mysql.flavour import BinaryLog
from unshard.source.upstream import StreamSightings, Upstream

SOURCE = 5000.0
"""How far the source's clock is ahead of our monotonic one."""


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Our monotonic clock, which a test sets."""
    found = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: found[0])
    return found


def at(offset: int) -> Location:
    return Location(Position("b.000001", offset))


def connected(offset: int, now: float) -> StreamSightings:
    made = StreamSightings()
    made.connected(Upstream(at(offset), (BinaryLog("b.000001", offset),), SOURCE + now, now))
    return made


def told(sightings: StreamSightings) -> tuple[int, float, float]:
    found = sightings.newest
    assert found is not None
    return found.location.position.offset, found.time, found.seen


def test_a_heartbeat_tells_the_end_now(now: list[float]) -> None:
    sightings = connected(500, 100.0)
    assert told(sightings) == (500, SOURCE + 100, 100)
    now[0] = 105.0
    sightings.at_end(at(500))
    assert told(sightings) == (500, SOURCE + 105, 105)


def test_an_event_tells_the_end_as_of_its_own_time(now: list[float]) -> None:
    sightings = connected(500, 100.0)
    now[0] = 200.0
    sightings.event(at(600), SOURCE + 199)
    assert told(sightings) == (600, SOURCE + 199, 199), "the relay has what there is"
    now[0] = 260.0
    sightings.event(at(700), SOURCE + 201)
    assert told(sightings) == (700, SOURCE + 201, 201), "it has to catch up with a minute"


def test_of_a_relay_that_catches_up_the_end_is_what_the_source_has_told(now: list[float]) -> None:
    sightings = connected(9000, 100.0)
    now[0] = 101.0
    sightings.event(at(600), SOURCE - 3000)
    assert told(sightings) == (9000, SOURCE + 100, 100)
    sightings.event(at(9100), SOURCE - 2000)
    assert told(sightings) == (9100, SOURCE + 100, 100), "what stood before it was there then"


def test_an_event_of_a_later_time_than_now_is_of_now(now: list[float]) -> None:
    """A statement may set its own time, and a source may pass on the events of a server whose clock is ahead."""
    sightings = connected(500, 100.0)
    now[0] = 101.0
    sightings.event(at(600), SOURCE + 86_400)
    assert told(sightings) == (600, SOURCE + 101, 101)


def test_nothing_is_told_without_the_clock_of_the_source(now: list[float]) -> None:
    sightings = StreamSightings()
    sightings.connected(None)
    sightings.event(at(600), SOURCE)
    sightings.at_end(at(600))
    assert sightings.newest is None
    known = connected(500, 100.0)
    known.event(at(600), 0)
    assert told(known)[0] == 500, "an event without a time"
