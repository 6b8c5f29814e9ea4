"""A copy whose source lives meanwhile: rows, DDL of every kind, names that change hands; the task dies and is stopped.

Every other table has no key: a row of it that is written twice stands there twice.
"""

from __future__ import annotations

import random
import signal
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import MySQLdb
import pytest
from pyspark.sql import SparkSession

from support.death_by_error import CODE, die_by_error
from support.schema_tables import tables_of
from support.task_runs import Command, TaskFiles, TaskRun
from support.waiting import wait_until
from unshard.errors import DumpError, EngineError
from unshard.model.table import TableName
from unshard.testing.compare import assert_equal
from unshard.testing.throwaway_server import ThrowawayServer

TABLES, MANY = 8, 28
PLACES = (
    "dump-header-before",
    "dump-header-after",
    "dump-rename-before:3",
    "dump-rename-after:5",
    "subtask-loaded",
    "sync-claim-after",
    "sync-move-after",
    "sync-open-after",
    "ddl-execute-before",
    "ddl-execute-after",
    "ddl-noted:2",
    "sync-close-before",
    "sync-close-after",
)
WORKER_PLACES = (
    "dump-file-before",
    "dump-file-after:3",
    "dump-table-after:4",
    "load-piece-commit:2",
    "load-piece-after:3",
    "load-finish-before:2",
    "sync-chunk-before",
    "sync-chunk-commit:2",
    "sync-chunk-after",
)
"""Where a process of Spark's workers dies, and the command with it."""
KEYS = ("INT", "INT", "BIGINT UNSIGNED", "DECIMAL(9)", "VARCHAR(9)", "VARCHAR(9) CHARACTER SET latin1", "VARBINARY(9)")
TEXTS = ("VARCHAR(20)", "VARCHAR(20)", "CHAR(20)", "VARCHAR(20) CHARACTER SET latin1", "TEXT CHARACTER SET gbk")
CHANGES = 12
LIVES = ("killed", "killed", "stopped")
SCRIPTS = (
    "RENAME TABLE {a} TO {new}, {b} TO {a}, {new} TO {b}",
    "RENAME TABLE {a} TO {new}, {b} TO {a}, {c} TO {b}, {new} TO {c}",
    "RENAME TABLE {a} TO {new}, {b} TO {a}",
    "RENAME TABLE {a} TO {new}",
    "ALTER TABLE {a} RENAME TO {new}, ADD COLUMN {column} INT DEFAULT 7",
    "DROP TABLE {a}; RENAME TABLE {b} TO {a}",
    "DROP TABLE {a}, {b}; CREATE TABLE {b} (id INT, v VARCHAR(20))",
    "DROP TABLE IF EXISTS {a}, {new}; CREATE TABLE {a} (id INT PRIMARY KEY, v VARCHAR(20))",
    "CREATE TABLE {new} LIKE {a}; INSERT INTO {new} SELECT * FROM {a}",
    "CREATE TABLE {new} SELECT * FROM {a}",
    "CREATE OR REPLACE TABLE {a} LIKE {b}",
    "CREATE TABLE {new} LIKE {a}; ALTER TABLE {new} ADD COLUMN {column} INT; INSERT INTO {new} SELECT *, 1 FROM {a};"
    "RENAME TABLE {a} TO {other}, {new} TO {a}; DROP TABLE {other}",
    "CREATE TABLE {new} LIKE {a}; ALTER TABLE {new} PARTITION BY RANGE (id) (PARTITION p0 VALUES LESS THAN MAXVALUE);"
    "ALTER TABLE {new} EXCHANGE PARTITION p0 WITH TABLE {a}",
    "ALTER TABLE {a} PARTITION BY RANGE (id) (PARTITION p0 VALUES LESS THAN (500),"
    " PARTITION p1 VALUES LESS THAN MAXVALUE); ALTER TABLE {a} CONVERT PARTITION p0 TO TABLE {new}",
    "ALTER TABLE {a} REMOVE PARTITIONING",
    "ALTER TABLE {a} ADD COLUMN {column} VARCHAR(9) DEFAULT 'x'",
    "ALTER TABLE {a} ADD COLUMN {column} INT NOT NULL DEFAULT 4 FIRST",
    "ALTER TABLE {a} MODIFY v TEXT",
    "ALTER TABLE {a} ADD KEY {column} (id, v(3))",
    "ALTER TABLE {a} DROP COLUMN v; ALTER TABLE {a} ADD COLUMN v VARCHAR(30)",
    "CREATE INDEX {column} ON {a} (v(2))",
    "TRUNCATE TABLE {a}",
    "RENAME TABLE {a} TO {moved}",
    "DROP DATABASE {second}; CREATE DATABASE {second}; CREATE TABLE {moved} (id INT, v VARCHAR(9))",
)
NOT_ON_TIDB = ("PARTITION", "MODIFY v TEXT", "DROP COLUMN v")
"""Words of scripts that change what TiDB changes only in some tables: partitions, and columns that keys have."""


