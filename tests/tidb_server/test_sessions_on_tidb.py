"""What a session says outright to TiDB, whatever the cluster's own variables are; nothing is logged for each."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest

from unshard.mysql.connection import connect, rows, session
from unshard.target.writer import WRITE_SESSION, writer
from unshard.testing.tidb_server import TidbServer

pytestmark = pytest.mark.server

SAID = {
    "tidb_txn_mode": "pessimistic",
    "transaction_isolation": "READ-COMMITTED",
    "tidb_constraint_check_in_place_pessimistic": 1,
    "tidb_retry_limit": "0",
    "allow_auto_random_explicit_insert": 1,
    "foreign_key_checks": 0,
    "time_zone": "+00:00",
}


@pytest.fixture
def contrary(tidb: TidbServer) -> Iterator[TidbServer]:
    """A cluster whose variables are other ones."""
    other = {
        "tidb_txn_mode": "'optimistic'",
        "tidb_retry_limit": "5",
        "transaction_isolation": "'REPEATABLE-READ'",
        "time_zone": "'+05:00'",
        "sql_mode": "''",
    }
    before = {name: tidb.query(f"SELECT @@global.{name}")[0][0] for name in other}
    tidb.run(*(f"SET GLOBAL {name} = {value}" for name, value in other.items()))
    yield tidb
    connection = tidb.connection()
    with connection.cursor() as cursor:
        for name, value in before.items():
            cursor.execute(f"SET GLOBAL {name} = %s", (value,))
    connection.close()


def test_every_session_says_it(contrary: TidbServer, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "unshard")
    given = contrary.endpoint.with_session(tidb_txn_mode="optimistic")
    for connection in (connect(contrary.endpoint, "target"), connect(given, "target"), writer(given)):
        ((*found,),) = rows(connection, f"SELECT {', '.join(f'@@session.{name}' for name in SAID)}")
        assert dict(zip(SAID, found, strict=True)) == SAID
        connection.close()
    with session(given, "target") as connection:
        assert rows(connection, "SELECT @@tidb_txn_mode") == [("pessimistic",)]
    assert caplog.records == []


def test_a_writer_says_its_modes_and_which_it_reads_warnings_in(contrary: TidbServer) -> None:
    connection = writer(contrary.endpoint)
    ((modes, warnings),) = rows(connection, "SELECT @@sql_mode, @@max_error_count")
    connection.close()
    assert set(modes.split(",")) >= set(WRITE_SESSION["sql_mode"].split(","))
    assert int(warnings) == 65535


def test_a_user_may_have_foreign_keys_checked(tidb: TidbServer) -> None:
    connection = writer(tidb.endpoint.with_session(foreign_key_checks="1"))
    assert rows(connection, "SELECT @@foreign_key_checks") == [(1,)]
    connection.close()
