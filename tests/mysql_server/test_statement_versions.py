"""Every statement is held to the version that knows it: nothing that is sent to a server is unknown to it.

Each server records what it was asked, with the error of each statement, through checks, copy, sync with DDL, and
status: a refusal that is caught and worked around counts too.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from support.task_runs import TaskFiles, TaskRun
from unshard.checks.run import check_task
from unshard.config.files import load_source, load_task
from unshard.config.subtask import plan_subtasks
from unshard.model.table import TableName
from unshard.mysql.flavour import binary_logs, gtid_before, identify
from unshard.source.position_at import position_at
from unshard.target.meta import MetaTables
from unshard.target.waits import standstill
from unshard.testing.compare import assert_equal
from unshard.testing.mariadb_server import MariadbServer
from unshard.testing.mysql_server import Mysql56Server, Mysql80Server, MysqlServer, OldMariadbServer, OtherMariadbServer
from unshard.testing.throwaway_server import ThrowawayServer

pytestmark = [pytest.mark.server, pytest.mark.spark]

SERVERS = {
    "MySQL 5.6": (Mysql56Server, {}),
    "MySQL 8.0": (Mysql80Server, {}),
    "MySQL 9.7": (MysqlServer, {}),
    "MariaDB 10.2": (OldMariadbServer, {"performance_schema": "ON", "explicit_defaults_for_timestamp": "ON"}),
    "MariaDB 10.11": (MariadbServer, {"performance_schema": "ON"}),
    "MariaDB 11.8": (OtherMariadbServer, {"performance_schema": "ON"}),
}
UNKNOWN = "(1054, 1064, 1109, 1115, 1193, 1272, 1273, 1305, 1286)"
"""Columns, syntax, tables of the system, character sets, variables, collations, functions, engines."""
KEPT = "UPDATE performance_schema.setup_consumers SET ENABLED = 'YES' WHERE NAME LIKE 'events_statements_%'"
TRIED = ("SET @@session.collation_connection = ", "SET SESSION idle_transaction_timeout = ")
"""How a collation is asked for by its number, and what is told where a server lacks it."""
REFUSED = (
    "SELECT MYSQL_ERRNO, SQL_TEXT FROM performance_schema.events_statements_history_long"
    f" WHERE (MYSQL_ERRNO IN {UNKNOWN} OR (MYSQL_ERRNO = 1146 AND LOCATE('_schema.', MESSAGE_TEXT) > 0))"
)


@contextmanager
def recording(name: str) -> Iterator[ThrowawayServer]:
    """A server of that product and version; at the end, that it knew all statements."""
    kind, options = SERVERS[name]
    with kind({**options, "performance_schema_events_statements_history_long_size": "20000"}) as server:
        server.run(KEPT)
        yield server
        asked = server.query("SELECT COUNT(*) FROM performance_schema.events_statements_history_long")
        assert 100 < asked[0][0] < 20000, "not all that was asked is on record"
        assert [one for one in server.query(REFUSED) if not one[1].startswith(TRIED)] == []


def migrate(source: ThrowawayServer, target: ThrowawayServer, schema: str, spark: SparkSession, folder: Path) -> None:
    """Check, copy, follow rows and DDL, and ask for the status."""
    source.run(
        f"CREATE DATABASE {schema} CHARACTER SET utf8mb4 COLLATE utf8mb4_bin",
        f"CREATE TABLE {schema}.t (id INT PRIMARY KEY, f FLOAT, d DOUBLE, s VARCHAR(20))",
        f"CREATE TABLE {schema}.gone (id INT PRIMARY KEY)",
        f"INSERT INTO {schema}.t VALUES (1, 0.1, -0e0, 'é')",
    )
    files = TaskFiles(folder, schema, {"s1": source}, target, (schema,), source={"enable-gtid": True}).write()
    task, sources = load_task(files.task_path), [load_source(path) for path in files.source_paths]
    assert check_task(task, plan_subtasks(task, sources)).passed
    with TaskRun(files, spark) as run:
        run.reach("sync")
        source.run(
            f"INSERT INTO {schema}.t VALUES (2, 1.5, 1e300, 'x')",
            f"ALTER TABLE {schema}.t ADD COLUMN e INT NOT NULL DEFAULT 7, MODIFY s VARCHAR(30), ADD KEY by_e (e)",
            f"CREATE TABLE {schema}.u (id INT AUTO_INCREMENT PRIMARY KEY, at TIMESTAMP(3) NULL, FULLTEXT KEY w (note),"
            " note TEXT)",
            f"INSERT INTO {schema}.u (note) VALUES ('a')",
            f"UPDATE {schema}.t SET d = 3",
            f"RENAME TABLE {schema}.u TO {schema}.v",
            f"DROP TABLE {schema}.gone",
        )
        run.catch_up()
        with closing(target.connection()) as connection:
            assert standstill(connection, MetaTables(files.meta, schema), "s1", connection.thread_id()) == ""
    for table in ("t", "v"):
        assert_equal([(source, TableName(schema, table))], (target, TableName(schema, table)))
    with closing(source.connection()) as connection:
        server = identify(connection)
        assert position_at(source.endpoint, connection, server, 0) is not None
        gtid_before(connection, server, binary_logs(connection)[-1].name)


@pytest.mark.parametrize("name", SERVERS)
def test_a_source_knows_all_that_it_is_asked(
    name: str, mysql_target: MysqlServer, schema: str, spark: SparkSession, tmp_path: Path
) -> None:
    with recording(name) as source:
        migrate(source, mysql_target, schema, spark, tmp_path)


@pytest.mark.parametrize("name", [name for name in SERVERS if name != "MySQL 5.6"])
def test_a_target_knows_all_that_it_is_asked(
    name: str,
    source_server: MariadbServer,
    mysql_source: MysqlServer,
    schema: str,
    spark: SparkSession,
    tmp_path: Path,
) -> None:
    """From the other product."""
    with recording(name) as target:
        migrate(source_server if target.product == "MySQL" else mysql_source, target, schema, spark, tmp_path)
