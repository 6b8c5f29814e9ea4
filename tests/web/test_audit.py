"""The audit log: every request to change something, before and after; no line and no answer tells a secret."""

from __future__ import annotations

import stat
from pathlib import Path
from typing import Any

import pytest
from served import bearer, get, post, served, server_client, tokens

from unshard.api import verbs
from unshard.errors import ClusterError
from unshard.web import audit
from unshard.web.audit import AuditLog
from unshard.web.audit_names import names_in

SECRET = "s3cr3t-marker"


def lines(folder: Path) -> list[dict[str, Any]]:
    return AuditLog(str(folder / "audit.log")).newest(100)


def test_who_asked_to_change_what_and_what_came_of_it(tmp_path: Path) -> None:
    callers = tokens(tmp_path, oda="operator", vic="viewer", ada="admin")
    with served(tmp_path, token_file=str(callers)) as server, server_client(server) as client:

        def post(who: str, task: str, name: str) -> int:
            order = {"name": name, "password": SECRET}
            return client.post(f"/tasks/{task}", headers=bearer(who), json=order).status_code

        client.get("/status", headers=bearer("oda"))
        assert [post("oda", "t1", name) for name in ("s1", "no", "bad", "bug")] == [200, 200, 400, 500]
        assert post("vic", "t1", "s1") == 403
        assert (
            client.post("/tasks/t2", headers=bearer("oda"), json={"name": "n", "password": [SECRET]}).status_code == 422
        )
        shown = client.get("/api/v1/cluster/audit", headers=bearer("ada")).json()["data"]
        assert client.get("/api/v1/cluster/audit", headers=bearer("oda")).status_code == 403
        assert client.get("/api/v1/cluster/audit?limit=0", headers=bearer("ada")).status_code == 422
    found = lines(tmp_path)
    assert shown == found[: len(shown)]
    assert len(found) == len(shown) + 1
    del found[-1]
    asked = [line for line in found if line["phase"] == "asked"]
    assert asked[0] | {"id": "", "time": ""} == {
        "id": "", "time": "", "phase": "asked", "who": "oda", "role": "operator", "from": "127.0.0.1",
        "verb": "POST /tasks/t1", "object": {"task": "t1", "name": "s1"},
    }  # fmt: skip
    answers = [(line["status"], line["result"]) for line in found if line["phase"] == "answered"]
    assert answers == [(200, "done"), (200, "failed"), (400, "CLUSTER-051"), (500, "died"), (422, "CLUSTER-059")]
    assert [line["id"] for line in asked] == [line["id"] for line in found if line["phase"] == "answered"]
    assert [(line["who"], line["result"]) for line in found if line["phase"] == "refused"] == [("vic", "CLUSTER-054")]
    text = (tmp_path / "audit.log").read_text()
    assert SECRET not in text
    assert "token-" not in text
    assert stat.S_IMODE((tmp_path / "audit.log").stat().st_mode) == 0o600


def test_no_answer_tells_what_was_sent(tmp_path: Path) -> None:
    with served(tmp_path) as server:
        url = f"http://{server.address}/tasks/t"
        bodies: list[Any] = [
            {"name": 1, "password": {"x": SECRET}}, {"name": "bug", "password": SECRET}, {"name": "a", SECRET: 1},
            {"name": "n", "password": "p", "count": SECRET}, [SECRET], SECRET,
        ]  # fmt: skip
        for body in bodies:
            answer = post(url, json=body)
            assert answer.status_code in (422, 500)
            assert SECRET not in answer.text
        answer = post(url, content=f'{{"password": "{SECRET}'.encode(), headers={"Content-Type": "application/json"})
        assert (answer.status_code, SECRET in answer.text) == (422, False)


def test_what_cannot_be_written_down_is_not_done(tmp_path: Path) -> None:
    with served(tmp_path) as server:
        url = f"http://{server.address}/tasks/t"
        order = {"name": "n", "password": "p"}
        (tmp_path / "audit.log").unlink()
        assert post(url, json=order).status_code == 200  # moved away: begun anew
        (tmp_path / "audit.log").unlink()
        (tmp_path / "audit.log").mkdir()
        answer = post(url, json=order)
        assert (answer.status_code, answer.json()["error_code"]) == (503, "CLUSTER-058")
        assert get(f"http://{server.address}/status").status_code == 200
    with pytest.raises(ClusterError):
        AuditLog(str(tmp_path / "no folder" / "audit.log"))


def test_the_newest_lines_of_a_long_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit, "_BLOCK_BYTES", 100)
    log = AuditLog(str(tmp_path / "audit.log"))
    for number in range(50):
        log.refused({"who": f"ö{number}"}, "GET /", "no")
    with (tmp_path / "audit.log").open("ab") as file:
        file.write(b'{"torn')
    assert [line["who"] for line in log.newest(4)] == ["ö47", "ö48", "ö49"]
    assert len(log.newest(1000)) == 50
    log.refused({"who": "behind it"}, "GET /", "no")
    assert [line["who"] for line in log.newest(3)] == ["ö49", "behind it"]
    (tmp_path / "audit.log").unlink()
    assert log.newest(4) == []


