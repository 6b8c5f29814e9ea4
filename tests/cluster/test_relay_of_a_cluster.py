"""A source's relay in a cluster, by ctl, while two tasks read it: paused, switched, purged; what is told of it."""

from __future__ import annotations

import os
import resource
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
from MySQLdb import OperationalError
from shop import SHARDS, TARGET, Shop

from support.waiting import PATIENCE_SECONDS
from unshard.api.verbs import QueryStatus
from unshard.model.table import TableName
from unshard.testing.binlog_count import moved, row_events
from unshard.testing.cluster import ClusterMember, ThrowawayCluster
from unshard.testing.compare import assert_equal
from unshard.testing.throwaway_server import ThrowawayServer

pytestmark = [pytest.mark.server, pytest.mark.spark, pytest.mark.recovery, pytest.mark.cluster]

SOURCE = "s1"
COPIES = {shard: TableName("copy", shard.table) for shard in SHARDS}


@dataclass(slots=True)
class RelayShop:
    """The shop on one source, and a second task, `copy`, which follows the same source from an earlier place."""

    shop: Shop
    early: tuple[str, int] = ("", 0)

    @property
    def server(self) -> ThrowawayServer:
        return self.shop.sources[SOURCE]

    @property
    def worker(self) -> ClusterMember:
        return self.shop.cluster.workers[0]

    def place(self) -> tuple[str, int]:
        ((file, offset, *_),) = self.server.query("SHOW MASTER STATUS")
        return str(file), int(offset)

    def paths(self) -> list[Path]:
        """The files of the relay log on the worker's disk, oldest first."""
        return sorted((self.worker.folder / "relay" / SOURCE).glob("*.0*/*.0*"), key=lambda path: path.name)

    def files(self) -> list[str]:
        return [path.name for path in self.paths()]

    def work(self, files: int = 1) -> str:
        """Changes over so many files; the name of the newest one."""
        for _ in range(files):
            self.shop.work(SOURCE)
            self.server.run("FLUSH BINARY LOGS")
        self.shop.work(SOURCE)
        return self.place()[0]

    def ctl(self, *words: str, code: int = 0) -> str:
        """What it says of the source."""
        (told,) = self.shop.cluster.ctl(*words, "-s", SOURCE, code=code)["sources"]
        return str(told["msg"])

    def status(self, task: str = "shop") -> tuple[dict[str, Any], dict[str, Any]]:
        """Of the relay, and of a task: what query-status prints, once the worker has answered it."""
        found: list[dict[str, Any]] = []

        def answered() -> bool:
            """A worker that takes longer than a master waits is told of by what is on record: nothing of its relay."""
            found[:] = self.shop.cluster.asked(QueryStatus(name=task, sources=(SOURCE,)))["sources"]
            return found[0]["sourceStatus"]["relayStatus"] is not None

        self.shop.until(answered, f"the worker tells of {task}")
        (told,) = found
        return told["sourceStatus"]["relayStatus"], told["subTaskStatus"][0]

    def stage(self) -> str:
        """Of the relay, also without a task; empty where the worker doesn't answer in time."""
        told = self.shop.statuses()[0]["sourceStatus"]["relayStatus"]
        return str(told["stage"]) if told is not None else ""

    def relay_is(self, stage: str) -> None:
        self.shop.until(lambda: self.status()[0]["stage"] == stage, f"relay {stage}")

    def update(self, **keys: Any) -> str:
        """Another source file; what is said, of each task the same."""
        told = self.shop.cluster.ctl("update-source", self.shop.source_file(SOURCE, **keys))["sources"]
        (said,) = {str(one["msg"]) for one in told}
        return said

    def both_follow(self) -> None:
        """What is written arrives by both tasks, and all of it just once."""
        last = self.shop.add(SOURCE)
        self.shop.until(self.shop.arrives(last), f"{last} arrives")
        copy = COPIES[SHARDS[last % len(SHARDS)]]
        arrived = f"SELECT 1 FROM {copy.quoted} WHERE id = {last}"
        self.shop.until(lambda: bool(self.shop.target.query(arrived)), f"{last} arrives by copy")
        self.assert_exactly_once()

    def start_both(self) -> None:
        running = {one["taskName"] for one in self.shop.cluster.asked(QueryStatus())["tasks"]}
        for name, file in (("shop", self.shop.task_file), ("copy", self.copy_file)):
            if name not in running:
                self.shop.do("start-task", file())

    def end_streams(self) -> None:
        """The source ends each connection that reads its binlog."""
        for number, *about in self.server.query("SHOW PROCESSLIST"):
            if "Binlog Dump" in about:
                with suppress(OperationalError):  # it has just gone
                    self.server.run(f"KILL {number}")

    def purge_upstream(self, newest: str) -> None:
        """The source has no older file any more; it keeps one for a moment where it was read or written just now."""

        def gone() -> bool:
            self.server.run(f"PURGE BINARY LOGS TO '{newest}'")
            return bool(self.server.query("SHOW BINARY LOGS")[0][0] == newest)

        self.end_streams()
        self.shop.until(gone, f"purged up to {newest}")

    def purged_files(self) -> float:
        """By the worker's metrics."""
        told = httpx.get(f"http://127.0.0.1:{self.worker.port}/metrics", timeout=PATIENCE_SECONDS).text
        lines = (line.split() for line in told.splitlines() if line.startswith("unshard_relay_purged_files_total{"))
        return sum(float(line[-1]) for line in lines)

    def copy_file(self) -> str:
        file, offset = self.early
        instance = {"source-id": SOURCE, "meta": {"binlog-name": file, "binlog-pos": offset}}
        rules = {"block-allow-list": "own", "route-rules": ["copied"], "syncer-config-name": "own"}
        return self.shop.task_file(
            **{
                "name": "copy",
                "task-mode": "incremental",
                "shard-mode": "",
                "mysql-instances": [{**instance, **rules}],
                "routes": {"copied": {"schema-pattern": "shop", "target-schema": "copy"}},
            }
        )

    def assert_exactly_once(self) -> None:
        self.shop.assert_exactly_once()
        self.shop.assert_once(moved(row_events(self.server, SHARDS), COPIES), COPIES.values())
        for shard, copy in COPIES.items():
            assert_equal([(self.server, shard)], (self.shop.target, copy))


