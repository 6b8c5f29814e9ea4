"""Binlog event filters of task and source on real servers: rows and statements left out, and what stops the task."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from support.task_runs import Command, TaskFiles, TaskRun
from support.waiting import wait_until
from unshard.errors import UnshardError
from unshard.testing.mariadb_server import MariadbServer

pytestmark = [pytest.mark.server, pytest.mark.spark]


class Ends:
    """A source and a target with one task of filters between them."""

    def __init__(self, source: MariadbServer, target: MariadbServer, schema: str, folder: Path) -> None:
        self.source, self.target, self.schema, self.folder = source, target, schema, folder
        source.run(f"CREATE DATABASE {schema}")

    def files(self, *rules: dict[str, Any], of_source: tuple[dict[str, Any], ...] = (), **keys: Any) -> TaskFiles:
        """The task; patterns are completed by the schema."""
        whole = [{"schema-pattern": self.schema, "action": "Ignore", **rule} for rule in rules]
        filters = {f"f{place}": rule for place, rule in enumerate(whole)}
        return TaskFiles(
            self.folder,
            self.schema,
            {"s1": self.source},
            self.target,
            (self.schema,),
            keys={"filters": filters, **keys},
            instance={"filter-rules": list(filters)},
            source={"filters": [{"schema-pattern": self.schema, "action": "Ignore", **rule} for rule in of_source]},
        ).write()

    def run(self, *statements: str) -> None:
        self.source.run(*statements, database=self.schema)

    def rows(self, table: str, server: MariadbServer | None = None) -> list[tuple[Any, ...]]:
        return (server or self.target).query(f"SELECT * FROM {self.schema}.{table} ORDER BY 1")

    def columns(self, table: str) -> list[str]:
        return [name for name, *_ in self.target.query(f"SHOW COLUMNS FROM {self.schema}.{table}")]

    def tables(self) -> set[str]:
        return {name for (name,) in self.target.query(f"SHOW TABLES FROM {self.schema}")}


@pytest.fixture
def ends(source_server: MariadbServer, target_server: MariadbServer, schema: str, tmp_path: Path) -> Ends:
    return Ends(source_server, target_server, schema, tmp_path)


def test_rows_by_rules_of_task_and_source(ends: Ends, spark: SparkSession) -> None:
    ends.run(*(f"CREATE TABLE {name} (id INT PRIMARY KEY, v INT)" for name in ("log", "kept", "off", "größe")))
    ends.run("INSERT INTO log VALUES (1, 1)", "INSERT INTO kept VALUES (1, 1)", "INSERT INTO größe VALUES (1, 1)")
    files = ends.files(
        {"table-pattern": "log", "events": ["delete"]},
        {"table-pattern": "off", "events": ["all dml"]},
        {"table-pattern": "gr?ße", "events": ["insert"], "action": "Do"},
        of_source=({"table-pattern": "kept", "events": ["update"]}, {"table-pattern": "log", "events": ["insert"]}),
    )
    with TaskRun(files, spark) as run:
        run.reach("sync")
        for name in ("log", "kept", "off", "größe"):
            ends.run(f"INSERT INTO {name} VALUES (2, 2)", f"UPDATE {name} SET v = 9 WHERE id = 2")
            ends.run(f"INSERT INTO {name} VALUES (3, 3)", f"DELETE FROM {name} WHERE id = 3")
        run.catch_up()
        reading = run.crew.readings()[0].sync
        assert reading is not None
        found = {name: entry.rules for name, entry in reading.tables.items()}
    # the source's rule for `log` has the patterns of the task's, so it doesn't count
    assert ends.rows("log") == [(1, 1), (2, 9), (3, 3)]
    assert ends.rows("kept") == [(1, 1), (2, 2)]
    assert ends.rows("off") == []
    assert ends.rows("größe") == [(1, 1), (2, 2), (3, 3)]
    assert found == {
        f"{ends.schema}.log": {"filters.f0": 1},
        f"{ends.schema}.kept": {"source filters[0]": 1},
        f"{ends.schema}.größe": {"filters.f2": 2},
    }


def test_statements_are_left_out_and_tracked(ends: Ends, spark: SparkSession) -> None:
    ends.run("CREATE TABLE t (id INT PRIMARY KEY, a INT, b INT)", "CREATE TABLE gone (id INT PRIMARY KEY)")
    ends.run("INSERT INTO t VALUES (1, 1, 1)", "INSERT INTO gone VALUES (1)")
    files = ends.files(
        {"events": ["truncate table", "drop table", "drop column", "create index"], "sql-pattern": ["archive"]},
        of_source=({"table-pattern": "t", "events": ["add primary key", "modify default value"]},),
    )
    with TaskRun(files, spark) as run:
        run.reach("sync")
        ends.run("TRUNCATE t", "DROP TABLE gone", "CREATE INDEX i ON t (a)")
        # of several parts only those that a rule names are left out
        ends.run("ALTER TABLE t DROP COLUMN b, ADD COLUMN c INT, ALTER a SET DEFAULT 5")
        ends.run("ALTER TABLE t COMMENT 'to the ARCHIVE'")
        ends.run("INSERT INTO t (id, c) VALUES (2, 22)")
        run.catch_up()
    assert ends.columns("t") == ["id", "a", "b", "c"]
    assert ends.rows("t") == [(1, 1, 1, None), (2, 5, None, 22)]
    assert ends.tables() == {"t", "gone"}
    ((_, created),) = ends.target.query(f"SHOW CREATE TABLE {ends.schema}.t")
    assert "KEY `i`" not in created
    assert "COMMENT='to" not in created
    assert "DEFAULT 5" not in created


def test_a_column_that_was_not_added_stops_its_rows_by_name(ends: Ends, spark: SparkSession) -> None:
    ends.run("CREATE TABLE t (id INT PRIMARY KEY)")
    run = TaskRun(ends.files({"table-pattern": "t", "events": ["add column"]}), spark).start()
    run.reach("sync")
    ends.run("ALTER TABLE t ADD COLUMN extra INT", "INSERT INTO t VALUES (1, 1)")
    error = run.error()
    assert isinstance(error, UnshardError)
    assert error.code == "SYNC-007"
    assert "extra" in error.cause


@pytest.mark.parametrize(
    ("rule", "change", "code", "says"),
    [
        ({"events": ["delete"]}, "DELETE FROM t", "SYNC-015", "filters.f0 stops the task at this delete"),
        ({"events": ["drop column"]}, "ALTER TABLE t DROP v", "DDL-020", "filters.f0 stops the task at this statement"),
    ],
)
def test_an_error_stops_in_front_and_another_rule_goes_on(
    ends: Ends, spark: SparkSession, rule: dict[str, Any], change: str, code: str, says: str
) -> None:
    ends.run("CREATE TABLE t (id INT PRIMARY KEY, v INT)", "INSERT INTO t VALUES (1, 1)")
    run = TaskRun(ends.files({"table-pattern": "t", **rule, "action": "Error"}), spark).start()
    run.reach("sync")
    ends.run("INSERT INTO t VALUES (2, 2)", change)
    error = run.error()
    assert isinstance(error, UnshardError)
    assert error.code == code
    assert says in str(error)
    assert error.where.table == f"{ends.schema}.t"
    assert error.where.position is not None
    assert error.where.position.rpartition(":")[2].isdigit()
    with TaskRun(ends.files({"table-pattern": "t", **rule}), spark) as again:
        again.catch_up()
    assert ends.rows("t") == [(1, 1), (2, 2)]


def test_statements_that_cant_be_carried_are_passed_over_by_a_pattern(ends: Ends, spark: SparkSession) -> None:
    ends.run("CREATE TABLE t (id INT PRIMARY KEY)")
    patterns = ["^CREATE SEQUENCE", "DISCARD TABLESPACE"]
    files = ends.files({"schema-pattern": "*", "table-pattern": "*", "sql-pattern": patterns})
    with TaskRun(files, spark) as run:
        run.reach("sync")
        ends.run("CREATE SEQUENCE numbers", "CREATE TABLE u (id INT PRIMARY KEY)", "ALTER TABLE u DISCARD TABLESPACE")
        ends.run("INSERT INTO t VALUES (1)")
        run.catch_up()
    assert ends.rows("t") == [(1,)]


def test_shards_that_are_emptied_and_dropped_keep_their_rows_in_the_merged_table(
    ends: Ends, spark: SparkSession
) -> None:
    ends.run(*(f"CREATE TABLE t_{n} (id INT PRIMARY KEY)" for n in (1, 2)))
    ends.run("INSERT INTO t_1 VALUES (1)", "INSERT INTO t_2 VALUES (2)")
    route = {"schema-pattern": ends.schema, "table-pattern": "t_*", "target-schema": ends.schema, "target-table": "t"}
    files = ends.files(
        {"table-pattern": "t_*", "events": ["truncate table", "drop table"]},
        routes={"r": route},
    )
    files.instance = {**files.instance, "route-rules": ["r"]}
    with TaskRun(files.write(), spark) as run:
        run.reach("sync")
        ends.run("TRUNCATE t_1", "INSERT INTO t_1 VALUES (11)", "DROP TABLE t_2")
        run.catch_up()
    assert ends.rows("t") == [(1,), (2,), (11,)]


def test_what_the_target_never_had_needs_no_structure(ends: Ends, spark: SparkSession) -> None:
    ends.run("CREATE TABLE t (id INT PRIMARY KEY)", "CREATE TABLE off (id INT PRIMARY KEY)")
    ends.target.run(f"CREATE DATABASE {ends.schema}", f"CREATE TABLE {ends.schema}.t (id INT PRIMARY KEY)")
    files = ends.files({"table-pattern": "off*", "events": ["all"]})
    files.keys = {**files.keys, "task-mode": "incremental"}
    files.write()
    with TaskRun(files, spark) as run:
        run.reach("sync")
        ends.run("ALTER TABLE off ADD x INT", "CREATE INDEX i ON off (x)", "RENAME TABLE off TO off_2, off_2 TO off_3")
        ends.run("INSERT INTO off_3 VALUES (1, 1)", "CREATE TABLE off_4 (a INT) ENGINE = ARIA TRANSACTIONAL = 1")
        ends.run("DROP TABLE off_3", "INSERT INTO t VALUES (1)")
        run.catch_up()
    assert ends.tables() == {"t"}
    assert ends.rows("t") == [(1,)]


@pytest.mark.faults
@pytest.mark.recovery
def test_a_killed_run_leaves_out_the_same(ends: Ends) -> None:
    ends.run("CREATE TABLE t (id INT PRIMARY KEY, v INT)")
    files = ends.files({"table-pattern": "t", "events": ["delete", "drop column"]})
    with Command(files) as command:
        command.catch_up()
        ends.run("INSERT INTO t VALUES (1, 1), (2, 2)", "ALTER TABLE t DROP v, ADD w INT", "DELETE FROM t WHERE id = 1")
        wait_until(lambda: ends.columns("t") == ["id", "v", "w"], "the column")
        command.kill()
    ends.run("INSERT INTO t VALUES (3, 33)", "DELETE FROM t WHERE id = 2")
    with Command(files) as command:
        command.catch_up()
    assert ends.rows("t") == [(1, 1, None), (2, 2, None), (3, None, 33)]
    assert json.loads(json.dumps(ends.rows("t", ends.source))) == [[3, 33]]
