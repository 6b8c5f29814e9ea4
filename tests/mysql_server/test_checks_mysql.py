"""The checks before a start on a real MySQL: roles, dynamic privileges, partial revokes; what is printed mends."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from support.checked_tasks import as_user, found, mended, report_of, statement, with_keys, with_source
from support.replicas import Pair
from support.task_runs import TaskFiles, newest
from unshard.testing.mariadb_server import MariadbServer
from unshard.testing.mysql_server import Mysql56Server, Mysql80Server, MysqlServer, OldMariadbServer
from unshard.testing.throwaway_server import ThrowawayServer

pytestmark = pytest.mark.server
REPLICATION = "source db replication privilege checker"
DUMP = "source db dump privilege checker"
TARGET, WRITABLE = "target db privilege checker", "target db writable checker"
JSON = "json value checker"
REPLICA = "mysql_log_slave_updates"
TABLES = "table structure compatibility check"


@pytest.fixture
def files(mysql_source: MysqlServer, mysql_target: MysqlServer, schema: str, tmp_path: Path) -> TaskFiles:
    mysql_source.run(f"CREATE DATABASE {schema}", f"CREATE TABLE {schema}.t (id INT PRIMARY KEY, v VARCHAR(20))")
    return TaskFiles(tmp_path, schema, {"s1": mysql_source}, mysql_target, (schema,))


@pytest.fixture
def revoking(mysql_source: MysqlServer) -> Iterator[MysqlServer]:
    mysql_source.run("SET GLOBAL partial_revokes = ON")
    yield mysql_source
    mysql_source.run("DROP USER IF EXISTS part@`127.0.0.1`", "SET GLOBAL partial_revokes = OFF")


def test_a_sound_task_has_nothing_to_tell(files: TaskFiles) -> None:
    report = report_of(files)
    assert [(result.name, result.errors) for result in report.results if result.errors] == []


def test_a_target_that_cannot_hold_the_tasks_tables(files: TaskFiles, mysql_56: Mysql56Server) -> None:
    (finding,) = found(replace(files, target=mysql_56), "target db version checker")
    assert finding.severity == "fail"
    assert "MySQL 5.6.24" in finding.short_error
    assert "5.7.9" in finding.instruction


def test_json_of_sql_values(files: TaskFiles, mysql_source: MysqlServer, target_server: MariadbServer) -> None:
    mysql_source.run(
        f"CREATE TABLE {files.schemas[0]}.`d``` (id INT PRIMARY KEY, a JSON, `b c` JSON)",
        f"""INSERT INTO {files.schemas[0]}.`d``` VALUES (1, '[1.5, "x"]', NULL), (2, JSON_ARRAY(CURDATE()), '1')""",
    )
    (finding,) = found(files, JSON)
    assert finding.severity == "warn"
    assert "(a, b c)" in finding.short_error
    assert "a row of the binlog that holds one stops the task (SYNC-078)" in finding.short_error
    (converting,) = found(replace(files, keys={**files.keys, "json-values": "convert"}).write(), JSON)
    assert converting.short_error.endswith("so do rows of the binlog, by `json-values: convert`")
    assert mysql_source.query(statement(finding)) == [(1,)]
    assert found(replace(files, target=target_server), JSON) == []


def test_triggers(files: TaskFiles, mysql_target: MysqlServer, schema: str) -> None:
    mysql_target.run(f"CREATE DATABASE {schema}", f"CREATE TABLE {schema}.t (id INT PRIMARY KEY, v VARCHAR(20))")
    mysql_target.run(f"CREATE TRIGGER {schema}.up BEFORE UPDATE ON {schema}.t FOR EACH ROW SET NEW.v = 'x'")
    mended(files, "target trigger checker", mysql_target, "fail", "may change each row")


def test_replication(files: TaskFiles, mysql_source: MysqlServer) -> None:
    login = as_user(mysql_source, "o'n\"e", "SELECT, RELOAD ON *.*")
    mended(with_source(files, login), REPLICATION, mysql_source, "fail", "REPLICATION SLAVE, REPLICATION CLIENT")


@pytest.mark.parametrize("kind", ["mysql_56", "mysql_80", "old_mariadb"])
def test_older_servers_take_what_the_check_prints(
    kind: str, files: TaskFiles, schema: str, request: pytest.FixtureRequest
) -> None:
    server = request.getfixturevalue(kind)
    server.run(f"CREATE DATABASE {schema}", f"CREATE TABLE {schema}.t (id INT PRIMARY KEY)")
    older = replace(files, sources={"s1": server})
    mended(with_source(older, as_user(server, "o'n", "SELECT, RELOAD ON *.*")), REPLICATION, server, "fail", "CLIENT")
    if kind != "old_mariadb":  # which is copied without a lock
        login = as_user(server, "o'l", "SELECT, REPLICATION SLAVE, REPLICATION CLIENT ON *.*")
        mended(with_source(older, login), DUMP, server, "fail", "RELOAD")


def test_names_in_double_quotes(files: TaskFiles, mysql_source: MysqlServer) -> None:
    login = as_user(mysql_source, "quoted", f"SELECT ON `{files.schemas[0]}`.*", "RELOAD, REPLICATION CLIENT ON *.*")
    own = with_source(files, {**login, "session": {"sql_mode": "ANSI_QUOTES"}})
    assert found(own, DUMP) == []
    mended(own, REPLICATION, mysql_source, "fail", "REPLICATION SLAVE")


def test_a_role_counts_once_it_is_active(files: TaskFiles, mysql_source: MysqlServer) -> None:
    login = as_user(mysql_source, "actor", "SELECT ON *.*")
    mysql_source.run(
        "DROP ROLE IF EXISTS follower",
        "CREATE ROLE follower",
        "GRANT REPLICATION SLAVE, REPLICATION CLIENT, FLUSH_TABLES ON *.* TO follower",
        "GRANT follower TO actor@`127.0.0.1`",
    )
    own = with_source(files, login)
    assert [finding.severity for finding in found(own, REPLICATION)] == ["fail"]
    mysql_source.run("SET DEFAULT ROLE follower TO actor@`127.0.0.1`")
    assert found(own, REPLICATION) == []
    assert found(own, DUMP) == [], "FLUSH_TABLES is enough for the lock"


def test_the_lock_of_a_dump(files: TaskFiles, mysql_source: MysqlServer) -> None:
    login = as_user(mysql_source, "dumper", "SELECT, REPLICATION CLIENT, REPLICATION SLAVE ON *.*")
    mended(with_source(files, login), DUMP, mysql_source, "fail", "RELOAD")


def test_a_partial_revoke(files: TaskFiles, revoking: MysqlServer, schema: str) -> None:
    login = as_user(revoking, "part", "SELECT, RELOAD, REPLICATION CLIENT ON *.*")
    own = with_source(files, login)
    assert found(own, DUMP) == []
    revoking.run(
        f"REVOKE SELECT ON `{schema}`.* FROM part@`127.0.0.1`", f"GRANT INSERT ON `{schema}`.* TO part@`127.0.0.1`"
    )
    commands = mended(own, DUMP, revoking, "fail", "SELECT")
    assert "\\" not in commands[0], "wildcards are letters here"


def test_the_target(files: TaskFiles, mysql_target: MysqlServer, schema: str) -> None:
    login = as_user(mysql_target, "writer", f"SELECT ON `{schema}`.*")
    mended(with_keys(files, target_database=login), TARGET, mysql_target, "fail", "lacks")


def test_a_table_without_a_key(files: TaskFiles, mysql_source: MysqlServer, schema: str) -> None:
    mysql_source.run(f"CREATE TABLE {schema}.k (a INT)", f"CREATE TABLE {schema}.e (a INT, UNIQUE KEY u ((a + 1)))")
    mended(files, TABLES, mysql_source, "warn", "no primary key")


def test_other_columns_and_keys_of_the_target(
    files: TaskFiles, mysql_source: MysqlServer, mysql_target: MysqlServer, schema: str
) -> None:
    mysql_target.run(f"CREATE DATABASE {schema}", f"CREATE TABLE {schema}.t (id INT, v INT NOT NULL, UNIQUE KEY (v))")
    incremental = with_keys(files, task_mode="incremental")
    lacks = found(incremental, TABLES)
    assert len(lacks) == 2
    mysql_target.run(*(finding.instruction for finding in lacks))
    assert found(incremental, TABLES) == []


def test_row_images_and_the_place_of_meta(files: TaskFiles, mysql_source: MysqlServer) -> None:
    mysql_source.run("SET GLOBAL binlog_row_image = 'MINIMAL'")
    try:
        mended(files, "mysql_binlog_row_image", mysql_source, "warn", "MINIMAL")
    finally:
        mysql_source.run("SET GLOBAL binlog_row_image = 'FULL'")
    end = newest(mysql_source)
    for offset, told in ((end.offset, ""), (4, ""), (5, "no event begins"), (end.offset + 1, "behind the end")):
        meta = {"binlog-name": end.file, "binlog-pos": offset}
        own = replace(with_keys(files, task_mode="incremental"), instance={"meta": meta})
        lacks = found(own, "meta position check")
        assert [told in finding.short_error for finding in lacks] == [True] * bool(told), (offset, lacks)


def test_the_gtid_of_meta(files: TaskFiles, mysql_source: MysqlServer) -> None:
    ((executed,),) = mysql_source.query("SELECT @@global.gtid_executed")
    own = replace(with_keys(files, task_mode="incremental"), source={"enable-gtid": True})
    own = replace(own, instance={"meta": {"binlog-gtid": "".join(str(executed).split())}})
    assert found(own, "meta position check") == []


@pytest.mark.parametrize(("variable", "exempt"), [("read_only", True), ("super_read_only", False)])
def test_a_read_only_target(files: TaskFiles, mysql_target: MysqlServer, variable: str, exempt: bool) -> None:
    most = "CREATE, SELECT, INSERT, UPDATE, DELETE, ALTER, DROP, INDEX, REFERENCES ON *.*"
    admin = as_user(mysql_target, "high", most, "CONNECTION_ADMIN ON *.*")
    login = as_user(mysql_target, "plain", most)
    mysql_target.run(f"SET GLOBAL {variable} = ON")
    try:
        assert bool(found(with_keys(files, target_database=admin), WRITABLE)) is not exempt
        mended(with_keys(files, target_database=login), WRITABLE, mysql_target, "fail", f"{variable} is ON")
    finally:
        mysql_target.run("SET GLOBAL super_read_only = OFF", "SET GLOBAL read_only = OFF")


def test_one_server_under_two_source_ids(files: TaskFiles, mysql_source: MysqlServer, schema: str) -> None:
    twice = replace(files, sources=dict.fromkeys(("s1", "s2"), mysql_source))
    (lack,) = found(twice, "same upstream checker")
    assert f"one and the same server, and both take {schema}.t" in lack.short_error


@pytest.mark.parametrize(
    ("kind", "setting"),
    [
        (MysqlServer, "log_replica_updates"),
        (Mysql80Server, "log_replica_updates"),
        (OldMariadbServer, "log_slave_updates"),
    ],
)
def test_a_replica_that_does_not_log_what_it_applies(
    files: TaskFiles, kind: type[ThrowawayServer], setting: str
) -> None:
    with kind() as primary, kind({setting: "OFF"}) as replica:
        Pair(primary, replica).pause()
        files = replace(files, sources={"s1": replica})
        (finding,) = found(files, REPLICA)
        assert finding.severity == "fail"
        assert f"127.0.0.1:{primary.port}" in finding.short_error
        assert f"{setting} = ON" in finding.instruction
        files = with_source(files, as_user(replica, "asks", "SELECT, REPLICATION SLAVE ON *.*"))
        (unasked,) = found(files, REPLICA)
        assert unasked.severity == "warn"
        replica.run(statement(unasked))
        assert [finding.severity for finding in found(files, REPLICA)] == ["fail"]
