"""Three masters, four workers, three sources: one after the other dies, freezes or is cut off, and nothing is lost.

After each: equal rows, and each change just once in the target's own binlog.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest
from shop import SHARDS, TARGET, Shop, until

from unshard.api.verbs import ShardDdlLock
from unshard.master.tables import SUBTASKS
from unshard.testing.cluster import Cluster, Member
from unshard.testing.hold import row_held, stands_still
from unshard.testing.proxy import FaultProxy
from unshard.testing.servers import MariadbServer

pytestmark = [pytest.mark.server, pytest.mark.spark, pytest.mark.recovery]

LEASE, TTL = 2.0, 4.0


@pytest.fixture(scope="module")
def stored(target: MariadbServer) -> Iterator[FaultProxy]:
    """The way to the masters' database."""
    with FaultProxy("127.0.0.1", target.port) as proxy:
        yield proxy


@pytest.fixture(scope="module")
def shop(sources: dict[str, MariadbServer], target: MariadbServer, store: str, stored: FaultProxy) -> Iterator[Shop]:
    """A task on its way; the worker of s1 has died in the middle of the dump, that of s2 in the load."""
    cluster = Cluster(
        store.replace(str(target.port), str(stored.port)),
        master={"leader-lease": f"{LEASE:g}s", "worker-ttl": f"{TTL:g}s"},
        environments={
            "w1": {"UNSHARD_CRASH_AT": "dump-header-before"},
            "w2": {"UNSHARD_CRASH_AT": "load-piece-after"},
        },
    )
    with cluster:
        shop = Shop(cluster, sources, target)
        shop.create()
        for name in sources:
            cluster.ctl("operate-source", "create", shop.source_file(name))
        cluster.ctl("start-task", shop.task_file())
        yield shop


@pytest.fixture(autouse=True)
def proved(shop: Shop, stored: FaultProxy) -> Iterator[None]:
    """Every test ends with all members awake, all sources moving, and with the proof."""
    yield
    stored.refuse(False)
    shop.cluster.mend()
    for name in shop.sources:
        shop.work(name)
    shop.all_move()
    shop.assert_exactly_once()


def served_by_another(shop: Shop, name: str, old: Member) -> Member:
    until(lambda: shop.serves(name) not in ("", old.name), f"another worker serves {name}")
    return shop.worker_of(name)


@contextmanager
def in_the_middle_of_a_batch(shop: Shop, name: str) -> Iterator[None]:
    """A lock in the target on all rows; the source has changed some of them."""
    with row_held(shop.target, TARGET.quoted):
        for shard in SHARDS:
            shop.sources[name].query(f"UPDATE {shard.quoted} SET note = CONCAT(note, '.')")
        shop.add(name)
        until(lambda: stands_still(shop.target), "in the middle of a batch")
        yield


def test_killed_in_the_middle_of_the_dump_and_of_the_load(shop: Shop) -> None:
    w1, w2 = shop.cluster.worker("w1"), shop.cluster.worker("w2")
    assert w1.ended(120) and w2.ended(120)
    until(lambda: shop.serves("s1") == "w4", "the spare has s1")  # it copies anew
    until(lambda: shop.serves("s2") == "", "nobody is left for s2")
    w1.start()
    until(lambda: shop.stages().get("s2") == "Paused", "a spare without the dump can't go on")
    (told,) = shop.cluster.ctl("query-status", "shop", "-s", "s2")["sources"][0]["subTaskStatus"]
    (error,) = told["result"]["errors"]
    assert error["ErrCode"] == "LOAD-008" and "start the worker that has it" in error["Workaround"]
    w2.start()
    until(lambda: shop.serves("s2") == "w2", "who has the dump goes on with it")
    shop.all_move()


def test_a_worker_killed_in_the_middle_of_a_batch(shop: Shop) -> None:
    with in_the_middle_of_a_batch(shop, "s3"):
        shop.worker_of("s3").kill()
    shop.moves("s3")
    assert shop.serves("s3") == "w1"


