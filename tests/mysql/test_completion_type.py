"""A COMMIT ends its transaction, whatever the server's `completion_type` is."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import pytest
from sqlalchemy import text

from unshard.master.store import engine_of
from unshard.mysql.connection import connect, rows
from unshard.testing.mariadb_server import MariadbServer

pytestmark = pytest.mark.server


@pytest.fixture(params=["CHAIN", "RELEASE"])
def server(request: pytest.FixtureRequest, target_server: MariadbServer) -> Iterator[MariadbServer]:
    target_server.run(f"SET GLOBAL completion_type = '{request.param}'")
    yield target_server
    target_server.run("SET GLOBAL completion_type = DEFAULT")


def test_what_follows_a_commit_is_committed_by_itself(server: MariadbServer, schema: str) -> None:
    server.run(f"CREATE DATABASE {schema}", f"CREATE TABLE {schema}.t (id INT PRIMARY KEY)")
    with closing(connect(server.endpoint, "target")) as connection:
        insert = f"INSERT INTO {schema}.t VALUES "
        for statement in ("BEGIN", insert + "(1)", "COMMIT", insert + "(2)"):
            rows(connection, statement)
        assert server.query(f"SELECT id FROM {schema}.t ORDER BY id") == [(1,), (2,)]


def test_a_session_with_the_masters_database_outlasts_its_commits(server: MariadbServer, schema: str) -> None:
    server.run(f"CREATE DATABASE {schema}")
    engine = engine_of(f"mysql://root@127.0.0.1:{server.port}/{schema}", "", 60)
    try:
        numbers = set()
        for _ in range(2):
            with engine.begin() as connection:
                numbers.add(connection.execute(text("SELECT CONNECTION_ID()")).scalar())
        assert len(numbers) == 1
    finally:
        engine.dispose()
