"""A simulated migration of 10,000 shards: the master's scheduler, the batch sizes and the planner are the real ones,
the servers and Spark are a clock.

Each source writes binlog at a constant rate. A batch takes what is there, up to the budget; it is planned and its
record is made as in production, and it then takes the time of the capacity model, plus the time that the planning
really took. In the middle of the run some workers die. The scheduler moves their sources to spares, which go on after a
pause.
"""

from __future__ import annotations

import heapq
import json
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.capacity_model import Constants
from unshard.binlog.transaction_range import EndOfData, TransactionRange
from unshard.errors import Where
from unshard.master.scheduler import seat
from unshard.master.state import Bound, SourceRow, State, WorkerRow
from unshard.model.position import Location, Position
from unshard.model.table import Column, Index, Table, TableName
from unshard.mysql.connection import Endpoint
from unshard.sync.batch.plan import BatchShape, TablePlan
from unshard.sync.batch.stored_plan import record_of
from unshard.sync.planning.batch_size import Flow
from unshard.sync.planning.planner import Planner
from unshard.sync.planning.target_plan import plan_target
from unshard.sync.source_log.reader import TransactionRows
from unshard.target.meta import MetaTables

MEASURED = Constants(0.1, 7e-6, 0.004, 210, 12, 4, 8, 120, 60)
"""Constants of a machine with two cores that it shares with the servers; `bench capacity` prints those of yours."""

_COLUMNS = (Column("id", "bigint", "bigint(20)", nullable=False), Column("k", "int", "int(11)"))
_KEYS = (Index("PRIMARY", ("id",), (0,), unique=True),)
_TRANSACTION_BYTES = 4_000
_FILE = "mysql-bin.000001"
_SPARES, _DYING = 10, 5
_PAUSE_SECONDS = 8.4
"""From a worker's death until its spare applies the next row, with default leases: `python -m bench failover`."""

_IDLE_SECONDS = 0.01


@dataclass(slots=True)
class _SimulatedSource:
    name: str
    tables: tuple[TablePlan, ...]
    flow: Flow = field(default_factory=Flow)
    applied: float = 0.0
    batches: int = 0
    not_before: float = 0.0


@dataclass(slots=True)
class _Seen:
    plan_seconds: list[float] = field(default_factory=list)
    lags: list[tuple[float, float]] = field(default_factory=list)
    record_bytes: int = 0


