"""Tables that the block-allow list takes in a later run of a task, and such that it left out for a while."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from support.operated_tasks import ctl, go_on, stopped_run
from support.task_runs import TaskFiles
from unshard.errors import SyncError
from unshard.model.table import TableName
from unshard.testing.compare import assert_equal
from unshard.testing.mariadb_server import MariadbServer

pytestmark = [pytest.mark.server, pytest.mark.spark]


@dataclass
class Orders:
    """A task whose list names its tables one by one: tables `order_N` (id, v), all merged into `orders`."""

    spark: SparkSession
    source: MariadbServer
    target: MariadbServer
    schema: str
    folder: Path
    mode: str = "all"
    files: TaskFiles = field(init=False)

    def __post_init__(self) -> None:
        self.source.run(f"CREATE DATABASE {self.schema}")
        self.files = TaskFiles(
            self.folder,
            self.schema,
            {"s1": self.source},
            self.target,
            (self.schema,),
            instance={"route-rules": ["one"]},
        )

    def make(self, number: int, columns: str = "id INT PRIMARY KEY, v VARCHAR(20)") -> None:
        name = f"{self.schema}.order_{number}"
        self.source.run(f"CREATE TABLE {name} ({columns})", f"INSERT INTO {name} VALUES ({number}, 'x')")

    def take(self, *numbers: int, **syncer: bool) -> None:
        """Write the task's file with a list of these tables."""
        names = [{"db-name": self.schema, "tbl-name": f"order_{number}"} for number in numbers]
        route = {"schema-pattern": self.schema, "table-pattern": "order_*"}
        keys = {
            "task-mode": self.mode,
            "block-allow-list": {"own": {"do-tables": names}},
            "routes": {"one": {**route, "target-schema": self.schema, "target-table": "orders"}},
        }
        self.files = replace(self.files, keys=keys, syncer=syncer).write()

    def go_on(self) -> None:
        go_on(self.files, self.spark)

    def stops(self) -> SyncError:
        error = stopped_run(self.files, self.spark)
        assert isinstance(error, SyncError), error
        return error

    def insert(self, number: int, row: int, text: str = "later") -> None:
        self.source.run(f"INSERT INTO {self.schema}.order_{number} VALUES ({row}, '{text}')")

    def copy_by_hand(self, number: int) -> None:
        for row in self.source.query(f"SELECT * FROM {self.schema}.order_{number}"):
            self.target.run(f"INSERT INTO {self.schema}.orders VALUES {row}")

    def give_structure(self, number: int) -> None:
        """`binlog-schema update`, from the source as it is."""
        task, source = str(self.files.task_path), str(self.files.source_paths[0])
        ctl("binlog-schema", "update", task, self.schema, f"order_{number}", "--from-source", "-s", source)

    def assert_merged(self, *numbers: int) -> None:
        names = [(self.source, TableName(self.schema, f"order_{number}")) for number in numbers]
        assert_equal(names, (self.target, TableName(self.schema, "orders")))


@pytest.fixture
def orders(
    spark: SparkSession, source_server: MariadbServer, target_server: MariadbServer, schema: str, tmp_path: Path
) -> Orders:
    return Orders(spark, source_server, target_server, schema, tmp_path)


def test_a_table_that_was_not_copied_stops_the_task_until_a_human_has_copied_it(orders: Orders) -> None:
    """The advice of SYNC-084, to its end. A table that the log makes later is followed as ever."""
    orders.make(1)
    orders.make(9)
    orders.take(1)
    orders.go_on()
    orders.take(1, 2, 9)
    orders.make(2)
    orders.go_on()
    orders.insert(9, 90)
    error = orders.stops()
    assert (error.code, error.where.table) == ("SYNC-084", f"{orders.schema}.order_9")
    orders.insert(9, 91)
    assert orders.stops().code == "SYNC-084"
    orders.copy_by_hand(9)
    orders.give_structure(9)
    orders.take(1, 2, 9, **{"safe-mode": True})
    orders.go_on()
    orders.take(1, 2, 9)
    orders.insert(9, 92)
    orders.go_on()
    orders.assert_merged(1, 2, 9)


@pytest.mark.scenarios
def test_it_may_be_left_out_again(orders: Orders) -> None:
    orders.make(1)
    orders.make(9)
    orders.take(1)
    orders.go_on()
    orders.take(1, 9)
    orders.insert(9, 90)
    assert orders.stops().code == "SYNC-084"
    orders.take(1)
    orders.insert(1, 11)
    orders.go_on()
    orders.assert_merged(1)


@pytest.mark.scenarios
def test_changes_of_a_table_that_was_left_out_for_a_while_are_missing(orders: Orders) -> None:
    """Its structure from before is of no use either: it has been altered meanwhile, and that was not followed."""
    for number in (1, 2):
        orders.make(number, "id INT PRIMARY KEY, v ENUM('x', 'a', 'b')")
    orders.take(1, 2)
    orders.go_on()
    orders.take(1)
    orders.source.run(f"ALTER TABLE {orders.schema}.order_2 MODIFY v ENUM('a', 'x', 'b')")
    orders.insert(1, 11, "b")
    orders.go_on()
    orders.take(1, 2)
    orders.insert(2, 22, "a")
    assert orders.stops().code == "SYNC-084"
    orders.target.run(f"DELETE FROM {orders.schema}.orders WHERE id IN (2, 22)")
    orders.copy_by_hand(2)
    orders.give_structure(2)
    orders.take(1, 2, **{"safe-mode": True})
    orders.go_on()
    orders.assert_merged(1, 2)


@pytest.mark.scenarios
def test_a_list_that_left_a_table_out_before_anything_came_changes_nothing(orders: Orders) -> None:
    """Without a step in the log under the other list the record of the table is as good as before."""
    orders.make(1)
    orders.make(2)
    orders.take(1, 2)
    orders.go_on()
    orders.take(1)
    orders.go_on()
    orders.take(1, 2)
    orders.insert(2, 22)
    orders.go_on()
    orders.assert_merged(1, 2)


@pytest.mark.scenarios
def test_without_a_copy_the_first_list_counts(orders: Orders) -> None:
    """Of a task without a copy a human has brought the rows of each table that the first list takes."""
    orders.mode = "incremental"
    orders.make(1)
    orders.make(2)
    orders.make(9)
    orders.target.run(
        f"CREATE DATABASE {orders.schema}", f"CREATE TABLE {orders.schema}.orders (id INT PRIMARY KEY, v VARCHAR(20))"
    )
    orders.copy_by_hand(1)
    orders.copy_by_hand(2)
    orders.take(1, 2)
    orders.go_on()
    orders.insert(1, 11)
    orders.go_on()
    orders.take(1, 2, 9)
    orders.insert(2, 22)
    orders.go_on()
    orders.assert_merged(1, 2)
    orders.insert(9, 90)
    assert orders.stops().code == "SYNC-084"