def test_only_names_are_taken_from_a_body() -> None:
    task = "name: t\ntarget-database: {password: x}"
    body = (
        b'{"task": "%s", "source": ["s1", "a b", 3], "worker": "w1", "password": "p"}'
        % task.replace("\n", "\\n").encode()
    )
    assert names_in({"t": "x\ny"}, {}, body) == {
        "t": "x\ny", "source": ["s1"], "worker": "w1", "task": "t",
    }  # fmt: skip
    assert names_in({}, {}, b"no json") == {}
    assert names_in({}, {}, b'["task"]') == {}


TASK = "name: shop\ntarget-database: {password: s3cr3t-marker}\n"
SOURCE = '{"source-id": "s1", "from": {"password": "s3cr3t-marker"}}'
LOCK = "shop-`shop`.`or ders`"
BOTH = {"name": "shop", "sources": ["s1", "s2"]}
VERBS: list[tuple[verbs.Request, dict[str, Any]]] = [
    (verbs.CheckTask(task=TASK), {"task": "shop"}),
    (
        verbs.StartTask(task=TASK, sources=("s1",), remove_meta=True, start_time="2026-01-02 03:04:05"),
        {"task": "shop", "sources": ["s1"], "remove_meta": True, "start_time": "2026-01-02 03:04:05"},
    ),
    *((kind(name="shop", sources=("s1", "s2")), BOTH) for kind in (verbs.StopTask, verbs.PauseTask, verbs.ResumeTask)),
    (verbs.UpdateTask(task=TASK), {"task": "shop"}),
    (
        verbs.ShardDdlLockUnlock(id=LOCK, owner="s1", force_remove=True),
        {"id": LOCK, "owner": "s1", "force_remove": True, "action": "skip"},
    ),
    (
        verbs.Binlog(op="replace", task="shop", sources=("s1",), binlog_pos="bin.000003:4", sqls=("s3cr3t-marker",)),
        {"op": "replace", "task": "shop", "sources": ["s1"], "binlog_pos": "bin.000003:4"},
    ),
    (
        verbs.BinlogSchema(op="update", task="shop", database="a b", table="t", from_source=True),
        {"op": "update", "task": "shop", "database": "a b", "table": "t", "from_source": True},
    ),
    (
        verbs.Validation(op="ignore-error", task="shop", sources=("s1",), id=7),
        {"op": "ignore-error", "task": "shop", "sources": ["s1"], "id": 7},
    ),
    (
        verbs.OperateSource(op="create", config=(SOURCE, SOURCE.replace("s1", "s2")), worker="w1"),
        {"op": "create", "source": ["s1", "s2"], "worker": "w1"},
    ),
    (verbs.OperateSource(op="stop", source_id=("s1",)), {"op": "stop", "source_id": ["s1"]}),
    (verbs.UpdateSource(config=SOURCE), {"source": "s1"}),
    (verbs.TransferSource(source="s1", worker="10.0.0.1:8262"), {"source": "s1", "worker": "10.0.0.1:8262"}),
    (verbs.StartRelay(sources=("s1",), workers=("w1",)), {"sources": ["s1"], "workers": ["w1"]}),
    *((kind(sources=("s1",)), {"sources": ["s1"]}) for kind in (verbs.StopRelay, verbs.PauseRelay, verbs.ResumeRelay)),
    (
        verbs.PurgeRelay(sources=("s1",), filename="mysql-bin.000007", sub_dir="ab-12.000001"),
        {"sources": ["s1"], "filename": "mysql-bin.000007", "sub_dir": "ab-12.000001"},
    ),
    (verbs.OfflineMember(type="worker", name="w1"), {"type": "worker", "name": "w1"}),
    (verbs.OperateLeader(op="evict"), {"op": "evict"}),
    (verbs.ConfigExport(), {}),
    (verbs.Encrypt(plaintext=SECRET), {}),
    (verbs.LogLevel(level="debug", names=("m1",)), {"level": "debug", "names": ["m1"]}),
]


@pytest.mark.parametrize(("request_", "named"), VERBS, ids=[request.verb for request, _ in VERBS])
def test_the_line_of_a_verb_says_what_is_done_to_what(request_: verbs.Request, named: dict[str, Any]) -> None:
    body = request_.model_dump_json(by_alias=True).encode()
    assert names_in({}, {}, body) == named


def test_every_verb_that_changes_something_has_its_line() -> None:
    changing = {verb for verb, kind in verbs.REQUESTS.items() if kind.needs != "viewer"}
    assert changing == {request.verb for request, _ in VERBS}


def test_objects_files_and_flags_of_rest() -> None:
    body = b'{"task": {"name": "shop", "target_config": {"password": "p"}}, "overwrite": true}'
    assert names_in({}, {}, body) == {"task": "shop", "overwrite": True}
    source = b'{"source": {"source_name": "s1", "password": "p"}, "worker_name": "w1"}'
    assert names_in({}, {}, source) == {"source": "s1", "worker_name": "w1"}
    flags = {"force": "true", "keep_meta": "false"}
    assert names_in({"task_name": "shop"}, flags, b"") == {"task_name": "shop", **flags}
    assert names_in({}, {}, b'{"task": "name: [", "config": "' + b"[" * 50_000 + b'"}') == {}
