"""Rows get the values that a DDL gave them on their own source: the time of its run, a random value."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from support.operated_tasks import ctl
from support.shard_runs import ROW, Shards, ends_at
from support.source_servers import new_source
from support.task_runs import TaskRun
from support.waiting import wait_until
from unshard.errors import UnshardError
from unshard.testing.mariadb_server import MariadbServer
from unshard.testing.throwaway_server import ThrowawayServer
from unshard.testing.tidb_server import TidbServer

pytestmark = [pytest.mark.server, pytest.mark.spark]

RENEWED = f"{ROW}, seen TIMESTAMP NOT NULL DEFAULT '2001-01-01 00:00:01' ON UPDATE CURRENT_TIMESTAMP"
ADD = "ADD COLUMN made DATETIME NOT NULL DEFAULT CURRENT_TIMESTAMP"


@pytest.fixture(scope="module")
def other() -> Iterator[ThrowawayServer]:
    with new_source(2) as server:
        yield server


@pytest.fixture
def shards(
    source_server: ThrowawayServer, other: ThrowawayServer, target_server: ThrowawayServer, schema: str, tmp_path: Path
) -> Shards:
    return Shards(schema, {"s1": source_server, "s2": other}, target_server, tmp_path, row=RENEWED)


def alter_at(shards: Shards, source: str, table: int, change: str, timestamp: int) -> None:
    """At that time, in seconds."""
    shards.sources[source].run(f"SET timestamp = {timestamp}", f"ALTER TABLE {shards.at(table)} {change}")


def alter_each(shards: Shards, change: str) -> None:
    """Each shard at a time of its own, with changes before and behind."""
    for number, (source, table) in enumerate(shards.shards):
        for row in range(1, 8):
            shards.insert(source, table, row)
        alter_at(shards, source, table, change, 1_500_000_000 + number)
        shards.update(source, table, 1, "v = 'changed'")
        shards.update(source, table, 2, "made = '2020-01-01 01:01:01'")
        shards.update(source, table, 3, f"id = {shards.id(source, table, 103)}")
        shards.delete(source, table, 4)
        shards.delete(source, table, 5)
        shards.insert(source, table, 5, made="'2021-01-01 01:01:01'")
        shards.insert(source, table, 200)


def times(shards: Shards) -> set[Any]:
    return {made for (made,) in shards.target.query(f"SELECT made FROM {shards.merged}")}


def test_each_shard_keeps_the_time_of_its_own_statement(shards: Shards, spark: SparkSession) -> None:
    with TaskRun(shards.files(), spark) as run:
        run.catch_up()
        alter_each(shards, ADD)
        shards.settle(run)
        assert len(times(shards)) >= len(shards.shards) + 2
        alter_each_again = "ADD COLUMN mark CHAR(36) NOT NULL DEFAULT '-', ADD COLUMN late DATE DEFAULT (CURDATE())"
        for number, (source, table) in enumerate(shards.shards):
            alter_at(shards, source, table, alter_each_again, 1_400_000_000 + 100_000 * number)
        shards.settle(run)


@pytest.mark.parametrize(
    "place",
    [
        "ddl-backfill-rows",
        *(
            pytest.param(place, marks=pytest.mark.scenarios)
            for place in ("ddl-execute-after", "ddl-backfill-rows:3", "sync-close-before")
        ),
    ],
)
def test_a_death_in_the_middle_costs_only_time(place: str, shards: Shards, spark: SparkSession,
    monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    with TaskRun(shards.files(), spark) as run:
        run.catch_up()
    alter_each(shards, ADD)
    assert ends_at(place, shards.files(), spark, monkeypatch)
    with TaskRun(shards.files(), spark) as run:
        shards.settle(run)


@pytest.mark.parametrize("way", ["mapped", "extracted"])
def test_rows_are_found_by_what_rules_make_of_their_keys(
    way: str,
    source_server: MariadbServer,
    target_server: ThrowawayServer,
    schema: str,
    tmp_path: Path,
    spark: SparkSession,
) -> None:
    """Shards with equal ids: mapped, or told apart by the name of the shard."""
    shards = Shards(schema, {"s1": source_server}, target_server, tmp_path)
    both = "(1, 'one'), (2, 'two')"
    for table in (0, 1):
        source_server.run(f"DELETE FROM {shards.at(table)}", f"INSERT INTO {shards.at(table)} VALUES {both}")
    pattern = {"schema-pattern": f"{schema}_s", "table-pattern": "t_*"}
    if way == "mapped":
        mapping = {**pattern, "expression": "partition id", "source-column": "id", "target-column": "id"}
        shards.keys = {"column-mappings": {"ids": {**mapping, "arguments": ["1", "", "t", "_"]}}}
        shards.instance = {"route-rules": ["fold"], "column-mapping-rules": ["ids"]}
    else:
        extract = {"table-regexp": "t_(.*)", "target-column": "shard"}
        route = {**pattern, "target-schema": f"{schema}_all", "target-table": "t", "extract-table": extract}
        shards.keys = {"routes": {"fold": route}}
        target_server.run(
            f"CREATE DATABASE {schema}_all",
            f"CREATE TABLE {shards.merged} ({ROW.replace(' PRIMARY KEY', '')}, shard VARCHAR(9) NOT NULL,"
            " PRIMARY KEY (id, shard))",
        )
    with TaskRun(shards.files(), spark) as run:
        run.catch_up()
        for table in (0, 1):
            alter_at(shards, "s1", table, ADD, 1_500_000_000 + table)
        shards.wait_in_step(run)
    found = target_server.query(f"SELECT v, made FROM {shards.merged} ORDER BY v, made")
    wanted = source_server.query(
        f"SELECT v, made FROM {shards.at(0)} UNION ALL SELECT v, made FROM {shards.at(1)} ORDER BY v, made"
    )
    assert found == wanted
    assert len(set(wanted)) == 4


@pytest.mark.scenarios
@pytest.mark.parametrize("mode", ["pessimistic", "optimistic"])
def test_shards_keep_what_they_computed_from_keys_that_are_mapped(
    mode: str,
    source_server: MariadbServer,
    target_server: ThrowawayServer,
    schema: str,
    tmp_path: Path,
    spark: SparkSession,
) -> None:
    shards = Shards(schema, {"s1": source_server}, target_server, tmp_path)
    for table in (0, 1):
        source_server.run(
            f"DELETE FROM {shards.at(table)}", f"INSERT INTO {shards.at(table)} VALUES (1, 'a'), (2, 'b')"
        )
    pattern = {"schema-pattern": f"{schema}_s", "table-pattern": "t_*"}
    mapping = {**pattern, "expression": "partition id", "source-column": "id", "target-column": "id"}
    shards.keys = {
        "shard-mode": mode,
        "column-mappings": {"ids": {**mapping, "arguments": ["1", "", "t", "_"]}},
    }
    shards.instance = {"route-rules": ["fold"], "column-mapping-rules": ["ids"]}
    with TaskRun(shards.files(), spark) as run:
        run.catch_up()
        for table in (0, 1):
            shards.alter("s1", table, "ADD COLUMN own VARCHAR(40) DEFAULT (CONCAT('n', id))")
            shards.run("s1", f"UPDATE {shards.at(table)} SET v = 'c' WHERE id = 2")
        run.catch_up()
        columns = "SELECT v, own FROM {} ORDER BY v, own"
        wanted = source_server.query(f"SELECT v, own FROM {shards.at(0)} UNION ALL {columns.format(shards.at(1))}")
        wait_until(lambda: target_server.query(columns.format(shards.merged)) == wanted, "equal rows")


def test_numbers_stop_as_they_are(shards: Shards, spark: SparkSession) -> None:
    task = str(shards.files().task_path)
    with TaskRun(shards.files(), spark) as run:
        run.catch_up()
    for source, table in shards.shards:
        shards.alter(source, table, "ADD COLUMN n INT NOT NULL AUTO_INCREMENT UNIQUE")
    error = stopped(shards, spark)
    if isinstance(shards.target, TidbServer):
        assert error.code == "DDL-038"
        assert "auto_increment" in str(error).lower()
    else:
        assert error.code == "SHARD-036"
        assert "numbers" in str(error)
    ctl("binlog", "replace", task, "-s", str(error.where.source), f"ALTER TABLE {shards.at(0)} ADD COLUMN n INT")
    with TaskRun(shards.files(), spark) as run:
        shards.wait_in_step(run)
    assert {n for (n,) in shards.target.query(f"SELECT n FROM {shards.merged}")} == {None}


def test_a_source_whose_row_events_lack_columns(shards: Shards, spark: SparkSession) -> None:
    """What stops it tells why, and a human's word for it lets it go on without the values."""
    task = str(shards.files().task_path)
    with TaskRun(shards.files(), spark) as run:
        run.catch_up()
    for table in (0, 1):
        shards.alter("s1", table, ADD)
    with TaskRun(shards.files(), spark):
        wait_until(lambda: shards.owner() == "s1", "s1 is to run it")
    shards.sources["s2"].run("SET GLOBAL binlog_row_image = MINIMAL")
    try:
        for table in (0, 1):
            shards.alter("s2", table, ADD)
            shards.insert("s2", table, 1, made="'2021-01-01 01:01:01'")
        error = stopped(shards, spark)
        assert (error.code, error.where.source) == ("SHARD-036", "s2")
        assert "binlog_row_image" in str(error)
        ctl("binlog", "skip", task, "-s", "s2")
        with TaskRun(shards.files(), spark) as run:
            shards.wait_in_step(run)
        assert shards.target.query(f"SELECT COUNT(*) FROM {shards.merged} WHERE YEAR(made) = 2021") == [(2,)]
    finally:
        shards.sources["s2"].run("SET GLOBAL binlog_row_image = FULL")


