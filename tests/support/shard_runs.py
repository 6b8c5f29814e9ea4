"""Shards of one table in some sources, a task that merges them in pessimistic mode, and what must be true then."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from support.death_by_error import die_by_error
from support.task_runs import TaskFiles, TaskRun
from support.waiting import wait_until
from unshard.errors import EngineError
from unshard.model.table import TableName
from unshard.target.meta import MetaTables
from unshard.target.sharding import forget_source, load_keeper
from unshard.target.sharding_groups import load_groups
from unshard.testing.throwaway_server import ThrowawayServer

ROW = "id BIGINT NOT NULL PRIMARY KEY, v VARCHAR(20) NOT NULL"


@dataclass
class Shards:
    """`tables` shards `t_0` … of schema `<name>_s` in each source; ids are apart by shard."""

    name: str
    sources: Mapping[str, ThrowawayServer]
    target: ThrowawayServer
    folder: Path
    tables: int = 2
    keys: Mapping[str, Any] = field(default_factory=dict)
    row: str = ROW
    syncer: Mapping[str, Any] = field(default_factory=dict)
    instance: Mapping[str, Any] = field(default_factory=lambda: {"route-rules": ["fold"]})
    prefix: str = "t"

    def __post_init__(self) -> None:
        self.shards = [(source, table) for source in self.sources for table in range(self.tables)]
        for source, table in self.shards:
            server = self.sources[source]
            server.run(f"CREATE DATABASE IF NOT EXISTS `{self.name}_s`")
            server.run(f"CREATE TABLE {self.at(table)} ({self.row})")
            self.insert(source, table, 0)

    def at(self, table: int | str) -> str:
        return f"`{self.name}_s`.`{self.prefix}_{table}`"

    @property
    def merged(self) -> str:
        return f"`{self.name}_all`.`{self.prefix}`"

    def id(self, source: str, table: int, number: int) -> int:
        return (list(self.sources).index(source) * 100 + table) * 10_000 + number

    def insert(self, source: str, table: int, number: int, **more: str) -> None:
        """One row; `more` are SQL values by column."""
        columns = ", ".join(["id", "v", *more])
        values = ", ".join([str(self.id(source, table, number)), f"'row {number}'", *more.values()])
        self.run(source, f"INSERT INTO {self.at(table)} ({columns}) VALUES ({values})")

    def update(self, source: str, table: int, number: int, change: str) -> None:
        self.run(source, f"UPDATE {self.at(table)} SET {change} WHERE id = {self.id(source, table, number)}")

    def delete(self, source: str, table: int, number: int) -> None:
        self.run(source, f"DELETE FROM {self.at(table)} WHERE id = {self.id(source, table, number)}")

    def alter(self, source: str, table: int, change: str) -> None:
        self.run(source, f"ALTER TABLE {self.at(table)} {change}")

    def run(self, source: str, sql: str) -> None:
        self.sources[source].run(sql)

    def files(self) -> TaskFiles:
        route = {"schema-pattern": f"{self.name}_s", "table-pattern": "t_*"}
        routes = {"fold": {**route, "target-schema": f"{self.name}_all", "target-table": "t"}}
        keys = {"shard-mode": "pessimistic", "routes": routes, **self.keys}
        args = (self.folder, self.name, self.sources, self.target, (f"{self.name}_s",), keys, self.instance)
        return TaskFiles(*args, syncer=self.syncer).write()

    @contextmanager
    def copied_late(
        self, source: str, table: int, *changes: str, moves: int | None = None
    ) -> Iterator[Callable[[TaskRun], None]]:
        """A shard that is copied behind those ALTERs and a row behind each; the others before. It is begun in here.

        What it gives lets that run go on with its copy. `moves`: the row of that number comes over from shard 0 then.
        """
        locked = self.sources[source].connection()
        locked.query(f"LOCK TABLES {self.at(table)} WRITE")

        def let(run: TaskRun) -> None:
            (subtask,) = (one for one in run.crew.subtasks if one.source == source)

            def others_are_copied() -> bool:
                progress = subtask.status().progress
                return progress is not None and progress.tables_done == self.tables - 1

            wait_until(others_are_copied, "the others are copied", told=lambda: _readings(run))
            if moves is not None:
                self.delete(source, 0, moves)
                locked.query(f"INSERT INTO {self.at(table)} (id, v) VALUES ({self.id(source, 0, moves)}, 'moved')")
                locked.query(f"OPTIMIZE NO_WRITE_TO_BINLOG TABLE {self.at(table)}")  # no older snapshot can read it
                locked.store_result()
            for number, change in enumerate(changes, 100):
                locked.query(f"ALTER TABLE {self.at(table)} {change}")
                row = f"{self.id(source, table, number)}, 'early'"
                locked.query(f"INSERT INTO {self.at(table)} (id, v) VALUES ({row})")
            locked.query("UNLOCK TABLES")

        try:
            yield let
        finally:
            locked.close()

    def items(self, source: str, table: int) -> int:
        """How many statements wait that the table has met."""
        files = self.files()
        connection = self.target.connection()
        group = load_groups(connection, MetaTables(files.meta, files.name), source).group(
            TableName(f"{self.name}_all", self.prefix)
        )
        connection.close()
        state = group.tables.get(TableName(f"{self.name}_s", f"{self.prefix}_{table}"))
        return len(state.sequence) if state is not None else 0

    def owner(self) -> str:
        """Who runs the DDL that waits, empty where none does."""
        connection = self.target.connection()
        meta = MetaTables(f"meta_{self.name}", self.name)
        keeper = load_keeper(connection, meta, TableName(f"{self.name}_all", self.prefix))
        connection.close()
        return keeper.open.owner if keeper.open is not None else ""

    def target_has(self, table: str) -> bool:
        """Whether the target has a row of that table."""
        schema, name = (part.strip("`") for part in table.split("."))
        found = "SELECT 1 FROM information_schema.TABLES WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s"
        return bool(self.target.query(found, (schema, name))) and bool(self.target.query(f"SELECT 1 FROM {table}"))

    def held(self) -> int:
        """How many source tables have a row of a group that is not resolved."""
        meta = f"`meta_{self.name}`.`{self.name}_syncer_sharding_meta`"
        ((count,),) = self.target.query(f"SELECT COUNT(*) FROM {meta} WHERE NOT is_global")
        return int(count)

    def expected(self) -> list[tuple[Any, ...]]:
        found: list[tuple[Any, ...]] = []
        for source in self.sources:
            names = [
                TableName(schema, table)
                for schema, table in self.sources[source].query(
                    "SELECT TABLE_SCHEMA, TABLE_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA = %s"
                    " AND TABLE_NAME LIKE %s",
                    (f"{self.name}_s", f"{self.prefix}%"),
                )
            ]
            for name in names:
                found += self.sources[source].query(f"SELECT * FROM {name.quoted}")
        return sorted(found, key=lambda row: row[0])

    def merged_rows(self) -> list[tuple[Any, ...]]:
        return sorted(self.target.query(f"SELECT * FROM {self.merged}"), key=lambda row: row[0])

    def wait_in_step(self, run: TaskRun) -> None:
        """Wait until all is read and nothing is held. Raises what a subtask failed with."""
        run.catch_up()

        def in_step() -> bool:
            if run.crew.errors:
                raise run.crew.errors[0]
            return self.held() == 0

        wait_until(in_step, "in step", told=lambda: _readings(run))
        run.catch_up()

    def settle(self, run: TaskRun) -> None:
        """The same, and the merged table then has just the rows of its shards."""
        self.wait_in_step(run)
        assert self.merged_rows() == self.expected()


def _readings(run: TaskRun) -> str:
    return "\n".join(map(str, run.crew.readings()))


def take_out(files: TaskFiles, source: str) -> None:
    """As a master does behind `update-task`."""
    connection = files.target.connection()
    with connection.cursor() as cursor:
        cursor.execute("BEGIN")
        forget_source(cursor, MetaTables(files.meta, files.name), source)
        cursor.execute("COMMIT")
    connection.close()


def ends_at(
    place: str,
    files: TaskFiles,
    spark: SparkSession,
    monkeypatch: pytest.MonkeyPatch,
    during: Callable[[TaskRun], object] = lambda run: None,
) -> bool:
    """Run until the driver ends by an error at that crash point; whether it came there."""
    with monkeypatch.context() as patch:
        die_by_error(patch, place)
        run = TaskRun(files, spark).start()
        during(run)
        found = run.error()
    return isinstance(found, EngineError) and place in str(found)
