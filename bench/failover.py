"""Kills a worker and measures how long its source stands still until a spare has applied the next row."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from unshard.testing.cluster import ClusterMember, ThrowawayCluster
from unshard.testing.mariadb_server import MariadbServer

_SPARK = {"master": "local[2]"}
_DEATHS = 3
_PATIENCE_SECONDS = 120.0


def run() -> dict[str, Any]:
    """Return the longest of three times, with default leases.

    `noticed_s` is the part until the spare has been given the source.
    """
    with MariadbServer() as source, MariadbServer({"gtid_domain_id": "9"}) as target:
        source.run("CREATE DATABASE bench", "CREATE TABLE bench.beat (id INT AUTO_INCREMENT PRIMARY KEY)")
        target.query("CREATE DATABASE unshard")
        store = f"mysql://root@127.0.0.1:{target.port}/unshard"
        with ThrowawayCluster(store, masters=1, workers=2, worker={"spark": _SPARK}) as cluster:
            _begin(cluster, source, target)
            serving, spare = cluster.workers
            _moved(source, target)
            found = []
            for _ in range(_DEATHS):
                _until(partial(_is_ahead, spare))
                found.append(_death(serving, spare, source, target))
                serving.log.unlink()
                serving.start()
                serving, spare = spare, serving
    stood_still, noticed = max(found)
    return {"stood_still_s": round(stood_still, 1), "noticed_s": round(noticed, 1)}


def _is_ahead(spare: ClusterMember) -> bool:
    return "Spark is there ahead" in spare.text


def _death(
    dies: ClusterMember, spare: ClusterMember, source: MariadbServer, target: MariadbServer
) -> tuple[float, float]:
    known = len(spare.text)
    killed = time.monotonic()
    dies.kill()
    source.query("INSERT INTO bench.beat VALUES ()")
    _until(lambda: "source taken" in spare.text[known:])
    noticed = time.monotonic() - killed
    _until(lambda: _last(source) == _last(target))
    return time.monotonic() - killed, noticed


def _begin(cluster: ThrowawayCluster, source: MariadbServer, target: MariadbServer) -> None:
    database = {"host": "127.0.0.1", "user": "root"}
    source_form = {"source-id": "one", "relay-dir": "relay", "from": {**database, "port": source.port}}
    task_form = {
        "name": "bench",
        "task-mode": "all",
        "target-database": {**database, "port": target.port},
        "mysql-instances": [{"source-id": "one", "block-allow-list": "own"}],
        "block-allow-list": {"own": {"do-dbs": ["bench"]}},
        "spark": _SPARK,
    }
    cluster.ctl("operate-source", "create", _file(cluster.folder / "source.yaml", source_form))
    cluster.ctl("start-task", _file(cluster.folder / "task.yaml", task_form))


def _file(path: Path, form: dict[str, Any]) -> str:
    path.write_text(json.dumps(form))
    return str(path)


def _moved(source: MariadbServer, target: MariadbServer) -> None:
    """Write a row, and wait until the target has the table and the row."""
    known = "SELECT 1 FROM information_schema.TABLES WHERE TABLE_SCHEMA = 'bench'"
    _until(lambda: bool(target.query(known)))
    source.query("INSERT INTO bench.beat VALUES ()")
    _until(lambda: _last(source) == _last(target))


def _last(server: MariadbServer) -> Any:
    return server.query("SELECT MAX(id) FROM bench.beat")[0][0]


def _until(done: Callable[[], bool]) -> None:
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while not done():
        if time.monotonic() > deadline:
            raise TimeoutError(f"not in {_PATIENCE_SECONDS:.0f} s")
        time.sleep(0.02)
