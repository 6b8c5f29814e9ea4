"""Operators and the batch that is under way: each batch is opened by the pending ones, and uses what it has."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from types import SimpleNamespace
from typing import Any, cast

import pytest

from support.held_commits import opened_during_revert
from unshard.errors import SyncError
from unshard.model.position import Location, Position
from unshard.sync.batch.plan import BatchPlan
from unshard.sync.batch.row_counts import Account
from unshard.sync.checkpoint.progress import SyncProgress
from unshard.sync.checkpoint.store import CheckpointStore
from unshard.sync.planning.pending_operators import PendingOperators, Used
from unshard.target import receipts
from unshard.target.meta import MetaTables
from unshard.target.operators import Operator, OperatorKind, give, load_operators, revert
from unshard.target.receipts import Applied
from unshard.target.recorded import Stopped
from unshard.testing.mariadb_server import MariadbServer

pytestmark = pytest.mark.server
THERE = Position("b.000001", 50)


def at(offset: int) -> Location:
    return Location(Position("b.000001", offset), "")


@pytest.fixture
def store(target_server: MariadbServer, schema: str) -> Iterator[CheckpointStore]:
    """The store of a source whose checkpoint is at 4."""
    found = CheckpointStore(target_server.endpoint, MetaTables(schema, "task"), "s1")
    found.claim()
    found.move(at(4), {})
    yield found
    found.drop()


@pytest.fixture
def connection(target_server: MariadbServer, store: CheckpointStore) -> Iterator[Any]:
    """The connection of a user's command."""
    found = target_server.connection()
    yield found
    found.close()


def skip(connection: Any, store: CheckpointStore, position: Position = THERE, source: str = "s1") -> tuple[int, bool]:
    """Give an operator; its number, and whether it is in time."""
    in_time = give(connection, store.meta, source, OperatorKind.SKIP, position, (), "me")
    return load_operators(connection, store.meta, source, every=True)[-1].number, in_time


def states(connection: Any, store: CheckpointStore) -> list[str]:
    return [one.state for one in load_operators(connection, store.meta, "s1", every=True)]


def opened(store: CheckpointStore, *numbers: int) -> bool:
    plan = {"kind": "rows", "operators": numbers, "left_out": []} if numbers else {"kind": "rows"}
    return store.open(at(4), at(100), plan, 1, numbers)


def stop(store: CheckpointStore) -> None:
    store.stopped(Stopped(THERE, "SYNC-004", "refused"))


def test_a_batch_is_opened_by_the_operators_that_are_pending(connection: Any, store: CheckpointStore) -> None:
    skip(connection, store, source="other")
    number, in_time = skip(connection, store)
    assert in_time
    assert not opened(store)
    assert store.batch_id == 0
    assert not opened(store, number, number + 1)
    assert opened(store, number)
    assert store.batch_id == 1


def test_a_batch_is_not_opened_by_one_that_was_taken_back(connection: Any, store: CheckpointStore) -> None:
    number, _ = skip(connection, store)
    assert revert(connection, store.meta, "s1", THERE, "me")
    assert not opened(store, number)
    assert opened(store)


def test_a_batch_that_waits_for_a_command_is_opened_by_what_that_leaves(
    connection: Any, store: CheckpointStore, target_server: MariadbServer
) -> None:
    number, _ = skip(connection, store)
    assert not opened_during_revert(target_server, connection, store, THERE, lambda: opened(store, number))


def test_a_plan_is_stored_anew_by_the_operators_that_are_pending(connection: Any, store: CheckpointStore) -> None:
    assert opened(store)
    number, _ = skip(connection, store)
    assert not store.note({"kind": "rows"}, operators=[])
    assert store.note({"kind": "rows"}, operators=[number])


def test_one_that_comes_too_late_says_so(connection: Any, store: CheckpointStore) -> None:
    assert opened(store)
    assert skip(connection, store)[1] is False
    assert skip(connection, store, Position("b.000001", 100))[1] is True
    stop(store)
    assert skip(connection, store)[1] is True, "the next start takes it up"


def test_one_that_is_in_use_is_not_taken_back(connection: Any, store: CheckpointStore) -> None:
    number, _ = skip(connection, store)
    assert opened(store, number)
    assert not revert(connection, store.meta, "s1", THERE, "me")
    skip(connection, store)
    assert states(connection, store) == ["pending", "pending"]
    store.used = {number: "left out"}
    store.close(at(100), {}, Account())
    assert states(connection, store) == ["applied", "pending"]
    assert revert(connection, store.meta, "s1", THERE, "me")
    assert states(connection, store) == ["applied", "reverted"]


@pytest.mark.parametrize("begun", [False, True])
def test_one_of_a_batch_that_an_error_has_stopped(begun: bool, connection: Any, store: CheckpointStore) -> None:
    """A begun batch is finished by its plan; another one is planned again."""
    number, _ = skip(connection, store)
    assert opened(store, number)
    if begun:
        with connection.cursor() as cursor:
            own = store.meta, "s1", 0, store.epoch, store.batch_id
            cursor.execute(receipts.advance_statement(*own, Applied(0), Applied(1)))
    stop(store)
    assert revert(connection, store.meta, "s1", THERE, "me") is not begun


def test_one_of_a_statement_is_taken_back(connection: Any, store: CheckpointStore) -> None:
    number, _ = skip(connection, store)
    assert store.open(at(4), at(100), {"kind": "ddl", "operator": number}, 0)
    assert revert(connection, store.meta, "s1", THERE, "me")


def test_a_batch_is_planned_again_by_the_operators_that_came_meanwhile(connection: Any, store: CheckpointStore) -> None:
    """Also where their absence stops the plan. One whose position was passed is settled."""
    pending = PendingOperators(cast(SyncProgress, SimpleNamespace(store=store, source="s1", saved=at(60))))
    plan = cast(BatchPlan, SimpleNamespace(shape=SimpleNamespace(partitions=1)))
    seen: list[list[Position]] = []

    def planned(operators: Sequence[Operator]) -> tuple[BatchPlan, Used]:
        seen.append([one.position for one in operators])
        if len(seen) == 1:
            skip(connection, store)
        if len(seen) == 2:
            skip(connection, store, Position("b.000001", 90))
            raise SyncError("SYNC-068")
        return plan, {one.number: "left out" for one in operators}

    assert pending.opened(planned, at(60), at(100), lambda plan: {"kind": "rows"}) is plan
    assert seen == [[], [], [Position("b.000001", 90)]]
    assert states(connection, store) == ["missed", "pending"]
    assert list(store.used.values()) == ["left out"]


def test_a_batch_that_no_operator_helps_is_not_opened(store: CheckpointStore) -> None:
    pending = PendingOperators(cast(SyncProgress, SimpleNamespace(store=store, source="s1", saved=at(60))))

    def planned(operators: Sequence[Operator]) -> tuple[BatchPlan, Used]:
        raise SyncError("SYNC-068")

    with pytest.raises(SyncError, match="SYNC-068"):
        pending.opened(planned, at(60), at(100), lambda plan: {"kind": "rows"})
