"""A cluster with tokens on an ordinary day: every verb that a team uses, members started again, nothing done twice."""

from __future__ import annotations

import json
import os
import pty
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import pytest
import yaml
from shop import Shop

from unshard.api.verbs import QueryStatus
from unshard.config.access import token_hash
from unshard.model.table import TableName
from unshard.testing.cluster import UNSHARD, ThrowawayCluster
from unshard.testing.compare import assert_equal
from unshard.testing.throwaway_server import ThrowawayServer

pytestmark = [pytest.mark.server, pytest.mark.spark, pytest.mark.recovery, pytest.mark.cluster]

ROLES = ("viewer", "operator", "admin", "worker", "master")


@pytest.fixture(scope="module")
def shop(
    sources: dict[str, ThrowawayServer],
    target: ThrowawayServer,
    store: str,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Shop]:
    folder = tmp_path_factory.mktemp("access")
    entries = [{"name": role, "role": role, "sha256": token_hash(f"token-of-{role}")} for role in ROLES]
    (folder / "tokens.yaml").write_text(json.dumps({"tokens": entries}))
    for role in ROLES:
        (folder / role).write_text(f"token-of-{role}\n")
    cluster = ThrowawayCluster(
        store,
        masters=2,
        keys={"token-file": str(folder / "tokens.yaml")},
        master={"token": f"file:{folder / 'master'}", "audit-log": str(folder / "audit.log")},
        worker={"token": f"file:{folder / 'worker'}"},
        token="token-of-admin",
    )
    with cluster:
        shop = Shop(cluster, sources, target)
        shop.create()
        yield shop


@pytest.fixture(autouse=True)
def proved(shop: Shop) -> Iterator[None]:
    yield
    for name in shop.sources:
        shop.work(name)
    shop.all_move()
    shop.assert_exactly_once()


def test_sources_and_a_task_are_made_and_seen(shop: Shop) -> None:
    ctl, told = shop.cluster.ctl, shop.cluster.told
    files = [shop.source_file(name) for name in shop.sources]
    assert told("operate-source", "create", files[0], token="token-of-viewer").exit_code == 1
    assert "CLUSTER-043" in told("query-status", token="no-token").stderr
    for file in files:
        assert ctl("operate-source", "create", file, token="token-of-operator")["result"]
    task = shop.task_file()
    assert ctl("check-task", task)["summary"]["passed"]
    shop.do("start-task", task, token="token-of-operator")
    shop.all_move()
    shop.are("Running")
    assert ctl("query-status", token="token-of-viewer")["tasks"][0]["taskStatus"] == "Running"
    assert ctl("start-task", task, code=1)["msg"].startswith("CLUSTER-007")
    assert sorted(one["stage"] for one in shop.workers()) == ["bound", "bound", "bound", "free"]


def test_a_task_pauses_is_changed_and_resumes(shop: Shop) -> None:
    ctl = shop.cluster.ctl
    shop.pause()
    last = shop.add("s1")
    changed = {"own": {"compact": False, "worker-count": 1, "batch": 7, "checkpoint-flush-interval": 1}}
    assert ctl("update-task", shop.task_file(syncers=changed))["result"]
    assert not shop.arrives(last)()
    shop.resume()
    shop.until(shop.arrives(last), "what was written meanwhile arrives")
    assert yaml.safe_load(ctl("config", "task", "shop")["cfg"])["syncers"]["own"]["batch"] == 7


def test_a_source_is_transferred_and_members_come_and_go(shop: Shop) -> None:
    ctl = shop.cluster.ctl
    (spare,) = [one["name"] for one in shop.workers() if one["stage"] == "free"]
    old = shop.worker_of("s1")
    moved = lambda: shop.cluster.told("transfer-source", "s1", spare).exit_code == 0  # noqa: E731
    shop.until(moved, "its tasks have ended what they had in hand in time")
    shop.moves("s1")
    assert shop.serves("s1") == spare
    assert not ctl("offline-member", "--worker", "--name", old.name, code=1)["result"], "it lives"
    old.stop()
    shop.until(lambda: (old.name, "offline") in [(one["name"], one["stage"]) for one in shop.workers()], "offline")
    assert ctl("offline-member", "--worker", "--name", old.name)["result"]
    assert old.name not in [one["name"] for one in shop.workers()]
    old.start()


def test_members_are_started_again_one_after_the_other(shop: Shop) -> None:
    """As an upgrade does it."""
    for number, master in enumerate(shop.cluster.masters):
        master.stop()
        shop.moves("s2")
        shop.cluster.start_master(number)
    serving = shop.worker_of("s2")
    serving.stop()
    shop.work("s2")
    serving.start()
    shop.moves("s2")


