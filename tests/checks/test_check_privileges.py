"""Privileges of limited accounts on MariaDB: what is lacking is told, and the printed GRANT is enough."""

from __future__ import annotations

from dataclasses import replace

import pytest

from support.checked_tasks import as_user, found, mended, report_of, statement, with_keys, with_source
from support.task_runs import TaskFiles
from unshard.errors import SourceError
from unshard.testing.mariadb_server import MariadbServer

pytestmark = pytest.mark.server
REPLICATION = "source db replication privilege checker"
DUMP = "source db dump privilege checker"
TARGET, WRITABLE = "target db privilege checker", "target db writable checker"
DUMPER, LOADER = "dumper_conn_number_checker", "loader_conn_number_checker"


def test_replication(files: TaskFiles, changed_source: MariadbServer) -> None:
    login = as_user(changed_source, "o'n\"e", "SELECT ON *.*")
    mended(with_source(files, login), REPLICATION, changed_source, "fail", "REPLICATION SLAVE, BINLOG MONITOR")


def test_super_brings_the_status_and_not_the_stream(files: TaskFiles, changed_source: MariadbServer) -> None:
    login = as_user(changed_source, "high", "SELECT, SUPER ON *.*")
    (command,) = mended(with_source(files, login), REPLICATION, changed_source, "fail", "REPLICATION SLAVE")
    assert "MONITOR" not in command


def test_replication_by_a_role(files: TaskFiles, changed_source: MariadbServer) -> None:
    login = as_user(changed_source, "actor", "SELECT ON *.*")
    changed_source.run(
        "CREATE OR REPLACE ROLE follower",
        "GRANT REPLICATION SLAVE, BINLOG MONITOR ON *.* TO follower",
        "GRANT follower TO actor@`127.0.0.1`",
    )
    own = with_source(files, login)
    assert [finding.severity for finding in found(own, REPLICATION)] == ["fail"]
    changed_source.run("SET DEFAULT ROLE follower FOR actor@`127.0.0.1`")
    assert found(own, REPLICATION) == []


def test_reading_the_tables(files: TaskFiles, changed_source: MariadbServer, schema: str) -> None:
    login = as_user(changed_source, "reader", f"INSERT ON `{schema}`.*", "REPLICATION SLAVE, BINLOG MONITOR ON *.*")
    (command,) = mended(with_source(files, login), DUMP, changed_source, "fail", "SELECT")
    assert schema.replace("_", r"\_") in command


@pytest.mark.parametrize("on", ["`{1}`.*", "`t%`.*"])
def test_select_on_what_is_needed_is_enough(
    files: TaskFiles, changed_source: MariadbServer, schema: str, on: str
) -> None:
    grant = f"SELECT ON {on.format(schema, schema.replace('_', chr(92) + '_'))}"
    login = as_user(changed_source, "some", grant, "REPLICATION SLAVE, BINLOG MONITOR ON *.*")
    assert found(with_source(files, login), DUMP) == []


def test_select_on_some_columns_is_not(files: TaskFiles, changed_source: MariadbServer, schema: str) -> None:
    login = as_user(changed_source, "few", f"SELECT (id) ON {schema}.t", "REPLICATION SLAVE, BINLOG MONITOR ON *.*")
    assert [finding.severity for finding in found(with_source(files, login), DUMP)] == ["fail"]


def test_a_schema_that_the_account_cant_see_is_not_passed_over(files: TaskFiles, changed_source: MariadbServer) -> None:
    login = as_user(changed_source, "blind", "REPLICATION SLAVE, BINLOG MONITOR ON *.*")
    mended(with_source(files, login), DUMP, changed_source, "fail", "no table of schema")


def test_an_account_that_sees_nothing_at_all(files: TaskFiles, changed_source: MariadbServer) -> None:
    login = as_user(changed_source, "blinder", "REPLICATION SLAVE, BINLOG MONITOR ON *.*")
    anything = with_keys(with_source(files, login), block_allow_list={"own": {"do-dbs": ["t*"]}})
    assert [(finding.severity, statement(finding)) for finding in found(anything, DUMP)] == [
        ("fail", "GRANT SELECT ON *.* TO 'blinder'@'127.0.0.1'")
    ]


def test_tables_that_an_account_does_not_see_beside_others_are_not_passed_over(
    files: TaskFiles, changed_source: MariadbServer, schema: str
) -> None:
    changed_source.run(f"CREATE TABLE {schema}.hidden (id INT PRIMARY KEY)")
    login = as_user(changed_source, "half", f"SELECT ON {schema}.t", "REPLICATION SLAVE, BINLOG MONITOR ON *.*")
    own = with_source(files, login)
    named = with_keys(own, block_allow_list={"own": {"do-tables": [{"db-name": schema, "tbl-name": "t"}]}})
    assert found(named, DUMP) == []
    mended(own, DUMP, changed_source, "warn", f"may read single tables of schema {schema} alone ({schema}.t)")


def test_a_dump_alone_needs_the_status_too(files: TaskFiles, changed_source: MariadbServer) -> None:
    login = as_user(changed_source, "dumper", "SELECT ON *.*")
    full = with_keys(with_source(files, login), task_mode="full")
    mended(full, DUMP, changed_source, "fail", "BINLOG MONITOR")


