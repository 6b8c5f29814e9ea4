"""Processes that make the same first row in TiDB at once: none of them fails."""

from __future__ import annotations

from contextlib import closing

import pytest

from support.stopped_threads import Aside
from support.waiting import wait_until
from unshard.mysql.connection import connect
from unshard.target.rate_limiter import RateLimiter
from unshard.testing.tidb_server import TidbServer

pytestmark = pytest.mark.server


def test_the_row_of_the_limits_is_being_made_by_another_process(tidb: TidbServer, schema: str) -> None:
    gate = RateLimiter(schema)

    def create(_: Aside) -> None:
        with closing(connect(tidb.endpoint, "target")) as own:
            gate.create(own)

    with closing(connect(tidb.endpoint, "target")) as other:
        gate.create(other)
        with other.cursor() as cursor:
            cursor.execute(f"DELETE FROM {gate.table}")
            cursor.execute("BEGIN")
            cursor.execute(f"INSERT INTO {gate.table} VALUES (1, 7)")
            late = Aside(create)
            running = "SELECT 1 FROM information_schema.PROCESSLIST WHERE INFO LIKE %s"
            wait_until(lambda: bool(tidb.query(running, (f"INSERT IGNORE INTO {gate.table}%",))), "it waits")
            cursor.execute("COMMIT")
    assert late.join() is None
    assert tidb.query(f"SELECT * FROM {gate.table}") == [(1, 7)]
    tidb.run(f"DROP DATABASE {schema}")
