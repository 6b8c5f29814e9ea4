"""`unshard ctl` and a real master: what one asks the other answers, and a terminal can show it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from cluster_rig import Rig, source_text, task_text
from rich.console import Console
from typer.testing import CliRunner

from unshard.cli.app import app
from unshard.config.listener import ListenerConfig
from unshard.ctl.tables import rendered
from unshard.web.audit import AuditLog
from unshard.web.links import WorkerLinks
from unshard.web.master_app import master_app
from unshard.web.server import WebServer


class Ctl:
    """One-shot ctl. Calling it gives the answer; `shown` is what a terminal had of it."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.shown = ""

    def __call__(self, *words: str, code: int = 0) -> Any:
        done = CliRunner().invoke(app, ["ctl", "--master-addr", self.address, *words])
        assert done.exit_code == code, done.output
        answer = json.loads(done.stdout)
        text = StringIO()
        console = Console(file=text, force_terminal=True, width=160, color_system=None)
        for part in rendered(
            "-".join(words[:2]) if words[0] == "shard-ddl-lock" and len(words) > 1 else words[0], answer
        ):
            console.print(part, markup=False, highlight=False)
        self.shown = text.getvalue()
        return answer


@pytest.fixture
def ctl(rig: Rig) -> Iterator[Ctl]:
    links = WorkerLinks(ListenerConfig(), "http", 5.0)
    server = WebServer(master_app(rig.master, AuditLog(""), links.client), ListenerConfig(), "127.0.0.1:0")
    server.start()
    yield Ctl(server.address)
    server.stop(1.0)
    links.close()


def test_a_task_from_its_source_to_its_end(ctl: Ctl, rig: Rig, tmp_path: Path) -> None:
    files = {"a": source_text("a"), "b": source_text("b"), "task": task_text("orders", "a", "b")}
    paths = {name: tmp_path / f"{name}.yaml" for name in files}
    for name, text in files.items():
        paths[name].write_text(text)
    source, task = str(paths["a"]), str(paths["task"])
    for name in ("w1", "w2"):
        rig.worker(name)
    assert ctl("operate-source", "create", source, str(paths["b"]))["result"]
    assert {one["source"] for one in ctl("operate-source", "show")["sources"]} == {"a", "b"}
    ctl("list-member")
    assert "bound" in ctl.shown
    assert "m1" in ctl.shown
    ctl("start-task", task)
    ctl("query-status")
    assert "orders" in ctl.shown
    assert "Running" in ctl.shown
    ctl("query-status", task, "-s", "a")
    assert "Sync" in ctl.shown
    assert "w1" in ctl.shown
    ctl("pause-task", "orders", "-s", "b")
    assert ctl("query-status", "--more")["sources"]
    assert "Paused" in ctl.shown
    ctl("update-task", task)
    ctl("resume-task", "-s", "a,b")
    assert "pass word" not in ctl("config", "task", "orders")["cfg"]
    assert "******" in ctl("config", "source", source)["cfg"]
    assert ctl("config", "export", "-d", str(tmp_path / "configs"))["result"]
    ctl("stop-task", "orders")
    ctl("config", "import", "-d", str(tmp_path / "configs"))
    assert ctl("query-status")["tasks"][0]["taskName"] == "orders"


def test_an_error_is_told_with_what_to_do(ctl: Ctl, rig: Rig, tmp_path: Path) -> None:
    rig.worker("w1").fails.add("orders")
    rig.sources("a")
    path = tmp_path / "task.yaml"
    path.write_text(task_text("orders", "a"))
    ctl("start-task", str(path), code=1)
    ctl("query-status", "orders")
    assert "SYNC-001" in ctl.shown
    assert "another one writes" in ctl.shown
    assert ctl("query-status")["tasks"][0]["taskStatus"].startswith("Error")


def test_the_cluster_s_own_verbs(ctl: Ctl, rig: Rig) -> None:
    rig.worker("w1")
    rig.worker("w2")
    rig.sources("a", worker="w1")
    ctl("start-relay", "-s", "a")
    ctl("pause-relay", "-s", "a")
    ctl("resume-relay", "-s", "a")
    ctl("purge-relay", "-s", "a", "-f", "mysql-bin.000003")
    ctl("stop-relay", "-s", "a")
    assert rig.workers["w1:8262"].purged == [("mysql-bin.000003", "")]
    ctl("transfer-source", "a", "w2")
    assert [one["worker"] for one in ctl("operate-source", "show", "-s", "a")["sources"]] == ["w2"]
    ctl("offline-member", "--worker", "-n", "w2", code=1)
    ctl("operate-leader", "evict", code=1)
    ctl("config", "master", "m1")
    ctl("log-level", "-n", "m1")
    ctl("operate-source", "stop", "-s", "a")
    ctl("stop-task", "nothing", code=1)
    assert "CLUSTER-017" in ctl.shown