@pytest.mark.parametrize(("consistency", "words"), [("flush", "RELOAD"), ("lock", "LOCK TABLES")])
def test_what_a_lock_takes(files: TaskFiles, changed_source: MariadbServer, consistency: str, words: str) -> None:
    login = as_user(changed_source, "locker", "SELECT, REPLICATION SLAVE, BINLOG MONITOR ON *.*")
    dumper = {"mydumper": {"extra-args": f"--consistency {consistency}"}}
    mended(replace(with_source(files, login), instance=dumper), DUMP, changed_source, "fail", words)


def test_a_table_that_is_not_innodb_takes_a_lock(files: TaskFiles, changed_source: MariadbServer, schema: str) -> None:
    login = as_user(changed_source, "auto", "SELECT, REPLICATION SLAVE, BINLOG MONITOR ON *.*")
    own = with_source(files, login)
    assert found(own, DUMP) == []
    changed_source.run(f"CREATE TABLE {schema}.old (id INT PRIMARY KEY) ENGINE = Aria")
    mended(own, DUMP, changed_source, "fail", "RELOAD")


def test_the_target(files: TaskFiles, target_server: MariadbServer, schema: str) -> None:
    login = as_user(target_server, "writer", f"SELECT ON `{schema}`.*")
    commands = mended(with_keys(files, target_database=login), TARGET, target_server, "fail", "lacks")
    assert len(commands) == 2, "the schema of the task, and the meta schema with those for trials"
    target_server.run("DROP USER writer@`127.0.0.1`")


def test_a_target_account_with_nothing_fails(files: TaskFiles, target_server: MariadbServer) -> None:
    own = with_keys(files, target_database=as_user(target_server, "nobody"))
    assert [finding.severity for finding in found(own, TARGET)] == ["fail", "fail"]


def test_a_target_account_that_has_its_grants_of_a_role_or_of_everybody(
    files: TaskFiles, target_server: MariadbServer
) -> None:
    login = as_user(target_server, "granted")
    target_server.run("CREATE OR REPLACE ROLE mover", "GRANT ALL ON *.* TO mover", "GRANT mover TO granted@`127.0.0.1`")
    target_server.run("SET DEFAULT ROLE mover FOR granted@`127.0.0.1`")
    assert found(with_keys(files, target_database=login), TARGET) == []
    target_server.run("DROP ROLE mover", "GRANT ALL ON *.* TO PUBLIC")
    try:
        assert found(with_keys(files, target_database=login), TARGET) == []
    finally:
        target_server.run("REVOKE ALL, GRANT OPTION FROM PUBLIC")


def test_a_read_only_target(files: TaskFiles, target_server: MariadbServer) -> None:
    most = "CREATE, SELECT, INSERT, UPDATE, DELETE, ALTER, DROP, INDEX, REFERENCES ON *.*"
    target_server.run("SET GLOBAL read_only = ON")
    try:
        exempt = as_user(target_server, "high", most, "READ_ONLY ADMIN ON *.*")
        assert found(with_keys(files, target_database=exempt), WRITABLE) == []
        login = as_user(target_server, "plain", most)
        mended(with_keys(files, target_database=login), WRITABLE, target_server, "fail", "read_only is ON")
    finally:
        target_server.run("SET GLOBAL read_only = OFF")


def test_connections_of_the_dump(files: TaskFiles, changed_source: MariadbServer) -> None:
    own = with_keys(replace(files, instance={"mydumper": {"threads": 100}}), spark={"master": "local[100]"})
    changed_source.run("SET GLOBAL max_connections = 201")
    try:
        mended(own, DUMPER, changed_source, "fail", "202 connections")
        changed_source.run("SET GLOBAL max_connections = 202")
        mended(own, DUMPER, changed_source, "warn", "are in use")
    finally:
        changed_source.run("SET GLOBAL max_connections = 200")
    assert found(with_keys(own, spark={"master": "local[2]"}), DUMPER) == []


def test_connections_of_an_account(files: TaskFiles, changed_source: MariadbServer) -> None:
    login = as_user(changed_source, "narrow", "ALL ON *.*")
    changed_source.run("ALTER USER narrow@`127.0.0.1` WITH MAX_USER_CONNECTIONS 5")
    mended(with_source(files, login), DUMPER, changed_source, "fail", "the account may have 5")


def test_connections_of_the_load(files: TaskFiles, target_server: MariadbServer) -> None:
    own = with_keys(
        files, loaders={"own": {"dir": str(files.folder), "pool-size": 300}}, spark={"master": "local[300]"}
    )
    try:
        mended(own, LOADER, target_server, "warn", "301 connections")
    finally:
        target_server.run("SET GLOBAL max_connections = 200")


def test_a_server_that_can_t_be_asked_is_an_error_of_its_own(files: TaskFiles) -> None:
    with pytest.raises(SourceError, match="SOURCE-002") as raised:
        report_of(with_source(files, {"host": "127.0.0.1", "port": files.sources["s1"].port, "user": "nobody"}))
    assert raised.value.where.source == "s1"