def test_a_worker_frozen_past_its_lease_in_the_middle_of_a_batch_wakes_up(shop: Shop) -> None:
    old = shop.worker_of("s1")
    with in_the_middle_of_a_batch(shop, "s1"):
        old.freeze()
        new = served_by_another(shop, "s1", old)
    shop.moves("s1")
    old.wake()
    shop.work("s1")
    until(lambda: "source let go" in old.text, "it has let go")
    assert shop.serves("s1") == new.name


def test_a_worker_that_is_cut_off_goes_on_alone_until_the_target_fences_it(shop: Shop) -> None:
    old = shop.worker_of("s2")
    shop.cluster.cut_off(old)
    shop.moves("s2")
    served_by_another(shop, "s2", old)
    until(lambda: "no master answers: what the target fences goes on" in old.text, "it knows that it is alone")
    shop.moves("s2")
    shop.cluster.let_in(old)
    workers = lambda: {one["name"]: one["stage"] for one in shop.workers()}  # noqa: E731
    until(lambda: workers().get(old.name) == "free", "it is a spare")


def test_the_leader_killed_while_a_sharding_ddl_waits(shop: Shop) -> None:
    def alter(name: str) -> None:
        for shard in SHARDS:
            shop.sources[name].query(f"ALTER TABLE {shard.quoted} ADD COLUMN n INT NOT NULL DEFAULT 0")
        shop.work(name)

    alter("s1")
    until(lambda: bool(shop.cluster.asked(ShardDdlLock(task="shop"))["locks"]), "a lock")
    dead = shop.cluster.leader()
    dead.kill()
    alter("s2")
    shop.moves("s3")  # sources need no master
    until(lambda: shop.cluster.leads() not in ("", dead.name), "another master leads")
    (lock,) = shop.cluster.ctl("shard-ddl-lock", "shop")["locks"]
    assert lock["unsynced"] == ["s3"]
    alter("s3")
    until(lambda: not shop.cluster.asked(ShardDdlLock(task="shop"))["locks"], "resolved")


def test_a_frozen_leader_that_wakes_up_writes_nothing(shop: Shop) -> None:
    """It holds the lock of the leader's row in the masters' database, and is the first that ctl asks."""
    old = shop.cluster.asked_first = shop.cluster.leader()
    known = len(old.text)
    with ThreadPoolExecutor() as threads:
        with row_held(shop.target, f"unshard.{SUBTASKS.name}"):
            late = threads.submit(shop.cluster.told, "pause-task", "shop", "--rpc-timeout", "10s")
            until(lambda: stands_still(shop.target), "in the middle of a change")
            old.freeze()
        until(lambda: shop.cluster.leads() not in ("", old.name), "another master leads")
        new = shop.cluster.leader()
        assert late.result().exit_code == 1
    assert set(shop.stages().values()) == {"Running"}
    assert shop.cluster.ctl("pause-task", "shop")["result"]
    old.wake()
    until(lambda: '"follows"' in old.text[known:], "it knows that it leads no more")
    assert shop.cluster.leader() is new
    assert set(shop.stages().values()) == {"Paused"}
    assert shop.cluster.ctl("resume-task", "shop")["result"]


def test_the_masters_database_is_away_for_a_while(shop: Shop, stored: FaultProxy) -> None:
    stored.refuse()
    until(lambda: not shop.cluster.leads(), "nobody leads")
    shop.moves("s1")
    assert not shop.cluster.leads()
    stored.refuse(False)
    until(lambda: bool(shop.cluster.leads()), "one leads")
    until(lambda: set(shop.stages().values()) == {"Running"}, "all are reached")


def test_all_masters_are_down_for_longer_than_workers_are_waited_for(shop: Shop) -> None:
    serving = [shop.worker_of(name) for name in shop.sources]
    known = {worker.name: len(worker.text) for worker in serving}
    for master in shop.cluster.masters:
        master.kill()
    alone = "no master answers: what the target fences goes on"
    until(lambda: all(alone in worker.text[known[worker.name] :] for worker in serving), "all know it")
    for name in shop.sources:
        shop.moves(name)
    for number, _ in enumerate(shop.cluster.masters):
        shop.cluster.start_master(number)
    until(lambda: set(shop.stages().values()) == {"Running"}, "all are reached again")
    assert [shop.serves(name) for name in shop.sources] == [worker.name for worker in serving]
