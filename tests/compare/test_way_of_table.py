"""How the rows of a range are compared: summed up by the servers, or read; whichever is faster for the table."""

from __future__ import annotations

from unshard.compare.executor.chunk import ChunkFinding
from unshard.compare.pace import FEWEST_ROWS, READING_WINS, WayOfTable


def finding(rows: int, seconds: float, *suspects: tuple[str, ...]) -> ChunkFinding:
    return ChunkFinding(rows, rows, suspects, 0, seconds)


def test_both_ways_are_tried_and_then_the_faster_one_is_taken() -> None:
    way = WayOfTable()
    assert [way.reads() for _ in range(4)] == [False, True, False, True]
    way.note(finding(20_000, 1.0), reads=False)
    way.note(finding(20_000, 0.5), reads=True)
    assert way.reads()
    for _ in range(5):
        way.note(finding(20_000, 4.0), reads=True)
    assert not way.reads()


def test_reading_is_not_taken_for_a_small_gain() -> None:
    way = WayOfTable()
    way.note(finding(20_000, 1.0), reads=False)
    way.note(finding(20_000, 1.0 / READING_WINS), reads=True)
    assert not way.reads()


def test_ranges_that_tell_nothing_of_a_way_are_passed_over() -> None:
    way = WayOfTable()
    way.note(finding(FEWEST_ROWS - 1, 0.001), reads=True)
    way.note(finding(20_000, 1.0, ("1",)), reads=False)
    assert way.rates == {}
