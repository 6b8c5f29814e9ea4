"""The size of batches against targets of all speeds."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unshard.sync.planning.batch_size import FIRST_BYTES, LARGEST_BYTES, SLOW_SECONDS, SMALLEST_BYTES, Flow

MIB = 1 << 20


def settled(bytes_per_second: float, fixed_seconds: float = 0.2, batches: int = 30) -> list[float]:
    """Seconds of each batch of an endless backlog, against a target of that speed."""
    flow, taken = Flow(), []
    for _ in range(batches):
        taken.append(fixed_seconds + flow.budget_bytes / bytes_per_second)
        flow = flow.after(flow.budget_bytes, taken[-1])
    return taken


def test_a_quick_target_gets_the_largest_batches_soon() -> None:
    flow = Flow()
    for _ in range(4):
        flow = flow.after(flow.budget_bytes, 0.5)
    assert flow.budget_bytes == LARGEST_BYTES
    assert flow.after(LARGEST_BYTES, 0.5) == flow


@pytest.mark.parametrize("speed", [60e3, 300e3, 2e6, 16e6, 100e6])
def test_batches_settle_below_the_slow_mark(speed: float) -> None:
    taken = settled(speed)
    assert all(seconds <= SLOW_SECONDS for seconds in taken[5:])


def test_what_has_come_in_says_nothing_of_a_backlog() -> None:
    assert Flow().after(20_000, 0.14) == Flow()


def test_one_slow_batch_is_enough() -> None:
    assert Flow(16 * MIB).after(16 * MIB, 40.0) == Flow(MIB)
    assert Flow(16 * MIB).after(20_000, 50.0) == Flow(SMALLEST_BYTES)


def test_a_large_transaction_is_judged_by_its_rate() -> None:
    assert Flow(FIRST_BYTES).after(1 << 30, 60.0) == Flow(FIRST_BYTES)
    assert Flow(FIRST_BYTES).after(1 << 30, 60000.0) == Flow(SMALLEST_BYTES)


@given(
    budget=st.integers(SMALLEST_BYTES, LARGEST_BYTES),
    size=st.integers(0, 1 << 34),
    seconds=st.floats(0, 1e5),
)
def test_the_bounds_hold(budget: int, size: int, seconds: float) -> None:
    assert SMALLEST_BYTES <= Flow(budget).after(size, seconds).budget_bytes <= LARGEST_BYTES
