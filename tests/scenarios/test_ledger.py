"""The ledger in the target: every row event of the log is in it once, decoded or passed over, with the reason."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from support.task_runs import Command, TaskFiles, TaskRun, newest
from unshard.sync.planning import skipped_events
from unshard.testing.mariadb_server import MariadbServer

pytestmark = [pytest.mark.server, pytest.mark.spark]
TABLES = {
    "plain": "(id INT PRIMARY KEY, v INT)",
    "unread": "(id INT PRIMARY KEY, v INT)",
    "versions": "(id INT PRIMARY KEY, v INT) WITH SYSTEM VERSIONING",
}
FILTERS = {
    "filters": {
        "unread": {"schema-pattern": "*", "table-pattern": "unread", "events": ["all dml"], "action": "Ignore"},
    }
}
RULES = {"filter-rules": ["unread"]}


@pytest.fixture
def files(source_server: MariadbServer, target_server: MariadbServer, schema: str, tmp_path: Path) -> TaskFiles:
    """A task for one schema, with another one beside it that the block-allow list keeps out."""
    for name in (schema, f"{schema}_out"):
        source_server.run(f"CREATE DATABASE {name}")
        for table, columns in TABLES.items():
            source_server.run(f"CREATE TABLE {name}.{table} {columns}", f"INSERT INTO {name}.{table} VALUES (1, 1)")
    return TaskFiles(
        tmp_path, schema, {"s1": source_server}, target_server, (schema,), keys=FILTERS, instance=RULES
    ).write()


def left_out(files: TaskFiles) -> list[tuple[str, str, int, int]]:
    return files.target.query(
        f"SELECT name, rule, changes, events FROM `{files.meta}`.`{files.name}_apply_left_out` ORDER BY name, rule"
    )


def counts(files: TaskFiles) -> list[tuple[Any, ...]]:
    """By target table: decoded, filtered, compacted, inserted, updated, deleted."""
    return files.target.query(
        "SELECT target, decoded, filtered, compacted, inserted, updated, deleted"
        f" FROM `{files.meta}`.`{files.name}_apply_ledger` ORDER BY target"
    )


def test_every_reason_is_counted_under_its_name(
    spark: SparkSession, source_server: MariadbServer, files: TaskFiles
) -> None:
    own, out = files.name, f"{files.name}_out"
    with TaskRun(files, spark) as run:
        run.reach("sync")
        run.catch_up()
    source_server.run(
        f"INSERT INTO {own}.unread VALUES (2, 2), (3, 3)",
        f"DELETE FROM {own}.unread",
        "BEGIN",  # so that all of it is compacted in one batch
        f"INSERT INTO {own}.versions VALUES (2, 2), (3, 3)",
        f"UPDATE {own}.versions SET v = 9 WHERE id = 2",
        f"DELETE FROM {own}.versions WHERE id = 3",
        "COMMIT",
        f"INSERT INTO {out}.plain VALUES (2, 2), (3, 3)",
        f"UPDATE {out}.plain SET v = 7",
        "FLUSH LOGS",
        f"INSERT INTO {out}.plain VALUES (8, 8)",
        "FLUSH LOGS",
        f"INSERT INTO {own}.plain VALUES (2, 2)",
    )
    copied = newest(source_server)
    files.target.run(
        f"UPDATE `{files.meta}`.`{own}_syncer_checkpoint`"
        f" SET binlog_name = '{copied.file}', binlog_pos = {copied.offset}"
        f" WHERE cp_schema = '{own}' AND cp_table = 'plain'"
    )
    source_server.run(f"INSERT INTO {own}.plain VALUES (3, 3)", f"INSERT INTO {out}.versions VALUES (4, 4)")
    with TaskRun(files, spark) as run:
        run.catch_up()
        reading = run.crew.readings()[0].sync
    assert left_out(files) == [
        (f"{own}.plain", "snapshot", 0, 1),
        (f"{own}.unread", "filters.unread", 0, 2),
        (f"{own}.versions", "system-versioning", 1, 0),
        (f"{out}.plain", "block-allow-list", 0, 3),
        (f"{out}.versions", "block-allow-list", 0, 1),
    ]
    assert counts(files) == [(f"{own}.plain", 1, 0, 0, 1, 0, 0), (f"{own}.versions", 5, 1, 3, 1, 0, 0)]
    assert files.target.query(f"SELECT id FROM {own}.plain ORDER BY id") == [(1,), (3,)]
    assert reading is not None
    assert reading.skipped == {
        (f"{own}.plain", "snapshot"): 1,
        (f"{own}.unread", "filters.unread"): 2,
        (f"{out}.plain", "block-allow-list"): 3,
        (f"{out}.versions", "block-allow-list"): 1,
    }


def test_ever_new_tables_that_are_passed_over_are_counted_together(
    spark: SparkSession, source_server: MariadbServer, files: TaskFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those that have a row keep it, also after a restart."""
    monkeypatch.setattr(skipped_events, "MOST_TABLES", 2)
    own, out = files.name, f"{files.name}_out"

    def day(number: int) -> None:
        source_server.run(
            f"CREATE TABLE {out}.day_{number} (id INT PRIMARY KEY)",
            f"INSERT INTO {out}.day_{number} VALUES (1), (2)",
            f"INSERT INTO {own}.unread VALUES ({number}, 1)",
            f"INSERT INTO {own}.plain VALUES ({number}, 1)",
        )

    for days in ((5, 6, 7), (8, 9)):
        with TaskRun(files, spark) as run:
            run.catch_up()
            for number in days:
                day(number)
                run.catch_up()
            reading = run.crew.readings()[0].sync
    assert left_out(files) == [
        ("other tables", "block-allow-list", 0, 4),
        (f"{own}.unread", "filters.unread", 0, 5),
        (f"{out}.day_5", "block-allow-list", 0, 1),
    ]
    assert reading is not None
    assert reading.skipped == {("other tables", "block-allow-list"): 2, (f"{own}.unread", "filters.unread"): 2}
    assert files.target.query(f"SELECT id FROM {own}.plain ORDER BY id") == [(1,), (5,), (6,), (7,), (8,), (9,)]


@pytest.mark.recovery
@pytest.mark.parametrize("place", ["sync-open-after", "sync-close-after"])
def test_what_was_passed_over_before_a_death_is_counted_once(
    spark: SparkSession, source_server: MariadbServer, files: TaskFiles, place: str
) -> None:
    own, out = files.name, f"{files.name}_out"
    with TaskRun(files, spark) as run:
        run.reach("sync")
        run.catch_up()
    source_server.run(
        f"INSERT INTO {out}.plain VALUES (2, 2), (3, 3)",
        f"INSERT INTO {out}.plain VALUES (4, 4)",
        "FLUSH LOGS",
        f"INSERT INTO {own}.plain VALUES (2, 2)",
    )
    with Command(files, crash_at=place) as command:
        command.dies(place)
    with TaskRun(files, spark) as run:
        run.catch_up()
    assert left_out(files) == [(f"{out}.plain", "block-allow-list", 0, 2)]
    assert counts(files) == [(f"{own}.plain", 1, 0, 0, 1, 0, 0)]