def run(
    shards: int = 10_000,
    sources: int = 250,
    mb_per_s: int = 1_000,
    seconds: int = 30,
    constants: Constants = MEASURED,
    parallel: int = 1,
) -> dict[str, Any]:
    """Simulate that many seconds. Returns figures of the plans, lags in simulated seconds, and the scheduler's time.

    `parallel` is how much faster than the constants' machine a source applies rows. `planning_share` is the share of a
    driver's time that planning takes.
    """
    state, seat_seconds = _seated(sources)
    simulated = [
        _SimulatedSource(name, _tables(shards // sources, number)) for number, name in enumerate(sorted(state.sources))
    ]
    planner = Planner("s", MetaTables("dm_meta", "t"), Endpoint("127.0.0.1", 1, "u"), BatchShape(16, 1_000), 4)
    speed = mb_per_s * 1e6 / sources
    byte_s = constants.row_s / constants.relay_bytes / parallel
    seen = _Seen()
    death = seconds / 3
    moved, again = _after_deaths(state, simulated, death)
    events = [(0.0, number) for number in range(sources)]
    while events:
        now, number = heapq.heappop(events)
        source = simulated[number]
        if now >= seconds:
            continue
        if now >= death and now < source.not_before:
            heapq.heappush(events, (source.not_before, number))
            continue
        size = int(min(now * speed - source.applied, source.flow.budget_bytes))
        if size < _TRANSACTION_BYTES:
            heapq.heappush(events, (now + _IDLE_SECONDS, number))
            continue
        planned = _plan(planner, source, size, seen)
        took = constants.batch_s + size * byte_s + planned
        seen.lags.append((now, now + took - source.applied / speed))
        source.applied += size
        source.flow = source.flow.after(size, took)
        heapq.heappush(events, (now + took, number))
    return {
        "shards": shards,
        "sources": sources,
        "binlog_mb_per_s": mb_per_s,
        "batches": sum(source.batches for source in simulated),
        "plan_ms": _quantiles([1000 * value for value in seen.plan_seconds]),
        "planning_share": round(sum(seen.plan_seconds) / sources / seconds, 4),
        "record_mb_per_s": round(seen.record_bytes / seconds / 1e6, 2),
        "lag_s": _quantiles([lag for at, lag in seen.lags if at < death]),
        "lag_after_deaths_s": _quantiles([lag for at, lag in seen.lags if at >= death]),
        "lag_at_the_end_s": _quantiles([seconds - source.applied / speed for source in simulated]),
        "moved": moved,
        "seat_ms": round(1000 * seat_seconds, 1),
        "seat_again_ms": round(1000 * again, 1),
    }


def _plan(planner: Planner, source: _SimulatedSource, size: int, seen: _Seen) -> float:
    """Plan a batch and make its record. Returns the seconds that it really took."""
    begun = time.perf_counter()
    start = 4 + int(source.applied)
    names = frozenset(table.table.name for table in source.tables)
    log_range = TransactionRange(
        start, start + size, size // _TRANSACTION_BYTES, size // _TRANSACTION_BYTES, names, 0, 0.0, (), EndOfData()
    )
    end = Location(Position(_FILE, start + size))
    work = TransactionRows(Position(_FILE, start), end, Path("/relay") / _FILE, True, log_range)
    source.batches += 1
    record = json.dumps(record_of(planner.plan(work, source.tables, 1, source.batches)))
    took = time.perf_counter() - begun
    seen.plan_seconds.append(took)
    seen.record_bytes += len(record)
    return took


def _seated(sources: int) -> tuple[State, float]:
    """Return the cluster with a worker for each source, and spares; and the seconds that the scheduler took."""
    workers = {f"w{number}": WorkerRow(f"w{number}", f"host{number // 4}:8262") for number in range(sources + _SPARES)}
    state = State(sources={f"s{number}": SourceRow(f"s{number}", "") for number in range(sources)}, workers=workers)
    begun = time.perf_counter()
    assigned = seat(state, list(workers))
    took = time.perf_counter() - begun
    state = State(
        sources=state.sources,
        workers=workers,
        bounds={source: Bound(source, worker, number) for number, (source, worker) in enumerate(assigned.bind, 1)},
    )
    return state, took


def _after_deaths(state: State, simulated: list[_SimulatedSource], death: float) -> tuple[int, float]:
    """Let some workers die at that time. Returns how many sources have a worker again, and the scheduler's seconds."""
    dead = {bound.worker for _, bound in sorted(state.bounds.items())[:_DYING]}
    begun = time.perf_counter()
    assigned = seat(state, [name for name in state.workers if name not in dead])
    took = time.perf_counter() - begun
    moved = {source for source, _ in assigned.bind}
    for source in simulated:
        if source.name in moved:
            source.not_before = death + _PAUSE_SECONDS
    return len(moved), took


def _tables(count: int, number: int) -> tuple[TablePlan, ...]:
    target = Table(TableName("merged", "t"), _COLUMNS, _KEYS)
    shards = [Table(TableName(f"shard_{number}", f"t_{place}"), _COLUMNS, _KEYS) for place in range(count)]
    return tuple(TablePlan(table, plan_target(table, target, Where()), id=place) for place, table in enumerate(shards))


def _quantiles(values: list[float]) -> dict[str, float]:
    ordered = sorted(values)
    if not ordered:
        return {}
    places = {"p50": len(ordered) // 2, "p99": len(ordered) * 99 // 100, "max": len(ordered) - 1}
    return {name: round(ordered[place], 2) for name, place in places.items()}
