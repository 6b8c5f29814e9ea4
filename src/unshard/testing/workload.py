"""Seeded random work on shard tables: concurrent transactions of every common kind, for a time or a count.

Seen from the binlog it resembles a live application: inserts, updates, deletes, changes of the key, transactions over
several tables, large ones, rollbacks and savepoints, statements that fail on a duplicate. The work of each thread
depends only on the seed; the interleaving of threads does not.
"""

from __future__ import annotations

import itertools
import threading
from collections import Counter
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

import MySQLdb

from unshard.model.table import TableName
from unshard.testing.shapes import SYSBENCH, TableShape
from unshard.testing.throwaway_server import ThrowawayServer

DUPLICATE = 1062
CONTENTION = frozenset({1205, 1213})  # lock wait, deadlock: the transaction is rolled back and counted
_KINDS = {"small": 60, "several_tables": 15, "key_change": 8, "rollback": 8, "savepoint": 6, "large": 3}


@dataclass(frozen=True, slots=True)
class WorkPlan:
    """The plan of a workload: the tables to create and the work to do on them.

    Tables are named `<schema>_<i>`.`<table>_<j>`. With `disjoint_ids` no two shards ever use the same id, so that they
    can be merged into one table unchanged; without, every shard counts 1, 2, 3, as auto-increment does.
    """

    schema: str
    shape: TableShape = SYSBENCH
    schemas: int = 1
    tables: int = 2
    table: str = "table"
    first_schema: int = 1
    seed: int = 1
    threads: int = 2
    large_rows: int = 300
    disjoint_ids: bool = True
    kinds: tuple[tuple[str, int], ...] = tuple(_KINDS.items())

    @property
    def names(self) -> tuple[TableName, ...]:
        """The shard tables in order."""
        numbers = itertools.product(
            range(self.first_schema, self.first_schema + self.schemas), range(1, self.tables + 1)
        )
        return tuple(TableName(f"{self.schema}_{i}", f"{self.table}_{j}") for i, j in numbers)


@dataclass(slots=True)
class WorkReport:
    """The work done so far. `kinds` counts committed transactions by kind, plus `contention` and `duplicate`."""

    kinds: Counter[str] = field(default_factory=Counter)
    statements: int = 0

    @property
    def transactions(self) -> int:
        """Count of the transactions of all kinds."""
        return sum(self.kinds[kind] for kind in _KINDS)


