"""The network to either end is cut, stalls, or loses the end of a reply, in each unit: nothing hangs or is lost."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from support.exactly_once import assert_exactly_once
from support.task_runs import TaskFiles, TaskRun, at_work
from support.waiting import wait_until
from unshard.dump.metadata import DumpResult
from unshard.dump.unit import Crossed, DumpUnit
from unshard.mysql.endpoint import to_endpoint
from unshard.relay.unit import RelayUnit
from unshard.testing.hold import row_held, stands_still
from unshard.testing.mariadb_server import MariadbServer
from unshard.testing.proxy import FaultProxy
from unshard.testing.workload import Workload, WorkPlan

pytestmark = [pytest.mark.server, pytest.mark.spark, pytest.mark.recovery, pytest.mark.faults]
PATIENCE_SECONDS = 3


@pytest.fixture
def upstream(source: MariadbServer) -> Iterator[FaultProxy]:
    with FaultProxy("127.0.0.1", source.port) as proxy:
        yield proxy


@pytest.fixture
def downstream(target: MariadbServer) -> Iterator[FaultProxy]:
    with FaultProxy("127.0.0.1", target.port) as proxy:
        yield proxy


@pytest.fixture
def work(source: MariadbServer, schema: str) -> Workload:
    made = Workload(source, WorkPlan(schema, threads=1, large_rows=100))
    made.create()
    made.fill(400)
    return made


def run_through(
    files: TaskFiles,
    upstream: FaultProxy,
    downstream: FaultProxy,
    spark: SparkSession,
    monkeypatch: pytest.MonkeyPatch,
) -> TaskRun:
    """The task behind both proxies, with less patience than a user's: no statement of these tests takes seconds."""
    monkeypatch.setattr(
        "unshard.worker.build.to_endpoint",
        lambda config: replace(to_endpoint(config), patience_seconds=PATIENCE_SECONDS),
    )
    database = {"host": "127.0.0.1", "user": "root"}
    behind = replace(
        files,
        source={"from": {**database, "port": upstream.port}},
        keys={**files.keys, "target-database": {**database, "port": downstream.port}},
    )
    run = TaskRun(behind.write(), spark)
    relay = run.crew.subtasks[0].relay
    assert isinstance(relay, RelayUnit)
    relay._heartbeat_seconds = 0.5
    return run


@contextmanager
def dump_harmed(monkeypatch: pytest.MonkeyPatch, proxy: FaultProxy, each: int) -> Iterator[None]:
    """After `each` bytes of the dump the rest of a reply is lost, and after as many again nothing comes any more.

    All is set up as the dump begins, by its own thread: a quick one is over before another has seen that. The rows
    have to be of many times that size: one of the cut may be met by the relay, which is no part of them.
    """
    dump, begun = DumpUnit.run_apart_from, threading.Event()

    def run(unit: DumpUnit, crossed: Crossed) -> DumpResult | None:
        if not begun.is_set():
            begun.set()
            proxy.cut_after(each, then_stall_after=each)
        return dump(unit, crossed)

    with monkeypatch.context() as patch:
        patch.setattr(DumpUnit, "run_apart_from", run)
        yield


def stall(proxy: FaultProxy) -> None:
    """Nothing comes through until somebody has given up, and met the same silence on a new connection."""
    known = proxy.accepted
    proxy.stall()
    wait_until(lambda: proxy.accepted > known, "a new connection")
    proxy.flow()


@contextmanager
def row_to_come(server: MariadbServer, insert: str) -> Iterator[None]:
    """Whoever writes the same row waits; it is not kept."""
    connection = server.connection()
    connection.autocommit(False)
    try:
        with connection.cursor() as cursor:
            cursor.execute(insert)
            yield
    finally:
        connection.close()


@pytest.mark.parametrize("consistency", ["auto", "flush", "none"])
def test_the_source_in_a_dump(
    consistency: str,
    work: Workload,
    source: MariadbServer,
    target: MariadbServer,
    upstream: FaultProxy,
    downstream: FaultProxy,
    schema: str,
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    files = TaskFiles(
        tmp_path,
        schema,
        {"s1": source},
        target,
        (f"{schema}_1",),
        keys={"mydumpers": {"own": {"extra-args": f"--consistency {consistency}"}}},
        instance={"mydumper-config-name": "own"},
        syncer={"compact": False, "batch": 20, "worker-count": 2},
    )
    run = run_through(files, upstream, downstream, spark, monkeypatch)
    assert sum(len(str(row)) for name in work.plan.names for row in source.query(f"SELECT * FROM {name}")) > 150_000
    with dump_harmed(monkeypatch, upstream, 20_000), run:
        wait_until(lambda: upstream.has_stalled() or run.crew.ended.is_set(), "truncated, then stalled")
        stall(upstream)
        run.reach("sync")
        work.run(transactions=20)
        run.catch_up()
    assert_exactly_once(source, target, work.plan.names)


def test_the_target_in_a_load_and_both_ends_while_following(
    work: Workload,
    source: MariadbServer,
    target: MariadbServer,
    upstream: FaultProxy,
    downstream: FaultProxy,
    schema: str,
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    first, second = work.plan.names
    syncer = {"compact": False, "batch": 20, "worker-count": 2}
    files = TaskFiles(tmp_path, schema, {"s1": source}, target, (f"{schema}_1",), syncer=syncer)
    target.run(f"CREATE DATABASE {first.schema}")
    ((_, create),) = source.query(f"SHOW CREATE TABLE {first.quoted}")
    target.run(create, database=first.schema)
    with run_through(files, upstream, downstream, spark, monkeypatch) as run:
        with row_to_come(target, f"INSERT INTO {first.quoted} (id) VALUES (1)"):
            run.reach("load")
            wait_until(lambda: stands_still(target), "in the middle of the load")
            downstream.cut()
            wait_until(lambda: stands_still(target), "in the middle of the load again")
            stall(downstream)
            downstream.cut_after(40)
            wait_until(downstream.has_cut, "truncated")
        run.reach("sync")
        with at_work(work, share=0.1):
            for count in (11, 90, 300, 1, 700, 2000, 45, 5000):
                downstream.cut_after(count)
                wait_until(downstream.has_cut, "truncated")
            upstream.cut_after(4000)
            wait_until(upstream.has_cut, "truncated")
            stall(downstream)
            stall(upstream)
        for number, count in enumerate((0, 20, 200, 1000)):
            run.catch_up()
            downstream.cut_after(count)
            source.run(f"ALTER TABLE {second.quoted} ADD later_{number} INT, ADD KEY (k, later_{number})")
            wait_until(downstream.has_cut, "truncated in a statement")
        for number, count in enumerate((200, 300, 400, 500)):
            run.catch_up()
            upstream.cut_after(count)
            source.run(f"CREATE TABLE {first.schema}.made_{number} (id INT PRIMARY KEY, v VARCHAR(9))")
            wait_until(upstream.has_cut, "truncated around a statement")
        with row_held(target, first.quoted):
            source.run(f"UPDATE {first.quoted} SET k = k + 1")
            wait_until(lambda: stands_still(target), "in the middle of a batch")
            downstream.cut()
            upstream.cut()
        run.catch_up()
    assert_exactly_once(source, target, work.plan.names)
