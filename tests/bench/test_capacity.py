"""The capacity model, the share that is not parallel, and the simulation, which uses the real scheduler and planner."""

from __future__ import annotations

from dataclasses import replace
from math import inf

import pytest
from bench.capacity_model import Constants, Demand, latency_seconds, line, needs, rate, utilisation
from bench.cluster import serial_share
from bench.simulation import MEASURED, run

CONSTANTS = Constants(0.1, 1e-5, 0.004, 200, 12, 4, 8, 100, 64)


def test_a_line_goes_through_its_points() -> None:
    assert line([(1, 5), (2, 7), (4, 11)]) == pytest.approx((3, 2))
    with pytest.raises(ValueError, match="two different"):
        line([(1, 5), (1, 6)])


def test_rates_latency_and_needs_follow_from_the_constants() -> None:
    demand = Demand(shards=1_000, sources=10, rows_per_s=500_000)
    assert rate(CONSTANTS, 10_000) == pytest.approx(50_000)
    assert utilisation(CONSTANTS, demand) == pytest.approx(0.5)
    assert latency_seconds(CONSTANTS, demand) == pytest.approx(0.3)
    assert needs(CONSTANTS, demand, retained_hours=1) == {
        "utilisation": pytest.approx(0.5),
        "latency_s": pytest.approx(0.3),
        "source_connections": 40,
        "target_connections": 80,
        "driver_mb": pytest.approx(1_062.5),
        "relay_gb": pytest.approx(360),
        "metadata_rows_per_s": pytest.approx(600),
        "start_s": pytest.approx(0.4),
    }
    assert latency_seconds(CONSTANTS, replace(demand, sources=5)) == inf


@pytest.mark.parametrize(("serial", "found"), [(0.0, 0.0), (0.25, 0.25), (1.0, 1.0), (1.5, 1.0)])
def test_the_serial_share_is_found_again(serial: float, found: float) -> None:
    seconds = {n: 40 * (serial + (1 - serial) / n) for n in (1, 2, 4)}
    assert serial_share(seconds) == pytest.approx(found)


def test_ten_thousand_shards_at_a_gigabyte_a_second_are_planned_and_seated() -> None:
    found = run(shards=10_000, sources=250, mb_per_s=1_000, seconds=3)

    assert found["batches"] > 250 * 3
    assert found["moved"] == 5
    assert found["planning_share"] < 0.5, "a driver plans for less than half of its time"
    assert found["lag_s"]["p50"] < 3 * latency_seconds(MEASURED, Demand(10_000, 250, 1e9 / MEASURED.relay_bytes))


def test_sources_of_dead_workers_catch_up() -> None:
    found = run(shards=400, sources=20, mb_per_s=80, seconds=40)

    assert found["lag_after_deaths_s"]["max"] > 8
    assert found["lag_at_the_end_s"]["max"] < 2


def test_sources_that_write_more_than_is_applied_fall_behind() -> None:
    slow = replace(MEASURED, row_s=MEASURED.row_s * 20)
    found = run(shards=100, sources=10, mb_per_s=40, seconds=30, constants=slow)
    assert found["lag_at_the_end_s"]["p50"] > 10
