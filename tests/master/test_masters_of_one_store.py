"""Three masters on one MariaDB: one leads, the others pass on, and the next one knows all that it knew."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from threading import Thread
from typing import Any

import pytest
from cluster_rig import FakeWorker, source_text, task_text
from served_master import Knock, Served, served
from sqlalchemy import event, update

from support.waiting import wait_until
from unshard.api.verbs import PATH
from unshard.errors import ClusterError
from unshard.master import tables
from unshard.master.election import Election
from unshard.master.state import TaskRow
from unshard.master.store import Store
from unshard.testing.mariadb_server import MariadbServer

LEASE = TTL = 3600.0


@pytest.fixture
def url(target_server: MariadbServer, schema: str) -> str:
    target_server.query(f"CREATE DATABASE {schema}")
    return f"mysql://root@127.0.0.1:{target_server.port}/{schema}"


@pytest.fixture
def masters(url: str) -> Iterator[list[Served]]:
    with three_masters(url) as found:
        yield found


@contextmanager
def three_masters(url: str, silent: float = 60.0) -> Iterator[list[Served]]:
    """They look at the lease only in `leader`, and no lease ends but by `dies`."""
    with ExitStack() as stack:
        found = [stack.enter_context(served(url, f"m{number}", LEASE, TTL, silent)) for number in range(3)]
        for one in found:
            one.master._stop.set()
            one.master._thread.join()
        yield found


def leader(masters: list[Served]) -> Served:
    """Of these the one that leads, once one does and the others know it."""

    def one_leads() -> bool:
        for one in masters:
            one.master.step()
        return all(one.master.election.leader is not None for one in masters)

    wait_until(one_leads, "one leads")
    (found,) = (one for one in masters if one.master.election.epoch)
    return found


def dies(one: Served) -> None:
    """Its lease is over, by its own clock too: it has renewed it no more, and gives nothing back."""
    with one.master.cluster.store.transaction() as connection:
        connection.execute(update(tables.LEADER).values(until=1.0))
    one.master.election._until = 0.0


def test_the_next_leader_knows_all_that_the_last_one_knew(masters: list[Served]) -> None:
    first = leader(masters)
    worker = FakeWorker("w1", Knock([one.base for one in masters]))
    for one in masters:
        one.workers[worker.addr] = worker
    wait_until(lambda: worker.beat() is not None, "a beat that is heard")
    follower = next(one for one in masters if one is not first)
    assert follower.ask("operate-source", op="create", config=[source_text("a")])["sources"][0]["worker"] == "w1"
    assert follower.ask("start-task", task=task_text("t", "a"))["result"]
    before, epoch = first.master.cluster.state, first.master.cluster.state.bounds["a"].epoch
    dies(first)
    second = leader([one for one in masters if one is not first])
    wait_until(lambda: worker.beat() is not None, "a beat that is heard")
    assert second.master.cluster.state == before
    assert second.master.cluster.state.bounds["a"].epoch == epoch, "the worker was heard in time: it keeps its source"
    assert second.ask("pause-task", name="t")["result"]
    with pytest.raises(ClusterError) as caught, first.master.cluster.store.writing(1) as writing:
        writing.put_task(TaskRow("late", ""))
    assert caught.value.code == "CLUSTER-002"


def test_a_leader_frozen_in_the_middle_of_a_change_keeps_no_other_from_leading(url: str) -> None:
    """It holds the lock of the leader's row; the database ends its session, and its change is lost whole."""
    led: list[Served] = []

    def change(store: Store, epoch: int, others: list[Served]) -> None:
        with store.writing(epoch) as writing:
            writing.put_task(TaskRow("half", ""))
            led.append(leader(others))
            writing.put_task(TaskRow("late", ""))

    with three_masters(url, silent=3.0) as masters:
        first = leader(masters)
        store, epoch = first.master.cluster.store, first.master.election.epoch
        dies(first)
        with pytest.raises(ClusterError) as caught:
            change(store, epoch, [one for one in masters if one is not first])
        assert caught.value.code == "CLUSTER-003"
        assert not led[0].master.cluster.state.tasks
        assert not store.read().tasks, "it speaks to the database again"


def test_an_evicted_leader_hands_over_and_the_others_tell_of_it(masters: list[Served]) -> None:
    first = leader(masters)
    assert masters[-1].ask("operate-leader", op="evict")["result"]
    second = leader([one for one in masters if one is not first])
    wait_until(lambda: not first.master.election.epoch, "it knows that it leads no more")

    def told() -> bool:
        first.master.step()
        answer = first.client.post(f"{PATH}/list-member", json={"leader": True}).json()
        return bool(answer["result"]) and answer["members"][0]["leader"]["name"] == second.master.name

    wait_until(told, "the evicted one tells who leads")
    assert first.ask("operate-leader", op="cancel-evict")["result"]


def test_names_of_many_bytes_and_quotes_are_kept_as_they_are(url: str) -> None:
    with served(url, "m") as one:
        name, text = "Käse`'\"; DROP TABLE x; -- \\" + "ü" * 20, "név: 'ő' -- 😀"
        with one.master.cluster.change() as writing:
            writing.put_task(TaskRow(name, text))
            writing.put_task(TaskRow(name.upper(), "other"))
        again = Store(url)
        assert again.read().tasks[name].text == text
        assert len(again.read().tasks) == 2
        again.close()


def test_an_eviction_during_the_step_of_the_election_is_not_undone(url: str, target_server: MariadbServer) -> None:
    """The step records that the master is alive. It may have read by then that the master is not evicted."""
    store = Store(url)
    store.open()
    one, two = (Election(store, name, f"{name}:1", 3600.0) for name in ("one", "two"))
    one.step()
    two.step()
    evicts = Thread(target=one.evict)

    def has_read(connection: Any, cursor: Any, statement: str, *more: Any) -> None:
        del connection, cursor, more
        if statement.startswith("SELECT") and "unshard_masters" in statement and evicts.ident is None:
            evicts.start()
            waits = "SELECT 1 FROM information_schema.processlist WHERE info LIKE 'UPDATE unshard_masters SET evicted%'"
            wait_until(lambda: not evicts.is_alive() or bool(target_server.query(waits)), "it is evicted, or waits")

    event.listen(store._engine, "after_cursor_execute", has_read)
    one.step()
    evicts.join()
    event.remove(store._engine, "after_cursor_execute", has_read)
    assert [(row.name, row.evicted) for row in two.masters()] == [("one", True), ("two", False)]
    one.step()
    two.step()
    assert (bool(one.epoch), bool(two.epoch)) == (False, True)
    store.close()


def test_the_clock_of_the_store_does_not_follow_summer_time(url: str) -> None:
    """Twice a year the server's local time jumps, and one hour of it stands for two."""
    store = Store(url)
    store.open()
    with store.transaction() as connection:
        assert connection.exec_driver_sql("SELECT @@SESSION.time_zone").scalar_one() == "+00:00"
    store.close()
