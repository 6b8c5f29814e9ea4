"""The throttle of a target: shares that never add up to more than the limits, and the rate on a real server."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from threading import Event, Lock, Thread
from typing import Any

import pytest

from support.reference import RowChange
from support.row_batches import Target, encoded
from support.server_clock import clock
from unshard.metrics.events import EVENTS
from unshard.model.change import Op
from unshard.model.table import TableName
from unshard.sync.batch.plan import BatchPlan, BatchShape
from unshard.sync.batch.row_counts import LedgerReport
from unshard.sync.batch.throttle import TargetLimits, Throttle
from unshard.sync.steps.pacer import Pacer
from unshard.sync.steps.pipeline import apply_partitions, pacer_of
from unshard.target import writer
from unshard.target.rate_limiter import WAITED
from unshard.target.writer import KeptWriter
from unshard.testing.mariadb_server import MariadbServer

TABLES = {"a": "id INT PRIMARY KEY", "b": "id INT PRIMARY KEY"}


def test_a_batch_alone_has_all_of_it() -> None:
    with Throttle(TargetLimits(1000, 10)).share() as share:
        assert share == TargetLimits(1000, 10)


def test_who_comes_later_waits_and_then_shares_evenly() -> None:
    throttle, entered = Throttle(TargetLimits(1000, 10)), Event()
    found: list[TargetLimits] = []

    def later() -> None:
        with throttle.share() as share:
            found.append(share)
            entered.set()

    with throttle.share():
        thread = Thread(target=later)
        thread.start()
        assert not entered.wait(0.2)
    thread.join()
    assert found == [TargetLimits(1000, 10)]


def test_shares_at_the_same_time_never_add_up_to_more() -> None:
    throttle, lock = Throttle(TargetLimits(1000, 7)), Lock()
    now: list[TargetLimits] = []
    most: list[tuple[float, int]] = []
    turns = Event()  # the others go on meanwhile

    def source(_: int) -> None:
        for _ in range(30):
            with throttle.share() as share:
                with lock:
                    now.append(share)
                    most.append((sum(one.rows_per_second for one in now), sum(one.connections for one in now)))
                turns.wait(0.001)
                with lock:
                    now.remove(share)

    with ThreadPoolExecutor(12) as threads:
        list(threads.map(source, range(12)))
    assert len(most) == 360
    assert max(rows for rows, _ in most) <= 1000.01
    assert max(connections for _, connections in most) <= 7


def test_without_limits_nothing_comes_between() -> None:
    def run(plan: BatchPlan) -> list[LedgerReport]:
        return []

    assert Throttle(TargetLimits()).around(run) is run


def test_a_pacer_makes_up_for_the_time_that_writing_took() -> None:
    now = 100.0
    slept: list[float] = []
    pacer = Pacer(50, slept.append, lambda: now)
    pacer.wait(10, seconds=0.05)
    pacer.wait(10, seconds=0.0)
    assert slept == pytest.approx([0.15, 0.35])
    now = 200.0
    pacer.wait(10, seconds=0.4)
    assert len(slept) == 2


def test_no_rate_is_no_pacer() -> None:
    assert pacer_of(0) is None
    paced = pacer_of(50)
    assert paced is not None
    assert paced.rate == 50


@pytest.fixture(scope="module")
def place(target_server: MariadbServer) -> Iterator[Target]:
    found = Target(target_server, "throttled", TABLES)
    yield found
    found.connection.close()


def seconds_of(place: Target, throttle: Throttle, rows: int) -> float:
    """Write that many rows to both tables at once, a source and four partitions each; the server's seconds it took."""

    def write(table: str) -> None:
        changes = [RowChange(TableName("throttled", table), Op.INSERT, after=(n,)) for n in range(rows)]

        def run(plan: BatchPlan) -> list[LedgerReport]:
            for share in range(plan.shares):
                apply_partitions(plan, encoded(plan, changes), dict.fromkeys(plan.partitions_of(share), 0))
            return []

        target = plan.target.with_session(sort_buffer_size=str(100_000 + ord(table)))  # connections of its own
        throttle.around(run)(replace(plan, receipts=False, target=target))

    for table in TABLES:
        place.fill(table, [])
    plan = place.batch(BatchShape(4, 50))
    begun = clock(place.server)
    with ThreadPoolExecutor(2) as threads:
        list(threads.map(write, TABLES))
    return clock(place.server) - begun


@pytest.mark.server
def test_the_rate_of_two_sources_together_is_held(place: Target) -> None:
    seconds = seconds_of(place, Throttle(TargetLimits(3000)), 600)
    assert len(place.rows("a")) == len(place.rows("b")) == 600
    assert seconds >= 1200 / 3000
    waited = EVENTS.values(WAITED)
    assert waited
    seconds_of(place, Throttle(TargetLimits()), 600)
    assert EVENTS.values(WAITED) == waited, "without a limit nothing is waited for"


class Counted(dict[KeptWriter, Any]):
    """The process's connections; `most` is how many of the throttled account there were at once.

    The first of them waits for a second one.
    """

    def __init__(self, known: dict[KeptWriter, Any]) -> None:
        super().__init__(known)
        self.most = 0
        self.two = Event()

    def __setitem__(self, kept: KeptWriter, connection: Any) -> None:
        super().__setitem__(kept, connection)
        self.most = max(self.most, self.throttled)
        if kept.endpoint.user == "throttled":
            if self.most >= 2:
                self.two.set()
            assert self.two.wait(60), "one at a time"

    @property
    def throttled(self) -> int:
        return sum(kept.endpoint.user == "throttled" for kept in list(self))


@pytest.mark.server
def test_the_connections_are_never_more(place: Target, monkeypatch: pytest.MonkeyPatch) -> None:
    place.server.run("CREATE USER throttled@'%'", "GRANT ALL ON *.* TO throttled@'%'")
    plan = place.batch(BatchShape(8, 20))
    plan = replace(plan, target=replace(plan.target, user="throttled", password=""), connections=2)
    changes = [RowChange(TableName("throttled", "a"), Op.INSERT, after=(n,)) for n in range(2000)]
    place.fill("a", [])
    kept = Counted(writer._kept)
    monkeypatch.setattr(writer, "_kept", kept)
    apply_partitions(plan, encoded(plan, changes), dict.fromkeys(range(8), 0))
    assert len(place.rows("a")) == 2000
    assert kept.most == 2
    assert kept.throttled == 0
