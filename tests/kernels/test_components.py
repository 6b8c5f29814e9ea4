"""Connected components against the plainest way to find them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unshard.kernels.components import join_equal, join_pairs, settle

MEMBERS = 12
members = st.integers(0, MEMBERS - 1)


def plainly(joined: list[tuple[int, int]]) -> list[int]:
    names = list(range(MEMBERS))
    for one, other in joined:
        low, high = sorted((names[one], names[other]))
        names = [low if name == high else name for name in names]
    return names


@given(st.lists(st.tuples(members, members)), st.lists(st.tuples(members, st.integers(0, 9), st.booleans())))
def test_components_are_named_by_their_smallest_member(
    pairs: list[tuple[int, int]], values: list[tuple[int, int, bool]]
) -> None:
    parents = np.arange(MEMBERS, dtype=np.int32)
    ones, others = (np.array([pair[side] for pair in pairs], dtype=np.int32) for side in (0, 1))
    join_pairs(parents, ones, others)
    which = np.array([value[0] for value in values], dtype=np.int32)
    hashes = np.array([value[1] * 2**60 for value in values], dtype=np.uint64)
    join_equal(parents, which, hashes, np.array([value[2] for value in values], dtype=np.uint8))
    settle(parents)
    known = [(member, value) for member, value, there in values if there]
    equal = [(one, other) for one, value in known for other, again in known if value == again]
    assert parents.tolist() == plainly(pairs + equal)


def test_a_member_that_is_none_is_refused() -> None:
    parents = np.arange(3, dtype=np.int32)
    for wrong in (-1, 3):
        with pytest.raises(ValueError, match="out of range"):
            join_pairs(parents, np.array([0], dtype=np.int32), np.array([wrong], dtype=np.int32))
    with pytest.raises(ValueError, match="lengths"):
        join_pairs(parents, np.array([0], dtype=np.int32), np.array([], dtype=np.int32))
