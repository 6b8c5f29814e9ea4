"""One live table whose rows are mapped and marked by names: what is refused, where it is told, and how it goes on."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from support.task_runs import TaskFiles, TaskRun, newest
from unshard.errors import ConfigError, DdlError, SyncError
from unshard.model.position import Position
from unshard.testing.mariadb_server import MariadbServer

pytestmark = [pytest.mark.server, pytest.mark.spark]


def task(
    folder: Path, schema: str, source: MariadbServer, target: MariadbServer, mapping: dict[str, Any], **keys: Any
) -> TaskFiles:
    place = {"schema-pattern": f"{schema}_1", "table-pattern": "t_*"}
    route = {**place, "target-schema": f"{schema}_all", "target-table": "t", **keys.pop("route", {})}
    rules = {"routes": {"r": route}} | ({"column-mappings": {"m": {**place, **mapping}}} if mapping else {})
    used = {"route-rules": ["r"]} | ({"column-mapping-rules": ["m"]} if mapping else {})
    return TaskFiles(folder, schema, {"s1": source}, target, (f"{schema}_1",), keys={**rules, **keys}, instance=used)


PREFIX = {"expression": "add prefix", "arguments": ["n-"], "source-column": "code", "target-column": "code"}


@pytest.mark.parametrize("image", ["FULL", "MINIMAL"])
def test_a_text_that_gets_too_long_is_told_with_its_event_and_mended(
    image: str,
    spark: SparkSession,
    source_server: MariadbServer,
    target_server: MariadbServer,
    schema: str,
    tmp_path: Path,
) -> None:
    shard, merged = f"{schema}_1.t_1", f"{schema}_all.t"
    source_server.run(
        f"CREATE DATABASE {schema}_1",
        f"CREATE TABLE {shard} (code VARCHAR(8) NOT NULL, id BIGINT NOT NULL, v INT, PRIMARY KEY (code, id))",
        f"INSERT INTO {shard} VALUES ('a', 1, 1), ('b', 1, 1), ('é', 1, 1)",
    )
    files = task(tmp_path, schema, source_server, target_server, PREFIX).write()
    first = f"SET SESSION binlog_row_image = {image}"
    with TaskRun(files, spark) as run:
        run.reach("sync")
        source_server.run(
            first,
            f"UPDATE {shard} SET code = 'c', v = 2 WHERE code = 'a'",
            f"UPDATE {shard} SET v = 3 WHERE code = 'é'",
            f"DELETE FROM {shard} WHERE code = 'b'",
        )
        run.catch_up()
        assert target_server.query(f"SELECT * FROM {merged} ORDER BY 1") == [("n-c", 1, 2), ("n-é", 1, 3)]
    begin = newest(source_server)
    source_server.run(
        first,
        "BEGIN",
        f"INSERT INTO {shard} VALUES ('d', 4, 4)",
        f"INSERT INTO {shard} (code, id) VALUES ('1234567', 7)",
        "COMMIT",
    )
    with pytest.raises(ConfigError) as caught, TaskRun(files, spark) as run:
        raise run.error()
    error = caught.value
    assert (error.code, error.where.source, error.where.table) == ("CONFIG-018", "s1", shard)
    assert error.where.position is not None
    assert error.values["value"] == "1234567"
    name, _, offset = error.where.position.rpartition(":")
    assert Position(name, int(offset)) > begin
    ((_, at, kind, *_),) = source_server.query(f"SHOW BINLOG EVENTS IN '{name}' FROM {offset} LIMIT 1")
    assert (at, kind[:10]) == (int(offset), "Write_rows")
    assert error.cause == ("the row with (`code`='1234567' AND `id`=7)")
    target_server.run(f"ALTER TABLE {merged} MODIFY code VARCHAR(20) NOT NULL")
    with TaskRun(files, spark) as run:
        run.catch_up()
        assert target_server.query(f"SELECT code FROM {merged} ORDER BY 1") == [
            ("n-1234567",),
            ("n-c",),
            ("n-d",),
            ("n-é",),
        ]


def test_an_id_out_of_range_and_a_statement_on_a_mapped_column(
    spark: SparkSession, source_server: MariadbServer, target_server: MariadbServer, schema: str, tmp_path: Path
) -> None:
    shard, merged = f"{schema}_1.t_1", f"{schema}_all.t"
    source_server.run(
        f"CREATE DATABASE {schema}_1",
        f"CREATE TABLE {shard} (id BIGINT PRIMARY KEY, v INT)",
        f"INSERT INTO {shard} VALUES (1, 1)",
    )
    mapping = {"expression": "partition id", "source-column": "id", "target-column": "id"}
    arguments = {"arguments": ["3", "", "t_"]}
    files = task(tmp_path, schema, source_server, target_server, {**mapping, **arguments}).write()
    bits = 3 << 59 | 1 << 51
    with TaskRun(files, spark) as run:
        run.reach("sync")
        source_server.run(f"ALTER TABLE {shard} ADD w INT DEFAULT 5, MODIFY v BIGINT", f"UPDATE {shard} SET id = 2")
        run.catch_up()
        assert target_server.query(f"SELECT * FROM {merged}") == [(bits | 2, 1, 5)]
    source_server.run(f"UPDATE {shard} SET id = {1 << 44}")
    with pytest.raises(ConfigError) as caught, TaskRun(files, spark) as run:
        raise run.error()
    assert (caught.value.code, caught.value.cause) == ("CONFIG-009", f"the row with id={1 << 44}")
    assert caught.value.where.position is not None


@pytest.mark.parametrize(
    ("statement", "code"),
    [
        ("ALTER TABLE {} MODIFY code VARCHAR(9) NOT NULL", "SYNC-017"),
        ("ALTER TABLE {} CHANGE code word VARCHAR(8) NOT NULL", "SYNC-017"),
        ("RENAME TABLE {} TO {}_2", "SYNC-018"),
    ],
)
def test_a_statement_that_would_leave_rows_as_they_were(
    statement: str,
    code: str,
    spark: SparkSession,
    source_server: MariadbServer,
    target_server: MariadbServer,
    schema: str,
    tmp_path: Path,
) -> None:
    """An incremental task whose table the target knows with one column more."""
    shard, merged = f"{schema}_1.t_1", f"{schema}_all.t"
    columns = "code VARCHAR({}) NOT NULL, v INT, PRIMARY KEY (code"
    source_server.run(f"CREATE DATABASE {schema}_1", f"CREATE TABLE {shard} ({columns.format(8)}))")
    target_server.run(f"CREATE DATABASE {schema}_all", f"CREATE TABLE {merged} ({columns.format(8)}))")
    extract = {"extract-table": {"table-regexp": "t_(.*)", "target-column": "shard"}}
    where = newest(source_server)
    begin = {"meta": {"binlog-name": where.file, "binlog-pos": where.offset}}
    files = task(tmp_path, schema, source_server, target_server, PREFIX, route=extract, **{"task-mode": "incremental"})
    files.instances = {"s1": begin}
    files.write()
    with pytest.raises(ConfigError, match="CONFIG-017") as missing:
        TaskRun(files, spark)
    target_server.run(*missing.value.values["mend"].split("; "))
    source_server.run(
        f"INSERT INTO {shard} VALUES ('a', 1), ('b', 2)",
        f"ALTER TABLE {shard} ADD w INT",
        f"DELETE FROM {shard} LIMIT 1",
    )
    with TaskRun(files, spark) as run:
        run.catch_up()
    assert target_server.query(f"SELECT code, v, shard, w FROM {merged}") == [("n-b", 2, "1", None)]
    source_server.run(statement.format(shard, shard))
    with pytest.raises(SyncError) as caught, TaskRun(files, spark) as run:
        raise run.error()
    assert (caught.value.code, caught.value.where.table) == (code, shard)
    assert caught.value.where.position is not None


@pytest.mark.parametrize("expression", ["add prefix", pytest.param("partition id", marks=pytest.mark.scenarios)])
def test_a_new_column_that_is_computed_from_a_mapped_one_has_the_values_of_the_source(
    expression: str,
    spark: SparkSession,
    source_server: MariadbServer,
    target_server: MariadbServer,
    schema: str,
    tmp_path: Path,
) -> None:
    shard, merged = f"{schema}_1.t_1", f"{schema}_all.t"
    source_server.run(
        f"CREATE DATABASE {schema}_1",
        f"CREATE TABLE {shard} (id BIGINT PRIMARY KEY, code VARCHAR(8) NOT NULL)",
        f"INSERT INTO {shard} VALUES (1, 'ABC'), (2, 'DEF')",
    )
    ids = {"expression": expression, "arguments": ["3", "", "t_"], "source-column": "id", "target-column": "id"}
    mapping = PREFIX if expression == "add prefix" else ids
    files = task(tmp_path, schema, source_server, target_server, mapping).write()
    added = "ADD login VARCHAR(80) DEFAULT (LOWER(code)), ADD mark VARCHAR(80) DEFAULT (CONCAT(login, '-', id))"
    with TaskRun(files, spark) as run:
        run.reach("sync")
        source_server.run(
            f"ALTER TABLE {shard} {added}",
            f"INSERT INTO {shard} (id, code) VALUES (3, 'GHI')",
            f"UPDATE {shard} SET mark = 'own' WHERE id = 2",
        )
        run.catch_up()
    columns = "SELECT login, mark FROM {} ORDER BY login"
    assert target_server.query(columns.format(merged)) == source_server.query(columns.format(shard))


@pytest.mark.scenarios
def test_values_of_a_run_are_not_made_anew_where_the_table_gets_another_name(
    spark: SparkSession, source_server: MariadbServer, target_server: MariadbServer, schema: str, tmp_path: Path
) -> None:
    source_server.run(
        f"CREATE DATABASE {schema}",
        f"CREATE TABLE {schema}.a (id BIGINT PRIMARY KEY)",
        f"INSERT INTO {schema}.a VALUES (1)",
    )
    files = TaskFiles(tmp_path, schema, {"s1": source_server}, target_server, (schema,)).write()
    with TaskRun(files, spark) as run:
        run.catch_up()
        source_server.run(f"ALTER TABLE {schema}.a ADD u VARCHAR(36) DEFAULT (UUID()), RENAME TO {schema}.b")
        with pytest.raises(DdlError, match="DDL-034"):
            run.catch_up()
        run.crew.errors.clear()
    assert target_server.query(f"SHOW TABLES FROM {schema}") == [("a",)]


@pytest.mark.scenarios
@pytest.mark.parametrize("rules", [("stops",), ("left out", "exchange table partition")])
def test_rows_without_marks_do_not_come_into_a_table_whose_rows_have_them(
    rules: tuple[str, ...],
    spark: SparkSession,
    source_server: MariadbServer,
    target_server: MariadbServer,
    schema: str,
    tmp_path: Path,
) -> None:
    parts = "PARTITION BY RANGE (v) (PARTITION p0 VALUES LESS THAN (5), PARTITION p1 VALUES LESS THAN (9))"
    columns = "(code VARCHAR(8) NOT NULL, v INT NOT NULL, PRIMARY KEY (code, v))"
    shard, plain = f"{schema}_1.t_1", f"{schema}_1.plain"
    source_server.run(
        f"CREATE DATABASE {schema}_1",
        f"CREATE TABLE {shard} {columns} {parts}",
        f"CREATE TABLE {plain} {columns}",
        f"INSERT INTO {shard} VALUES ('a', 1), ('b', 7)",
        f"INSERT INTO {plain} VALUES ('c', 2)",
    )
    files = task(tmp_path, schema, source_server, target_server, PREFIX)
    for rule in rules[1:]:
        files.keys = {
            **files.keys,
            "filters": {"f": {"schema-pattern": "*", "table-pattern": "*", "events": [rule], "action": "Ignore"}},
        }
        files.instance = {**files.instance, "filter-rules": ["f"]}
    stops = pytest.raises(SyncError, match="SYNC-018") if not rules[1:] else nullcontext()
    with TaskRun(files.write(), spark) as run:
        run.catch_up()
        source_server.run(f"ALTER TABLE {shard} EXCHANGE PARTITION p0 WITH TABLE {plain}")
        with stops:
            run.catch_up()
        run.crew.errors.clear()
    found = target_server.query(f"SELECT code, v FROM {schema}_all.t ORDER BY v")
    assert found == [("n-a", 1), ("n-b", 7)]
    assert target_server.query(f"SELECT code, v FROM {plain}") == [("c", 2)]


@pytest.fixture
def shards_with_numbers(
    source_server: MariadbServer, target_server: MariadbServer, schema: str, tmp_path: Path
) -> TaskFiles:
    """A task that merges shards by their number, which the target has as a part of its key; `t_1` is there."""
    source_server.run(f"CREATE DATABASE {schema}_1", f"CREATE TABLE {schema}_1.t_1 (id INT PRIMARY KEY, v INT)")
    target_server.run(
        f"CREATE DATABASE {schema}_all",
        f"CREATE TABLE {schema}_all.t (shard INT, id INT, v INT, PRIMARY KEY (shard, id), KEY (v))",
    )
    extract = {"extract-table": {"table-regexp": "t_(.*)", "target-column": "Shard"}}
    return task(tmp_path, schema, source_server, target_server, {}, route=extract).write()


def test_a_new_shard_needs_nothing(
    shards_with_numbers: TaskFiles,
    spark: SparkSession,
    source_server: MariadbServer,
    target_server: MariadbServer,
    schema: str,
) -> None:
    files = shards_with_numbers
    with TaskRun(files, spark) as run:
        run.reach("sync")
        source_server.run(
            f"INSERT INTO {schema}_1.t_1 VALUES (1, 1), (2, 2)",
            f"CREATE TABLE {schema}_1.t_02 (id INT PRIMARY KEY, v INT)",
            f"CREATE TABLE {schema}_1.t_3 LIKE {schema}_1.t_1",
            f"INSERT INTO {schema}_1.t_02 VALUES (1, 3), (2, 3)",
            f"INSERT INTO {schema}_1.t_3 VALUES (1, 4)",
            f"UPDATE {schema}_1.t_02 SET id = 5 WHERE id = 1",
            f"DELETE FROM {schema}_1.t_1 WHERE id = 2",
        )
        run.catch_up()
        found = target_server.query(f"SELECT * FROM {schema}_all.t ORDER BY shard, id")
        assert found == [(1, 1, 1), (2, 2, 3), (2, 5, 3), (3, 1, 4)]


def test_a_shard_that_is_made_over_would_take_the_others_rows(
    shards_with_numbers: TaskFiles,
    spark: SparkSession,
    source_server: MariadbServer,
    target_server: MariadbServer,
    schema: str,
) -> None:
    with TaskRun(shards_with_numbers, spark) as run:
        run.reach("sync")
        source_server.run(
            f"INSERT INTO {schema}_1.t_1 VALUES (1, 1)",
            f"CREATE TABLE {schema}_1.t_2 LIKE {schema}_1.t_1",
            f"INSERT INTO {schema}_1.t_2 VALUES (1, 2)",
        )
        run.catch_up()
    source_server.run(f"CREATE OR REPLACE TABLE {schema}_1.t_1 (id INT PRIMARY KEY, v INT)")
    with pytest.raises(SyncError, match="SYNC-011"), TaskRun(shards_with_numbers, spark) as run:
        raise run.error()
    assert target_server.query(f"SELECT COUNT(*) FROM {schema}_all.t") == [(2,)]


def test_a_new_shard_that_is_made_like_another(
    spark: SparkSession, source_server: MariadbServer, target_server: MariadbServer, schema: str, tmp_path: Path
) -> None:
    source_server.run(f"CREATE DATABASE {schema}_1", f"CREATE TABLE {schema}_1.t_1 (id INT PRIMARY KEY, KEY (id))")
    files = task(tmp_path, schema, source_server, target_server, {}).write()
    with TaskRun(files, spark) as run:
        run.reach("sync")
        source_server.run(
            f"CREATE TABLE {schema}_1.t_2 LIKE {schema}_1.t_1",
            f"CREATE TABLE IF NOT EXISTS {schema}_1.t_3 (LIKE {schema}_1.t_2)",
            *(f"INSERT INTO {schema}_1.t_{number} VALUES ({number})" for number in (1, 2, 3)),
        )
        run.catch_up()
    assert target_server.query(f"SELECT id FROM {schema}_all.t ORDER BY 1") == [(1,), (2,), (3,)]


def test_two_rules_for_a_table_that_is_there_are_refused_at_the_start(
    spark: SparkSession, source_server: MariadbServer, target_server: MariadbServer, schema: str, tmp_path: Path
) -> None:
    source_server.run(f"CREATE DATABASE {schema}_1", f"CREATE TABLE {schema}_1.t_1 (id INT PRIMARY KEY)")
    place = {"schema-pattern": f"{schema}_1", "target-schema": "x", "target-table": "y"}
    routes = {"one": {**place, "table-pattern": "?_1"}, "two": {**place, "table-pattern": "t_?"}}
    files = TaskFiles(
        tmp_path,
        schema,
        {"s1": source_server},
        target_server,
        (f"{schema}_1",),
        keys={"routes": routes},
        instance={"route-rules": list(routes)},
    ).write()
    with pytest.raises(ConfigError, match=f"{schema}_1.t_1 matches more than one rule of `routes`: one, two"):
        TaskRun(files, spark)
