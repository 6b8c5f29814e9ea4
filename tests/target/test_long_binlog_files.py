"""Positions beyond 4 GiB in a task's records: a long transaction makes a binlog file longer than its limit."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from support.dm_records import CHECKPOINT
from unshard.model.position import Location, Position
from unshard.sync.checkpoint.store import CheckpointStore
from unshard.target.checkpoint import ExitPoint
from unshard.target.meta import MetaTables
from unshard.target.validation import RUNNING, load_state, move_location, set_stage
from unshard.target.validation_tables import create_validation
from unshard.testing.mariadb_server import MariadbServer

pytestmark = pytest.mark.server
FAR = Location(Position("b.000001", 2**32 + 5), "")
FARTHER = Location(Position("b.000001", 2**32 + 900), "")
NARROW = "MODIFY binlog_pos INT UNSIGNED, MODIFY exit_safe_binlog_pos INT UNSIGNED DEFAULT 0"


@pytest.fixture
def store(target_server: MariadbServer, schema: str) -> Iterator[CheckpointStore]:
    target_server.run(f"CREATE DATABASE {schema}")
    found = CheckpointStore(target_server.endpoint, MetaTables(schema, "task"), "s1")
    yield found
    found.leave()


def moved(store: CheckpointStore) -> None:
    """The checkpoint moves to such a place and is read again, with an exit point too."""
    store.claim()
    store.move(FAR, {})
    found = store.checkpoint()
    assert found is not None
    assert (found.location, found.exit_point) == (FAR, None)
    store.exit_point = ExitPoint(FARTHER, "a reason")
    store.move(FAR, {})
    found = store.checkpoint()
    assert found is not None
    assert (found.location, found.exit_point) == (FAR, ExitPoint(FARTHER, "a reason"))


def test_a_checkpoint_is_there(store: CheckpointStore) -> None:
    moved(store)


def test_a_checkpoint_is_there_in_a_table_of_an_earlier_version(
    store: CheckpointStore, target_server: MariadbServer
) -> None:
    store.claim()
    near = Location(Position("b.000001", 4), "")
    store.move(near, {})
    target_server.run(f"ALTER TABLE {store.meta.checkpoint} {NARROW}")
    found, _ = store.claim()
    assert found is not None
    assert found.location == near
    moved(store)


def test_a_checkpoint_is_there_in_a_table_of_dm(store: CheckpointStore, target_server: MariadbServer) -> None:
    target_server.run(CHECKPOINT.format(name=store.meta.checkpoint))
    moved(store)


def test_two_sources_widen_it_at_once(store: CheckpointStore, target_server: MariadbServer) -> None:
    store.claim()
    target_server.run(f"ALTER TABLE {store.meta.checkpoint} {NARROW}")
    others = [CheckpointStore(target_server.endpoint, store.meta, f"s{number}") for number in range(2, 6)]
    with ThreadPoolExecutor(len(others)) as threads:
        list(threads.map(moved, others))
    for other in others:
        other.leave()


@pytest.mark.parametrize("narrow", [False, True])
def test_a_validation_is_there(narrow: bool, store: CheckpointStore, target_server: MariadbServer) -> None:
    store.claim()
    connection = target_server.connection()
    create_validation(connection, store.meta)
    if narrow:
        table = store.meta.named("validator_checkpoint")
        target_server.run(f"ALTER TABLE {table} MODIFY binlog_pos INT UNSIGNED DEFAULT 0")
        create_validation(connection, store.meta)
    set_stage(connection, store.meta, "s1", RUNNING, "fast")
    with connection.cursor() as cursor:
        move_location(cursor, store.meta, "s1", FAR, (1, 0, 0))
    state = load_state(connection, store.meta, "s1")
    assert state is not None
    assert state.location == FAR
    connection.close()