@dataclass
class CopyStorm:
    """One seed's task on these servers; `told` is what happened to it."""

    seed: int
    name: str
    source: ThrowawayServer
    target: ThrowawayServer
    folder: Path
    told: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.chosen = random.Random(self.seed)
        # a copy under a lock lets nobody write while it waits for a table
        self.live = self.chosen.random() < 0.4 or self.source.product != "MariaDB"
        self.schemas = (self.name, f"{self.name}_2")
        self.source.run(*(f"CREATE DATABASE {schema}" for schema in self.schemas))
        self.number = 0
        for number in range(self.chosen.choice((TABLES, MANY)) if self.live else TABLES):
            key = f"{self.chosen.choice(KEYS)} PRIMARY KEY" if number % 2 else "INT"
            name = f"{self.schemas[number == 0]}.t{number}"
            self.source.run(
                f"CREATE TABLE {name} (id {key}, v {self.chosen.choice(TEXTS)})",
                f"INSERT INTO {name} VALUES (1, 'a'), (2, 'b')",
            )

    def files(self) -> TaskFiles:
        keys = {"mydumpers": {"own": {"threads": self.chosen.randint(1, 2)}}}
        instance = {"mydumper-config-name": "own"}
        return TaskFiles(self.folder, self.name, {"s1": self.source}, self.target, self.schemas, keys, instance).write()

    def run_commands(self, lives: int) -> None:
        """As `run`, with `unshard run` as a process: a crash point kills it, or the clock."""
        files = self.files()
        for _ in range(lives):
            place = self.chosen.choice((*PLACES, *WORKER_PLACES, ""))
            with Command(files, place) as command:
                for _ in range(CHANGES):
                    if command.alive:
                        self._change(None)
                        time.sleep(self.chosen.random())
                if place:
                    wait_until(lambda command=command: not command.alive or files.caught_up(), "died, or caught up")  # type: ignore[misc]
                self.told.append(f"{'killed' if command.alive else 'died at'} {place}")
                if command.alive:
                    command.kill()
                else:
                    assert command.wait() == -signal.SIGKILL, command.text
        with Command(files) as command:
            for _ in range(CHANGES // 2):
                self._change(None)
            command.catch_up()
            command.interrupt()
            assert command.wait() == 0, command.text
        self._proof()

    def run(self, spark: SparkSession, monkeypatch: pytest.MonkeyPatch, lives: int) -> None:
        """All of it. Raises AssertionError where the target is not what it must be."""
        files = self.files()
        for _ in range(lives):
            self._live(files, spark, monkeypatch, self.chosen.choice(LIVES))
        while not self._arrives(files, spark):
            pass
        self._proof()

    def _arrives(self, files: TaskFiles, spark: SparkSession) -> bool:
        """Run until the target has everything; whether a copy under a lock was not stopped by a statement before."""
        with self._held() as held, TaskRun(files, spark).failing() as run:
            self._disturb(run, held)
            try:
                run.catch_up()
            except DumpError as error:
                if not self._is_meant(error):
                    raise
                self.told.append("another set of tables")
                return False
            for _ in range(5):
                self._change(None)
            run.catch_up()
        return True

    def _is_meant(self, error: BaseException) -> bool:
        """Whether it is the death itself, or the end of a copy under a lock that met a CREATE, DROP or RENAME TABLE."""
        if isinstance(error, DumpError):
            return error.code == "DUMP-001" and self.source.product != "MariaDB"
        return isinstance(error, EngineError) and error.code == CODE

    def _live(self, files: TaskFiles, spark: SparkSession, monkeypatch: pytest.MonkeyPatch, end: str) -> None:
        place = self.chosen.choice(PLACES) if end == "killed" else ""
        with monkeypatch.context() as patch, self._held() as held:
            die_by_error(patch, place)
            run = TaskRun(files, spark).start()
            try:
                self._disturb(run, held)
                if end == "killed":
                    for _ in range(3):
                        self._change(None)
                    wait_until(lambda: run.crew.ended.is_set() or self._is_through(files, run), "died, or caught up")
            finally:
                self.told.append(f"{end} {place} in {run.crew.subtasks[0].unit}")
                run.crew.stop.set()
                wait_until(run.crew.ended.is_set, "ended")
            for error in run.crew.errors:
                if not self._is_meant(error):
                    raise error

    def _is_through(self, files: TaskFiles, run: TaskRun) -> bool:
        return run.crew.subtasks[0].unit == "sync" and files.caught_up()

    def _is_dumped(self, run: TaskRun) -> bool:
        return run.crew.subtasks[0].unit in ("load", "sync")

    def _disturb(self, run: TaskRun, held: tuple[MySQLdb.Connection, TableName]) -> None:
        """While the dump waits for a table, and then once more for another, the others are changed; or all, live."""
        connection, name = held
        if self.live:
            connection.query("UNLOCK TABLES")
            while not (run.crew.ended.is_set() or self._is_dumped(run)):
                self._change(None)
                time.sleep(self.chosen.random() * 0.4)  # sync has all of this to follow
            return
        for _ in range(2):
            wait_until(lambda: self._waits() or run.crew.ended.is_set() or self._is_dumped(run), "the dump waits")
            for _ in range(self.chosen.randint(2, 8)):
                self._change(name)
            name = self.chosen.choice(self._names())
            connection.query("UNLOCK TABLES")
            connection.query(f"LOCK TABLES {name.quoted} WRITE")
        connection.query("UNLOCK TABLES")

    @contextmanager
    def _held(self) -> Iterator[tuple[MySQLdb.Connection, TableName]]:
        name = self.chosen.choice(self._names())
        with closing(self.source.connection()) as connection:
            connection.query(f"LOCK TABLES {name.quoted} WRITE")
            yield connection, name

    def _waits(self) -> bool:
        sql = "SELECT 1 FROM information_schema.PROCESSLIST WHERE STATE LIKE 'Waiting%metadata%'"
        return bool(self.source.query(sql))

    def _names(self) -> list[TableName]:
        return tables_of(self.source, self.schemas)

    def _change(self, held: TableName | None) -> None:
        """Some rows, and a script of DDL, of tables that are not held. The server refuses some of it: its say."""
        names = [name for name in self._names() if name != held]
        for name in self.chosen.sample(names, min(3, len(names))):
            self.number += 1
            self._try(f"INSERT INTO {name.quoted} (id, v) VALUES ({self.number + 100}, 'n{self.number}')")
            self._try(f"UPDATE {name.quoted} SET v = 'u{self.number}' WHERE id < {self.chosen.randint(1, 200)} LIMIT 3")
            if self.chosen.random() < 0.3:
                self._try(f"DELETE FROM {name.quoted} WHERE id > {self.chosen.randint(1, 200)} LIMIT 2")
        self.number += 1
        scripts: tuple[str, ...] = SCRIPTS
        if self.target.product == "TiDB":
            scripts = tuple(one for one in SCRIPTS if not any(words in one for words in NOT_ON_TIDB))
        script = self.chosen.choice(scripts)
        if len(names) < 4 or ("DATABASE" in script and held is not None and held.schema == self.schemas[1]):
            script = "CREATE TABLE {new} (id INT, v VARCHAR(20))"
        a, b, c = self.chosen.sample(names, 3) if len(names) > 2 else (names * 3)[:3]
        filled = script.format(
            a=a.quoted,
            b=b.quoted,
            c=c.quoted,
            new=f"{a.schema}.n{self.number}",
            other=f"{a.schema}.o{self.number}",
            moved=f"{self.schemas[1]}.m{self.number}",
            second=self.schemas[1],
            column=f"c{self.number}",
        )
        for statement in filled.split(";"):
            self._try(statement)

    def _try(self, statement: str) -> None:
        with suppress(MySQLdb.Error):
            self.source.run(statement)

    def _proof(self) -> None:
        there = self._names()
        assert tables_of(self.target, self.schemas) == there
        for name in there:
            assert_equal([(self.source, name)], (self.target, name))
