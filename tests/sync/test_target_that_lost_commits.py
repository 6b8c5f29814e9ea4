"""A target that has lost commits which it had confirmed, while the process that made them lives."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.sql import SparkSession

from support.lost_commits import Kept
from support.task_runs import TaskFiles, TaskRun
from unshard.ddl.pieces import StatementRules
from unshard.errors import SyncError
from unshard.model.position import Location, Position
from unshard.model.table import TableName
from unshard.sync.batch.row_counts import Account
from unshard.sync.checkpoint.store import CheckpointStore
from unshard.sync.sharding.coordinator import ShardingGroups, refuse_held
from unshard.target import receipts
from unshard.target.meta import MetaTables
from unshard.target.receipts import Applied
from unshard.testing.compare import assert_equal
from unshard.testing.mariadb_server import MariadbServer

pytestmark = pytest.mark.server


def at(offset: int) -> Location:
    return Location(Position("b.000001", offset), "")


@pytest.fixture
def store(target_server: MariadbServer, schema: str) -> Iterator[CheckpointStore]:
    """Of a source whose first batch is closed at 100."""
    found = CheckpointStore(target_server.endpoint, MetaTables(schema, "task"), "s1")
    found.claim()
    found.move(at(4), {})
    found.open(at(4), at(100), {"kind": "rows"}, 2)
    apply(target_server, found)
    found.chunks = 2
    found.close(at(100), {}, Account())
    yield found
    found.drop()


def apply(target: MariadbServer, store: CheckpointStore) -> None:
    """One chunk of each of two partitions."""
    for part in (0, 1):
        own = store.meta, "s1", part, store.epoch, store.batch_id
        target.run(receipts.advance_statement(*own, Applied(0), Applied(1)))


def refused(action: str, store: CheckpointStore) -> None:
    actions: dict[str, Callable[[], object]] = {
        "open": lambda: store.open(at(200), at(300), {"kind": "rows"}, 2),
        "close": lambda: store.close(at(200), {}, Account()),
        "move": lambda: store.move(at(300), {}),
        "applied": lambda: store.applied(2),
        "in one": lambda: store.in_one(lambda cursor: None),
    }
    with pytest.raises(SyncError, match="SYNC-079"):
        actions[action]()


def test_a_batch_that_lacks_a_chunk_is_not_closed(target_server: MariadbServer, store: CheckpointStore) -> None:
    store.open(at(100), at(200), {"kind": "rows"}, 2)
    apply(target_server, store)
    target_server.run(f"UPDATE {store.meta.partition} SET chunk = 0 WHERE part = 1")
    store.chunks = 2
    refused("close", store)
    checkpoint = store.checkpoint()
    assert checkpoint is not None
    assert checkpoint.location == at(100)


@pytest.mark.parametrize("action", ["open", "move"])
def test_a_batch_that_the_target_lost_is_not_passed_over(
    action: str, target_server: MariadbServer, store: CheckpointStore, schema: str
) -> None:
    kept = Kept(target_server, f"{schema}_kept", [store.meta.batch, store.meta.partition, store.meta.checkpoint])
    store.open(at(100), at(200), {"kind": "rows"}, 2)
    apply(target_server, store)
    store.chunks = 2
    store.close(at(200), {}, Account())
    kept.bring_back()
    refused(action, store)


@pytest.mark.parametrize("action", ["open", "move", "in one"])
def test_a_move_that_the_target_lost(
    action: str, target_server: MariadbServer, store: CheckpointStore, schema: str
) -> None:
    """Written by it are the tables whose changes wait for a DDL: without that the next checkpoint would pass them."""
    kept = Kept(target_server, f"{schema}_kept", [store.meta.batch, store.meta.partition, store.meta.checkpoint])
    store.move(at(200), {})
    kept.bring_back()
    refused(action, store)


def test_another_write_that_the_target_lost(target_server: MariadbServer, store: CheckpointStore, schema: str) -> None:
    kept = Kept(target_server, f"{schema}_kept", [store.meta.batch, store.meta.partition, store.meta.checkpoint])
    store.in_one(lambda cursor: None)
    kept.bring_back()
    refused("move", store)


@pytest.mark.parametrize("action", ["open", "move", "in one", "applied"])
def test_a_claim_that_the_target_lost(
    action: str, target_server: MariadbServer, store: CheckpointStore, schema: str
) -> None:
    """The epoch there is an earlier one: nobody else has taken the source over."""
    kept = Kept(target_server, f"{schema}_kept", [store.meta.batch, store.meta.partition, store.meta.checkpoint])
    store.claim()
    kept.bring_back()
    refused(action, store)


def test_a_later_claim_is_another_process(target_server: MariadbServer, store: CheckpointStore) -> None:
    CheckpointStore(target_server.endpoint, store.meta, "s1").claim()
    with pytest.raises(SyncError, match="SYNC-001"):
        store.move(at(300), {})
    with pytest.raises(SyncError, match="SYNC-001"):
        store.applied(2)


def test_a_move_whose_answer_was_lost_is_made_once_more(target_server: MariadbServer, store: CheckpointStore) -> None:
    store.moves -= 1
    store.move(at(200), {})
    store.move(at(300), {})
    checkpoint = store.checkpoint()
    assert checkpoint is not None
    assert checkpoint.location == at(300)


def test_records_of_the_version_before_are_counted_from_nought(
    target_server: MariadbServer, store: CheckpointStore
) -> None:
    target_server.run(f"ALTER TABLE {store.meta.batch} DROP COLUMN moves")
    store.claim()
    assert store.moves == 0
    store.move(at(200), {})
    assert target_server.query(f"SELECT moves FROM {store.meta.batch}") == [(1,)]


@pytest.mark.parametrize("sharded", [True, False])
def test_a_checkpoint_whose_waiting_tables_are_lost(store: CheckpointStore, *, sharded: bool) -> None:
    store.held = at(100)
    store.move(at(200), {})
    rules = StatementRules(lambda name: True, lambda name: True, lambda name: name, lambda name: name)
    plans: Any = SimpleNamespace(held={})
    groups = ShardingGroups(store, rules, plans, lambda name: None)
    with pytest.raises(SyncError, match="SYNC-086"):
        groups.restore([]) if sharded else refuse_held(store)


@pytest.mark.parametrize("action", ["close", "applied"])
def test_a_batch_that_is_not_open_there_any_more(
    action: str, target_server: MariadbServer, store: CheckpointStore, schema: str
) -> None:
    kept = Kept(target_server, f"{schema}_kept", [store.meta.batch, store.meta.partition, store.meta.checkpoint])
    store.open(at(100), at(200), {"kind": "rows"}, 2)
    kept.bring_back()
    refused(action, store)


def test_a_late_attempt_of_an_earlier_batch_is_told_apart(store: CheckpointStore) -> None:
    store.open(at(100), at(200), {"kind": "rows"}, 2)
    store.batch_id -= 1
    with pytest.raises(SyncError, match="SYNC-001"):
        store.applied(2)


def test_the_close_of_a_batch_that_the_target_lost(
    target_server: MariadbServer, store: CheckpointStore, schema: str
) -> None:
    store.open(at(100), at(200), {"kind": "rows"}, 2)
    apply(target_server, store)
    kept = Kept(target_server, f"{schema}_kept", [store.meta.batch, store.meta.partition, store.meta.checkpoint])
    store.chunks = 2
    store.close(at(200), {}, Account())
    kept.bring_back()
    refused("open", store)


@pytest.mark.spark
def test_the_next_start_applies_again_what_the_target_lost(
    spark: SparkSession, source_server: MariadbServer, target_server: MariadbServer, schema: str, tmp_path: Path
) -> None:
    name = TableName(schema, "t")
    source_server.run(
        f"CREATE DATABASE {schema}",
        f"CREATE TABLE {schema}.t (id INT PRIMARY KEY, v INT)",
        f"INSERT INTO {schema}.t VALUES (1, 1)",
    )
    files = TaskFiles(tmp_path, schema, {"s1": source_server}, target_server, (schema,)).write()
    with TaskRun(files, spark) as run:
        source_server.run(f"INSERT INTO {schema}.t VALUES (2, 1)")
        run.catch_up()
        asked = "SELECT TABLE_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA = %s"
        meta = [f"meta_{schema}.{table}" for (table,) in target_server.query(asked, (f"meta_{schema}",))]
        kept = Kept(target_server, f"{schema}_kept", [str(name), *meta])
        source_server.run(f"INSERT INTO {schema}.t VALUES (3, 1)", f"UPDATE {schema}.t SET v = 2 WHERE id = 1")
        run.catch_up()
        kept.bring_back()
        source_server.run(f"INSERT INTO {schema}.t VALUES (4, 1)")
        error = run.error()
        assert isinstance(error, SyncError)
        assert error.code == "SYNC-079"
        run.crew.errors.clear()
    assert target_server.query(f"SELECT * FROM {schema}.t ORDER BY id") == [(1, 1), (2, 1)]
    with TaskRun(files, spark) as run:
        run.catch_up()
    assert_equal([(source_server, name)], (target_server, name))


@pytest.mark.spark
@pytest.mark.scenarios
def test_tables_whose_changes_wait_for_a_ddl_that_the_target_lost(
    spark: SparkSession, source_server: MariadbServer, target_server: MariadbServer, schema: str, tmp_path: Path
) -> None:
    first, second = (f"{schema}.t{number}" for number in (1, 2))
    merged = TableName(schema, "t")
    source_server.run(
        f"CREATE DATABASE {schema}",
        *(f"CREATE TABLE {name} (id INT PRIMARY KEY, v INT)" for name in (first, second)),
        f"INSERT INTO {first} VALUES (1, 1)",
        f"INSERT INTO {second} VALUES (1001, 1)",
    )
    pattern = {"schema-pattern": schema, "table-pattern": "t*"}
    routes = {"fold": {**pattern, "target-schema": schema, "target-table": "t"}}
    keys = {"shard-mode": "pessimistic", "routes": routes}
    servers, instance = {"s1": source_server}, {"route-rules": ["fold"]}
    files = TaskFiles(tmp_path, schema, servers, target_server, (schema,), keys=keys, instance=instance).write()
    with TaskRun(files, spark) as run:
        source_server.run(f"INSERT INTO {second} VALUES (1002, 1)")
        run.catch_up()
        asked = "SELECT TABLE_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA = %s"
        meta = [f"meta_{schema}.{table}" for (table,) in target_server.query(asked, (f"meta_{schema}",))]
        kept = Kept(target_server, f"{schema}_kept", [str(merged), *meta])
        source_server.run(f"ALTER TABLE {first} ADD INDEX (v)")
        run.catch_up()
        kept.bring_back()
        source_server.run(f"INSERT INTO {first} VALUES (2, 1)", f"INSERT INTO {second} VALUES (1003, 1)")
        error = run.error()
        assert isinstance(error, SyncError)
        assert error.code == "SYNC-079"
        run.crew.errors.clear()
    source_server.run(f"ALTER TABLE {second} ADD INDEX (v)", f"INSERT INTO {first} VALUES (3, 1)")
    with TaskRun(files, spark) as run:
        run.catch_up()
    assert_equal([(source_server, TableName(schema, f"t{number}")) for number in (1, 2)], (target_server, merged))
