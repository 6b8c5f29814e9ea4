"""A task that comes to grief, and what its user does then by the advice of the error, to the end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from support.task_runs import TaskFiles, TaskRun
from unshard.checks.run import check_task, require
from unshard.config.files import load_source, load_task
from unshard.config.subtask import SubtaskConfig, plan_subtasks
from unshard.errors import UnshardError
from unshard.model.table import TableName
from unshard.operate.reset import look, undo
from unshard.testing.compare import assert_equal
from unshard.testing.throwaway_server import ThrowawayServer
from unshard.worker.subtask import Subtask


@dataclass
class Walk:
    """A task on the table `name`, with rows.

    `tables` are merged with it, and replace it as the source's tables. `others` are further tables.
    """

    name: TableName
    files: TaskFiles
    source: ThrowawayServer
    target: ThrowawayServer
    spark: SparkSession
    tables: tuple[TableName, ...] = ()
    others: list[TableName] = field(default_factory=list)

    @classmethod
    def begin(
        cls, source: ThrowawayServer, target: ThrowawayServer, schema: str, spark: SparkSession, folder: Path
    ) -> Walk:
        """Make the table and the task, which has not begun."""
        source.run(
            f"CREATE DATABASE {schema}",
            f"CREATE TABLE {schema}.t (id INT PRIMARY KEY, v VARCHAR(20))",
            f"INSERT INTO {schema}.t VALUES (1, 'a'), (2, 'b')",
        )
        files = TaskFiles(folder, schema, {"s1": source}, target, (schema,)).write()
        return cls(TableName(schema, "t"), files, source, target, spark)

    @property
    def relay(self) -> Path:
        return self.files.folder / "relay"

    @property
    def dump(self) -> Path:
        (found,) = self.files.folder.glob("dump*")
        return found

    def subtask(self) -> Subtask:
        """The task's only one, which has begun, not more."""
        (subtask,) = TaskRun(self.files, self.spark).crew.subtasks
        subtask.beginning.checkpoint()
        return subtask

    def dumped(self) -> Subtask:
        subtask = self.subtask()
        assert subtask.dump is not None
        subtask.dump.run()
        return subtask

    def loaded(self) -> None:
        subtask = self.dumped()
        assert subtask.load is not None
        subtask.load.run()

    def followed(self) -> None:
        with TaskRun(self.files, self.spark) as run:
            run.catch_up()

    def fails(self) -> str:
        """The code of the error that a run ends with."""
        return self.failed().code

    def failed(self) -> UnshardError:
        """The error that a run ends with, or that it can't begin for."""
        try:
            run = TaskRun(self.files, self.spark)
        except UnshardError as refused:
            return refused
        with run.failing():  # also where it does not fail: no thread of it outlives the test
            error = run.error()
        assert isinstance(error, UnshardError)
        return error

    def reset(self) -> None:
        """`unshard run --reset`, up to where the run begins."""
        configs = self.configs()
        undo(configs, look(configs))
        require(check_task(load_task(self.files.task_path), configs))

    def configs(self) -> tuple[SubtaskConfig, ...]:
        sources = [load_source(path) for path in self.files.source_paths]
        return plan_subtasks(load_task(self.files.task_path), sources)

    def change(self, **fields: Any) -> None:
        """Write the task's files with other contents (fields of `TaskFiles`)."""
        self.files = replace(self.files, **fields).write()

    def merges(self, columns: str) -> None:
        """A second table with those columns, which is merged with the first."""
        self.source.run(f"CREATE TABLE {self.name}_2 ({columns})")
        self.tables = (self.name, TableName(self.name.schema, f"{self.name.table}_2"))
        route = {"schema-pattern": self.name.schema, "table-pattern": "t*"}
        routes = {"fold": {**route, "target-schema": self.name.schema, "target-table": self.name.table}}
        keys = {"shard-mode": "pessimistic", "routes": routes}
        self.change(keys=keys, instance={"route-rules": ["fold"]})

    def also(self, table: str, definition: str) -> TableName:
        """Make another table of the source, which the task takes too."""
        name = TableName(self.name.schema, table)
        self.source.run("SET SESSION sql_mode = ''", f"CREATE TABLE {name} {definition}")
        self.others.append(name)
        return name

    def write(self, statements: Sequence[str]) -> None:
        """Run statements on the source; `{0}` is the table, `{1}` the first of the others."""
        self.source.run(*(one.format(self.name, *self.others) for one in statements))

    def ends_equal(self, late: int = 1000) -> None:
        with TaskRun(self.files, self.spark) as run:
            run.catch_up()
            self.source.run(f"INSERT INTO {self.name} (id, v) VALUES ({late}, 'late')")
            run.catch_up()
        assert_equal([(self.source, name) for name in self.tables or (self.name,)], (self.target, self.name))
        for name in self.others:
            assert_equal([(self.source, name)], (self.target, name))
