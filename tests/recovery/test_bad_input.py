"""What a user can get wrong: one clear error, and the same command goes on once it is mended."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import typer
from pyspark.sql import SparkSession

from support.task_runs import Command, TaskFiles, TaskRun, newest
from support.waiting import wait_until
from unshard.cli.process import guarded
from unshard.model.table import TableName
from unshard.testing.compare import assert_equal
from unshard.testing.mariadb_server import MariadbServer

pytestmark = [pytest.mark.server, pytest.mark.spark, pytest.mark.recovery]
PASSWORD = "s3cret-Pass"


@pytest.fixture
def name(source: MariadbServer, schema: str) -> TableName:
    """A table with rows."""
    made = TableName(schema, "t")
    source.run(
        f"CREATE DATABASE {schema}",
        f"CREATE TABLE {made} (id INT PRIMARY KEY, v VARCHAR(20))",
        f"INSERT INTO {made} SELECT seq, CONCAT('v', seq) FROM {schema}.seq_1_to_100",
    )
    return made


@pytest.fixture
def files(name: TableName, source: MariadbServer, target: MariadbServer, schema: str, tmp_path: Path) -> TaskFiles:
    return TaskFiles(tmp_path, schema, {"s1": source}, target, (schema,)).write()


@pytest.fixture
def fails(spark: SparkSession, capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """Runs the task until it fails as it must; gives what the user then reads on stderr."""

    def run(files: TaskFiles, code: str, *words: str) -> str:
        def work() -> None:
            run = TaskRun(files, spark).start()
            try:
                run.error()
            finally:
                run.stop()

        capsys.readouterr()
        with pytest.raises(typer.Exit) as ended:
            guarded(work)
        told = capsys.readouterr().err
        assert ended.value.exit_code == 1, told
        assert told.startswith((f"{code}:", f"{code} [")), told
        assert "what to do: " in told
        assert "Traceback" not in told
        assert PASSWORD not in told
        for word in words:
            assert word in told, f"{word}\n{told}"
        return told

    return run


@pytest.fixture
def goes_on(
    spark: SparkSession, source: MariadbServer, target: MariadbServer, name: TableName
) -> Callable[[TaskFiles], None]:
    """Runs the task again, with one more change, and compares."""

    def run(files: TaskFiles) -> None:
        source.run(f"REPLACE INTO {name} VALUES (1, 'later'), (1000, 'new')")
        with TaskRun(files, spark) as again:
            again.catch_up()
        assert_equal([(source, name)], (target, name))

    return run


@contextmanager
def user(server: MariadbServer, grants: str) -> Iterator[dict[str, Any]]:
    server.run(f"CREATE USER u IDENTIFIED BY '{PASSWORD}'", f"GRANT {grants} TO u")
    try:
        yield {"host": "127.0.0.1", "port": server.port, "user": "u", "password": PASSWORD}
    finally:
        server.run("DROP USER u")


@contextmanager
def variable(server: MariadbServer, variable: str, value: str) -> Iterator[None]:
    ((before,),) = server.query(f"SELECT @@global.{variable}")
    server.run(f"SET GLOBAL {variable} = {value}")
    try:
        yield
    finally:
        server.run(f"SET GLOBAL {variable} = {before}")


def test_wrong_password_at_the_source(files: TaskFiles, fails: Any, goes_on: Any, source: MariadbServer) -> None:
    with user(source, "ALL ON *.*") as login:
        replace(files, source={"from": login | {"password": PASSWORD + "x"}}).write()
        fails(files, "SOURCE-002", "u", str(source.port))
        replace(files, source={"from": login}).write()
        goes_on(files)


@pytest.mark.faults
def test_no_password_is_printed_or_logged(files: TaskFiles, source: MariadbServer, target: MariadbServer) -> None:
    with user(source, "ALL ON *.*") as login, user(target, "ALL ON *.*") as there:
        for word in (PASSWORD + "x", PASSWORD):
            replace(files, source={"from": login | {"password": word}}, keys={"target-database": there}).write()
            with Command(files) as command:
                if word == PASSWORD:
                    command.catch_up()
                    command.interrupt()
                assert command.wait() == (word != PASSWORD), command.text
                assert "Traceback" not in command.text
        written = [path for path in files.folder.rglob("*") if path.is_file() and path.suffix != ".yaml"]
        written = [path for path in written if "relay" not in path.parts]  # it holds the CREATE USER of the source
        assert {"unshard.log", "unshard.spark.log", "output.txt"} <= {path.name for path in written}
        assert not [path for path in written if PASSWORD.encode() in path.read_bytes()]


def test_wrong_password_at_the_target(files: TaskFiles, fails: Any, goes_on: Any, target: MariadbServer) -> None:
    with user(target, "ALL ON *.*") as login:
        replace(files, keys={"target-database": login | {"password": PASSWORD + "x"}}).write()
        fails(files, "TARGET-002", "u", str(target.port))
        replace(files, keys={"target-database": login}).write()
        goes_on(files)


@pytest.mark.parametrize("side", ["source", "target"])
def test_a_server_is_down(
    side: str, files: TaskFiles, fails: Any, goes_on: Any, source: MariadbServer, target: MariadbServer
) -> None:
    server = {"source": source, "target": target}[side]
    server.stop()
    try:
        fails(files, f"{side.upper()}-001", f"127.0.0.1:{server.port}")
    finally:
        server.start()
    goes_on(files)


def test_the_source_logs_otherwise(files: TaskFiles, fails: Any, goes_on: Any, source: MariadbServer) -> None:
    source.run("SET GLOBAL binlog_format = 'MIXED'")
    try:
        fails(files, "SOURCE-031", "MIXED", "s1")
    finally:
        source.run("SET GLOBAL binlog_format = 'ROW'")
    goes_on(files)


def test_the_source_has_no_binlog(fails: Any, target: MariadbServer, schema: str, tmp_path: Path) -> None:
    with MariadbServer({"log_bin": ""}) as silent:
        files = TaskFiles(tmp_path, schema, {"s1": silent}, target, (schema,)).write()
        fails(files, "SOURCE-030", "s1", "log_bin")


def test_missing_privileges_at_the_source(files: TaskFiles, fails: Any, goes_on: Any, source: MariadbServer) -> None:
    with user(source, "SELECT ON *.*") as login:
        replace(files, source={"from": login}).write()
        fails(files, "SOURCE-033", "REPLICATION SLAVE", "s1")
        source.run("GRANT REPLICATION SLAVE, BINLOG MONITOR, RELOAD, LOCK TABLES, PROCESS, SHOW VIEW ON *.* TO u")
        goes_on(files)


def test_missing_privileges_at_the_target(files: TaskFiles, fails: Any, goes_on: Any, target: MariadbServer) -> None:
    with user(target, f"ALL ON `{files.meta}`.*") as login:
        replace(files, keys={"target-database": login}).write()
        told = fails(files, "TARGET-002", files.schemas[0])
        assert "denied" in told
        target.run("GRANT ALL ON *.* TO u")
        goes_on(files)


def incremental(files: TaskFiles, file: str, offset: int) -> TaskFiles:
    meta = {"meta": {"binlog-name": file, "binlog-pos": offset}}
    return replace(files, keys={"task-mode": "incremental"}, instance=meta).write()


def test_the_position_is_purged(files: TaskFiles, fails: Any, source: MariadbServer, target: MariadbServer) -> None:
    gone = newest(source)
    source.run("FLUSH BINARY LOGS")
    kept = newest(source)

    def purged() -> bool:  # not while the server still serves the file to a replica that has gone
        source.run(f"PURGE BINARY LOGS TO '{kept.file}'")
        return bool(source.query("SHOW BINARY LOGS")[0][0] == kept.file)

    wait_until(purged, "purged")
    fails(incremental(files, gone.file, gone.offset), "RELAY-010", str(gone), kept.file)


def test_the_target_table_is_missing(
    files: TaskFiles, name: TableName, fails: Any, goes_on: Any, source: MariadbServer, target: MariadbServer
) -> None:
    at = newest(source)
    files = incremental(files, at.file, at.offset)
    source.run(f"INSERT INTO {name} VALUES (200, 'two hundred')")
    fails(files, "SYNC-009", str(name), "s1")
    copy_table(source, target, name, "id < 200")
    goes_on(files)


def test_the_target_table_has_another_shape(
    files: TaskFiles, name: TableName, fails: Any, goes_on: Any, source: MariadbServer, target: MariadbServer
) -> None:
    with_table_of(target, name, "(id INT PRIMARY KEY)")
    fails(files, "LOAD-004", str(name), "v")
    target.run(f"ALTER TABLE {name} ADD v VARCHAR(20)")
    goes_on(files)


def test_the_target_table_loses_a_column_later(
    files: TaskFiles,
    name: TableName,
    fails: Any,
    goes_on: Any,
    spark: SparkSession,
    source: MariadbServer,
    target: MariadbServer,
) -> None:
    with TaskRun(files, spark) as run:
        run.catch_up()
    target.run(f"ALTER TABLE {name} CHANGE v w VARCHAR(20)")
    source.run(f"INSERT INTO {name} VALUES (300, 'x')")
    fails(files, "SYNC-007", str(name), "column v", "missing", "s1")
    target.run(f"ALTER TABLE {name} CHANGE w v VARCHAR(20)")
    goes_on(files)


def test_a_value_that_does_not_fit(
    files: TaskFiles,
    name: TableName,
    fails: Any,
    goes_on: Any,
    spark: SparkSession,
    source: MariadbServer,
    target: MariadbServer,
) -> None:
    with TaskRun(files, spark) as run:
        run.catch_up()
    target.run(f"ALTER TABLE {name} MODIFY v VARCHAR(5)")
    source.run(f"INSERT INTO {name} VALUES (301, 'too long for it')")
    fails(files, "SYNC-004", str(name), "1406", "s1")
    target.run(f"ALTER TABLE {name} MODIFY v VARCHAR(20)")
    goes_on(files)


@pytest.mark.parametrize("unit", ["load", "sync"])
def test_shards_share_a_key(
    unit: str,
    files: TaskFiles,
    name: TableName,
    fails: Any,
    spark: SparkSession,
    source: MariadbServer,
    target: MariadbServer,
    schema: str,
) -> None:
    other = TableName(schema, "other")
    rows = "SELECT * FROM {name} LIMIT 1" if unit == "load" else "SELECT 5000 + id, v FROM {name}"
    source.run(f"CREATE TABLE {other} LIKE {name}", f"INSERT INTO {other} {rows.format(name=name)}")
    fold = {"schema-pattern": schema, "table-pattern": "*", "target-schema": schema, "target-table": "t"}
    files = replace(files, keys={"routes": {"fold": fold}}, instance={"route-rules": ["fold"]}).write()
    if unit == "load":
        fails(files, "LOAD-005", "s1", "1062")
        target.run(f"DELETE FROM {name} WHERE id = 1")
        with TaskRun(files, spark) as run:
            run.catch_up()
        assert target.query(f"SELECT COUNT(*) FROM {name}") == [(100,)]
        return
    with TaskRun(files, spark) as run:
        run.catch_up()
    source.run(f"INSERT INTO {other} VALUES (1, 'clash')")
    fails(files, "SYNC-003", "s1", str(name), "1062", "partition id")
    target.run(f"DELETE FROM {name} WHERE id = 1")
    with TaskRun(files, spark) as run:
        run.catch_up()
    assert target.query(f"SELECT v FROM {name} WHERE id = 1") == [("clash",)]


def test_a_damaged_relay_file(
    files: TaskFiles, fails: Any, goes_on: Any, spark: SparkSession, name: TableName, source: MariadbServer
) -> None:
    with TaskRun(files, spark) as run:
        run.catch_up()
    for number in range(20):
        source.run(f"INSERT INTO {name} VALUES ({400 + number}, 'x')")
    relay = files.folder / "relay" / "s1"
    with TaskRun(files, spark) as run:
        run.catch_up()
    newest_file = max(path for path in relay.glob("*/mysql-bin.*"))
    content = bytearray(newest_file.read_bytes())
    content[-60] ^= 0x10
    newest_file.write_bytes(content)
    goes_on(files)  # a damaged end is fetched again


@pytest.mark.faults
def test_a_truncated_dump_file(
    files: TaskFiles, fails: Any, goes_on: Any, target: MariadbServer, name: TableName, source: MariadbServer
) -> None:
    with Command(files, crash_at="load-piece-before") as command:
        command.dies("load-piece-before")
    (dumped,) = (files.folder / f"dump.{files.name}").rglob("*.parquet")
    whole = dumped.read_bytes()
    dumped.write_bytes(whole[:-10])
    fails(files, "LOAD-002", dumped.name)
    dumped.write_bytes(whole)
    goes_on(files)


@pytest.mark.faults
def test_the_disk_of_the_relay_is_full(files: TaskFiles, goes_on: Any, source: MariadbServer, name: TableName) -> None:
    with Command(files) as command:
        command.catch_up()
        command.interrupt()
        assert command.wait() == 0
    source.run(f"CREATE TABLE {name}_large (id INT PRIMARY KEY, b MEDIUMTEXT)")
    for number in range(8):
        source.run(f"INSERT INTO {name}_large VALUES ({number}, REPEAT('x', 2000000))")
    with Command(files, "", "ulimit -f 8000", "--no-auto-resume") as command:
        assert command.wait() == 1, command.text
        assert "RELAY-013" in command.text, command.text
        assert "s1" in command.text, command.text
        assert "Traceback" not in command.text
    goes_on(files)


def with_table_of(target: MariadbServer, name: TableName, definition: str) -> None:
    target.run(f"CREATE DATABASE {name.schema}", f"CREATE TABLE {name} {definition}")


def copy_table(source: MariadbServer, target: MariadbServer, name: TableName, where: str) -> None:
    rows = source.query(f"SELECT * FROM {name} WHERE {where}")
    with_table_of(target, name, "(id INT PRIMARY KEY, v VARCHAR(20))")
    for row in rows:
        target.query(f"INSERT INTO {name} VALUES (%s, %s)", row)
