"""Every path of DM's REST and of its older gateway, each with a real request: none is missing, none breaks."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cluster_rig import FakeWorker
from served_master import Served, served

from unshard.api.verbs import PATH
from unshard.testing.mariadb_server import MariadbServer

V1, OLD = "/api/v1", "/apis/v1alpha1"


@pytest.fixture
def one(tmp_path: Path) -> Iterator[Served]:
    with served(f"sqlite:///{tmp_path / 'm.db'}", "one") as found:
        for name in ("w1", "w2"):
            worker = FakeWorker(name, found.master)
            found.workers[worker.addr] = worker
            worker.beat()
        yield found


def source_form(server: MariadbServer, name: str) -> dict[str, Any]:
    return {"source_name": name, "host": "127.0.0.1", "port": server.port, "user": "root", "password": "",
            "enable_gtid": False}  # fmt: skip


def task_form(server: MariadbServer, schema: str, name: str) -> dict[str, Any]:
    return {
        "name": name,
        "task_mode": "all",
        "meta_schema": schema,
        "target_config": {"host": "127.0.0.1", "port": server.port, "user": "root", "password": ""},
        "table_migrate_rule": [{"source": {"source_name": "a", "schema": schema, "table": "*"}}],
        "source_config": {"source_conf": [{"source_name": "a"}]},
    }


def file_text(server: MariadbServer, schema: str) -> str:
    database = {"host": "127.0.0.1", "port": server.port, "user": "root"}
    instances = [{"source-id": "a"}]
    form = {"name": "t", "task-mode": "all", "meta-schema": schema, "target-database": database}
    return json.dumps({**form, "mysql-instances": instances})


def requests(source: MariadbServer, target: MariadbServer, schema: str) -> list[tuple[str, str, Any, int]]:
    """Method, path, body and status, in an order in which all of them have a meaning."""
    a, b = source_form(source, "a"), source_form(source, "b")
    task = task_form(target, schema, "t")
    structure = f"{V1}/tasks/t/sources/a/schemas/{schema}/orders"
    topology = {"grafana_topology": {"host": "10.0.0.9", "port": 3000}, "master_topology_list": [{"name": "x"}]}
    return [
        ("GET", f"{V1}/docs", None, 200),
        ("GET", f"{V1}/dm.json", None, 200),
        ("GET", "/metrics", None, 200),
        ("GET", "/status", None, 200),
        ("POST", f"{V1}/sources", {"source": a}, 201),
        ("GET", f"{V1}/sources?with_status=true&enable_relay=false", None, 200),
        ("GET", f"{V1}/sources/a?with_status=true", None, 200),
        ("PUT", f"{V1}/sources/a", {"source": a}, 200),
        ("GET", f"{V1}/sources/a/status", None, 200),
        ("GET", f"{V1}/sources/a/schemas", None, 200),
        ("GET", f"{V1}/sources/a/schemas/{schema}", None, 200),
        ("POST", f"{V1}/sources/a/disable", None, 200),
        ("POST", f"{V1}/sources/a/enable", None, 200),
        ("POST", f"{V1}/sources/a/relay/enable", {"worker_name_list": ["w1"]}, 200),
        ("POST", f"{V1}/sources/a/relay/disable", {"worker_name_list": ["w1"]}, 200),
        ("POST", f"{V1}/sources/a/relay/purge", {"relay_binlog_name": "mysql-bin.000002"}, 200),
        ("POST", f"{V1}/sources/a/transfer", {"worker_name": "w2"}, 200),
        ("POST", f"{V1}/tasks", {"task": task}, 201),
        ("GET", f"{V1}/tasks?with_status=true&stage=Stopped&source_name_list=a,b", None, 200),
        ("GET", f"{V1}/tasks/t?with_status=true", None, 200),
        ("GET", f"{V1}/tasks/t/status?source_name_list=a", None, 200),
        ("PUT", f"{V1}/tasks/t", {"task": task}, 200),
        ("POST", f"{V1}/tasks/t/start", {"source_name_list": ["a"]}, 200),
        ("GET", f"{V1}/tasks/t/sources/a/migrate_targets?schema_pattern=*&table_pattern=o*", None, 200),
        ("GET", f"{V1}/tasks/t/sources/a/schemas", None, 200),
        ("GET", f"{V1}/tasks/t/sources/a/schemas/{schema}", None, 200),
        ("GET", structure, None, 400),
        ("POST", f"{V1}/tasks/t/stop", {}, 200),
        ("PUT", structure, {"schema_source": "upstream"}, 400),
        ("DELETE", structure, None, 400),
        ("POST", f"{V1}/tasks/converters", {"task": task}, 201),
        ("POST", f"{V1}/tasks/templates", {"task": task}, 201),
        ("GET", f"{V1}/tasks/templates", None, 200),
        ("POST", f"{V1}/tasks/templates/import", {"overwrite": True}, 202),
        ("GET", f"{V1}/tasks/templates/t", None, 200),
        ("PUT", f"{V1}/tasks/templates/t", {"task": task}, 200),
        ("DELETE", f"{V1}/tasks/templates/t", None, 204),
        ("PUT", f"{V1}/cluster/info", topology, 200),
        ("GET", f"{V1}/cluster/info", None, 200),
        ("GET", f"{V1}/cluster/masters", None, 200),
        ("DELETE", f"{V1}/cluster/masters/nobody", None, 400),
        ("GET", f"{V1}/cluster/workers", None, 200),
        ("DELETE", f"{V1}/cluster/workers/w1", None, 400),
        ("DELETE", f"{V1}/tasks/t?force=true", None, 204),
        ("POST", f"{OLD}/tasks", {"task": file_text(target, schema)}, 200),
        ("PUT", f"{OLD}/tasks/t", {"op": "Pause"}, 200),
        ("GET", f"{OLD}/tasks/t", None, 200),
        ("GET", f"{OLD}/status/t", None, 200),
        ("PUT", f"{OLD}/sources", {"op": "show"}, 200),
        ("GET", f"{OLD}/members", None, 200),
        ("DELETE", f"{OLD}/members/worker/w1", None, 400),
        ("PUT", f"{OLD}/leader/cancel-evict", None, 200),
        ("PUT", f"{OLD}/schema", {"op": "list", "task": "t", "database": schema, "table": "orders"}, 200),
        ("GET", f"{OLD}/subtasks/t", None, 200),
        ("PUT", f"{OLD}/errors", {"op": "list", "task": "t"}, 200),
        ("POST", f"{V1}/sources", {"source": b}, 201),
        ("DELETE", f"{V1}/sources/b?force=true", None, 204),
    ]


def test_every_path_is_there_and_answers(
    one: Served, source_server: MariadbServer, target_server: MariadbServer, schema: str
) -> None:
    source_server.run(
        f"CREATE DATABASE {schema}",
        f"CREATE TABLE {schema}.orders (id INT PRIMARY KEY)",
        f"CREATE TABLE {schema}.versions (id INT PRIMARY KEY) WITH SYSTEM VERSIONING",
        f"CREATE VIEW {schema}.seen AS SELECT * FROM {schema}.orders",
    )
    target_server.run(f"CREATE DATABASE {schema}", f"CREATE TABLE {schema}.t_validator_checkpoint (id INT)")
    told = {}
    for method, path, body, status in requests(source_server, target_server, schema):
        answer = one.client.request(method, path, json=body)
        assert answer.status_code == status, f"{method} {path}: {answer.status_code} {answer.text[:500]}"
        told[f"{method} {path.partition('?')[0]}"] = answer
    assert told[f"GET {V1}/sources/a/schemas/{schema}"].json() == ["orders", "versions"]
    topology = told[f"GET {V1}/cluster/info"].json()["topology"]
    assert topology["grafana_topology"] == {"host": "10.0.0.9", "port": 3000}
    assert [row["name"] for row in topology["master_topology_list"]] == ["one"]
    kept = target_server.query(f"SHOW TABLES FROM {schema}")
    assert ("t_validator_checkpoint",) not in kept, "what was on record went with the task"
    own = (f"{PATH}/", f"{V1}/cluster/audit")
    for path, methods in told[f"GET {V1}/dm.json"].json()["paths"].items():
        if path.startswith((V1, OLD)) and not path.startswith(own):
            for method in methods:
                wanted = re.compile(f"{method.upper()} " + re.sub(r"{\w+}", "[^/]+", path))
                assert any(wanted.fullmatch(one) for one in told), f"{method} {path} is not tried"
