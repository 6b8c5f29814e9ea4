"""A source fails over while it is compared: the comparison goes on with the server that the task goes on with."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from support.comparisons import compared, kinds, only_table
from support.replicas import Pair, replicated
from support.task_runs import TaskFiles, TaskRun
from support.waiting import wait_until
from unshard.compare import chase
from unshard.compare.places import wait_until_passed
from unshard.testing.hold import row_held, stands_still
from unshard.testing.proxy import FaultProxy
from unshard.testing.throwaway_server import ThrowawayServer

pytestmark = [pytest.mark.server, pytest.mark.spark, pytest.mark.recovery, pytest.mark.faults]


@pytest.fixture
def pair() -> Iterator[Pair]:
    with replicated() as pair:
        yield pair


def test_no_false_alarm_and_no_miss_while_a_source_fails_over(
    pair: Pair,
    target_server: ThrowawayServer,
    schema: str,
    tmp_path: Path,
    spark: SparkSession,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pair.primary.run(
        f"CREATE DATABASE {schema}",
        f"CREATE TABLE {schema}.t (id INT PRIMARY KEY, v INT)",
        f"INSERT INTO {schema}.t SELECT seq, seq FROM mysql.seq_1_to_50",
    )
    waits = threading.Event()

    def told(*words: Any) -> frozenset[str]:
        waits.set()
        return wait_until_passed(*words)

    monkeypatch.setattr(chase, "wait_until_passed", told)
    with FaultProxy("127.0.0.1", pair.primary.port) as proxy:
        source = {"enable-gtid": True, "from": {"host": "127.0.0.1", "user": "root", "port": proxy.port}}
        files = TaskFiles(tmp_path, f"task_{schema}", {"s1": pair.primary}, target_server, (schema,), source=source)
        files.write()
        try:
            with TaskRun(files, spark) as run, ThreadPoolExecutor() as threads:
                run.catch_up()
                target_server.run(f"DELETE FROM {schema}.t WHERE id = 45")
                with row_held(target_server, f"{schema}.t"):
                    pair.primary.run(f"UPDATE {schema}.t SET v = v + 100 WHERE id < 20")
                    wait_until(lambda: stands_still(target_server), "in the middle of a batch")
                    found = threads.submit(compared, files, spark, patience_seconds=90.0)
                    wait_until(waits.is_set, "the comparison waits for a place of the old server")
                    pair.promote()
                    proxy.lead_to("127.0.0.1", pair.replica.port)
                    pair.replica.run(f"UPDATE {schema}.t SET v = v + 100 WHERE id BETWEEN 10 AND 30")
                run.files = replace(files, sources={"s1": pair.replica})
                run.catch_up()
                outcome = found.result()
                assert kinds(only_table(outcome)) == {"id=45": "missing"}, outcome.to_dict()
        finally:
            target_server.run(f"DROP DATABASE IF EXISTS {schema}", f"DROP DATABASE IF EXISTS {files.meta}")
