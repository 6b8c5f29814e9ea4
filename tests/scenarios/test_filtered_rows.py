"""Rows that a rule leaves out, by either exchange: they don't arrive, and the ledger in the target has them by rule."""

from __future__ import annotations

import pickle
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark import cloudpickle
from pyspark.sql import SparkSession

from support.task_runs import TaskFiles, TaskRun
from unshard.model.change import Op
from unshard.model.table import Table
from unshard.sync.batch.plan import BatchPlan, TablePlan
from unshard.sync.batch.row_counts import LedgerReport
from unshard.sync.planning import planner as planning
from unshard.sync.planning.table_plans import TableRules
from unshard.sync.steps.pipeline import run_share
from unshard.testing.mariadb_server import MariadbServer

pytestmark = [pytest.mark.server, pytest.mark.spark]


@dataclass(frozen=True)
class WithoutDeletes:
    """Drops every DELETE."""

    rule: str = "filters.no-delete"
    hides_values: bool = False

    def to_dict(self) -> dict[str, Any]:
        return {"rule": self.rule}

    def dropped(self, table: Table, images: pa.RecordBatch, absent: frozenset[str]) -> np.ndarray:
        found: np.ndarray = images.column("op").to_numpy() == Op.DELETE
        return found


@dataclass(frozen=True)
class WithoutSecrets:
    """Drops changes with an image whose `v` is 'secret'."""

    rule: str = "expression-filter.no-secrets"
    hides_values: bool = True

    def to_dict(self) -> dict[str, Any]:
        return {"rule": self.rule}

    def dropped(self, table: Table, images: pa.RecordBatch, absent: frozenset[str]) -> np.ndarray:
        found = np.array([value == "secret" for value in images.column("v").to_pylist()])
        before = np.flatnonzero(images.column("op").to_numpy() == Op.UPDATE_BEFORE)
        found[before] = found[before + 1] = found[before] | found[before + 1]
        return found


@pytest.fixture
def known_to_workers() -> Iterator[None]:
    """Spark's workers can't import tests: the rules go to them whole."""
    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    yield
    cloudpickle.unregister_pickle_by_value(sys.modules[__name__])


def with_rules(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Both rules on tables of that name."""
    unruled = TableRules.plans

    def plans(self: TableRules, *about: Any, **more: Any) -> tuple[TablePlan, ...]:
        own = (WithoutDeletes(), WithoutSecrets())
        return tuple(
            replace(plan, filters=own if plan.table.name.table == name else ())
            for plan in unruled(self, *about, **more)
        )

    monkeypatch.setattr(TableRules, "plans", plans)


def here(plan: BatchPlan) -> list[LedgerReport]:
    """The keep-own exchange, its tasks one after the other in this process."""
    return [pickle.loads(run_share(pickle.dumps((plan, share)))) for share in range(plan.shares)]


@pytest.mark.scenarios
@pytest.mark.parametrize("shuffled", [False, True], ids=["keep-own", "shuffle"])
@pytest.mark.usefixtures("known_to_workers")
def test_rules_of_one_table_of_two(
    spark: SparkSession,
    source_server: MariadbServer,
    target_server: MariadbServer,
    schema: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    shuffled: bool,
) -> None:
    if shuffled:
        monkeypatch.setattr(planning, "SHUFFLE_SLOTS", 1)
        monkeypatch.setattr(planning, "SHUFFLE_BYTES", 0)
    source_server.run(f"CREATE DATABASE {schema}")
    for name in ("ruled", "free"):
        source_server.run(f"CREATE TABLE {schema}.{name} (id INT PRIMARY KEY, v VARCHAR(20))")
        source_server.run(f"INSERT INTO {schema}.{name} VALUES (1, 'a'), (2, 'b')")
    files = TaskFiles(tmp_path, schema, {"s1": source_server}, target_server, (schema,)).write()
    run = TaskRun(files, spark)
    (subtask,) = run.crew.subtasks
    assert subtask.sync is not None
    with_rules(monkeypatch, "ruled")
    if not shuffled:
        subtask.sync.run_batch = here
    with run:
        run.reach("sync")
        for name in ("ruled", "free"):
            table = f"{schema}.{name}"
            source_server.run(
                f"INSERT INTO {table} VALUES (3, 'c'), (4, 'secret'), (5, 'e')",
                f"UPDATE {table} SET v = 'secret' WHERE id = 3",
                f"DELETE FROM {table} WHERE id IN (1, 4)",
                f"UPDATE {table} SET v = 'f' WHERE id = 5",
            )
        run.catch_up()
        reading = run.crew.readings()[0].sync
        assert reading is not None
        assert reading.tables[f"{schema}.ruled"].rules == {"filters.no-delete": 2, "expression-filter.no-secrets": 2}
    ruled, free = (target_server.query(f"SELECT * FROM {schema}.{name} ORDER BY id") for name in ("ruled", "free"))
    assert ruled == [(1, "a"), (2, "b"), (3, "c"), (5, "f")]
    assert free == [(2, "b"), (3, "secret"), (5, "f")]
    counts = target_server.query(
        "SELECT target, decoded, filtered, decoded = filtered + compacted + inserted + updated + deleted"
        f" FROM `{files.meta}`.`{schema}_apply_ledger` ORDER BY target"
    )
    assert counts == [(f"{schema}.free", 7, 0, 1), (f"{schema}.ruled", 7, 4, 1)]
    left_out = target_server.query(f"SELECT * FROM `{files.meta}`.`{schema}_apply_left_out` ORDER BY rule")
    assert left_out == [
        ("s1", f"{schema}.ruled", "expression-filter.no-secrets", 2, 0),
        ("s1", f"{schema}.ruled", "filters.no-delete", 2, 0),
    ]
