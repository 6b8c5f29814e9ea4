"""Honest lag: 0 only when all is known to be applied, growing through every kind of silence."""

from __future__ import annotations

from unshard.model.position import Position
from unshard.sync.lag import FRESH_SECONDS, Lag, Sighting

SOURCE = 5_000_000.0
"""What the source's clock says when ours, which is another one, says 0."""


def at(offset: int) -> Position:
    return Position("mysql-bin.000007", offset)


def sighting(offset: int, now: float) -> Sighting:
    return Sighting(at(offset), SOURCE + now, now)


def test_it_is_unknown_until_something_tells() -> None:
    lag = Lag()
    assert lag.read(at(4), 0, behind=False) is None
    lag.committed(SOURCE - 50)
    assert lag.read(at(4), 0, behind=False) is None, "the source's clock isn't known"
    lag.sighted(sighting(900, 0))
    assert lag.read(at(100), 0, behind=True) == 50
    fresh = Lag()
    fresh.sighted(sighting(900, 0))
    assert fresh.read(at(100), 0, behind=True) is None, "behind, but nobody knows since when"
    assert fresh.read(at(900), 1, behind=False) == 0


def test_a_stalled_target_s_lag_grows_with_the_source_s_clock() -> None:
    lag = Lag()
    lag.committed(SOURCE)
    for now in range(0, 60, 2):
        lag.sighted(sighting(500 + now, now))
        assert lag.read(at(499), now + 1, behind=False) == now + 1


def test_an_idle_source_is_0_and_starts_from_there_when_it_wakes() -> None:
    lag = Lag()
    lag.committed(SOURCE)
    for now in range(0, 3600, 2):
        lag.sighted(sighting(500, now))
        assert lag.read(at(500), now + 1, behind=False) == 0
    assert lag.read(at(500), 3600, behind=True) == 2, "not the hour since its last commit"
    lag.sighted(sighting(700, 3600))
    assert lag.read(at(500), 3601, behind=False) == 3


def test_a_source_out_of_reach_is_never_0() -> None:
    lag = Lag()
    lag.sighted(sighting(500, 0))
    assert lag.read(at(500), 1, behind=False) == 0
    lag.sighted(None)
    assert [lag.read(at(500), now, behind=False) for now in (2, 30, 600)] == [2, 30, 600]
    lag.sighted(sighting(500, 601))
    assert lag.read(at(500), 601, behind=False) == 0


def test_silence_alone_ends_0() -> None:
    lag = Lag()
    lag.sighted(sighting(500, 0))
    assert lag.read(at(500), FRESH_SECONDS, behind=False) == 0
    assert lag.read(at(500), FRESH_SECONDS + 1, behind=False) == FRESH_SECONDS + 1


def test_a_place_that_was_seen_and_is_reached_later_tells_the_moment() -> None:
    lag = Lag()
    for now, offset in enumerate((500, 600, 700)):
        lag.sighted(sighting(offset, now))
    assert lag.read(at(500), 10, behind=True) == 10
    assert lag.read(at(650), 10, behind=True) == 9
    lag.committed(SOURCE + 1.25)
    assert lag.read(at(650), 10, behind=True) == 8.75
    lag.committed(SOURCE - 7)
    assert lag.read(at(650), 10, behind=True) == 8.75, "an older commit time, as of a replica's own, moves nothing back"


def test_our_own_clock_is_never_asked() -> None:
    lag = Lag()
    lag.committed(1000.0)
    lag.sighted(Sighting(at(900), 1003.5, 77_777.0))
    assert lag.read(at(100), 77_778.0, behind=True) == 4.5


def test_sightings_of_a_long_backlog_are_bounded() -> None:
    lag = Lag()
    for now in range(5000):
        lag.sighted(sighting(500 + now, now))
    assert lag.read(at(4), 5000, behind=True) is None
    assert lag.read(at(500 + 4000), 5000, behind=True) == 1000
