"""Safe mode's rules, each a line of a table, and what must hold for any exit point, duration and position."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unshard.errors import SyncError, Where
from unshard.model.position import Location, Position
from unshard.model.table import Table, TableName
from unshard.sync.batch.plan import TablePlan, TargetPlan
from unshard.sync.checkpoint.safe_mode import DUMP, Delivery, begin, check_repeatable, needs_bound, read_together
from unshard.target.checkpoint import Checkpoint, ExitPoint, TableCheckpoint

ONCE, AT_LEAST = Delivery(), Delivery(exactly_once=False)
ALWAYS = Delivery(exactly_once=False, safe_mode=True)
NEVER = Delivery(exactly_once=False, duration=0.0)


def at(offset: int) -> Location:
    return Location(Position("bin.000001", offset))


def checkpoint(exit_at: int | None, *, exact: bool = True) -> Checkpoint:
    return Checkpoint(at(100), exit_point=None if exit_at is None else ExitPoint(at(exit_at)), exact=exact)


# delivery, exit point, seconds since the first change, position of a change: is it on?
RULES = [
    ("a new or resumed task: for the duration", AT_LEAST, None, 0, 100, True),
    ("nearly over", AT_LEAST, None, 59, 9000, True),
    ("behind the duration: off", AT_LEAST, None, 60, 100, False),
    ("duration 0s: never", NEVER, None, 0, 100, False),
    ("stopped in good order: exit point is the checkpoint", AT_LEAST, 100, 0, 100, False),
    ("the same with 0s", NEVER, 100, 0, 100, False),
    ("stopped by an error: until the exit point", AT_LEAST, 500, 0, 100, True),
    ("however long that takes", AT_LEAST, 500, 9999, 499, True),
    ("at the exit point: off", AT_LEAST, 500, 0, 500, False),
    ("behind it: off", AT_LEAST, 500, 0, 501, False),
    ("by hand: always", ALWAYS, None, 9999, 9999, True),
    ("by hand, behind the exit point", ALWAYS, 500, 9999, 9999, True),
    ("by hand, stopped in good order", ALWAYS, 100, 0, 100, True),
    ("exactly once: a new or resumed task", ONCE, None, 0, 100, False),
    ("exactly once: a dump without a lock", ONCE, 500, 9999, 499, True),
    ("exactly once: behind such a dump", ONCE, 500, 0, 500, False),
    ("exactly once, by hand", Delivery(safe_mode=True), None, 9999, 9999, True),
]


@pytest.mark.parametrize(("delivery", "exit_at", "seconds", "offset", "on"), [r[1:] for r in RULES], ids=lambda v: "")
def test_a_rule(delivery: Delivery, exit_at: int | None, seconds: float, offset: int, on: bool) -> None:
    mode = begin(delivery, checkpoint(exit_at), "s1").first_change(1000.0)
    assert bool(mode.reasons(at(offset).position, 1000.0 + seconds)) is on


@pytest.mark.parametrize("delivery", [NEVER, Delivery(duration=0.0)])
def test_an_exit_point_ahead_and_no_time_for_safe_mode_is_dms_36071(delivery: Delivery) -> None:
    with pytest.raises(SyncError, match="SYNC-045") as caught:
        begin(delivery, checkpoint(500), "s1")
    assert "36071" in str(caught.value)
    assert "bin.000001:500" in str(caught.value)


def test_exactly_once_takes_no_clock_for_how_far_the_target_may_be() -> None:
    assert needs_bound(ONCE, checkpoint(None, exact=False))
    assert not needs_bound(ONCE, checkpoint(None))
    assert not needs_bound(ONCE, checkpoint(100, exact=False))
    assert not needs_bound(AT_LEAST, checkpoint(None, exact=False))


def test_the_clock_starts_with_the_first_change() -> None:
    waiting = begin(AT_LEAST, checkpoint(None), "s1")
    assert waiting.timed(5000.0)
    running = waiting.first_change(5000.0)
    assert running.first_change(5030.0) == running
    assert running.timed(5059.0)
    assert not running.timed(5060.0)


@given(st.booleans(), st.booleans(), st.none() | st.integers(100, 300), st.floats(1, 100), st.data())
def test_it_goes_off_once_and_for_all(
    once: bool, manual: bool, exit_at: int | None, duration: float, data: st.DataObject
) -> None:
    mode = begin(Delivery(once, manual, duration), checkpoint(exit_at), "s1").first_change(0.0)
    times = sorted(data.draw(st.lists(st.floats(0, 200), min_size=1, max_size=20)))
    places = sorted(data.draw(st.lists(st.integers(100, 400), min_size=len(times), max_size=len(times))))
    states = []
    for now, offset in zip(times, places, strict=True):
        mode = mode.passed(at(offset).position)
        states.append(bool(mode.reasons(at(offset).position, now)))
        assert not (exit_at is not None and offset < exit_at and not states[-1]), "off before the exit point"
    assert states == sorted(states, reverse=True)
    assert all(states) or not manual


@given(st.none() | st.integers(100, 300), st.integers(100, 400))
def test_an_exit_point_only_moves_on(exit_at: int | None, end: int) -> None:
    mode = begin(AT_LEAST, checkpoint(exit_at), "s1").beyond(at(end), "error")
    assert mode.exit_point is not None
    assert mode.exit_point.location.position.offset == max(end, exit_at if exit_at not in (None, 100) else 0)


def test_what_can_not_be_repeated_is_refused() -> None:
    name = TableName("a", "t")
    keyed = TablePlan(Table(name, ()), TargetPlan(0, name, ("a",), ("a",)))
    keyless = TablePlan(Table(name, ()), TargetPlan(0, name, ("a",), ("a",), ordered=True, keyless=True))
    where = Where("s1")
    check_repeatable([keyless, keyed], ONCE, where, safe=False)
    check_repeatable([keyed], AT_LEAST, where, safe=True)
    check_repeatable([keyed], AT_LEAST, where, safe=False)
    for delivery, safe in ((ONCE, True), (AT_LEAST, True), (AT_LEAST, False)):
        with pytest.raises(SyncError, match=r"SYNC-043.*a\.t"):
            check_repeatable([keyed, keyless], delivery, where, safe=safe)


def test_merged_tables_with_snapshots_of_their_own_are_read_together() -> None:
    """In safe mode up to the last of theirs; a table that merges with none keeps its own."""
    a, b, c = (TableName("s", name) for name in "abc")
    places = {a: 100, b: 300, c: 400}
    copied = Checkpoint(at(100), {name: TableCheckpoint(None, at(place)) for name, place in places.items()})
    start = read_together(copied, lambda name: c if name == c else TableName("s", "all"))
    assert start.exit_point == ExitPoint(at(300), DUMP)
    assert {name: state.location for name, state in start.tables.items()} == {a: at(100), b: at(100), c: at(400)}
    assert read_together(copied, lambda name: name) == copied
