"""The limits of a target that all its writers (tasks, sources, processes) share, stored in the target itself.

A transaction waits for one of `connections` named locks of the server; a process that dies loses its connection, and
with it the lock. Rows are charged after the transaction that wrote them. A row of the meta schema holds the time up to
which the rate is used up. Each writer advances that time by the cost of its rows, and waits until then. So no process
holds a quota that could be lost. Processes share a limit if their tasks have one `meta-schema`.
"""

from __future__ import annotations

import random
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, TypeVar

import MySQLdb

from unshard.metrics.events import count_own
from unshard.model.table import quote_name
from unshard.retry import rest

WAITED = "unshard_throttle_wait_seconds_total"
T = TypeVar("T")
_BURST = 250_000
_TRIED = 8
_WAIT_SECONDS = 0.2
_NOW = "CAST(UNIX_TIMESTAMP(SYSDATE(6)) * 1000000 AS SIGNED)"
_TABLE = """
CREATE TABLE IF NOT EXISTS {name} (
    id INT NOT NULL PRIMARY KEY,
    paid_until BIGINT NOT NULL
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin
"""


@dataclass(frozen=True, slots=True)
class RateLimiter:
    """The limits of one task on its target; 0 means no limit.

    Times in the target are microseconds since 1970. `schema` is the meta schema; `connections` is how many transactions
    may write at a time.
    """

    schema: str
    rows_per_second: float = 0
    connections: int = 0

    @property
    def table(self) -> str:
        """Qualified and quoted name of the table that the rate is shared through."""
        return f"{quote_name(self.schema)}.`unshard_throttle`"

    def create(self, connection: Any) -> None:
        """Create the missing schema, table and row. Idempotent."""
        with connection.cursor() as cursor:
            cursor.execute(f"CREATE DATABASE IF NOT EXISTS {quote_name(self.schema)}")
            cursor.execute(_TABLE.format(name=self.table))
            cursor.execute("BEGIN")  # alone it is optimistic on TiDB: of many at once all but one fail
            cursor.execute(f"INSERT IGNORE INTO {self.table} VALUES (1, 0)")
            cursor.execute("COMMIT")

    def through(self, connection: Any, operation: Callable[[Any], T], rows: Callable[[T], int]) -> T:
        """Run `operation(connection)`, a transaction, within the limits; return its result.

        `rows` returns how many rows it wrote, by its result. Waits before and after it as the limits require. Raises
        what `operation` raises. A connection that is lost after the operation is left for the next statement to find.
        """
        with self._slot(connection):
            found = operation(connection)
        with suppress(MySQLdb.Error):
            pause = self.pay(connection, rows(found))
            count_own(WAITED, pause)
            rest(pause)
        return found

    def pay(self, connection: Any, rows: int) -> float:
        """Pay for `rows` just written; return the seconds to wait. Runs outside a transaction. Raises MySQLdb.Error."""
        if not self.rows_per_second or not rows:
            return 0.0
        cost = int(rows * 1_000_000 / self.rows_per_second)
        with connection.cursor() as cursor:
            cursor.execute(
                f"UPDATE {self.table} SET paid_until ="
                f" LAST_INSERT_ID(GREATEST(paid_until, {_NOW} - {_BURST}) + {cost}) WHERE id = 1"
            )
            cursor.execute(f"SELECT LAST_INSERT_ID() - {_NOW}")
            ((due,),) = cursor.fetchall()
        return max(0.0, int(due) / 1e6)

    @contextmanager
    def _slot(self, connection: Any) -> Iterator[None]:
        """Hold one of the named locks until the end of the block."""
        if not self.connections:
            yield
            return
        begun = time.monotonic()
        name = self._take(connection)
        count_own(WAITED, time.monotonic() - begun)
        try:
            yield
        finally:
            with suppress(MySQLdb.Error):
                _asked(connection, f"SELECT RELEASE_LOCK('{name}')")

    def _take(self, connection: Any) -> str:
        prefix = f"unshard writer {zlib.crc32(self.schema.encode()):08x}"
        while True:
            numbers = random.sample(range(self.connections), min(_TRIED, self.connections))
            for seconds, number in [*((0.0, number) for number in numbers), (_WAIT_SECONDS, numbers[0])]:
                name = f"{prefix} {number}"
                if _asked(connection, f"SELECT GET_LOCK('{name}', {seconds})") == 1:
                    return name


def _asked(connection: Any, question: str) -> Any:
    with connection.cursor() as cursor:
        cursor.execute(question)
        return cursor.fetchone()[0]
