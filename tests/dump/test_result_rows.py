"""Rows read off the socket of a driver's connection, and what the driver finds afterwards."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import MySQLdb
import pyarrow as pa
import pytest

from support.certificates import Authority
from support.waiting import PATIENCE_SECONDS, wait_until
from unshard.dump.read import read_rows
from unshard.dump.result_rows import column_batches
from unshard.model.table import TableName
from unshard.mysql.connection import connect
from unshard.mysql.plain_socket import plain_socket
from unshard.mysql.structure import read_table
from unshard.mysql.tls import Material, Tls
from unshard.testing.mariadb_server import MariadbServer
from unshard.testing.proxy import FaultProxy

pytestmark = pytest.mark.server


@contextmanager
def reader(server: MariadbServer, **changes: Any) -> Iterator[Any]:
    connection = connect(replace(server.endpoint, **changes), "source", text=False)
    try:
        yield connection
    finally:
        connection.close()


def read(connection: Any, statement: str, columns: int) -> list[tuple[bytes | None, ...]]:
    batches = column_batches(connection, statement.encode(), columns, rows=1000, size=1 << 20)
    return [row for batch in batches for row in zip(*(column.to_pylist() for column in batch), strict=True)]


def asked(connection: Any, statement: str) -> Any:
    with connection.cursor() as cursor:
        cursor.execute(statement)
        return cursor.fetchall()


def test_the_driver_goes_on_behind_it(source_server: MariadbServer) -> None:
    with reader(source_server) as connection:
        for rows in (0, 1, 2500):
            found = read(connection, f"SELECT seq, NULL, 'ä' FROM test.seq_1_to_3000 LIMIT {rows}", 3)
            assert found == [(str(number).encode(), None, "ä".encode()) for number in range(1, rows + 1)]
            assert asked(connection, "SELECT 1") == ((b"1",),)


@pytest.mark.parametrize(
    ("statement", "number"),
    [
        ("SELECT * FROM test.gone", 1146),
        ("SELECT seq, (SELECT 1 UNION SELECT seq) FROM test.seq_1_to_100000", 1242),
        ("SELECT seq, IF(seq < 90000, 1, (SELECT seq UNION SELECT 0)) FROM test.seq_1_to_100000", 1242),
    ],
    ids=["at once", "at the first row", "behind many rows"],
)
def test_an_error_of_the_server(source_server: MariadbServer, statement: str, number: int) -> None:
    with reader(source_server) as connection:
        with pytest.raises(MySQLdb.OperationalError) as caught:
            read(connection, statement, 2)
        assert caught.value.args[0] == number
        assert asked(connection, "SELECT 1") == ((b"1",),)


def test_a_connection_that_is_killed(source_server: MariadbServer) -> None:
    with reader(source_server) as connection:
        batches = column_batches(
            connection, b"SELECT REPEAT('x', 1000) FROM test.seq_1_to_1000000", 1, rows=10, size=1 << 20
        )
        next(batches)
        source_server.query(f"KILL {connection.thread_id()}")
        with pytest.raises(MySQLdb.OperationalError) as caught:
            list(batches)
        assert caught.value.args[0] in (2013, 1317, 1927)


@pytest.mark.parametrize("fault", ["stalled", "truncated"])
def test_a_network_that_fails(source_server: MariadbServer, fault: str) -> None:
    with (
        FaultProxy("127.0.0.1", source_server.port) as proxy,
        reader(source_server, port=proxy.port, patience_seconds=1) as connection,
    ):
        assert read(connection, "SELECT 1", 1) == [(b"1",)]
        if fault == "stalled":
            proxy.stall()
        else:
            proxy.cut_after(100)
        with pytest.raises(MySQLdb.OperationalError, match="Lost connection to server during query") as caught:
            read(connection, "SELECT REPEAT('x', 1000)", 1)
        assert caught.value.args[0] == 2013


def test_other_threads_run_meanwhile(source_server: MariadbServer) -> None:
    """The kernel holds no lock of the interpreter while it waits for a server that waits for another thread here."""
    with reader(source_server) as holder, reader(source_server) as connection:
        assert asked(holder, "SELECT GET_LOCK('unshard rows', 0)") == ((b"1",),)
        waits = (
            f"SELECT 1 FROM information_schema.PROCESSLIST WHERE ID = {connection.thread_id()} AND STATE = 'User lock'"
        )

        def release() -> None:
            wait_until(lambda: bool(source_server.query(waits)), "the query waits for the lock")
            asked(holder, "SELECT RELEASE_LOCK('unshard rows')")

        thread = threading.Thread(target=release)
        thread.start()
        assert read(connection, f"SELECT GET_LOCK('unshard rows', {PATIENCE_SECONDS})", 1) == [(b"1",)]
        thread.join()


def test_an_encrypted_connection_has_no_such_socket(tmp_path: Path) -> None:
    """Nor has one that goes encrypted to a proxy, which goes on without encryption: the server knows of none."""
    authority = Authority(tmp_path)
    pair = authority.issue("db-1")
    with MariadbServer({"ssl_ca": str(authority.ca), "ssl_cert": str(pair.cert), "ssl_key": str(pair.key)}) as server:
        server.run(
            "CREATE DATABASE safe",
            "CREATE TABLE safe.t (id INT PRIMARY KEY, v VARCHAR(99), d DECIMAL(9,2), b BLOB)",
            "INSERT INTO safe.t SELECT seq, IF(seq % 3, CONCAT('ä', seq), NULL), seq / 7, REPEAT(x'00ff', seq % 90)"
            " FROM safe.seq_1_to_5000",
        )
        table = read_table(server.connection(), TableName("safe", "t"))
        assert table is not None
        with reader(server) as connection:
            assert plain_socket(connection) == connection.fileno()
            plain = pa.Table.from_batches(read_rows(connection, table))
        with reader(server, tls=Tls(ca=Material(str(authority.ca)))) as connection:
            assert plain_socket(connection) is None
            assert pa.Table.from_batches(read_rows(connection, table)).equals(plain)
        assert plain.num_rows == 5000
