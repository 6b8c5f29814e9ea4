"""DM's REST: a source and a task from their creation to their end, by its paths and field names."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cluster_rig import FakeWorker, task_text
from served_master import Served, served

SOURCE = {"source_name": "a", "host": "127.0.0.1", "port": 3306, "user": "root", "password": "pass word",
          "enable_gtid": False, "relay_config": {"enable_relay": True}, "purge": {"expires": 0}}  # fmt: skip
TASK: dict[str, Any] = {
    "name": "t",
    "task_mode": "all",
    "enhance_online_schema_change": True,
    "target_config": {"host": "127.0.0.1", "port": 4000, "user": "root", "password": "pass word"},
    "binlog_filter_rule": {"no-drop": {"ignore_event": ["drop table"]}},
    "table_migrate_rule": [
        {
            "source": {"source_name": "a", "schema": "shop_*", "table": "order_*"},
            "target": {"schema": "shop", "table": "order"},
            "binlog_filter_rule": ["no-drop"],
        }
    ],
    "source_config": {
        "full_migrate_conf": {"export_threads": 2, "import_threads": 3, "data_dir": "./dumps"},
        "incr_migrate_conf": {"repl_threads": 4, "repl_batch": 50},
        "source_conf": [{"source_name": "a"}],
    },
}


@pytest.fixture
def one(tmp_path: Path) -> Iterator[Served]:
    with served(f"sqlite:///{tmp_path / 'm.db'}", "one") as found:
        worker = FakeWorker("w1", found.master)
        found.workers[worker.addr] = worker
        worker.beat()
        yield found


def ask(one: Served, method: str, path: str, status: int, body: Any = None) -> Any:
    answer = one.client.request(method, f"/api/v1{path}", json=body)
    assert answer.status_code == status, answer.text
    return answer.json() if answer.content else None


def test_a_source_from_its_creation_to_its_end(one: Served) -> None:
    made = ask(one, "POST", "/sources", 201, {"source": SOURCE})
    assert made["password"] == "******"
    assert made["relay_config"]["enable_relay"] is True
    told = ask(one, "GET", "/sources?with_status=true", 200)
    assert told["total"] == 1
    assert told["data"][0]["status_list"][0]["worker_name"] == "w1"
    refused = ask(one, "POST", "/sources", 400, {"source": SOURCE})
    assert refused["error_code"] == "CLUSTER-006"
    assert "already exists" in refused["error_msg"]
    ask(one, "PUT", "/sources/a", 200, {"source": SOURCE | {"password": "******", "enable_gtid": True}})
    assert "pass word" in one.master.cluster.state.sources["a"].text
    refused = ask(one, "PUT", "/sources/a", 400, {"source": SOURCE | {"password": "******", "user": "other"}})
    assert refused["error_code"] == "CLUSTER-016", "the password was not written for this account"
    ask(one, "PUT", "/sources/a", 200, {"source": SOURCE | {"user": "other", "enable_gtid": True}})
    assert "pass word" in one.master.cluster.state.sources["a"].text
    ask(one, "POST", "/sources/a/disable", 200)
    left_out = {key: value for key, value in SOURCE.items() if key != "enable_gtid"} | {"user": "third"}
    changed = ask(one, "PUT", "/sources/a", 200, {"source": left_out})
    assert (changed["user"], changed["enable"], changed["enable_gtid"]) == ("third", False, True)
    ask(one, "POST", "/sources/a/relay/disable", 200)
    ask(one, "POST", "/sources/a/relay/purge", 200, {"relay_binlog_name": "bin.000002"})
    assert one.workers["w1:8262"].purged == [("bin.000002", "")]
    assert ask(one, "GET", "/cluster/workers", 200)["data"] == [
        {"name": "w1", "addr": "w1:8262", "bound_stage": "bound", "bound_source_name": "a"}
    ]
    ask(one, "DELETE", "/sources/a", 204)
    ask(one, "GET", "/sources/a", 400)


def test_a_task_from_its_creation_to_its_end(one: Served) -> None:
    ask(one, "POST", "/sources", 201, {"source": SOURCE})
    made = ask(one, "POST", "/tasks", 201, {"task": TASK})
    assert made["task"]["target_config"]["password"] == "******"
    assert made["task"]["table_migrate_rule"][0]["target"] == {"schema": "shop", "table": "order"}
    assert status(one)["stage"] == "Stopped"
    ask(one, "POST", "/tasks/t/start", 200)
    assert status(one)["stage"] == "Running"
    assert status(one)["worker_name"] == "w1"
    config = one.workers["w1:8262"].order.subtasks[0].config  # type: ignore[union-attr]
    assert (config["dumper"]["threads"], config["loader"]["pool-size"], config["syncer"]["batch-rows"]) == (2, 3, 50)
    assert config["block-allow"]["do-tables"] == [{"db-name": "shop_*", "tbl-name": "order_*"}]
    refused = ask(one, "DELETE", "/tasks/t", 400)
    assert refused["error_code"] == "CLUSTER-016"
    ask(one, "POST", "/tasks/t/stop", 200)
    assert status(one)["stage"] == "Stopped"
    changed = TASK | {"source_config": TASK["source_config"] | {"incr_migrate_conf": {"repl_batch": 7}}}
    ask(one, "PUT", "/tasks/t", 200, {"task": changed | {"target_config": TASK["target_config"] | {"password": ""}}})
    ask(one, "POST", "/tasks/t/start", 200, {"source_name_list": ["a"]})
    assert one.workers["w1:8262"].order.subtasks[0].config["syncer"]["batch-rows"] == 7  # type: ignore[union-attr]
    ask(one, "POST", "/sources/a/disable", 200)
    assert status(one)["stage"] == "Stopped"
    ask(one, "POST", "/sources/a/enable", 200)
    ask(one, "DELETE", "/tasks/t?force=true", 204)
    assert ask(one, "GET", "/tasks", 200) == {"total": 0, "data": []}
    ask(one, "POST", "/tasks", 201, {"task": TASK})
    refused = ask(one, "DELETE", "/tasks/t", 400)
    assert refused["error_code"] == "TARGET-001", "the records go with the task: its target is asked"
    ask(one, "DELETE", "/tasks/t?keep_meta=true", 204)
    assert ask(one, "GET", "/tasks", 200) == {"total": 0, "data": []}


def status(one: Served) -> dict[str, Any]:
    one.workers["w1:8262"].beat()
    found: dict[str, Any] = ask(one, "GET", "/tasks/t/status", 200)["data"][0]
    return found


def test_templates(one: Served) -> None:
    ask(one, "POST", "/tasks/templates", 201, {"task": TASK})
    ask(one, "POST", "/tasks/templates", 400, {"task": TASK})
    elsewhere = TASK["target_config"] | {"host": "elsewhere", "password": ""}
    refused = ask(one, "PUT", "/tasks/templates/t", 400, {"task": TASK | {"target_config": elsewhere}})
    assert refused["error_code"] == "CLUSTER-016", "the password was not written for this host"
    ask(one, "PUT", "/tasks/templates/t", 200, {"task": TASK | {"task_mode": "full"}})
    assert ask(one, "GET", "/tasks/templates", 200)["data"][0]["task_mode"] == "full"
    ask(one, "DELETE", "/tasks/templates/t", 204)
    ask(one, "GET", "/tasks/templates/t", 400)


def test_a_task_file_and_its_object(one: Served) -> None:
    told = ask(one, "POST", "/tasks/converters", 201, {"task": TASK})
    assert "task-mode: all" in told["task_config_file"]
    back = ask(one, "POST", "/tasks/converters", 201, {"task_config_file": task_text("x", "a", "b")})
    assert [conf["source_name"] for conf in back["task"]["source_config"]["source_conf"]] == ["a", "b"]
    ask(one, "POST", "/tasks/converters", 400, {"task_config_file": "name: ["})
    assert "pass word" not in ask(one, "POST", "/tasks", 422, {"task": TASK | {"nome": "pass word"}})["error_msg"]


def test_the_older_paths_and_the_document(one: Served) -> None:
    ask(one, "POST", "/sources", 201, {"source": SOURCE})
    old = "/apis/v1alpha1"
    assert one.client.post(f"{old}/tasks", json={"task": task_text("t", "a")}).json()["result"]
    assert one.client.put(f"{old}/tasks/t", json={"op": "Pause"}).json()["op"] == "Pause"
    told = one.client.get(f"{old}/tasks/t").json()
    assert told["result"]
    assert "task-mode: all" in told["cfg"]
    assert "pass word" not in told["cfg"]
    assert one.client.get(f"{old}/status/t").json()["sources"][0]["subTaskStatus"][0]["stage"] == "Paused"
    assert "pass word" not in one.client.get(f"{old}/subtasks/t").text
    assert one.client.get(f"{old}/members").json()["result"]
    assert "/api/v1/tasks/{task_name}/start" in ask(one, "GET", "/dm.json", 200)["paths"]
    assert "<h1>Unshard master</h1>" in one.client.get("/api/v1/docs").text
