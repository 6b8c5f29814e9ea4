"""Copies into a real TiDB, of schemas and tables whose character sets, collations and types it partly lacks."""

from __future__ import annotations

from pathlib import Path

import pytest

from task_runs import Command, TaskFiles
from unshard.model.table import TableName
from unshard.testing.compare import assert_equal
from unshard.testing.servers import MariadbServer
from unshard.testing.tidb_server import TidbServer

pytestmark = pytest.mark.server


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
