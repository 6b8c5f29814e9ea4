"""Three masters, four workers, three sources: one after the other dies, freezes or is cut off, and nothing is lost.

After each: equal rows, and each change just once in the target's own binlog.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest
from shop import PATIENT, SHARDS, TARGET, Shop

from support.waiting import PATIENCE_SECONDS
from unshard.api.verbs import ShardDdlLock
from unshard.master.tables import SUBTASKS
from unshard.model.table import TableName
from unshard.testing.cluster import ClusterMember, ThrowawayCluster
from unshard.testing.hold import row_held, stands_still
from unshard.testing.mariadb_server import MariadbServer
from unshard.testing.proxy import FaultProxy

pytestmark = [pytest.mark.server, pytest.mark.spark, pytest.mark.recovery, pytest.mark.cluster]

LEASE = {"leader-lease": "4s"}
IMPATIENT = {"worker-ttl": "6s"}
"""Of masters, where a worker is to find by itself that none answers."""


@pytest.fixture(scope="module")
def stored(target: MariadbServer) -> Iterator[FaultProxy]:
    """The way to the masters' database."""
    with FaultProxy("127.0.0.1", target.port) as proxy:
        yield proxy


@pytest.fixture(scope="module")
def shop(sources: dict[str, MariadbServer], target: MariadbServer, store: str, stored: FaultProxy) -> Iterator[Shop]:
    """A task on its way; the worker of s1 has died in the middle of the dump and the only spare has taken over.

    Then that of s2 dies in the load: its dump had to wait until now.
    """
    cluster = ThrowawayCluster(
        store.replace(str(target.port), str(stored.port)),
        master=PATIENT | LEASE,
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
        with tables_held(sources["s2"], SHARDS):
            cluster.told("start-task", shop.task_file())  # by its answer the worker of s1 may be dead already
            assert cluster.worker("w1").ended(PATIENCE_SECONDS), shop.told()
            shop.gives_up(cluster.worker("w1"))
            served_by_another(shop, "s1", cluster.worker("w1"))
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


@contextmanager
def tables_held(server: MariadbServer, tables: Sequence[TableName]) -> Iterator[None]:
    """Nobody reads them."""
    connection = server.connection()
    try:
        with connection.cursor() as cursor:
            cursor.execute(f"LOCK TABLES {', '.join(f'{table.quoted} WRITE' for table in tables)}")
        yield
    finally:
        connection.close()


def served_by_another(shop: Shop, name: str, old: ClusterMember) -> ClusterMember:
    shop.until(lambda: shop.serves(name) not in ("", old.name), f"another worker serves {name}")
    return shop.worker_of(name)


@contextmanager
def in_the_middle_of_a_batch(shop: Shop, name: str) -> Iterator[None]:
    """A lock in the target on all rows; the source has changed some of them."""
    with row_held(shop.target, TARGET.quoted):
        for shard in SHARDS:
            shop.sources[name].query(f"UPDATE {shard.quoted} SET note = CONCAT(note, '.')")
        shop.add(name)
        shop.until(lambda: stands_still(shop.target), "in the middle of a batch")
        yield


def test_killed_in_the_middle_of_the_dump_and_of_the_load(shop: Shop) -> None:
    w1, w2 = shop.cluster.worker("w1"), shop.cluster.worker("w2")
    assert w2.ended(PATIENCE_SECONDS), shop.told()
    shop.gives_up(w2)
    shop.until(lambda: shop.serves("s2") == "" and shop.workers() != [], "nobody is left for s2")
    w1.start()
    error = shop.stopped("s2", "LOAD-008")  # a spare without the dump can't go on
    assert "start the worker that has it" in error["Workaround"]
    w2.start()
    shop.until(lambda: shop.serves("s2") == "w2", "who has the dump goes on with it")
    shop.all_move()


def test_a_worker_killed_in_the_middle_of_a_batch(shop: Shop) -> None:
    old = shop.worker_of("s3")
    with in_the_middle_of_a_batch(shop, "s3"):
        old.kill()
    shop.gives_up(old)
    shop.moves("s3")
    served_by_another(shop, "s3", old)


def test_a_worker_frozen_past_its_lease_in_the_middle_of_a_batch_wakes_up(shop: Shop) -> None:
    old = shop.worker_of("s1")
    with in_the_middle_of_a_batch(shop, "s1"):
        old.freeze()
        shop.gives_up(old)
        new = served_by_another(shop, "s1", old)
    shop.moves("s1")
    old.wake()
    shop.work("s1")
    shop.until(lambda: "source let go" in old.text, "it has let go")
    assert shop.worker_of("s1") is new


def test_the_leader_killed_while_a_sharding_ddl_waits(shop: Shop) -> None:
    def alter(name: str) -> None:
        for shard in SHARDS:
            shop.sources[name].query(f"ALTER TABLE {shard.quoted} ADD COLUMN n INT NOT NULL DEFAULT 0")
        shop.work(name)

    def waits_for(*sources: str) -> bool:
        locks = shop.cluster.asked(ShardDdlLock(task="shop"))["locks"]
        return [set(lock["unsynced"]) for lock in locks] == ([set(sources)] if sources else [])

    alter("s1")
    shop.until(lambda: waits_for("s2", "s3"), "a lock")
    dead = shop.cluster.leader()
    dead.kill()
    alter("s2")
    shop.moves("s3")  # sources need no master
    shop.until(lambda: shop.cluster.leads() not in ("", dead.name), "another master leads")
    shop.until(lambda: waits_for("s3"), "only s3 has not met it")
    alter("s3")
    shop.until(waits_for, "resolved")


def test_a_frozen_leader_that_wakes_up_writes_nothing(shop: Shop) -> None:
    """It holds the lock of the leader's row in the masters' database, and is the first that ctl asks."""
    old = shop.cluster.asked_first = shop.cluster.leader()
    known = len(old.text)
    with ThreadPoolExecutor() as threads:
        with row_held(shop.target, f"unshard.{SUBTASKS.name}"):
            late = threads.submit(shop.cluster.told, "pause-task", "shop", "--rpc-timeout", "10s")
            shop.until(lambda: stands_still(shop.target), "in the middle of a change")
            old.freeze()
        shop.until(lambda: shop.cluster.leads() not in ("", old.name), "another master leads")
        assert late.result().exit_code == 1
    shop.are("Running")
    shop.pause()
    old.wake()
    shop.until(lambda: '"follows"' in old.text[known:], "it knows that it leads no more")
    shop.are("Paused")
    shop.resume()


def test_the_masters_database_is_away_for_a_while(shop: Shop, stored: FaultProxy) -> None:
    stored.refuse()
    shop.until(lambda: not shop.cluster.leads(), "nobody leads")
    shop.moves("s1")
    assert not shop.cluster.leads()
    stored.refuse(False)
    shop.until(lambda: bool(shop.cluster.leads()), "one leads")
    shop.are("Running")


def masters_begin_anew(shop: Shop, settings: dict[str, str]) -> None:
    for master in shop.cluster.masters:
        master.kill()
    shop.cluster.of_master |= settings
    for number, _ in enumerate(shop.cluster.masters):
        shop.cluster.start_master(number)
    shop.are("Running")


def test_a_worker_that_is_cut_off_goes_on_alone_until_the_target_fences_it(shop: Shop) -> None:
    masters_begin_anew(shop, IMPATIENT)
    old = shop.worker_of("s2")
    shop.cluster.cut_off(old)
    shop.moves("s2")
    served_by_another(shop, "s2", old)
    shop.until(lambda: "no master answers: what the target fences goes on" in old.text, "it knows that it is alone")
    shop.moves("s2")
    shop.cluster.let_in(old)

    def stages() -> dict[str, str]:
        return {one["name"]: one["stage"] for one in shop.workers()}

    shop.until(lambda: stages().get(old.name) in ("free", "bound"), "it is a member again")
    shop.until(lambda: "source let go" in old.text, "it has let go")


def test_all_masters_are_down_for_longer_than_workers_are_waited_for(shop: Shop) -> None:
    masters_begin_anew(shop, IMPATIENT)
    serving = [shop.worker_of(name) for name in shop.sources]
    known = {worker.name: len(worker.text) for worker in serving}
    for master in shop.cluster.masters:
        master.kill()
    alone = "no master answers: what the target fences goes on"
    shop.until(lambda: all(alone in worker.text[known[worker.name] :] for worker in serving), "all know it")
    for name in shop.sources:
        shop.moves(name)
    masters_begin_anew(shop, PATIENT)
    names = [worker.name for worker in serving]
    shop.until(lambda: [shop.serves(name) for name in shop.sources] == names, "each has kept its source")
