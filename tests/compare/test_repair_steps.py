"""The order in which rows are repaired: a row after those that hold its new unique values, circles as one."""

from __future__ import annotations

import random

from unshard.compare.executor.unique_values import UniqueValues
from unshard.compare.repair_steps import RepairStep, repair_steps


def row(has: str = "", gets: str = "") -> UniqueValues:
    """A row; each letter is a value of one unique key."""
    return UniqueValues(frozenset(("u", one) for one in has), frozenset(("u", one) for one in gets))


def test_rows_that_hold_nothing_of_others_keep_their_order() -> None:
    assert repair_steps([row("a"), row("b", "c"), row("", "d")], 2) == [RepairStep((0, 1)), RepairStep((2,))]


def test_a_row_waits_for_the_one_that_holds_its_value() -> None:
    assert repair_steps([row("a", "b"), row("b", "c"), row("c", "d"), row("", "a")], 9) == [RepairStep((2, 1, 0, 3))]


def test_a_row_that_keeps_its_value_is_not_waited_for() -> None:
    assert repair_steps([row("a", "b"), row("b", "b")], 9) == [RepairStep((0, 1))]


def test_circles_are_not_cut_and_come_between_those_that_free_them_and_those_that_wait() -> None:
    waiting, freeing, plain = row("", "z"), row("q"), row("x", "y")
    first, second, third = row("az", "b"), row("b", "c"), row("c", "aq")
    other, its = row("k", "l"), row("l", "k")
    assert repair_steps([waiting, first, other, second, third, its, freeing, plain], 2) == [
        RepairStep((6, 7)),
        RepairStep((1, 3, 4), exchanged=True),
        RepairStep((2, 5), exchanged=True),
        RepairStep((0,)),
    ]


def test_small_circles_share_a_step() -> None:
    rows = [row("a", "b"), row("b", "a"), row("c", "d"), row("d", "c")]
    assert repair_steps(rows, 4) == [RepairStep((0, 1, 2, 3), exchanged=True)]


def test_any_exchange_of_values_can_be_written_in_these_steps() -> None:
    for seed in range(300):
        values = [chr(ord("a") + number) for number in range(12)]
        random.Random(seed).shuffle(values)
        before, after = values[:8], random.Random(-seed).sample(values, 8)
        rows = [row(one if at % 4 else "", two) for at, (one, two) in enumerate(zip(before, after, strict=True))]
        held = {number: set(one.has) for number, one in enumerate(rows)}
        for step in repair_steps(rows, 3):
            if step.exchanged:
                for number in step.rows:
                    held[number] = set()
            for number in step.rows:
                taken = set().union(*(its for other, its in held.items() if other != number))
                assert not rows[number].gets & taken, (seed, number)
                held[number] = set(rows[number].gets)
        assert [held[number] for number in range(len(rows))] == [set(one.gets) for one in rows]
