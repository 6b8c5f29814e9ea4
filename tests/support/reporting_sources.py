"""What the sync units of a task's sources would say to each other in the target, without any of them."""

from __future__ import annotations

from typing import Any

from support.waiting import wait_until
from unshard.model.table import TableName
from unshard.mysql.connection import connect
from unshard.shard.lock_keeper import Outcome
from unshard.target.meta import MetaTables
from unshard.target.sharding import done, look
from unshard.testing.mariadb_server import MariadbServer


class ReportingSources:
    """Of one task; `do` runs a step of `target.shard_locks` in a transaction of its own."""

    def __init__(self, server: MariadbServer, meta_schema: str, task: str) -> None:
        self.meta = MetaTables(meta_schema, task)
        self.connection = connect(server.endpoint, "target")
        self.meta.create(self.connection)

    def do(self, what: Any, *values: Any) -> Any:
        with self.connection.cursor() as cursor:
            cursor.execute("BEGIN")
            found = what(cursor, self.meta, *values)
            cursor.execute("COMMIT")
        return found

    def run_when_told(self, source: str, target: TableName) -> None:
        """The source is the owner of the target's lock, and runs its DDL."""
        wait_until(
            lambda: look(self.connection, self.meta, source)[target].outcome is Outcome.EXECUTE, "it is told to run it"
        )
        self.do(done, source, target)