@pytest.fixture(scope="module")
def relay(sources: dict[str, ThrowawayServer], target: ThrowawayServer, store: str) -> Iterator[RelayShop]:
    dies = {"w1": {"UNSHARD_CRASH_AT": "relay-file-purged:2"}}
    with ThrowawayCluster(store, masters=1, workers=1, environments=dies) as cluster:
        made = RelayShop(Shop(cluster, {SOURCE: sources[SOURCE]}, target))
        made.shop.create(rows=0)
        made.early = made.place()
        for _ in range(3):
            made.shop.add(SOURCE, 2)
            made.server.run("FLUSH BINARY LOGS")
        cluster.ctl("operate-source", "create", made.shop.source_file(SOURCE))
        made.shop.do("start-task", made.shop.task_file())
        made.shop.moves(SOURCE)
        target.query("CREATE DATABASE copy")
        for copy in COPIES.values():
            target.query(f"CREATE TABLE {copy.quoted} (id BIGINT PRIMARY KEY, note VARCHAR(40) NOT NULL)")
        yield made


def test_a_second_task_that_begins_earlier_gets_the_older_files(relay: RelayShop) -> None:
    assert relay.files()[0] > relay.early[0]
    relay.shop.do("start-task", relay.copy_file())
    relay.both_follow()
    assert relay.files()[0] == relay.early[0]


def test_a_paused_relay_lets_its_tasks_wait_and_says_so(relay: RelayShop) -> None:
    assert relay.ctl("pause-relay").startswith("tasks that have come to its end wait until resume-relay: ")
    relay.relay_is("Paused")
    relay.work(files=2)

    def behind() -> bool:
        shown, task = relay.status()
        lags = (task["sync"]["secondsBehindMaster"] or 0) > 1 and task["sync"]["backlogBytes"]
        return lags and not task["sync"]["synced"] and not shown["relayCatchUpMaster"]

    relay.shop.until(behind, "the lag grows")
    shown, task = relay.status()
    assert shown["result"] is None
    assert task["stage"] == "Running"
    assert f"`unshard ctl resume-relay -s {SOURCE}`" in task["note"]

    def told_in_short() -> bool:
        tasks = relay.shop.cluster.asked(QueryStatus())["tasks"]
        return all(one["taskStatus"].startswith("Error - Relay status is Paused") for one in tasks)

    relay.shop.until(told_in_short, "each task's word is of the relay")
    assert relay.ctl("resume-relay").startswith("it runs while a task reads it")
    relay.both_follow()
    relay.shop.until(lambda: relay.status()[0]["relayCatchUpMaster"], "relay has caught up")
    relay.shop.until(lambda: relay.status()[1]["note"] == "", "nothing is to be told any more")


