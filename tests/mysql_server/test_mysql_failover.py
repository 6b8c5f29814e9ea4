"""A MySQL source fails over to its replica, and back: by GTID sets, with XA transactions and compressed ones."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from support.exactly_once import assert_exactly_once
from support.task_runs import TaskFiles, TaskRun, newest
from unshard.errors import RelayError
from unshard.model.table import TableName
from unshard.testing.compare import assert_equal
from unshard.testing.mysql_server import Mysql56Server, Mysql80Server, MysqlServer, OldMariadbServer
from unshard.testing.throwaway_server import ThrowawayServer
from unshard.testing.workload import Workload, WorkPlan

pytestmark = [pytest.mark.server, pytest.mark.spark]

XA = ("XA START '{x}'", "INSERT INTO {table} (k, c, pad) VALUES (7, '{x}', 'xa')", "XA END '{x}'", "XA PREPARE '{x}'")


def follow(replica: MysqlServer, primary: MysqlServer) -> None:
    replica.run(
        f"CHANGE REPLICATION SOURCE TO SOURCE_HOST='127.0.0.1', SOURCE_PORT={primary.port}, SOURCE_USER='root',"
        " SOURCE_AUTO_POSITION=1, GET_SOURCE_PUBLIC_KEY=1",
        "START REPLICA",
    )


def promote(replica: MysqlServer, primary: MysqlServer) -> None:
    ((executed,),) = primary.query("SELECT @@global.gtid_executed")
    assert replica.query("SELECT WAIT_FOR_EXECUTED_GTID_SET(%s, 90)", (executed,)) == [(0,)]
    replica.run("STOP REPLICA", "RESET REPLICA ALL")


def follow_in_old_words(replica: ThrowawayServer, primary: ThrowawayServer) -> None:
    by_gtid = "USE_GTID=slave_pos" if primary.product == "MariaDB" else "AUTO_POSITION=1"
    place = f"MASTER_HOST='127.0.0.1', MASTER_PORT={primary.port}, MASTER_USER='root'"
    replica.run(f"CHANGE MASTER TO {place}, MASTER_{by_gtid}", "START SLAVE")


def promote_in_old_words(replica: ThrowawayServer, primary: ThrowawayServer) -> None:
    if primary.product == "MariaDB":
        variable, wait = "gtid_binlog_pos", "MASTER_GTID_WAIT"
    else:
        variable, wait = "gtid_executed", "WAIT_UNTIL_SQL_THREAD_AFTER_GTIDS"
    ((executed,),) = primary.query(f"SELECT @@global.{variable}")
    assert replica.query(f"SELECT {wait}(%s, 90) >= 0", (executed,)) == [(1,)]
    replica.run("STOP SLAVE", "RESET SLAVE ALL")


@pytest.fixture
def pair() -> Iterator[tuple[MysqlServer, MysqlServer]]:
    with MysqlServer() as primary, MysqlServer({"binlog_transaction_compression": "ON"}) as replica:
        replica.run("FLUSH BINARY LOGS", "FLUSH BINARY LOGS")
        follow(replica, primary)
        yield primary, replica


def test_there_and_back(
    pair: tuple[MysqlServer, MysqlServer],
    mysql_target: MysqlServer,
    schema: str,
    spark: SparkSession,
    tmp_path: Path,
) -> None:
    primary, replica = pair
    work = Workload(primary, WorkPlan(schema, threads=1, large_rows=100))
    work.create()
    work.fill(200)
    name = work.plan.names[0]
    files = TaskFiles(
        tmp_path,
        schema,
        {"s1": primary},
        mysql_target,
        (f"{schema}_1",),
        source={"enable-gtid": True},
        syncer={"compact": False},
    ).write()
    with TaskRun(files, spark) as run:
        run.catch_up()
        work.run(transactions=20)
        primary.run(*(line.format(x="one", table=name.quoted) for line in XA))
        run.catch_up()
    work.run(transactions=20)
    promote(replica, primary)
    work.server = replica
    replica.run("XA COMMIT 'one'")
    work.run(transactions=20)
    heir = replace(files, sources={"s1": replica})
    with pytest.raises(RelayError, match="RELAY-008"):
        TaskRun(replace(heir, source={}).write(), spark)
    with TaskRun(heir.write(), spark) as run:
        run.catch_up()
        work.run(transactions=20)
        run.catch_up()
    with pytest.raises(RelayError, match="RELAY-030"):
        TaskRun(files.write(), spark)
    follow(primary, replica)
    promote(primary, replica)
    work.server = primary
    work.run(transactions=20)
    with TaskRun(files, spark) as run:
        run.catch_up()
    assert_exactly_once(primary, mysql_target, work.plan.names)


def test_a_task_that_began_at_a_position(
    pair: tuple[MysqlServer, MysqlServer],
    mysql_target: MysqlServer,
    schema: str,
    spark: SparkSession,
    tmp_path: Path,
) -> None:
    """Its GTID set is taken from the log: what came before the position belongs to it."""
    primary, replica = pair
    table = TableName(schema, "t")
    made = f"CREATE DATABASE {schema}", f"CREATE TABLE {table} (id INT PRIMARY KEY)"
    mysql_target.run(*made)
    primary.run(*made, "FLUSH BINARY LOGS", f"INSERT INTO {table} VALUES (-1)", f"DELETE FROM {table}")
    at = newest(primary)
    files = TaskFiles(
        tmp_path,
        schema,
        {"s1": primary},
        mysql_target,
        (schema,),
        keys={"task-mode": "incremental"},
        instance={"meta": {"binlog-name": at.file, "binlog-pos": at.offset}},
    ).write()
    with TaskRun(files, spark) as run:
        primary.run(f"INSERT INTO {table} VALUES (1)")
        run.catch_up()
    promote(replica, primary)
    replica.run(f"INSERT INTO {table} VALUES (2)")
    heir = replace(files, sources={"s1": replica}, instance={}, source={"enable-gtid": True})
    with TaskRun(heir.write(), spark) as run:
        run.catch_up()
    assert_equal([(replica, table)], (mysql_target, table))


def test_a_set_that_lacks_a_transaction_of_its_own_log(
    pair: tuple[MysqlServer, MysqlServer],
    mysql_target: MysqlServer,
    schema: str,
    spark: SparkSession,
    tmp_path: Path,
) -> None:
    """As the start of a task finds it, while a transaction is in the log and not committed yet."""
    primary, replica = pair
    table = TableName(schema, "t")
    primary.run(f"CREATE DATABASE {schema}", f"CREATE TABLE {table} (id INT PRIMARY KEY)", "FLUSH BINARY LOGS")
    files = TaskFiles(tmp_path, schema, {"s1": primary}, mysql_target, (schema,), source={"enable-gtid": True}).write()
    with TaskRun(files, spark) as run:
        primary.run(*(f"INSERT INTO {table} VALUES ({number})" for number in range(5)))
        run.catch_up()
    ((gtid,),) = mysql_target.query(f"SELECT binlog_gtid FROM meta_{schema}.{schema}_syncer_checkpoint WHERE is_global")
    origin, _, run_of_numbers = str(gtid).partition(":")
    last = int(run_of_numbers.split("-")[1])
    mysql_target.run(
        f"UPDATE meta_{schema}.{schema}_syncer_checkpoint"
        f" SET binlog_gtid = '{origin}:1-{last - 2}:{last}' WHERE is_global"
    )
    with TaskRun(files, spark) as run:
        primary.run(f"INSERT INTO {table} VALUES (10)")
        run.catch_up()
    promote(replica, primary)
    replica.run(f"INSERT INTO {table} VALUES (20)")
    with TaskRun(replace(files, sources={"s1": replica}).write(), spark) as run:
        run.catch_up()
    assert_equal([(replica, table)], (mysql_target, table))


@pytest.mark.parametrize("kind", [Mysql56Server, Mysql80Server, OldMariadbServer])
def test_an_older_server_is_replaced_by_its_replica(
    kind: type[ThrowawayServer], mysql_target: MysqlServer, schema: str, spark: SparkSession, tmp_path: Path
) -> None:
    with kind() as primary, kind({"log_slave_updates": "ON"}) as replica:
        replica.run("FLUSH BINARY LOGS", "FLUSH BINARY LOGS")
        follow_in_old_words(replica, primary)
        work = Workload(primary, WorkPlan(schema, threads=1, large_rows=100))
        work.create()
        work.fill(200)
        by_gtid, uncompacted = {"enable-gtid": True}, {"compact": False}
        files = TaskFiles(
            tmp_path, schema, {"s1": primary}, mysql_target, (f"{schema}_1",), source=by_gtid, syncer=uncompacted
        ).write()
        with TaskRun(files, spark) as run:
            run.catch_up()
            work.run(transactions=20)
            run.catch_up()
        work.run(transactions=20)
        promote_in_old_words(replica, primary)
        primary.stop()
        work.server = replica
        work.run(transactions=20)
        with TaskRun(replace(files, sources={"s1": replica}).write(), spark) as run:
            run.catch_up()
        assert_exactly_once(replica, mysql_target, work.plan.names)
