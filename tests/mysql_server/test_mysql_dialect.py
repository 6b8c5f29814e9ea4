"""What MySQL has and MariaDB hasn't: collations, and definitions that only one of both understands."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from support.operated_tasks import ctl, go_on
from support.task_runs import TaskFiles, TaskRun
from unshard.errors import LoadError, UnshardError
from unshard.model.table import TableName
from unshard.testing.compare import assert_equal
from unshard.testing.mariadb_server import MariadbServer
from unshard.testing.mysql_server import MysqlServer

pytestmark = [pytest.mark.server, pytest.mark.spark]


def test_a_collation_that_the_target_lacks_is_named_and_tables_made_by_hand_are_filled(
    spark: SparkSession, mysql_source: MysqlServer, target_server: MariadbServer, schema: str, tmp_path: Path
) -> None:
    name = TableName(schema, "t")
    mysql_source.run(
        f"CREATE DATABASE {schema}",
        f"CREATE TABLE {name} (id INT PRIMARY KEY, word VARCHAR(20))",
        f"INSERT INTO {name} VALUES (1, 'é'), (2, 'e')",
    )
    files = TaskFiles(tmp_path, schema, {"s1": mysql_source}, target_server, (schema,)).write()
    by_hand = [
        f"CREATE DATABASE {schema} COLLATE utf8mb4_unicode_520_ci",
        f"CREATE TABLE {name} (id INT PRIMARY KEY, word VARCHAR(20) COLLATE utf8mb4_unicode_520_ci)",
    ]
    for what, remedy in zip((f"database {schema}", f"table {name}"), by_hand, strict=True):
        run = TaskRun(files, spark).start()
        error = run.error()
        run.crew.stop.set()
        assert isinstance(error, LoadError)
        assert error.code == "LOAD-011"
        assert what in str(error)
        assert "utf8mb4_0900_ai_ci" in str(error)
        target_server.run(remedy)
    with TaskRun(files, spark) as run:
        run.reach("sync")
        mysql_source.run(f"INSERT INTO {name} VALUES (3, 'ü')", f"UPDATE {name} SET word = '語' WHERE id = 1")
        run.catch_up()
    assert_equal([(mysql_source, name)], (target_server, name))
    later = TableName(schema, "later")
    words = "id INT PRIMARY KEY, word VARCHAR(20)"
    stops_at(files, spark, mysql_source, f"CREATE TABLE {later} ({words})", "DDL-003")
    made = f"CREATE TABLE {later} ({words} COLLATE utf8mb4_unicode_520_ci)"
    ctl("binlog", "replace", str(files.task_path), "-s", "s1", made)
    with TaskRun(files, spark) as run:
        mysql_source.run(f"INSERT INTO {later} VALUES (1, 'é')")
        run.catch_up()
    assert_equal([(mysql_source, later)], (target_server, later))
    alter = f"ALTER TABLE {later} ADD COLUMN number INT DEFAULT 7"
    stops_at(files, spark, mysql_source, alter, "DDL-003")
    target_server.run(alter)
    ctl("binlog", "skip", str(files.task_path), "-s", "s1")
    stops_at(files, spark, mysql_source, f"INSERT INTO {later} (id, word) VALUES (2, 'e')", "BINLOG-022")
    structure = tmp_path / "later.sql"
    structure.write_text(f"{target_server.query(f'SHOW CREATE TABLE {later}')[0][1]};")
    ctl("binlog-schema", "update", str(files.task_path), schema, "later", str(structure), "-s", "s1")
    with TaskRun(files, spark) as run:
        run.catch_up()
    assert_equal([(mysql_source, later)], (target_server, later))


def test_a_character_set_whose_default_collation_the_target_lacks(
    spark: SparkSession, mysql_source: MysqlServer, target_server: MariadbServer, schema: str, tmp_path: Path
) -> None:
    """MariaDB would take its own default, for which 'a' and 'a ' are one key."""
    mysql_source.run(
        f"CREATE DATABASE {schema} COLLATE utf8mb4_unicode_520_ci", f"CREATE TABLE {schema}.t (id INT PRIMARY KEY)"
    )
    files = TaskFiles(tmp_path, schema, {"s1": mysql_source}, target_server, (schema,)).write()
    with TaskRun(files, spark) as run:
        run.reach("sync")
        run.catch_up()
    later = TableName(schema, "later")
    made = f"CREATE TABLE {later} (id INT PRIMARY KEY, v VARCHAR(20) UNIQUE) DEFAULT CHARSET=utf8mb4"
    stops_at(files, spark, mysql_source, made, "DDL-010")
    mysql_source.run(f"INSERT INTO {later} VALUES (1, 'a'), (2, 'a ')")
    ctl("binlog", "replace", str(files.task_path), "-s", "s1", f"{made} COLLATE utf8mb4_nopad_bin")
    with TaskRun(files, spark) as run:
        run.catch_up()
    added = f"ALTER TABLE {later} ADD w VARCHAR(9) CHARACTER SET utf8mb4"
    stops_at(files, spark, mysql_source, added, "DDL-010")
    ctl("binlog", "replace", str(files.task_path), "-s", "s1", f"{added} COLLATE utf8mb4_nopad_bin")
    mysql_source.run(f"INSERT INTO {later} VALUES (3, 'b', 'é')")
    with TaskRun(files, spark) as run:
        run.catch_up()
    assert_equal([(mysql_source, later)], (target_server, later))


def stops_at(files: TaskFiles, spark: SparkSession, source: MysqlServer, statement: str, code: str) -> None:
    """The task stops at the statement, and says where."""
    source.run(statement)
    with TaskRun(files, spark).failing() as run:
        error = run.error()
    assert isinstance(error, UnshardError)
    assert (error.code, error.where.table) == (code, f"{files.schemas[0]}.later")
    assert error.where.position


STATEMENTS = (
    "ALTER TABLE t ADD COLUMN added INT NOT NULL DEFAULT 7, ALGORITHM=INSTANT",
    "ALTER TABLE t RENAME COLUMN added TO renamed",
    "ALTER TABLE t ADD COLUMN total INT GENERATED ALWAYS AS (id + renamed) STORED",
    "ALTER TABLE t ADD COLUMN hidden VARCHAR(20) DEFAULT (UPPER('x')) INVISIBLE",
    "ALTER TABLE t ALTER COLUMN word SET INVISIBLE",
    "ALTER TABLE t ALTER COLUMN word SET VISIBLE",
    "CREATE INDEX lowered ON t ((LOWER(word)))",
    "CREATE INDEX downwards ON t (renamed DESC, id)",
    "ALTER TABLE t ADD CONSTRAINT positive CHECK (id > 0) NOT ENFORCED",
    "ALTER TABLE t ALTER CHECK positive ENFORCED",
    "ALTER TABLE t ALTER INDEX downwards INVISIBLE",
    "ALTER TABLE t RENAME INDEX downwards TO down",
    "ALTER TABLE t ADD COLUMN doc JSON, ADD COLUMN place POINT SRID 4326, ADD COLUMN way VECTOR(3)",
    "ALTER TABLE t DROP COLUMN total, ALGORITHM=INSTANT",
    "CREATE TABLE made (id BINARY(16) DEFAULT (UUID_TO_BIN(UUID())) PRIMARY KEY, n INT)",
    "CREATE TABLE copied AS SELECT id, word FROM t",
    "CREATE TABLE alike LIKE t",
    "RENAME TABLE alike TO likewise",
    "DROP TABLE likewise",
)


@pytest.mark.parametrize("metadata", ["MINIMAL", "FULL"])
def test_ddl_in_mysqls_own_dialect_is_followed(
    metadata: str,
    spark: SparkSession,
    mysql_source: MysqlServer,
    mysql_target: MysqlServer,
    schema: str,
    tmp_path: Path,
) -> None:
    mysql_source.run(
        f"CREATE DATABASE {schema}",
        f"CREATE TABLE {schema}.t (id INT PRIMARY KEY, word VARCHAR(20) DEFAULT (CONCAT('a', 'b')))",
        f"INSERT INTO {schema}.t VALUES (1, 'x')",
        f"CREATE TABLE {schema}.odd (id INT PRIMARY KEY, a INT INVISIBLE DEFAULT (1 + 1), b INT AS (id * 2) VIRTUAL,"
        " c INT AS (id * 3) STORED, CHECK (id < 1000), KEY low ((id + 1)), KEY down (id DESC))",
        f"INSERT INTO {schema}.odd (id, a) VALUES (1, 5), (2, NULL)",
        f"SET GLOBAL binlog_row_metadata = {metadata}",
    )
    files = TaskFiles(tmp_path, schema, {"s1": mysql_source}, mysql_target, (schema,)).write()
    with TaskRun(files, spark) as run:
        run.reach("sync")
        for number, statement in enumerate(STATEMENTS, 10):
            mysql_source.run(
                statement,
                f"INSERT INTO t (id) VALUES ({number})",
                "UPDATE t SET word = CONCAT(word, 1) WHERE id = 1",
                f"INSERT INTO odd (id, a) VALUES ({number}, {number})",
                "UPDATE odd SET id = id + 100 WHERE id = 10",
                database=schema,
            )
        mysql_source.run("INSERT INTO made (n) VALUES (1), (2)", database=schema)
        run.catch_up()
    shown = {}
    for table in ("t", "odd", "made", "copied"):
        name = TableName(schema, table)
        assert_equal([(mysql_source, name)], (mysql_target, name))
        shown[table] = [server.query(f"SHOW CREATE TABLE {name}") for server in (mysql_source, mysql_target)]
        assert shown[table][0] == shown[table][1]
    assert "INVISIBLE" in shown["odd"][1][0][1]
    assert mysql_target.query("SELECT 1 FROM information_schema.TABLES WHERE TABLE_NAME = 'likewise'") == []


def test_create_or_replace_table_of_mariadb(
    spark: SparkSession, source_server: MariadbServer, mysql_target: MysqlServer, schema: str, tmp_path: Path
) -> None:
    """MySQL has no such statement: the table is dropped and made, each once."""
    source_server.run(f"CREATE DATABASE {schema}", f"CREATE TABLE {schema}.t (id INT PRIMARY KEY, old INT)")
    source_server.run(f"INSERT INTO {schema}.t VALUES (1, 1)")
    files = TaskFiles(tmp_path, schema, {"s1": source_server}, mysql_target, (schema,)).write()
    go_on(files, spark)
    source_server.run(
        f"CREATE OR REPLACE TABLE {schema}.t (id INT PRIMARY KEY, v VARCHAR(9)) COMMENT 'OR REPLACE'",
        f"INSERT INTO {schema}.t VALUES (1, 'new')",
        f"CREATE OR REPLACE TABLE {schema}.m LIKE {schema}.t",
        f"INSERT INTO {schema}.m VALUES (2, 'two')",
        f"CREATE OR REPLACE TABLE {schema}.m (n INT PRIMARY KEY)",
        f"INSERT INTO {schema}.m VALUES (3)",
    )
    go_on(files, spark)
    for table in ("t", "m"):
        name = TableName(schema, table)
        assert_equal([(source_server, name)], (mysql_target, name))