class Workload:
    """A workload of `plan.threads` threads, which creates the tables of a plan on a server and changes their rows.

    Call `create`, perhaps `fill`, then `run` (blocks) or `start` … `stop`. A thread's failure is raised by `stop`.
    """

    def __init__(self, server: ThrowawayServer, plan: WorkPlan) -> None:
        self.server = server
        self.plan = plan if server.has_json else replace(plan, shape=plan.shape.without_documents())
        self.report = WorkReport()
        first = 10**6 * (plan.first_schema - 1)
        steps = len(plan.names) if plan.disjoint_ids else 1
        self._ids: dict[TableName, itertools.count[int]] = {
            name: itertools.count(first + 1 + (place if plan.disjoint_ids else 0), steps)
            for place, name in enumerate(plan.names)
        }
        self._first: dict[TableName, int] = {}
        self._latest: dict[TableName, int] = {}
        self._steps = steps
        self._ending = threading.Event()
        self._gate = threading.Condition()  # guards the four below, and the report
        self._pauses = 0
        self._open = 0
        self._left: int | None = None
        self._failures: list[Exception] = []
        self._threads: list[threading.Thread] = []

    def create(self) -> None:
        """Create schemas and tables. Run once."""
        for schema in sorted({name.schema for name in self.plan.names}):
            self.server.run(f"CREATE DATABASE IF NOT EXISTS `{schema}`")
        self.server.run(*(f"CREATE TABLE {name.quoted} {self.plan.shape.definition}" for name in self.plan.names))

    def fill(self, rows: int) -> None:
        """Insert that many rows into each table, up to 500 in a statement; duplicates of scarce keys are left out."""
        random = Random(f"{self.plan.seed} fill")
        connection = self.server.connection()
        try:
            for name in self.plan.names:
                for start in range(0, rows, 500):
                    batch = [self._row(name, random) for _ in range(min(500, rows - start))]
                    with connection.cursor() as cursor:
                        cursor.executemany(self._insert(name, ignore=self.plan.shape.scarce), batch)
        finally:
            connection.close()

    def run(self, *, seconds: float | None = None, transactions: int | None = None) -> WorkReport:
        """Work for a time or a number of transactions, all threads together, and stop."""
        self.start(transactions)
        if transactions is None:
            self._ending.wait(seconds)
        else:
            for thread in self._threads:
                thread.join()
        return self.stop()

    def start(self, transactions: int | None = None) -> None:
        """Begin to work in the background, without end or up to that many transactions."""
        self._left = transactions
        self._ending.clear()
        self._threads = [
            threading.Thread(target=self._work, args=(number,), name=f"workload-{number}", daemon=True)
            for number in range(self.plan.threads)
        ]
        for thread in self._threads:
            thread.start()

    def pause(self) -> None:
        """Prevent new transactions; returns when none is open any more.

        Several callers may pause the same workload: it continues when each of them has called `resume`.
        """
        with self._gate:
            self._pauses += 1
            self._gate.wait_for(lambda: self._open == 0)

    def resume(self) -> None:
        """End one `pause`. To be called once for each."""
        with self._gate:
            self._pauses -= 1
            self._gate.notify_all()

    def stop(self) -> WorkReport:
        """Finish the open transactions and end the threads. Raises the failure of a thread."""
        self._ending.set()
        with self._gate:
            self._gate.notify_all()
        for thread in self._threads:
            thread.join()
        self._threads = []
        if self._failures:
            raise self._failures[0]
        return self.report

    def _work(self, number: int) -> None:
        random = Random(f"{self.plan.seed} {number}")
        try:
            connection = self.server.connection()
            connection.autocommit(False)
            try:
                while self._begin():
                    try:
                        self._transaction(connection, random)
                    finally:
                        self._end()
            finally:
                connection.close()
        except Exception as failure:  # noqa: BLE001 - carried to the thread that calls stop
            self._failures.append(failure)
            self._ending.set()

    def _begin(self) -> bool:
        """Return whether another transaction may begin. Waits while the workload is paused."""
        with self._gate:
            self._gate.wait_for(lambda: not self._pauses or self._ending.is_set())
            if self._ending.is_set() or self._left == 0:
                return False
            if self._left is not None:
                self._left -= 1
            self._open += 1
            return True

    def _end(self) -> None:
        with self._gate:
            self._open -= 1
            self._gate.notify_all()

    def _transaction(self, connection: Any, random: Random) -> None:
        names, weights = zip(*self.plan.kinds, strict=True)
        (kind,) = random.choices(names, weights)
        try:
            with connection.cursor() as cursor:
                self._perform(kind, cursor, random)
            if kind == "rollback":
                connection.rollback()
            else:
                connection.commit()
        except MySQLdb.Error as error:
            if error.args[0] not in CONTENTION:
                raise
            connection.rollback()
            kind = "contention"
        with self._gate:
            self.report.kinds[kind] += 1

    def _perform(self, kind: str, cursor: Any, random: Random) -> None:
        one = random.choice(self.plan.names)
        if kind == "several_tables":
            for name in random.sample(self.plan.names, k=min(3, len(self.plan.names))):
                self._change(cursor, name, random)
        elif kind == "key_change" and self.plan.shape.keyed:
            self._try(
                cursor, f"UPDATE {one.quoted} SET id = %s WHERE id = %s", (self._new_id(one), self._old_id(one, random))
            )
        elif kind == "savepoint":
            self._change(cursor, one, random)
            cursor.execute("SAVEPOINT half")
            self._change(cursor, one, random)
            cursor.execute("ROLLBACK TO SAVEPOINT half")
        elif kind == "large":
            rows = [self._row(one, random) for _ in range(self.plan.large_rows)]
            cursor.executemany(self._insert(one, ignore=self.plan.shape.scarce), rows)
            self._update(cursor, one, random, limit=self.plan.large_rows // 3)
        else:
            for _ in range(random.randint(1, 5)):
                self._change(cursor, one, random)

    def _change(self, cursor: Any, name: TableName, random: Random) -> None:
        choice = random.random()
        if choice < 0.45:
            self._try(cursor, self._insert(name), self._row(name, random))
        elif choice < 0.8:
            self._update(cursor, name, random)
        else:
            lookup = self.plan.shape.lookup
            found = self._lookup_value(name, random)
            self._try(cursor, f"DELETE FROM {name.quoted} WHERE {lookup} = %s LIMIT 1", (found,))

    def _update(self, cursor: Any, name: TableName, random: Random, limit: int = 1) -> None:
        shape = self.plan.shape
        chosen = random.sample(shape.changeable, k=random.randint(1, min(3, len(shape.changeable))))
        values = dict(zip(shape.columns[1:] if shape.keyed else shape.columns, shape.values(random), strict=True))
        if limit > 1:  # many rows can't take one value of a unique column
            chosen = [shape.changeable[-1]]
        sets = ", ".join(f"`{column}` = %s" for column in chosen)
        condition = f"{shape.lookup} {'>=' if limit > 1 else '='} %s ORDER BY {shape.lookup} LIMIT {limit}"
        parameters = (*(values[column] for column in chosen), self._lookup_value(name, random))
        self._try(cursor, f"UPDATE {name.quoted} SET {sets} WHERE {condition}", parameters)

    def _try(self, cursor: Any, statement: str, values: tuple[Any, ...]) -> None:
        """Execute a statement. A duplicate in a unique key fails only the statement, and the transaction continues."""
        try:
            cursor.execute(statement, values)
        except MySQLdb.Error as error:
            if error.args[0] != DUPLICATE:
                raise
            with self._gate:
                self.report.kinds["duplicate"] += 1
        with self._gate:
            self.report.statements += 1

    def _insert(self, name: TableName, *, ignore: bool = False) -> str:
        columns = ", ".join(f"`{column}`" for column in self.plan.shape.columns)
        marks = ", ".join(["%s"] * len(self.plan.shape.columns))
        return f"INSERT {'IGNORE ' if ignore else ''}INTO {name.quoted} ({columns}) VALUES ({marks})"

    def _row(self, name: TableName, random: Random) -> tuple[Any, ...]:
        values = self.plan.shape.values(random)
        return (self._new_id(name), *values) if self.plan.shape.keyed else values

    def _lookup_value(self, name: TableName, random: Random) -> int:
        return self._old_id(name, random) if self.plan.shape.keyed else random.randint(1, 40)

    def _new_id(self, name: TableName) -> int:
        made = next(self._ids[name])
        self._first.setdefault(name, made)
        self._latest[name] = made
        return made

    def _old_id(self, name: TableName, random: Random) -> int:
        """Return an id that was once used; its row may no longer exist."""
        if name not in self._latest:
            return 0
        return random.randrange(self._first[name], self._latest[name] + 1, self._steps)
