"""The modules that a Spark worker process loads for a batch: those that the batch needs."""

from __future__ import annotations

import pickle
import subprocess
import sys
from pathlib import Path

import pytest

from support import log_to_target
from support.log_to_target import Carrier, Way
from unshard.sync.batch.plan import BatchPlan
from unshard.sync.batch.row_counts import LedgerReport
from unshard.testing.mariadb_server import MariadbServer

pytestmark = pytest.mark.server

LOADED = 60
TASK = """
import pickle, sys
import unshard.spark.worker_process
from unshard.spark.batch_tasks import run_attempt
report = run_attempt(open(sys.argv[1], "rb").read())
own = [name for name in sys.modules if name.partition(".")[0] == "unshard"]
sys.stdout.buffer.write(pickle.dumps((report, own)))
"""
"""Runs a task in a new process; its output is the report with the names of our modules that are loaded then."""

PLAIN = "id INT PRIMARY KEY, name VARCHAR(20), at DATETIME(3), price DECIMAL(9, 2), kind ENUM('a', 'b')"
TIED = "id INT PRIMARY KEY, name VARCHAR(20) UNIQUE"


@pytest.mark.parametrize(("columns", "more"), [(PLAIN, set()), (TIED, {"causality", "components", "key_search"})])
def test_a_task_loads_what_its_batch_needs(
    columns: str,
    more: set[str],
    source_server: MariadbServer,
    target_server: MariadbServer,
    schema: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    loaded: set[str] = set()

    def in_a_process(plan: BatchPlan) -> list[LedgerReport]:
        payload = tmp_path / "payload"
        payload.write_bytes(pickle.dumps((plan, 0)))
        command = [sys.executable, "-c", TASK, str(payload)]
        report, own = pickle.loads(subprocess.run(command, capture_output=True, check=True).stdout)
        loaded.update(own)
        return [pickle.loads(report)]

    monkeypatch.setattr(log_to_target, "_own", in_a_process)
    for server in (source_server, target_server):
        server.run(f"CREATE DATABASE {schema}", f"CREATE TABLE {schema}.t ({columns})")
    carrier = Carrier(source_server, target_server, schema)
    source_server.run(
        f"INSERT INTO {schema}.t (id, name) VALUES (1, 'é'), (2, 'b'), (3, NULL)",
        f"UPDATE {schema}.t SET name = 'c' WHERE id = 2",
        f"DELETE FROM {schema}.t WHERE id = 3",
    )
    try:
        carrier.carry(Way(shares=1, budget=1))
    finally:
        carrier.close()
    found = "SELECT id, name FROM {}.t ORDER BY id"
    assert target_server.query(found.format(schema)) == source_server.query(found.format(schema))
    assert len(loaded) <= LOADED + len(more), "\n".join(sorted(loaded))
    optional = {"causality", "components", "key_search", "partial_images", "column_mapping", "tls"}
    assert {name.rpartition(".")[2] for name in loaded} & optional == more
