"""The lease: one leader, and no change of the store by one that was."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import update

from unshard.errors import ClusterError
from unshard.master import tables
from unshard.master.election import Election
from unshard.master.state import TaskRow
from unshard.master.store import Store


class Hand:
    """A monotonic clock that is set by hand."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    found = Store(f"sqlite:///{tmp_path / 'm.db'}")
    found.open()
    yield found
    found.close()


def election(store: Store, name: str) -> Election:
    """Its lease ends by `end_lease` alone."""
    return Election(store, name, f"{name}:1", 3600.0)


def end_lease(store: Store) -> None:
    with store.transaction() as connection:
        connection.execute(update(tables.LEADER).values(until=1.0))


def test_one_leads_and_the_other_knows_who(store: Store) -> None:
    one, two = election(store, "one"), election(store, "two")
    one.step()
    two.step()
    assert (one.epoch, two.epoch) == (1, 0)
    assert two.leader is not None
    assert (two.leader.name, two.leader.addr) == ("one", "one:1")
    assert [(row.name, row.alive) for row in one.masters()] == [("one", True), ("two", True)]


def test_a_lease_ends_by_the_own_clock_too(store: Store) -> None:
    clock = Hand()
    one = Election(store, "one", "h1:1", 4.0, clock)
    one.step()
    clock.now += 3.9
    assert one.epoch == 1
    clock.now += 0.1
    assert one.epoch == 0
    one.step()
    assert one.epoch == 1  # nobody has taken it meanwhile


def test_a_leader_that_was_slept_past_its_lease_changes_nothing(store: Store) -> None:
    one, two = election(store, "one"), election(store, "two")
    one.step()
    end_lease(store)
    two.step()
    assert two.epoch == 2
    with pytest.raises(ClusterError) as caught, store.writing(one.epoch) as writing:
        writing.put_task(TaskRow("t", "late"))
    assert caught.value.code == "CLUSTER-002"
    assert not store.read().tasks
    one.step()
    assert one.epoch == 0
    assert one.leader is not None
    assert one.leader.name == "two"


def test_a_change_that_fails_on_its_way_leaves_nothing(store: Store) -> None:
    one = election(store, "one")
    one.step()

    def fail() -> None:
        with store.writing(one.epoch) as writing:
            writing.put_task(TaskRow("t", "half"))
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert not store.read().tasks


def test_a_master_that_is_started_again_leads_at_once(store: Store) -> None:
    election(store, "one").step()
    again = election(store, "one")
    again.step()
    assert again.epoch == 2


def test_a_lease_given_back_is_free_at_once(store: Store) -> None:
    one, two = election(store, "one"), election(store, "two")
    one.step()
    one.leave()
    two.step()
    assert (one.epoch, two.epoch) == (0, 2)
    assert [row.alive for row in two.masters()] == [False, True], "it has said that it goes"


def test_two_masters_of_one_name_and_address_do_not_take_the_lease_from_each_other(store: Store) -> None:
    first, second = election(store, "one"), election(store, "one")
    first.step()
    second.step()
    for _ in range(2):
        with pytest.raises(ClusterError, match="CLUSTER-096"):
            first.step()
        second.step()
    assert (first.epoch, first.leader, second.epoch) == (0, None, 2)
    end_lease(store)
    first.step()
    assert first.epoch == 3, "the other one was gone"


def test_a_master_with_the_name_of_one_that_is_alive_elsewhere_takes_no_part(store: Store) -> None:
    first, second = election(store, "one"), Election(store, "one", "elsewhere:1", 3600.0)
    first.step()
    with pytest.raises(ClusterError, match=r"CLUSTER-096.*one:1"):
        second.step()
    first.leave()
    second.step()
    assert second.epoch == 2
    assert [row.addr for row in second.masters()] == ["elsewhere:1"]


def test_an_evicted_master_leads_no_more_until_it_may(store: Store) -> None:
    one, two = election(store, "one"), election(store, "two")
    one.step()
    with pytest.raises(ClusterError) as caught:
        one.evict()
    assert caught.value.code == "CLUSTER-016"
    assert one.epoch == 1
    two.step()
    one.evict()
    one.step()
    assert one.epoch == 0
    again = election(store, "one")
    again.step()
    assert again.epoch == 0
    two.step()
    assert two.epoch == 2
    two.cancel_evict()
    end_lease(store)
    again.step()
    assert again.epoch == 3


def test_a_store_of_a_later_version_is_left_alone(store: Store) -> None:
    with store.transaction() as connection:
        connection.execute(update(tables.VALUES).where(tables.VALUES.c.name == "version").values(value=99))
    with pytest.raises(ClusterError) as caught:
        store.open()
    assert caught.value.code == "CLUSTER-005"


@pytest.mark.parametrize(
    "url", ["nonsense", "mysql://u:a@secret@h:1/d", "postgresql://u@h/d", "mysql://u:secret@h:3306", "sqlserver://x"]
)
def test_an_address_that_is_none(url: str) -> None:
    with pytest.raises(ClusterError) as caught:
        Store(url)
    assert caught.value.code == "CLUSTER-004"
    assert "secret" not in str(caught.value)


def test_a_database_that_is_not_there() -> None:
    with pytest.raises(ClusterError) as caught, Store("mysql://u@127.0.0.1:1/d", "secret").transaction():
        pass
    assert caught.value.code == "CLUSTER-003"
    assert "secret" not in str(caught.value)