def test_locks_statements_relays_levels_and_files(shop: Shop) -> None:
    ctl = shop.cluster.ctl
    assert ctl("shard-ddl-lock", "shop")["locks"] == []
    assert ctl("log-level", "debug")["result"]
    assert ctl("log-level", "info")["result"]
    for name in shop.sources:
        shop.sources[name].query("FLUSH BINARY LOGS")
    shop.all_move()
    newest = shop.sources["s1"].query("SHOW MASTER STATUS")[0][0]
    assert ctl("purge-relay", "-s", "s1", "--filename", newest)["result"]
    assert ctl("pause-relay", "-s", "s1")["result"]
    assert ctl("resume-relay", "-s", "s1")["result"]
    given = ("shop", "-s", "s1", "-b", "mysql-bin.000999:4")
    (told,) = ctl("binlog", "skip", *given, token="token-of-operator")["sources"]
    assert told["msg"] == "skip at mysql-bin.000999:4: takes effect when the task gets there"
    (listed,) = json.loads(ctl("binlog", "list", "shop", "-s", "s1")["sources"][0]["msg"])
    assert listed["givenBy"] == "operator"
    assert ctl("binlog", "revert", *given)["result"]
    worker = shop.serves("s1")
    settings = yaml.safe_load(ctl("config", "worker", worker)["cfg"])
    assert (settings["name"], settings["token"]) == (worker, "******")
    assert settings["join"]
    for one in ctl("list-member", "--master")["members"][0]["master"]["masters"]:
        settings = yaml.safe_load(ctl("config", "master", one["name"])["cfg"])
        assert (settings["name"], settings["token"]) == (one["name"], "******")
    folder = shop.folder / "exported"
    shop.cluster.told("config", "export", "-d", str(folder))
    assert sorted(path.name for path in folder.rglob("*.yaml")) == ["s1.yaml", "s2.yaml", "s3.yaml", "shop.yaml"]
    assert shop.cluster.told("config", "import", "-d", str(folder)).exit_code == 0


@dataclass(frozen=True, slots=True)
class Stock:
    """A second task: a table of two sources, each with a table of its own in the target, that DDL is refused for."""

    shop: Shop
    sources: tuple[str, ...] = ("s1", "s2")

    def start(self) -> None:
        for source in self.sources:
            self.shop.sources[source].run(
                "CREATE DATABASE stock",
                "CREATE TABLE stock.items (id INT PRIMARY KEY, note VARCHAR(40))",
                "INSERT INTO stock.items VALUES (1, 'one')",
            )
        own = {"block-allow-list": "own", "syncer-config-name": "own"}
        form = {
            "name": "stock",
            "shard-mode": "",
            "mysql-instances": [{"source-id": one, "route-rules": [one], **own} for one in self.sources],
            "block-allow-list": {"own": {"do-dbs": ["stock"]}},
            "routes": {one: {"schema-pattern": "stock", "target-schema": f"stock_{one}"} for one in self.sources},
        }
        self.shop.do("start-task", self.shop.task_file(**form))
        self.shop.follows("stock")

    def subtasks(self) -> dict[str, Any]:
        told = self.shop.cluster.asked(QueryStatus(name="stock"))["sources"]
        return {one["sourceStatus"]["source"]: one["subTaskStatus"][0] for one in told}

    def stopped(self, *sources: str) -> None:
        """By an error that says where."""

        def all_of_them() -> bool:
            found = self.subtasks()
            results = [found[one]["result"] or {} for one in sources]
            return all(one.get("errors") and one["errors"][0]["place"] for one in results)

        self.shop.until(all_of_them, f"an error stops {sources}")

    def refuse(self, column: str, number: int) -> None:
        """Each target has a column already which its source then makes; a row has it.

        Nothing that was written before may be on its way, and no statement: the targets' tables are altered by hand.
        """
        add = f"ADD COLUMN {column} INT NULL"
        for source in self.sources:
            self.shop.target.run(f"ALTER TABLE stock_{source}.items {add}")
            self.shop.sources[source].run(
                f"ALTER TABLE stock.items {add}",
                f"INSERT INTO stock.items (id, {column}) VALUES ({number}, {number})",
            )
        self.stopped(*self.sources)

    def binlog(self, verb: str, *words: str) -> list[str]:
        """What is said of each source."""
        both = [word for source in self.sources for word in ("-s", source)]
        told = self.shop.cluster.ctl("binlog", verb, "stock", *words, *both)
        assert [one["source"] for one in told["sources"]] == list(self.sources)
        return [one["msg"] for one in told["sources"]]

    def arrives(self) -> None:
        """All rows are there, and so all statements before them are done."""

        def count(server: ThrowawayServer, schema: str) -> Any:
            return server.query(f"SELECT COUNT(*), MAX(id) FROM {schema}.items")

        for name in self.sources:
            source, schema = self.shop.sources[name], f"stock_{name}"
            self.shop.until(lambda a=source, b=schema: count(a, "stock") == count(self.shop.target, b), name)  # type: ignore[misc]

    def assert_equal(self) -> None:
        self.arrives()
        for name in self.sources:
            source, schema = self.shop.sources[name], f"stock_{name}"
            assert_equal([(source, TableName("stock", "items"))], (self.shop.target, TableName(schema, "items")))


