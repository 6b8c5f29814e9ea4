"""Copies into a real TiDB, of schemas and tables whose character sets, collations and types it partly lacks."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from support.task_runs import Command, TaskFiles, TaskRun
from unshard.errors import LoadError
from unshard.model.table import TableName
from unshard.testing.compare import assert_equal
from unshard.testing.mariadb_server import MariadbServer
from unshard.testing.tidb_server import TidbServer

pytestmark = pytest.mark.server


def collations(tidb: TidbServer, schema: str) -> dict[str, str]:
    """By table and column, those of TiDB's columns of text."""
    found = tidb.query(
        "SELECT CONCAT(TABLE_NAME, '.', COLUMN_NAME), COLLATION_NAME FROM information_schema.COLUMNS"
        " WHERE TABLE_SCHEMA = %s AND COLLATION_NAME IS NOT NULL",
        (schema,),
    )
    return dict(found)


@pytest.mark.spark
def test_a_schema_of_an_old_server_is_copied(
    source_server: MariadbServer, tidb: TidbServer, schema: str, tmp_path: Path
) -> None:
    """As a user types it. latin1_swedish_ci is the default of many old servers."""
    source_server.run(
        f"CREATE DATABASE {schema} CHARACTER SET latin1 COLLATE latin1_swedish_ci",
        f"USE {schema}",
        "CREATE TABLE plain (id INT PRIMARY KEY, v VARCHAR(20) CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci)",
        "INSERT INTO plain VALUES (1, 'é漢😀')",
        "CREATE TABLE old (id INT AUTO_INCREMENT PRIMARY KEY, v VARCHAR(20) NOT NULL, j CHAR(5) CHARACTER SET sjis,"
        " b BLOB, UNIQUE KEY (v)) ENGINE=MyISAM AUTO_INCREMENT=900",
        "INSERT INTO old VALUES (1, _utf8mb4'é€', _utf8mb4'漢字', x'00ff')",
    )
    files = TaskFiles(tmp_path, "copy", {"s": source_server}, tidb, (schema,), {"task-mode": "full"}).write()
    command = Command(files)
    assert command.wait() == 0, command.text
    for table in ("plain", "old"):
        name = TableName(schema, table)
        assert_equal([(source_server, name)], (tidb, name))
    collations = dict(
        tidb.query(
            f"SELECT CONCAT(TABLE_NAME, '.', COLUMN_NAME), COLLATION_NAME FROM"
            f" information_schema.COLUMNS WHERE TABLE_SCHEMA = '{schema}' AND COLLATION_NAME IS NOT NULL"
        )
    )
    assert collations == {"plain.v": "utf8mb4_general_ci", "old.v": "utf8mb4_general_ci", "old.j": "utf8mb4_general_ci"}
    tidb.run(f"INSERT INTO {schema}.old (v) VALUES ('next')")
    ((next_id,),) = tidb.query(f"SELECT id FROM {schema}.old WHERE v = 'next'")
    assert next_id >= 900


@pytest.mark.spark
def test_collations_of_the_task_file_hold_for_the_copy_and_for_statements(
    source_server: MariadbServer, tidb: TidbServer, schema: str, tmp_path: Path, spark: SparkSession
) -> None:
    source_server.run(
        f"CREATE DATABASE {schema} CHARACTER SET latin1 COLLATE latin1_swedish_ci",
        f"USE {schema}",
        "CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(9) UNIQUE, w VARCHAR(9) COLLATE latin1_danish_ci)",
        "INSERT INTO t VALUES (1, 'A', 'A'), (2, _utf8mb4'Ä', _utf8mb4'Ä')",
    )
    keys = {"collations": {"LATIN1_swedish_ci": "utf8mb4_0900_ai_ci", "latin1_danish_ci": "utf8mb4_bin"}}
    files = TaskFiles(tmp_path, schema, {"s": source_server}, tidb, (schema,), keys).write()
    with pytest.raises(LoadError, match="Ä") as refused, TaskRun(files, spark) as run:
        run.catch_up()
    assert refused.value.code == "LOAD-005"
    tidb.run(f"DROP DATABASE {schema}", f"DROP DATABASE {files.meta}")
    keys["collations"]["LATIN1_swedish_ci"] = "utf8mb4_bin"
    with TaskRun(replace(files, folder=tmp_path / "again").write(), spark) as run:
        run.catch_up()
        source_server.run(
            f"USE {schema}",
            "ALTER TABLE t ADD x VARCHAR(9), MODIFY w CHAR(20) COLLATE latin1_swedish_ci",
            "CREATE TABLE u (id INT PRIMARY KEY, v VARCHAR(9), w VARCHAR(9) COLLATE latin1_german1_ci)",
            "INSERT INTO t VALUES (3, 'B', 'B', 'B')",
            "INSERT INTO u SELECT id, v, w FROM t",
        )
        run.catch_up()
    for table in ("t", "u"):
        assert_equal([(source_server, TableName(schema, table))], (tidb, TableName(schema, table)))
    found = collations(tidb, schema)
    assert found.pop("u.w") == "utf8mb4_general_ci"
    assert found == dict.fromkeys(("t.v", "t.w", "t.x", "u.v"), "utf8mb4_bin")