def test_a_task_that_starts_while_the_relay_is_paused_waits_for_it(relay: RelayShop) -> None:
    relay.shop.stop("copy")
    relay.ctl("pause-relay")
    relay.relay_is("Paused")
    relay.work()
    relay.shop.do("start-task", relay.copy_file())
    relay.shop.until(lambda: "resume-relay" in relay.status("copy")[1]["note"], "it tells what it waits for")
    assert relay.status("copy")[1]["stage"] == "Running"
    relay.ctl("resume-relay")
    relay.both_follow()


def test_the_relay_is_switched_off_and_on_while_tasks_run(relay: RelayShop) -> None:
    assert relay.ctl("stop-relay").startswith("it runs on while a task reads it: ")
    relay.both_follow()
    assert relay.status()[0]["stage"] == "Running"
    for task in ("copy", "shop"):
        relay.shop.stop(task)
    relay.shop.until(lambda: relay.stage() == "Stopped", "nobody reads it")
    for workers in (("w1", "w2"), ("w2",)):
        refused = relay.shop.cluster.ctl("start-relay", "-s", SOURCE, *workers, code=1)["msg"]
        assert "CLUSTER-016" in refused
        assert "the worker that serves the source (w1), not by w2" in refused
    assert relay.ctl("start-relay", "w1") == ""
    newest = relay.work(files=2)
    relay.shop.until(lambda: relay.files()[-1] == newest, "the relay runs without a task")
    relay.start_both()
    relay.both_follow()


def test_a_worker_that_dies_in_a_purge_leaves_a_log_that_is_read_on(relay: RelayShop) -> None:
    """The first purge: the worker was started so that it dies by it."""
    newest = relay.work(files=3)
    relay.both_follow()
    relay.shop.saved("shop", "copy")
    before = relay.files()
    assert "CLUSTER-039" in relay.ctl("purge-relay", "--filename", newest, code=1)
    assert relay.worker.ended(PATIENCE_SECONDS)
    relay.worker.start()
    relay.both_follow()
    assert relay.files()[: len(before) - 2] == before[2:]
    relay.shop.saved("shop", "copy")
    relay.ctl("purge-relay", "--filename", newest)
    assert relay.files()[0] == newest


def test_a_purge_stops_before_the_task_that_reads_furthest_back(relay: RelayShop) -> None:
    relay.work()
    relay.both_follow()
    relay.shop.pause("copy")
    needed = relay.place()[0]
    newest = relay.work(files=3)
    relay.shop.moves(SOURCE)
    relay.shop.saved("shop")
    told = relay.ctl("purge-relay", "--filename", newest)
    assert "deleted, " in told
    assert f"kept: task copy reads from {needed}:" in told
    assert relay.files()[0] == needed
    assert relay.ctl("purge-relay", "--filename", newest).startswith("nothing is deleted; ")
    assert relay.ctl("purge-relay", "--time", "2100-01-01 00:00:00").startswith("nothing is deleted; ")
    relay.shop.stop("copy")
    assert relay.ctl("purge-relay", "--time", "2100-01-01 00:00:00").count("deleted, ") == 1
    assert relay.files() == [newest]
    relay.start_both()
    relay.both_follow()
    assert relay.files()[0] == needed, "it was fetched again for copy"


