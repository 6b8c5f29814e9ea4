"""What is read from a source when a task begins or goes on."""

from __future__ import annotations

from threading import Event

import pytest

from unshard.model.table import TableName
from unshard.retry import given_up_by
from unshard.testing.mariadb_server import MariadbServer
from unshard.worker.source_facts import listing

pytestmark = pytest.mark.server


class Restart(Event):
    """Starts a stopped server in the first pause between two attempts."""

    def __init__(self, server: MariadbServer) -> None:
        super().__init__()
        self.server = server
        self.pauses = 0

    def wait(self, timeout: float | None = None) -> bool:
        self.pauses += 1
        if self.pauses == 1:
            self.server.start()
        return super().wait(timeout)


def test_a_source_that_restarts_is_listed_when_it_is_back() -> None:
    with MariadbServer() as source:
        source.run("CREATE DATABASE shop", "CREATE TABLE shop.t (id INT PRIMARY KEY)")
        endpoint = source.endpoint
        source.stop()
        restart = Restart(source)
        with given_up_by(restart):
            tables, schemas, end = listing(endpoint)
        assert restart.pauses > 0
        assert TableName("shop", "t") in tables
        assert "shop" in schemas
        assert end.file
