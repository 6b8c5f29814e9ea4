"""The same task on `local[…]`, a standalone cluster and Spark Connect: copied, followed, each change applied once.

On Spark Connect the executors don't see the relay log: its bytes travel with the jobs.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import pytest

from support.exactly_once import assert_exactly_once
from support.task_runs import Command, TaskFiles
from support.waiting import wait_until
from unshard.testing.hold import row_held, stands_still
from unshard.testing.mariadb_server import MariadbServer
from unshard.testing.shapes import SHAPES
from unshard.testing.spark_cluster import SparkCluster, SparkProcess
from unshard.testing.workload import Workload, WorkPlan

pytestmark = [pytest.mark.server, pytest.mark.spark, pytest.mark.recovery, pytest.mark.cluster]

PASSWORD = "s3cret-of-the-target"


@pytest.fixture(scope="module")
def target() -> Iterator[MariadbServer]:
    """A target of this module's own, whose whole binlog is read."""
    with MariadbServer({"gtid_domain_id": "9"}) as server:
        server.run(
            f"CREATE USER mover@'%' IDENTIFIED BY '{PASSWORD}'", "GRANT ALL ON *.* TO mover@'%' WITH GRANT OPTION"
        )
        yield server


def python_workers(parents: list[psutil.Process]) -> list[psutil.Process]:
    """The processes that run Spark's Python tasks: children of the daemons that executors start."""
    daemons: dict[psutil.Process, int] = {}
    for below in [child for parent in parents for child in parent.children(recursive=True)]:
        with suppress(psutil.NoSuchProcess):  # others come and go
            if below.status() != psutil.STATUS_ZOMBIE and "spark.daemon" in " ".join(below.cmdline()):
                daemons[below] = below.ppid()
    numbers = {process.pid for process in daemons}
    return [process for process, parent in daemons.items() if parent in numbers]


@pytest.mark.parametrize("kind", ["local", "standalone", "connect"])
def test_copied_and_followed_with_a_python_worker_killed(
    kind: str,
    source_server: MariadbServer,
    target: MariadbServer,
    schema: str,
    tmp_path: Path,
    request: pytest.FixtureRequest,
) -> None:
    spark: dict[str, Any] = {"master": "local[2]"}
    cluster: SparkCluster | None = None
    relay = str(tmp_path / "relay")
    if kind != "local":
        cluster = request.getfixturevalue("cluster")
        events = request.getfixturevalue("events_conf")
        spark = {"master": cluster.url, "conf": {**cluster.conf, **events}}
    if kind == "connect":
        server: SparkProcess = request.getfixturevalue("connect_server")
        spark = {"remote": f"sc://127.0.0.1:{server.told}"}
        relay = "/proc/self/cwd/relay"  # another folder for every process
    shapes = ("sysbench", "types", "several_unique")
    works = [
        Workload(source_server, WorkPlan(schema, SHAPES[shape], tables=1, table=shape, threads=1, large_rows=100))
        for shape in shapes
    ]
    for work in works:
        work.create()
        work.fill(200)
    names = [name for work in works for name in work.plan.names]
    held = names[0]
    keys = {
        "spark": spark,
        "target-database": {"host": "127.0.0.1", "port": target.port, "user": "mover", "password": PASSWORD},
    }
    files = TaskFiles(
        tmp_path,
        schema,
        {"s1": source_server},
        target,
        (f"{schema}_1",),
        keys=keys,
        source={"relay-dir": relay},
        syncer={"compact": False, "batch": 20, "worker-count": 2},
    ).write()
    with Command(files) as command:
        command.catch_up()
        parents = [command.pid] if cluster is None else [worker.pid for worker in cluster.workers]
        with row_held(target, held.quoted):
            source_server.run(f"UPDATE {held.quoted} SET k = k + 1", f"DELETE FROM {held.quoted} WHERE id % 3 = 0")
            wait_until(lambda: stands_still(target), "in the middle of a batch")
            workers = python_workers([psutil.Process(pid) for pid in parents])
            assert workers, "no Python worker runs"
            for worker in workers:
                with suppress(psutil.NoSuchProcess):
                    worker.kill()
        for work in works:
            work.run(transactions=20)
        command.catch_up()
        command.interrupt()
        assert command.wait() == 0, command.text
    assert_exactly_once(source_server, target, names)
    if cluster is not None:
        shown = [path for path in cluster.folder.rglob("*") if path.is_file() and not path.name.endswith(".jar")]
        assert [path for path in shown if PASSWORD.encode() in path.read_bytes()] == []
        assert any("events" in path.parts for path in shown), "no event log was kept"