def test_a_purge_that_means_nothing_is_told_what_is_wrong(relay: RelayShop) -> None:
    sub_dir, oldest = relay.status()[0]["relaySubDir"], relay.files()[0]
    told = relay.ctl("purge-relay", "--filename", oldest, "--sub-dir", sub_dir)
    assert told == "nothing is deleted: the relay log has no such files"
    for words in (("nonsense",), (oldest, "--sub-dir", "nonsense"), (oldest, "--sub-dir", "0-1.000009")):
        assert relay.ctl("purge-relay", "--filename", *words, code=1).startswith("RELAY-035: `")
    assert relay.shop.cluster.told("purge-relay", "-s", SOURCE).exit_code == 2
    assert relay.files()[0] == oldest


def test_the_clock_purges_for_space_and_by_age_but_nothing_that_is_read(relay: RelayShop) -> None:
    relay.shop.pause("copy")
    needed = relay.place()[0]
    newest = relay.work(files=2)
    relay.shop.moves(SOURCE)
    known = relay.purged_files()
    assert relay.update(purge={"interval": 1, "remain-space": 10**9}) == ""
    assert relay.update(purge={"interval": 1, "remain-space": 10**9}).startswith("nothing is changed")
    relay.shop.until(lambda: relay.files()[0] == needed, "what nobody reads goes for space")
    relay.shop.until(lambda: relay.purged_files() > known, "it is counted")
    told_in_log = [line for line in relay.worker.text.splitlines() if "relay log purged" in line]
    assert any("deleted, " in line for line in told_in_log)
    assert relay.update(purge={"interval": 1, "expires": 1}) == ""
    relay.shop.resume("copy")
    relay.both_follow()
    for path in relay.paths()[:-1]:
        os.utime(path, (0, 0))
    relay.shop.until(lambda: relay.files() == [newest], "what is older than an hour goes")
    relay.update()


def test_a_full_disk_is_told_with_what_to_do(relay: RelayShop) -> None:
    """No file of the worker may grow past the limit, which the relay meets as EFBIG."""
    resource.prlimit(relay.worker.pid, resource.RLIMIT_FSIZE, (50_000, resource.RLIM_INFINITY))
    relay.server.run(f"UPDATE {SHARDS[0].quoted} SET note = REPEAT('x', 40)", "CREATE TABLE shop.other (a LONGBLOB)")
    relay.server.run("INSERT INTO shop.other VALUES (REPEAT('x', 100000))")
    assert "purge-relay -s s1" in relay.shop.stopped(SOURCE, "RELAY-013")["Workaround"]
    resource.prlimit(relay.worker.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    relay.server.run("DROP TABLE shop.other")
    relay.both_follow()


def test_another_server_behind_the_address_is_told_with_what_to_do(relay: RelayShop) -> None:
    own = relay.server.query("SELECT @@server_id")[0][0]
    relay.server.run("SET GLOBAL server_id = 77")
    relay.end_streams()
    for task in ("shop", "copy"):
        assert "enable-gtid" in relay.shop.stopped(SOURCE, "RELAY-008", task)["Workaround"]
    relay.server.run(f"SET GLOBAL server_id = {own}")
    for task in ("shop", "copy"):
        relay.shop.resume(task)
    relay.both_follow()


def test_a_binlog_that_was_purged_upstream_is_told_and_a_new_copy_gets_past_it(relay: RelayShop) -> None:
    """The last one: the tasks begin anew."""
    relay.ctl("pause-relay")
    relay.relay_is("Paused")
    file, offset = relay.status()[0]["relayBinlog"].strip("()").split(", ")
    relay.purge_upstream(relay.work(files=2))
    relay.ctl("resume-relay")
    error = relay.shop.stopped(SOURCE, "RELAY-010")
    assert error["place"] == f"{file}:{offset}"
    assert "start-task --reset" in error["Workaround"]
    for task in ("shop", "copy"):
        relay.shop.stop(task)
    task = relay.shop.task_file()
    done = relay.shop.cluster.told("start-task", task, "--reset")
    assert done.exit_code == 1, done
    assert f"drops {TARGET}" in done.stderr, done
    assert "Aborted" in done.stderr, done
    relay.shop.do("start-task", task, "--reset", "--yes")
    relay.shop.moves(SOURCE)
    relay.shop.saved("shop")
    assert_equal([(relay.server, shard) for shard in SHARDS], (relay.shop.target, TARGET))
