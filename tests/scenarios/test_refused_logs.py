"""Logs that can't be followed, through a whole task: it stops at the place, names it, and says what to do.

And what only looks like one: a shutdown of the source, and a source that shows its past.
"""

from __future__ import annotations

import zlib
from contextlib import closing
from pathlib import Path
from struct import pack

import pytest
from pyspark.sql import SparkSession

from support.operated_tasks import copied_task, ctl, go_on, stopped_run
from support.task_runs import TaskFiles, TaskRun, newest
from unshard.errors import BinlogError, DdlError, SyncError
from unshard.model.position import Position
from unshard.model.table import TableName
from unshard.testing.compare import assert_equal
from unshard.testing.mariadb_server import MariadbServer

pytestmark = [pytest.mark.server, pytest.mark.spark]

STOP, INCIDENT = 3, 26
PRECISE = (
    "(id int PRIMARY KEY, v int, s bigint unsigned GENERATED ALWAYS AS ROW START INVISIBLE,"
    " e bigint unsigned GENERATED ALWAYS AS ROW END INVISIBLE, PERIOD FOR SYSTEM_TIME(s, e)) WITH SYSTEM VERSIONING"
)


def add_event(file: Path, code: int, body: bytes) -> Position:
    """Append an event to a binlog file; where it stands."""
    at = file.stat().st_size
    size = 19 + len(body) + 4
    event = pack("<IBIIIH", 1_700_000_000, code, 1, size, at + size, 0) + body
    with file.open("ab") as handle:
        handle.write(event + pack("<I", zlib.crc32(event)))
    return Position(file.name, at)


def test_a_shutdown_is_passed_and_an_incident_stops_the_task(
    spark: SparkSession, target_server: MariadbServer, schema: str, tmp_path: Path
) -> None:
    name = TableName(schema, "t")
    with MariadbServer() as source:
        source.run(f"CREATE DATABASE {schema}", f"CREATE TABLE {name} (id INT PRIMARY KEY)")
        files = TaskFiles(tmp_path, schema, {"s1": source}, target_server, (schema,)).write()
        run = TaskRun(files, spark).start()
        run.reach("sync")
        source.run(f"INSERT INTO {name} VALUES (1)")
        file = source.binlog_files()[-1]
        source.stop()
        assert file.read_bytes()[-23 + 4] == STOP
        source.start()
        source.run(f"INSERT INTO {name} VALUES (2)")
        run.catch_up()
        assert_equal([(source, name)], (target_server, name))
        file = source.binlog_files()[-1]
        source.kill()
        at = add_event(file, INCIDENT, pack("<HB", 1, 11) + b"disk failed")
        source.start()
        source.run(f"INSERT INTO {name} VALUES (3)")
        error = run.error()
    assert isinstance(error, BinlogError)
    assert error.code == "BINLOG-004"
    assert error.where.position == str(at)
    assert error.where.source == "s1"
    assert "INCIDENT" in error.message
    assert "missing" in error.cause
    assert "dump again" in error.hint
    assert target_server.query(f"SELECT id FROM {name} ORDER BY id") == [(1,), (2,)]


def test_a_temporary_table_is_not_taken_for_the_real_one_of_its_name(
    spark: SparkSession, source_server: MariadbServer, target_server: MariadbServer, schema: str, tmp_path: Path
) -> None:
    """A session that does not log in ROW format logs its TRUNCATE and ALTER as any other's."""
    name = TableName(schema, "t")
    files = copied_task(spark, source_server, target_server, schema, tmp_path)
    with closing(source_server.connection(schema)) as session, session.cursor() as cursor:
        cursor.execute("SET binlog_format = MIXED")
        cursor.execute("CREATE TEMPORARY TABLE mysql.t (id INT)")  # no real one of that name is followed
        cursor.execute("CREATE TEMPORARY TABLE t (id INT)")
        places = [newest(source_server)]
        cursor.execute("TRUNCATE TABLE t")
        places.append(newest(source_server))
        cursor.execute("ALTER TABLE t ADD COLUMN x INT")
    source_server.run(f"INSERT INTO {name} VALUES (2, 'two')")
    error = stopped_run(files, spark)
    assert isinstance(error, DdlError)
    assert error.code == "DDL-035"
    assert target_server.query(f"SELECT id FROM {name}") == [(1,)]
    ctl("binlog", "skip", str(files.task_path), "-s", "s1")
    for place in places:
        ctl("binlog", "skip", str(files.task_path), "-s", "s1", "--binlog-pos", str(place))
    error = stopped_run(files, spark)
    assert isinstance(error, SyncError)
    assert error.code == "SYNC-007"
    source = ("-s", str(files.source_paths[0]))
    ctl("binlog-schema", "update", str(files.task_path), schema, "t", "--from-source", *source)
    go_on(files, spark)
    assert_equal([(source_server, name)], (target_server, name))


def test_transaction_precise_versions_are_copied_and_not_followed(
    spark: SparkSession, source_server: MariadbServer, target_server: MariadbServer, schema: str, tmp_path: Path
) -> None:
    name = TableName(schema, "t")
    source_server.run(
        f"CREATE DATABASE {schema}",
        f"CREATE TABLE {name} {PRECISE}",
        f"INSERT INTO {name} (id, v) VALUES (1, 1), (2, 2), (3, 3)",
        f"DELETE FROM {name} WHERE id = 2",
    )
    files = TaskFiles(tmp_path, schema, {"s1": source_server}, target_server, (schema,)).write()
    run = TaskRun(files, spark).start()
    run.reach("sync")
    assert target_server.query(f"SELECT id, v FROM {name} ORDER BY id") == [(1, 1), (3, 3)]
    at = newest(source_server)
    change = f"UPDATE {name} SET v = 9 WHERE id = 1"
    source_server.run(change)
    error = run.error()
    assert isinstance(error, BinlogError)
    assert error.code == "BINLOG-005"
    assert Position.parse(str(error.where.position)) >= at
    assert change in error.message
    assert "apply this statement to the target by hand" in error.hint
    assert target_server.query(f"SELECT id, v FROM {name} ORDER BY id") == [(1, 1), (3, 3)]


def test_a_source_that_shows_the_past_by_default_is_copied_as_it_is_now(
    spark: SparkSession, target_server: MariadbServer, schema: str, tmp_path: Path
) -> None:
    name = TableName(schema, "t")
    with MariadbServer() as source:
        source.run(
            f"CREATE DATABASE {schema}",
            f"CREATE TABLE {name} (id INT PRIMARY KEY, v INT) WITH SYSTEM VERSIONING",
            "SET timestamp = 1700000000",
            f"INSERT INTO {name} VALUES (1, 1), (2, 2)",
            "SET timestamp = 1700001000",
            f"UPDATE {name} SET v = 10 WHERE id = 1",
            f"DELETE FROM {name} WHERE id = 2",
            f"INSERT INTO {name} VALUES (3, 3)",
            "SET GLOBAL system_versioning_asof = '2023-11-14 22:20:00'",
        )
        assert source.query(f"SELECT id, v FROM {name} ORDER BY id") == [(1, 1), (2, 2)]
        files = TaskFiles(tmp_path, schema, {"s1": source}, target_server, (schema,)).write()
        with TaskRun(files, spark) as run:
            run.reach("sync")
            source.run(f"INSERT INTO {name} VALUES (4, 4)")
            run.catch_up()
        assert target_server.query(f"SELECT id, v FROM {name} ORDER BY id") == [(1, 10), (3, 3), (4, 4)]
