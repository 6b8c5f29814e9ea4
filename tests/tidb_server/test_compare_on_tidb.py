"""`unshard compare` from a MariaDB to a TiDB: equal rows, each kind of difference, and rows in flight."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from support.comparisons import compared, kinds, only_table
from support.task_runs import TaskFiles, TaskRun
from unshard.testing.mariadb_server import MariadbServer
from unshard.testing.tidb_server import TidbServer

pytestmark = [pytest.mark.server, pytest.mark.spark]

_TABLE = "CREATE TABLE {name} (id BIGINT PRIMARY KEY, name VARCHAR(40), amount DECIMAL(9,2), at DATETIME(3))"


@pytest.fixture
def files(source_server: MariadbServer, tidb: TidbServer, schema: str, tmp_path: Path) -> TaskFiles:
    return TaskFiles(tmp_path, f"task_{schema}", {"s1": source_server}, tidb, (schema,)).write()


def fill(server: MariadbServer, name: str, rows: int) -> None:
    values = "seq, CONCAT('näme ', seq), seq / 4, '2024-02-29 12:34:56.789'"
    server.run(f"INSERT INTO {name} SELECT {values} FROM mysql.seq_1_to_{rows}")


def test_equal_rows_and_each_kind_of_difference(
    files: TaskFiles, source_server: MariadbServer, tidb: TidbServer, schema: str, spark: SparkSession
) -> None:
    name = f"{schema}.orders"
    source_server.run(f"CREATE DATABASE {schema}", _TABLE.format(name=name))
    fill(source_server, name, 5000)
    with TaskRun(files, spark) as run:
        run.catch_up()
        equal = compared(files, spark, chunk_rows=700)
        assert (equal.exit_code, only_table(equal).source_rows, only_table(equal).target_rows) == (0, 5000, 5000)
        assert only_table(equal).chunks == 8
        assert equal.places[0].to_dict()["exact"]
        tidb.run(
            f"DELETE FROM {name} WHERE id = 17",
            f"INSERT INTO {name} VALUES (99999, 'extra', NULL, NULL)",
            f"UPDATE {name} SET amount = amount + 1 WHERE id = 4711",
        )
        found = compared(files, spark, chunk_rows=700)
    assert found.exit_code == 1
    assert kinds(only_table(found)) == {"id=17": "missing", "id=99999": "extra", "id=4711": "changed"}
    (changed,) = (one for one in only_table(found).differences if one.key == "id=4711")
    assert changed.columns == ("amount",)
    assert changed.source[0][0] == f"s1: {name}"
    assert changed.source[0][1]["amount"] == "1177.75"
    assert changed.target is not None
    assert changed.target["amount"] == "1178.75"
