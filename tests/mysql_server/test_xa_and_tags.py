"""XA transactions and tagged GTIDs from a MySQL server, followed by position and by GTID."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from support.task_runs import TaskFiles, TaskRun
from unshard.model.gtid import MysqlGtidSet
from unshard.model.table import TableName
from unshard.testing.binlog_count import count_by_key, row_events
from unshard.testing.compare import assert_equal
from unshard.testing.mariadb_server import MariadbServer
from unshard.testing.mysql_server import MysqlServer

pytestmark = [pytest.mark.server, pytest.mark.spark]


@pytest.mark.parametrize("upstream", ["mysql_source", "packing_mysql"], ids=["plain", "compressed"])
@pytest.mark.parametrize("by_gtid", [False, True], ids=["position", "gtid"])
def test_xa_and_tags(
    by_gtid: bool,
    upstream: str,
    spark: SparkSession,
    target_server: MariadbServer,
    schema: str,
    tmp_path: Path,
    request: pytest.FixtureRequest,
) -> None:
    source: MysqlServer = request.getfixturevalue(upstream)
    table = TableName(schema, "t")
    source.run(
        f"CREATE DATABASE {schema} COLLATE utf8mb4_general_ci",
        f"CREATE TABLE {table} (id INT PRIMARY KEY, v VARCHAR(200))",
    )

    def prepare(xid: str, *keys: int, end: str = "XA PREPARE '{}'") -> None:
        rows = [f"INSERT INTO {table} VALUES ({key}, REPEAT('{xid[-1]}', 100))" for key in keys]
        source.run(f"XA START '{xid}'", *rows, f"XA END '{xid}'", end.format(xid))

    files = TaskFiles(
        tmp_path,
        schema,
        {"s1": source},
        target_server,
        (schema,),
        source={"enable-gtid": by_gtid},
        syncer={"compact": False},
    ).write()
    prepare(f"{schema}-z", 9)
    with TaskRun(files, spark) as run:
        run.reach("sync")
        prepare(f"{schema}-a", 1, 2)
        prepare(f"{schema}-b", 3)
        prepare(f"{schema}-c", 4)
        prepare(f"{schema}-d", 5, end="XA COMMIT '{}' ONE PHASE")
        tagged = "SET SESSION gtid_next = 'AUTOMATIC:tag_one'"
        source.run(tagged, *(f"INSERT INTO {table} VALUES ({key}, 'tagged')" for key in (10, 11)))
        source.run(f"XA COMMIT '{schema}-b'", f"XA ROLLBACK '{schema}-c'")
        run.catch_up()
        assert keys(target_server, table) == [3, 5, 10, 11]
    source.run("FLUSH BINARY LOGS", tagged, f"INSERT INTO {table} VALUES (12, 'tagged')", "FLUSH BINARY LOGS")
    source.run(f"XA COMMIT '{schema}-a'", f"XA COMMIT '{schema}-z'")
    with TaskRun(files, spark) as run:
        run.reach("sync")
        run.catch_up()
    assert_equal([(source, table)], (target_server, table))
    counts = count_by_key(row_events(target_server, [table]))
    expected = {("INSERT", str(key)): 1 for key in (1, 2, 3, 5, 9, 10, 11, 12)}
    assert {(kind, key[0]): times for (_, kind, key), times in counts.items()} == expected
    ((gtid,),) = target_server.query(
        f"SELECT binlog_gtid FROM {files.meta}.{schema}_syncer_checkpoint WHERE is_global = 1"
    )
    ((executed,),) = source.query("SELECT @@global.gtid_executed")
    assert MysqlGtidSet.parse(gtid) == MysqlGtidSet.parse(executed)


def keys(server: MariadbServer, table: TableName) -> list[int]:
    return [key for (key,) in server.query(f"SELECT id FROM {table} ORDER BY id")]
