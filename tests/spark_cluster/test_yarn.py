"""The same task on YARN, with a real ResourceManager and NodeManager: copied, followed, each change applied once."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from support.exactly_once import assert_exactly_once
from support.task_runs import Command, TaskFiles
from support.waiting import wait_until
from support.yarn_cluster import YarnCluster
from unshard.testing.hold import row_held, stands_still
from unshard.testing.mariadb_server import MariadbServer
from unshard.testing.shapes import SHAPES
from unshard.testing.workload import Workload, WorkPlan

pytestmark = [pytest.mark.server, pytest.mark.spark, pytest.mark.recovery, pytest.mark.maven, pytest.mark.cluster]
ROOT = Path(__file__).parents[2]


@pytest.fixture
def yarn(monkeypatch: pytest.MonkeyPatch) -> Iterator[YarnCluster]:
    subprocess.run([str(ROOT / "tools" / "test-servers"), "yarn"], check=True)
    with YarnCluster() as cluster:
        monkeypatch.setenv("HADOOP_CONF_DIR", str(cluster.hadoop_conf))
        yield cluster


def executors(cluster: YarnCluster) -> list[psutil.Process]:
    found = []
    for process in cluster.containers:
        with suppress(psutil.NoSuchProcess):
            if process.name() == "java" and "YarnCoarseGrainedExecutorBackend" in " ".join(process.cmdline()):
                found.append(process)
    return found


def test_copied_and_followed_with_an_executor_killed(
    yarn: YarnCluster, source_server: MariadbServer, schema: str, tmp_path: Path
) -> None:
    works = [
        Workload(source_server, WorkPlan(schema, SHAPES[shape], tables=1, table=shape, threads=1, large_rows=100))
        for shape in ("sysbench", "types", "several_unique")
    ]
    for work in works:
        work.create()
        work.fill(200)
    names = [name for work in works for name in work.plan.names]
    held = names[0].quoted
    with MariadbServer({"gtid_domain_id": "9"}) as target:
        files = TaskFiles(
            tmp_path,
            schema,
            {"s1": source_server},
            target,
            (f"{schema}_1",),
            keys={"spark": {"master": "yarn", "conf": dict(yarn.conf)}},
            syncer={"compact": False, "batch": 20, "worker-count": 2},
        ).write()
        with Command(files) as command:
            command.catch_up()
            assert len(executors(yarn)) == 2
            with row_held(target, held):
                source_server.run(f"UPDATE {held} SET k = k + 1", f"DELETE FROM {held} WHERE id % 3 = 0")
                wait_until(lambda: stands_still(target), "in the middle of a batch")
                executors(yarn)[0].kill()
            for work in works:
                work.run(transactions=20)
            command.catch_up()
            command.interrupt()
            assert command.wait() == 0, command.text
        assert_exactly_once(source_server, target, names)
    (application,) = yarn.applications()
    assert (application["name"], application["finalStatus"]) == ("unshard", "SUCCEEDED")
