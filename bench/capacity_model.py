"""What a migration needs, as functions of its shards, sources and rows. Pure; `bench.capacity` fits the constants."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Constants:
    """Measured on one machine with one target.

    `batch_s`: a batch costs that much besides its rows. `row_s`: each row of a large batch. `table_s`: each table at
    its first change. `relay_bytes`: the binlog of a row. `metadata_rows`: rows that a batch writes to the meta schema.
    `source_connections`, `target_connections`: of one source. `driver_mb`: the driver with one source, `table_kb`: what
    each table adds to it.
    """

    batch_s: float
    row_s: float
    table_s: float
    relay_bytes: float
    metadata_rows: float
    source_connections: int
    target_connections: int
    driver_mb: float
    table_kb: float


@dataclass(frozen=True, slots=True)
class Demand:
    """A migration: all shards together change `rows_per_s`, spread evenly over the sources and their tables."""

    shards: int
    sources: int
    rows_per_s: float


def batch_seconds(constants: Constants, rows: float) -> float:
    """Return the seconds of a batch of one source."""
    return constants.batch_s + rows * constants.row_s


def rate(constants: Constants, rows: float) -> float:
    """Return the rows/s of one source whose batches have that many rows."""
    return rows / batch_seconds(constants, rows)


def utilisation(constants: Constants, demand: Demand) -> float:
    """Return the share of a source's time that its rows need. From 1 on it falls behind without end."""
    return demand.rows_per_s / demand.sources * constants.row_s


def latency_seconds(constants: Constants, demand: Demand) -> float:
    """Return the mean time from commit to visible: half a batch is waited for, and one is applied.

    A batch has the rows that came in during the one before, so its time t satisfies t = batch_s + rows/s · t · row_s.
    Returns infinity where the source falls behind.
    """
    used = utilisation(constants, demand)
    return 1.5 * constants.batch_s / (1 - used) if used < 1 else float("inf")


def needs(constants: Constants, demand: Demand, retained_hours: float = 24) -> dict[str, float]:
    """Return what the demand needs: connections at each end, memory, disk and writes of metadata.

    `relay_gb` is the disk of all relay logs if they are kept for that many hours; `driver_mb` is the memory of all
    drivers, each with one source; `start_s` is the time in which one driver has met each of its tables.
    """
    period = latency_seconds(constants, demand) / 1.5
    tables = demand.shards / demand.sources
    return {
        "utilisation": utilisation(constants, demand),
        "latency_s": latency_seconds(constants, demand),
        "source_connections": demand.sources * constants.source_connections,
        "target_connections": demand.sources * constants.target_connections,
        "driver_mb": demand.sources * constants.driver_mb + demand.shards * constants.table_kb / 1024,
        "relay_gb": demand.rows_per_s * constants.relay_bytes * 3600 * retained_hours / 1e9,
        "metadata_rows_per_s": demand.sources * constants.metadata_rows / period,
        "start_s": tables * constants.table_s,
    }


def line(points: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """Return intercept and slope of the least-squares line through points. Raises ValueError for fewer than two x."""
    count = len(points)
    mean_x, mean_y = sum(x for x, _ in points) / count, sum(y for _, y in points) / count
    spread = sum((x - mean_x) ** 2 for x, _ in points)
    if not spread:
        raise ValueError("a line needs two different values of x")
    slope = sum((x - mean_x) * (y - mean_y) for x, y in points) / spread
    return mean_y - slope * mean_x, slope
