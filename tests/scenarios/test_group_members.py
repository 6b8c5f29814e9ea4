"""Tables that leave a sharding group, or change places in it: nobody waits for one that is gone, or forgets one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from support.operated_tasks import ctl
from support.shard_runs import Shards, ends_at
from support.task_runs import TaskRun, newest
from unshard.testing.mariadb_server import MariadbServer

pytestmark = [pytest.mark.server, pytest.mark.spark]


def numbered(schema: str) -> dict[str, Any]:
    """Rules that take `t_0` … and keep every other name of the schema out."""
    tables = [{"db-name": f"{schema}_s", "tbl-name": "~^t_[0-9]+$"}]
    return {"block-allow-list": {"own": {"do-tables": tables}}}


def test_shards_change_places_over_a_name_that_is_kept_out(
    spark: SparkSession, source_server: MariadbServer, target_server: MariadbServer, schema: str, tmp_path: Path
) -> None:
    shards = Shards(schema, {"s1": source_server}, target_server, tmp_path, keys=numbered(schema))
    with TaskRun(shards.files(), spark) as run:
        run.reach("sync")
        run.catch_up()
        swap = (
            f"{shards.at(0)} TO {shards.at('x')}, {shards.at(1)} TO {shards.at(0)}, {shards.at('x')} TO {shards.at(1)}"
        )
        shards.run("s1", f"RENAME TABLE {swap}")
        shards.alter("s1", 0, "ADD COLUMN c INT")
        run.catch_up()
        assert shards.held() == 2
        shards.insert("s1", 1, 5)
        shards.alter("s1", 1, "ADD COLUMN c INT")
        shards.settle(run)


def test_a_shard_that_is_renamed_away_is_waited_for_no_more(
    spark: SparkSession, source_server: MariadbServer, target_server: MariadbServer, schema: str, tmp_path: Path
) -> None:
    shards = Shards(schema, {"s1": source_server}, target_server, tmp_path, keys=numbered(schema), tables=3)
    with TaskRun(shards.files(), spark) as run:
        run.reach("sync")
        run.catch_up()
        shards.run("s1", f"RENAME TABLE {shards.at(0)} TO {shards.at('x')}")
        shards.alter("s1", 1, "ADD COLUMN c INT")
        shards.run("s1", f"RENAME TABLE {shards.at(1)} TO {shards.at('y')}")
        shards.alter("s1", 2, "ADD COLUMN c INT")
        shards.wait_in_step(run)


def test_a_rename_that_is_left_out_takes_the_shard_to_another_target(
    spark: SparkSession, source_server: MariadbServer, target_server: MariadbServer, schema: str, tmp_path: Path
) -> None:
    """The filter keeps the RENAME from the target; the table's later changes go where its new name does."""
    source_server.run(f"CREATE DATABASE {schema}_s", f"CREATE TABLE {schema}_s.z_0 (id BIGINT PRIMARY KEY, v CHAR(20))")
    events = {"kept": {"schema-pattern": f"{schema}_s", "events": ["rename table"], "action": "Ignore"}}
    rules = {"route-rules": ["fold"], "filter-rules": ["kept"]}
    keys = {"filters": events}
    shards = Shards(schema, {"s1": source_server}, target_server, tmp_path, keys=keys, instance=rules, tables=3)
    with TaskRun(shards.files(), spark) as run:
        run.reach("sync")
        run.catch_up()
        shards.run("s1", f"RENAME TABLE {shards.at(0)} TO `{schema}_s`.`z_1`")
        shards.alter("s1", 1, "ADD COLUMN c INT")
        shards.alter("s1", 2, "ADD COLUMN c INT")
        shards.wait_in_step(run)
    assert "c" in [name for name, *_ in target_server.query(f"DESCRIBE {shards.merged}")]


def test_a_rename_whose_injected_statement_dies_is_known_at_the_next_start(
    spark: SparkSession,
    source_server: MariadbServer,
    target_server: MariadbServer,
    schema: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shards = Shards(schema, {"s1": source_server}, target_server, tmp_path)
    files = shards.files()
    with TaskRun(files, spark) as run:
        run.catch_up()
    place = newest(source_server)
    shards.run("s1", f"RENAME TABLE {shards.at(0)} TO {shards.at(5)}")
    note = f"CREATE TABLE {schema}_s.note (id INT PRIMARY KEY)"
    ctl("binlog", "inject", str(files.task_path), "-s", "s1", "-b", f"{place.file}:{place.offset}", note)
    target_server.run(f"CREATE DATABASE IF NOT EXISTS {schema}_s")
    assert ends_at("ddl-execute-after", files, spark, monkeypatch)
    for table in (1, 5):
        shards.alter("s1", table, "ADD COLUMN c INT")
    with TaskRun(files, spark) as run:
        shards.settle(run)


def test_a_new_shard_that_lacks_what_a_filter_leaves_out(
    spark: SparkSession, source_server: MariadbServer, target_server: MariadbServer, schema: str, tmp_path: Path
) -> None:
    """The shard that is furthest has a key that the target is not to get; a new one fits without it, and with it."""
    keys = {"keys": {"schema-pattern": f"{schema}_s", "sql-pattern": ["ADD KEY"], "action": "Ignore"}}
    instance = {"route-rules": ["fold"], "filter-rules": ["keys"]}
    shards = Shards(schema, {"s1": source_server}, target_server, tmp_path, keys={"filters": keys}, instance=instance)
    with TaskRun(shards.files(), spark) as run:
        run.reach("sync")
        run.catch_up()
        shards.alter("s1", 0, "ADD COLUMN c INT")
        shards.alter("s1", 0, "ADD KEY by_v (v)")
        shards.run("s1", f"CREATE TABLE {shards.at(6)} LIKE {shards.at(0)}")
        shards.run("s1", f"CREATE TABLE {shards.at(7)} ({shards.row}, c INT)")
        shards.run("s1", f"CREATE TABLE {shards.at(8)} LIKE {shards.at(1)}")
        for table in (6, 7):
            shards.insert("s1", table, 1, c="1")
        for table in (8, 1):
            shards.insert("s1", table, 2)
            shards.alter("s1", table, "ADD COLUMN c INT")
        shards.settle(run)
