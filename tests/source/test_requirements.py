"""What a source must offer, each lack with its own error."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from support.refusals import refusal
from unshard.errors import RelayError, SourceError
from unshard.model.position import Position
from unshard.mysql.connection import session
from unshard.mysql.flavour import Flavour, Server, current_location, identify
from unshard.mysql.grants import Grants
from unshard.source.requirements import check_available, check_requirements, missing_privileges
from unshard.source.upstream import read_upstream
from unshard.testing.mariadb_server import MariadbServer


@pytest.mark.parametrize(
    ("grants", "product", "missing"),
    [
        (["GRANT ALL PRIVILEGES ON *.* TO `u`@`%`"], "mariadb", ()),
        (["GRANT SELECT, REPLICATION SLAVE, BINLOG MONITOR ON *.* TO `u`@`%`"], "mariadb", ()),
        (["GRANT SELECT, REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO `u`@`%`"], "mysql", ()),
        (["GRANT REPLICATION SLAVE, BINLOG MONITOR ON *.* TO `u`@`%`", "GRANT SELECT ON `d`.* TO `u`"], "mariadb", ()),
        (["GRANT BINLOG MONITOR ON *.* TO u", "GRANT SELECT ON `d`.`t` TO u"], "mariadb", ("REPLICATION SLAVE",)),
        (["GRANT REPLICATION SLAVE ON *.* TO u", "GRANT SELECT ON `d`.* TO u"], "mariadb", ("BINLOG MONITOR",)),
        (["GRANT REPLICATION SLAVE ON *.* TO u", "GRANT SELECT ON `d`.* TO u"], "mysql", ("REPLICATION CLIENT",)),
        (["GRANT SELECT, REPLICATION SLAVE ON *.* TO u"], "mariadb 10.4", ("REPLICATION CLIENT",)),
        (["GRANT REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO u"], "mysql", ("SELECT",)),
        (
            ["GRANT USAGE ON *.* TO `u`@`%`", "GRANT ALL PRIVILEGES ON `d`.* TO u"],
            "mysql",
            ("REPLICATION SLAVE", "REPLICATION CLIENT"),
        ),
        (
            ["GRANT USAGE ON *.* TO `u`@`%`", "GRANT `role`@`%` TO `u`@`%`"],
            "mysql",
            ("REPLICATION SLAVE", "REPLICATION CLIENT", "SELECT"),
        ),
    ],
)
def test_grants(grants: list[str], product: str, missing: tuple[str, ...]) -> None:
    version = (10, 4, 34) if product.endswith("10.4") else (10, 11, 0)
    server = Server(Flavour(product.split()[0]), version, "", 1, "")
    assert missing_privileges(Grants.read(grants), server) == missing


@pytest.fixture(scope="module")
def server() -> Iterator[MariadbServer]:
    with MariadbServer() as running:
        yield running


def code_of(server: MariadbServer, user: str = "root") -> str:
    """The code of the lack that is found for this user, "" where there is none."""
    with session(replace(server.endpoint, user=user), "source") as connection:
        refused = refusal(SourceError, check_requirements, connection, identify(connection), "s1")
    if refused is None:
        return ""
    assert refused.where.source == "s1"
    return refused.code


@pytest.mark.server
def test_a_format_that_is_not_row(server: MariadbServer) -> None:
    assert code_of(server) == ""
    server.run("SET GLOBAL binlog_format = MIXED")
    try:
        assert code_of(server) == "SOURCE-031"
    finally:
        server.run("SET GLOBAL binlog_format = ROW")


@pytest.mark.server
def test_privileges(server: MariadbServer) -> None:
    server.run("CREATE USER few@'127.0.0.1'", "GRANT SELECT, BINLOG MONITOR ON *.* TO few@'127.0.0.1'")
    assert code_of(server, "few") == "SOURCE-033"
    server.run("GRANT REPLICATION SLAVE ON *.* TO few@'127.0.0.1'")
    assert code_of(server, "few") == ""


@pytest.mark.server
def test_a_purged_file(server: MariadbServer) -> None:
    with session(server.endpoint, "source") as connection:
        here = current_location(connection, identify(connection))
        assert here is not None
        check_available(connection, here.position, "s1")
        with pytest.raises(RelayError, match=r"mysql-bin\.000001"):
            check_available(connection, Position("mysql-bin.000099"), "s1")


@pytest.mark.server
def test_the_backlog_is_counted_over_files(server: MariadbServer) -> None:
    with session(server.endpoint, "source") as connection:
        start = current_location(connection, identify(connection))
        assert start is not None
        server.run("CREATE DATABASE backlog", "FLUSH BINARY LOGS", "CREATE TABLE backlog.t (id INT)")
        upstream = read_upstream(connection, identify(connection))
    assert upstream is not None
    files = {path.name: path.stat().st_size for path in server.binlog_files()}
    end = upstream.location.position
    assert upstream.backlog_bytes(start.position) == files[start.position.file] - start.position.offset + end.offset
    assert upstream.backlog_bytes(end) == 0
    assert upstream.backlog_bytes(Position(end.file, end.offset + 1)) == 0
    assert upstream.location.gtid == server.query("SELECT @@gtid_binlog_pos")[0][0]


@pytest.mark.server
def test_no_binlog() -> None:
    with MariadbServer({"log_bin": ""}) as plain:
        assert code_of(plain) == "SOURCE-030"
        with session(plain.endpoint, "source") as connection:
            assert current_location(connection, identify(connection)) is None
