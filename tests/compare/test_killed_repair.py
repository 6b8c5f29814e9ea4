"""`unshard compare --repair` is killed before and after its commits while task and writer go on, and is run again."""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from support.comparisons import merged_into_one
from support.killed_commands import TypedCommand
from support.numbers import numbers
from support.task_runs import TaskFiles, TaskRun
from unshard.model.table import TableName
from unshard.testing.binlog_count import RowEvent, row_events
from unshard.testing.mariadb_server import MariadbServer
from unshard.testing.throwaway_server import ThrowawayServer

pytestmark = [pytest.mark.server, pytest.mark.spark, pytest.mark.recovery, pytest.mark.faults]

WRITTEN = 5000
"""The writer's rows have higher keys."""


@pytest.fixture
def files(
    source_server: MariadbServer, target_server: ThrowawayServer, schema: str, tmp_path: Path
) -> Iterator[TaskFiles]:
    """Shards `t_1` and `t_2` of one source, merged into `t`, and a table without a key."""
    made = [f"CREATE TABLE t_{number} (id INT PRIMARY KEY, v INT)" for number in (1, 2)]
    made += [f"INSERT INTO t_{number} SELECT {number}000 + seq, seq FROM {numbers(1, 300)}" for number in (1, 2)]
    made += ["CREATE TABLE bare (a INT)", f"INSERT INTO bare SELECT seq MOD 3 FROM {numbers(1, 9)}"]
    with merged_into_one(source_server, target_server, schema, tmp_path, *made) as files:
        yield files


@contextmanager
def writer(server: ThrowawayServer, schema: str) -> Iterator[None]:
    """Rows of both shards change all the time."""
    ended = threading.Event()

    def write() -> None:
        connection, number = server.connection(), WRITTEN
        with connection.cursor() as cursor:
            while not ended.wait(0.05):
                number += 1
                shard = f"{schema}.t_{1 + number % 2}"
                cursor.execute(f"REPLACE INTO {shard} VALUES ({WRITTEN} + {number % 20}, {number})")
        connection.close()

    thread = threading.Thread(target=write)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def receipts(files: TaskFiles) -> dict[str, list[int]]:
    """What the repairs have written by their receipts: inserted, updated and deleted rows of each table."""
    found = files.target.query(
        f"SELECT target, SUM(inserted), SUM(updated), SUM(deleted) FROM `{files.meta}`.`{files.name}_repair`"
        " GROUP BY target"
    )
    return {name.partition(".")[2]: [*map(int, counts)] for name, *counts in found}


def logged(files: TaskFiles) -> Counter[RowEvent]:
    """All changes of the rows that differ, by the target's own binlog."""
    (schema,) = files.schemas
    events = row_events(files.target, [TableName(schema, "t"), TableName(schema, "bare")])
    return Counter({one: n for one, n in events.items() if int((one.before or one.after)[0]) < WRITTEN})


def test_each_row_is_repaired_once_over_all_deaths(files: TaskFiles, spark: SparkSession, schema: str) -> None:
    # no rows of the two shards have one key: the writer's rows have one shard each
    compare = TypedCommand(files.folder, ("compare", "task.yaml", "-s", "s1.yaml", "--repair", "--yes", "--json"))
    with TaskRun(files, spark) as run, writer(files.sources["s1"], schema):
        run.catch_up()
        files.target.run(
            f"USE {schema}",
            "DELETE FROM t WHERE id BETWEEN 1051 AND 1270",
            "UPDATE t SET v = -v WHERE id BETWEEN 2001 AND 2060",
            "INSERT INTO t VALUES (3001, 0), (3002, 0)",
            "DELETE FROM bare WHERE a = 1 LIMIT 2",
            "INSERT INTO bare VALUES (2), (2), (7)",
        )
        before = logged(files) if isinstance(files.target, MariadbServer) else Counter()
        compare.dies("repair-commit-before")
        assert receipts(files) == {}
        compare.dies("repair-commit-after")
        assert receipts(files) == {"bare": [2, 0, 3]}
        compare.dies("repair-commit-before:3")
        assert receipts(files) == {"bare": [2, 0, 3], "t": [138, 60, 2]}
        compare.dies("repair-commit-after")
        done = compare.ends()
        assert done.returncode == 0, done.stdout + done.stderr
        assert f"{schema}.t: repaired 0 extra, 0 changed, 0 missing" not in done.stdout
        report = json.loads(done.stdout)
        assert [(one["table"], sum(one["counts"].values())) for one in report["tables"]] == [
            (f"{schema}.bare", 0),
            (f"{schema}.t", 0),
        ]
        assert receipts(files) == {"bare": [2, 0, 3], "t": [220, 60, 2]}
        if isinstance(files.target, MariadbServer):
            events = logged(files) - before
            assert Counter(one.table.table for one in events.elements()) == {"bare": 5, "t": 282}
            assert {one for one, times in events.items() if times > 1 and one.table.table == "t"} == set()
        assert not run.crew.errors
