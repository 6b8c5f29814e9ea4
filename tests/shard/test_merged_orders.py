"""Statements of several shards that arrive in any order: the target of the end is one, and it always takes all rows.

Small cases are tried in all orders, larger ones in many.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st
from merged_world import A, B, C, World, columns, keys

_PATH = (
    "ADD COLUMN c INT NOT NULL DEFAULT 5",
    "ADD COLUMN d VARCHAR(9)",
    "MODIFY v VARCHAR(40) NOT NULL",
    "MODIFY v VARCHAR(60)",
    "ADD KEY k (v)",
    "DROP COLUMN c",
    "DROP KEY k",
    "MODIFY d VARCHAR(19)",
    "DROP COLUMN d",
)
"""Statements that make sense in this order; a shard may leave out those that come in pairs."""


@st.composite
def plans(draw: st.DrawFn, shards: int, longest: int) -> list[list[str]]:
    """For every shard how far it comes on the way, with barriers in it that all have."""
    path = list(_PATH)
    if draw(st.booleans()):
        path.insert(draw(st.integers(0, len(path))), "ADD CONSTRAINT low CHECK (id < 1000000)")
    return [path[: draw(st.integers(0, min(longest, len(path))))] for _ in range(shards)]


def orders(plan: Sequence[Sequence[str]]) -> Iterator[list[int]]:
    """All interleavings, as numbers of shards."""
    left = [len(statements) for statements in plan]

    def go(order: list[int]) -> Iterator[list[int]]:
        if len(order) == sum(map(len, plan)):
            yield list(order)
        for shard, more in enumerate(left):
            if more:
                left[shard] -= 1
                yield from go([*order, shard])
                left[shard] += 1

    return go([])


def outcome(plan: Sequence[Sequence[str]], order: Sequence[int]) -> tuple[object, ...]:
    """What is the same in every order. Types are not: one that a column had before every shard dropped it stays wide
    only where the next shard adds the column before it is dropped in the target; `check` holds them to the join.
    """
    world = World(*(A, B, C)[: len(plan)])
    statements = [iter(one) for one in plan]
    for shard in order:
        world.alter((A, B, C)[shard], next(statements[shard]))
    waits = {shard: len(requests) for shard, requests in world.waiting.items()}
    return set(columns(world.table.after)), keys(world.table.after), waits, dict(world.table.rules)


@settings(max_examples=15, deadline=None)
@given(plans(2, 4))
def test_every_order_has_one_outcome(plan: list[list[str]]) -> None:
    """The oracle of small cases: all orders are tried."""
    found = [outcome(plan, order) for order in orders(plan)]
    assert all(one == found[0] for one in found), plan


@settings(max_examples=20, deadline=None)
@given(plans(3, 10), st.randoms(use_true_random=False))
def test_many_orders_have_one_outcome(plan: list[list[str]], random: st.DataObject) -> None:
    order = [shard for shard, statements in enumerate(plan) for _ in statements]
    first = outcome(plan, order)
    for _ in range(3):
        random.shuffle(order)  # type: ignore[attr-defined]
        assert outcome(plan, order) == first, (plan, order)


@settings(max_examples=10, deadline=None)
@given(st.randoms(use_true_random=False))
def test_all_shards_that_come_to_the_end_wait_for_nothing(random: st.DataObject) -> None:
    world, at = World(A, B, C), {A: 0, B: 0, C: 0}
    while any(place < len(_PATH) for place in at.values()):
        shard = random.choice([one for one, place in at.items() if place < len(_PATH)])  # type: ignore[attr-defined]
        world.alter(shard, _PATH[at[shard]])
        at[shard] += 1
    assert not world.open
    assert columns(world.table.after) == columns(world.upstream[A])
    assert replace(world.table, version=0).leaving == {}
