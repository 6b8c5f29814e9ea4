"""Keys that several tables have changed, told from hashes in several shares and over several looks."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from unshard.sync.sharding.shared_keys import SharedKeys

STRETCHES = st.lists(st.tuples(st.integers(0, 3), st.lists(st.integers(0, 60), max_size=20)), max_size=12)


def look(shared: SharedKeys, first: list[tuple[int, list[int]]], every: list[tuple[int, list[int]]]) -> set[int]:
    """As `sync.moved` does: what is new, and all of it for each further share."""
    stretches = first
    while True:
        for table, keys in stretches:
            shared.add(np.array(keys, dtype=np.uint64), table)
        stretches = every
        if not shared.begin():
            return set(shared.found.tolist())


def common(stretches: list[tuple[int, list[int]]]) -> set[int]:
    owners: dict[int, set[int]] = {}
    for table, keys in stretches:
        for key in keys:
            owners.setdefault(key, set()).add(table)
    return {key for key, tables in owners.items() if len(tables) > 1}


@pytest.mark.parametrize("most", [4, 16, 10_000])
@settings(max_examples=60)
@given(earlier=STRETCHES, later=STRETCHES)
@example(earlier=[], later=[(0, [0]), (1, [0]), (2, [0, 1])])  # more tables have one hash than are kept
def test_what_several_tables_have_is_found(
    most: int, earlier: list[tuple[int, list[int]]], later: list[tuple[int, list[int]]]
) -> None:
    shared = SharedKeys(most)
    shared.begin()
    assert look(shared, earlier, earlier) == common(earlier)
    if shared.whole:
        shared.more()
        assert look(shared, later, earlier + later) == common(earlier + later)
