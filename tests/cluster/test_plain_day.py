"""A cluster with tokens on an ordinary day: every verb that a team uses, members started again, nothing done twice."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
import yaml
from shop import Shop, until

from unshard.config.access import token_hash
from unshard.testing.cluster import Cluster
from unshard.testing.servers import MariadbServer

pytestmark = [pytest.mark.server, pytest.mark.spark, pytest.mark.recovery]

ROLES = ("viewer", "operator", "admin", "worker", "master")


@pytest.fixture(scope="module")
def shop(
    sources: dict[str, MariadbServer],
    target: MariadbServer,
    store: str,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Shop]:
    folder = tmp_path_factory.mktemp("access")
    entries = [{"name": role, "role": role, "sha256": token_hash(f"token of {role}")} for role in ROLES]
    (folder / "tokens.yaml").write_text(json.dumps({"tokens": entries}))
    for role in ROLES:
        (folder / role).write_text(f"token of {role}\n")
    cluster = Cluster(
        store,
        masters=2,
        keys={"token-file": str(folder / "tokens.yaml")},
        master={"token": f"file:{folder / 'master'}", "audit-log": str(folder / "audit.log")},
        worker={"token": f"file:{folder / 'worker'}"},
        token="token of admin",
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
    assert told("operate-source", "create", files[0], token="token of viewer").exit_code == 1
    assert "CLUSTER-043" in told("query-status", token="no token").stderr
    for file in files:
        assert ctl("operate-source", "create", file, token="token of operator")["result"]
    task = shop.task_file()
    assert ctl("check-task", task)["summary"]["passed"]
    assert ctl("start-task", task, token="token of operator")["result"]
    shop.all_move()
    assert ctl("query-status", token="token of viewer")["tasks"][0]["taskStatus"] == "Running"
    assert shop.stages() == dict.fromkeys(shop.sources, "Running")
    assert ctl("start-task", task, code=1)["msg"].startswith("CLUSTER-007")
    assert sorted(one["stage"] for one in shop.workers()) == ["bound", "bound", "bound", "free"]


def test_a_task_pauses_is_changed_and_resumes(shop: Shop) -> None:
    ctl = shop.cluster.ctl
    assert ctl("pause-task", "shop")["result"]
    assert shop.stages() == dict.fromkeys(shop.sources, "Paused")
    last = shop.add("s1")
    changed = {"own": {"compact": False, "worker-count": 1, "batch": 7, "checkpoint-flush-interval": 1}}
    assert ctl("update-task", shop.task_file(syncers=changed))["result"]
    assert not shop.arrives(last)()
    assert ctl("resume-task", "shop")["result"]
    until(shop.arrives(last), "what was written meanwhile arrives")
    assert yaml.safe_load(ctl("config", "task", "shop")["cfg"])["syncers"]["own"]["batch"] == "7"


def test_a_source_is_transferred_and_members_come_and_go(shop: Shop) -> None:
    ctl = shop.cluster.ctl
    spare = next(one["name"] for one in shop.workers() if one["stage"] == "free")
    old = shop.cluster.worker(shop.serves("s1"))
    assert ctl("transfer-source", "s1", spare)["result"]
    shop.moves("s1")
    assert shop.serves("s1") == spare
    assert not ctl("offline-member", "--worker", "--name", old.name, code=1)["result"], "it lives"
    old.stop()
    until(lambda: any(one["name"] == old.name and one["stage"] == "offline" for one in shop.workers()), "offline")
    assert ctl("offline-member", "--worker", "--name", old.name)["result"]
    assert old.name not in [one["name"] for one in shop.workers()]
    old.start()


def test_members_are_started_again_one_after_the_other(shop: Shop) -> None:
    """As an upgrade does it."""
    for number, master in enumerate(shop.cluster.masters):
        master.stop()
        shop.moves("s2")
        shop.cluster.start_master(number)
    serving = shop.cluster.worker(shop.serves("s2"))
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
    folder = shop.folder / "exported"
    shop.cluster.told("config", "export", "-d", str(folder))
    assert sorted(path.name for path in folder.rglob("*.yaml")) == ["s1.yaml", "s2.yaml", "s3.yaml", "shop.yaml"]
    assert shop.cluster.told("config", "import", "-d", str(folder)).exit_code == 0


def test_lines_by_a_pipe_are_carried_out(shop: Shop) -> None:
    done = shop.cluster.told(given="query-status shop\nlist-member --worker\nexit\nquery-status\n")
    assert done.exit_code == 0 and done.stdout.count('"result": true') >= 2


def test_a_task_is_stopped_and_started_again_where_it_was(shop: Shop) -> None:
    ctl = shop.cluster.ctl
    assert ctl("stop-task", "shop")["result"]
    assert ctl("query-status")["tasks"] == []
    last = shop.add("s3")
    assert ctl("start-task", shop.task_file())["result"]
    until(shop.arrives(last), "it goes on from its checkpoint")