@pytest.mark.parametrize(
    ("place", "change"),
    [
        pytest.param("ddl-backfill-rows", "ALTER TABLE {} DROP COLUMN made", id="who runs it"),
        pytest.param(
            "ddl-backfill-rows:3", "ALTER TABLE {} DROP COLUMN made", id="another", marks=pytest.mark.scenarios
        ),
        pytest.param("ddl-backfill-rows:3", "DROP TABLE {}", id="another, table", marks=pytest.mark.scenarios),
    ],
)
def test_values_that_are_gone_before_they_are_brought_again(place: str, change: str, shards: Shards,
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    """What stops the source tells why at each start, and a human's word for it lets it go on without the values."""
    shards.keys = {"shard-drop": "ignore"}
    task = str(shards.files().task_path)
    with TaskRun(shards.files(), spark) as run:
        run.catch_up()
    for table in (0, 1):
        alter_at(shards, "s1", table, ADD, 1_500_000_000 + table)
    with TaskRun(shards.files(), spark):
        wait_until(lambda: shards.owner() == "s1", "s1 is to run it")
    for table in (0, 1):
        alter_at(shards, "s2", table, ADD, 1_500_000_002 + table)
    assert ends_at(place, shards.files(), spark, monkeypatch)
    dead = "s2" if place.endswith(":3") else "s1"
    dropped = [table for table in (0, 1) if "COLUMN" in change or table == 1]
    for table in dropped:
        shards.run(dead, change.format(shards.at(table)))
    for _ in range(2):
        error = stopped(shards, spark)
        assert (error.code, error.where.source) == ("SHARD-036", dead)
        assert "dropped since" in str(error) or "no such table any more" in str(error)
    ctl("binlog", "skip", task, "-s", dead)
    other = "s1" if dead == "s2" else "s2"
    with TaskRun(shards.files(), spark) as run:
        wait_until(lambda: shards.items(other, 0) == shards.items(other, 1) == 0, "the other one has passed it")
        if "COLUMN" in change:
            for table in (0, 1):
                shards.run(other, change.format(shards.at(table)))
        shards.wait_in_step(run)
    assert "COLUMN" not in change or shards.merged_rows() == shards.expected()


@pytest.mark.parametrize("case", ["dropped", "event filter", "expression filter"])
def test_values_that_the_rows_of_the_source_do_not_tell(case: str, shards: Shards, spark: SparkSession) -> None:
    pattern = {"schema-pattern": f"{shards.name}_s", "table-pattern": "t_*"}
    if case == "event filter":
        shards.keys = {"filters": {"own": {**pattern, "events": ["delete"], "action": "Ignore"}}}
        shards.instance = {"route-rules": ["fold"], "filter-rules": ["own"]}
    if case == "expression filter":
        own = {"schema": f"{shards.name}_s", "table": "t_0", "insert-value-expr": "v = 'never'"}
        shards.keys = {"expression-filter": {"own": own}}
        shards.instance = {"route-rules": ["fold"], "expression-filters": ["own"]}
    with TaskRun(shards.files(), spark) as run:
        run.catch_up()
    for source, table in shards.shards:
        shards.alter(source, table, ADD)
        if case == "dropped":
            shards.alter(source, table, "DROP COLUMN made")
    error = stopped(shards, spark)
    words = "changed or dropped" if case == "dropped" else f"an {case} leaves out"
    assert error.code == "SHARD-036"
    assert words in str(error)


def stopped(shards: Shards, spark: SparkSession) -> UnshardError:
    """The error that a run stops with."""
    found = TaskRun(shards.files(), spark).start().error()
    assert isinstance(found, UnshardError)
    return found