def on_a_terminal(shop: Shop, *words: str) -> str:
    """What ctl prints where its output is a terminal."""
    mine, its = pty.openpty()
    command = [*UNSHARD, "ctl", *words, "--master-addr", shop.cluster.addresses]
    environment = {**os.environ, "UNSHARD_TOKEN": "token-of-admin", "TERM": "xterm", "COLUMNS": "200", "NO_COLOR": "1"}
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=its, stderr=its, env=environment)
    os.close(its)
    told = b""
    with suppress(OSError), open(mine, "rb", buffering=0) as terminal:
        while piece := terminal.read(65536):
            told += piece
    assert process.wait() == 0, told
    return told.decode()


def test_statements_that_targets_refuse_are_got_past_on_two_sources(shop: Shop) -> None:
    stock = Stock(shop)
    stock.start()
    given = {
        "skipped": ("skip",),
        "replaced": ("replace", "ALTER TABLE stock.items MODIFY replaced BIGINT NULL"),
        "injected": ("inject", "ALTER TABLE stock.items DROP COLUMN injected"),
    }
    for number, (column, (verb, *sqls)) in enumerate(given.items(), 2):
        stock.refuse(column, number)
        for told in stock.binlog(verb, *sqls):
            assert told.startswith(f"{verb} at mysql-bin.")
            assert told.endswith(": the task goes on now")
        stock.arrives()
        stock.assert_equal() if verb != "replace" else None
    shop.until(lambda: stock.binlog("list") == ["[]", "[]"], "what was given is used up")
    assert [json.loads(one)[0]["op"] for one in stock.binlog("list", "--all")] == [1, 1]


def test_what_was_given_is_taken_back_and_shown_as_a_table(shop: Shop) -> None:
    stock, ctl = Stock(shop), shop.cluster.ctl
    shop.pause("stock")
    last = {name: shop.sources[name].query("SHOW MASTER STATUS")[0][:2] for name in stock.sources}
    for name, (file, offset) in last.items():
        (told,) = ctl("binlog", "skip", "stock", "-s", name, "-b", f"{file}:{offset}")["sources"]
        assert told["msg"].endswith("when the task is resumed and gets there")
    assert all(
        json.loads(one)[0]["binlogPos"] == f"({last[name][0]}, {last[name][1]})"
        for name, one in zip(stock.sources, stock.binlog("list"), strict=True)
    )
    table = on_a_terminal(shop, "binlog", "list", "stock")
    assert all(f"({file}, {offset})" in table for file, offset in last.values())
    assert "skip" in table
    for name, (file, offset) in last.items():
        assert ctl("binlog", "revert", "stock", "-s", name, "-b", f"{file}:{offset}")["result"]
    assert stock.binlog("list") == ["[]", "[]"]
    shop.resume("stock")


def test_a_tracked_structure_is_shown_and_set(shop: Shop) -> None:
    stock, ctl = Stock(shop), shop.cluster.ctl
    stock.shop.follows("stock")
    for one in ctl("binlog-schema", "list", "stock", "stock", "items")["sources"]:
        assert one["msg"].startswith("CREATE TABLE")
        assert "`skipped`" in one["msg"]
    assert "CREATE TABLE" in on_a_terminal(shop, "binlog-schema", "list", "stock", "stock", "items")
    words = ("binlog-schema", "update", "stock", "stock", "items", "--from-source")
    assert "pause-task stock first" in ctl(*words, code=1)["msg"]
    shop.pause("stock")
    assert ctl(*words, "-s", "s1", "-s", "s2")["result"]
    shop.resume("stock")
    for name in stock.sources:
        shop.sources[name].run("INSERT INTO stock.items (id) VALUES (20)")
    stock.assert_equal()
    shop.stop("stock")


def test_lines_by_a_pipe_are_carried_out(shop: Shop) -> None:
    done = shop.cluster.told(given="query-status shop\nlist-member --worker\nexit\nquery-status\n")
    assert done.exit_code == 0
    assert done.stdout.count('"result": true') >= 2


def test_a_task_is_stopped_and_started_again_where_it_was(shop: Shop) -> None:
    ctl = shop.cluster.ctl
    shop.stop()
    assert "shop" not in [one["taskName"] for one in ctl("query-status")["tasks"]]
    last = shop.add("s3")
    shop.do("start-task", shop.task_file())
    shop.until(shop.arrives(last), "it goes on from its checkpoint")
