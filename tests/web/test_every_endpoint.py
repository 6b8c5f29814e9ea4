"""Every endpoint of master and worker: nobody without a token, nobody in the wrong role, nothing that breaks it.

The master has a real source and a real target behind it: what gets as far as SQL finds nothing to inject into.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import pytest
import yaml
from fastapi import FastAPI
from served import bearer, tokens

from unshard.api.heartbeat import PurgeWish
from unshard.api.status import CopyProgress, FigureHistory, LogTail, SourceReport, SourceStatus
from unshard.api.verbs import PATH, REQUESTS
from unshard.config.access import Role
from unshard.config.listener import ListenerConfig
from unshard.master.service import Master
from unshard.master.store import Store
from unshard.testing.mariadb_server import MariadbServer
from unshard.web.audit import AuditLog
from unshard.web.guard import role_of, routes_of
from unshard.web.links import WorkerLinks
from unshard.web.master_app import master_app
from unshard.web.server import WebServer
from unshard.web.worker_app import worker_app

ALL = {"vic": "viewer", "oda": "operator", "ada": "admin", "w1": "worker", "m1": "master"}
NAMES = {"viewer": "vic", "operator": "oda", "admin": "ada", "worker": "w1", "master": "m1"}
MARK = "s3cr3t-m4rker"
LIMIT = 100_000
OF_TASKS = frozenset({"check-task", "start-task", "update-task"})
HOSTILE = (
    "'; DROP DATABASE canary; -- ", '`; DROP TABLE canary.t; -- "`', "a\nb\r\nSet-Cookie: x\0\\%s%n{0.__class__}",
    "../../../../etc/passwd", "x" * 5000, "密" * 64, "\ud800", "*",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Face:
    """One served application."""

    app: FastAPI
    client: httpx.Client
    audit: Path

    def endpoints(self) -> Iterator[tuple[str, str, Role]]:
        for route in routes_of(self.app):
            role = role_of(route)
            assert role is not None
            for method in sorted(route.methods):
                yield method, route.path, role

    def ask(self, method: str, path: str, who: str, body: Any = None) -> httpx.Response:
        text = json.dumps(body) if body is not None else ""
        headers = {**bearer(who), "Content-Type": "application/json"}
        return self.client.request(method, path, content=text.encode("utf-8", "surrogatepass"), headers=headers)


class FakeLink:
    """A worker that answers."""

    def report(self, task: str | None, seconds: float) -> SourceReport:
        return SourceReport(source_status=SourceStatus(source=task or ""))

    fresh_report = report

    def copy_progress(self, task: str, life: str, since: int, seconds: float) -> CopyProgress:
        return CopyProgress()

    def history(self, seconds: float) -> FigureHistory:
        return FigureHistory()

    def log_tail(self, life: str, after: int, seconds: float) -> LogTail:
        return LogTail()

    def wake(self) -> None: ...

    def purge_relay(self, wish: PurgeWish) -> str:
        return ""

    def resume_relay(self) -> None: ...


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("faces")


@pytest.fixture(scope="module")
def config(folder: Path) -> ListenerConfig:
    return ListenerConfig(token_file=str(tokens(folder, **ALL)), max_request_bytes=LIMIT)


def face(app: FastAPI, config: ListenerConfig, audit: Path) -> Iterator[Face]:
    server = WebServer(app, config, "127.0.0.1:0")
    server.start()
    with httpx.Client(base_url=f"http://{server.address}", timeout=60) as client:
        yield Face(app, client, audit)
    server.stop(1)


@pytest.fixture(scope="module")
def master(folder: Path, config: ListenerConfig) -> Iterator[Face]:
    links = WorkerLinks(config, "http", 1.0)
    store = Store(f"sqlite:///{folder / 'master.db'}")
    made = Master(store, links, "m1", lease_seconds=3600.0, level_of=links.level_of)
    audit = AuditLog(str(folder / "master.audit"))
    made.start()
    yield from face(master_app(made, audit, links.client), config, folder / "master.audit")
    made.close()
    links.close()


@pytest.fixture(scope="module")
def worker(folder: Path, config: ListenerConfig) -> Iterator[Face]:
    audit = folder / "worker.audit"
    yield from face(worker_app(FakeLink(), AuditLog(str(audit)), tuple, {}), config, audit)


@pytest.fixture(params=["master", "worker"])
def any_face(request: pytest.FixtureRequest) -> Face:
    found: Face = request.getfixturevalue(request.param)
    return found


def filled(path: str, text: str = "x") -> str:
    """The path with the text for each name in it."""
    for part in path.split("{")[1:]:
        path = path.replace("{" + part.split("}")[0] + "}", text)
    return path


def test_nobody_gets_in_without_a_token_or_in_the_wrong_role(any_face: Face) -> None:
    found = list(any_face.endpoints())
    assert len(found) > 2
    for method, path, role in found:
        for headers in ({}, {"Authorization": "Bearer x"}):
            refused = any_face.client.request(method, filled(path), headers=headers)
            assert refused.status_code == 401, (method, path)
        for who, has in ALL.items():
            allowed = Role(has).covers(role)
            answer = any_face.ask(method, filled(path), who, {} if method != "GET" else None)
            assert allowed or answer.status_code == 403, (method, path, who)
            assert not allowed or answer.status_code not in (401, 500), (method, path, who, answer.text)


def test_a_verb_that_looks_with_one_body_and_changes_with_another(master: Face) -> None:
    """Also where two readers of JSON might take the body differently."""
    verb = f"{PATH}/operate-source"
    assert master.ask("POST", verb, "vic", {"op": "show"}).status_code == 200
    headers = {**bearer("vic"), "Content-Type": "application/json"}
    change = '{"op": "stop", "sourceId": ["s"]'
    for body in (
        change + "}", change + ', "op": "stop"}', '{"op": "show", "op": "stop", "sourceId": ["s"]}',
        "\ufeff" + change + "}", " " * 50 + change + "}", change.replace('"op"', '"\\u006fp"') + "}",
    ):  # fmt: skip
        for coding in ("utf-8", "utf-16", "utf-32"):
            answer = master.client.post(verb, content=body.encode(coding), headers=headers)
            assert answer.status_code == 403, (body, coding, answer.text)
    twice = '{"op": "stop", "op": "show", "sourceId": ["s"]}'
    assert "there is no such source" not in master.client.post(verb, content=twice, headers=headers).text


def test_a_viewer_has_no_server_logged_in_at(master: Face) -> None:
    """A task file names hosts, and files that passwords are read from: who may only look gives the master none."""
    task = yaml.safe_dump({"name": "t", "target-database": {"host": "h", "password": "file:/etc/hostname"}})
    assert master.ask("POST", f"{PATH}/check-task", "vic", {"task": task}).status_code == 403


def test_long_bodies_are_refused_everywhere(any_face: Face) -> None:
    for method, path, role in any_face.endpoints():
        if method != "GET":
            answer = any_face.ask(method, filled(path), NAMES[role], {"x": "y" * LIMIT})
            assert answer.status_code == 413, (method, path)


@pytest.mark.parametrize(
    "body", [b"", b"{", b"[]", b"null", b'"x"', b"\xff\xfe", b"1" * 5000, b"[" * 20_000, b'{"a":' * 5000]
)
def test_bodies_that_are_none_are_told_so(any_face: Face, body: bytes) -> None:
    for method, path, role in any_face.endpoints():
        headers = {**bearer(NAMES[role]), "Content-Type": "application/json"}
        answer = any_face.client.request(method, filled(path), content=body, headers=headers)
        assert answer.status_code < 500, (method, path, answer.text)


def values(kind: Any, text: str, name: str) -> dict[str, Any]:
    """A body of a verb with the name in every place where it fits, and the text where one of a file belongs."""
    body: dict[str, Any] = {}
    files = {"config", "task"} if kind.verb in OF_TASKS else {"config"}
    for key, info in kind.model_fields.items():
        shape = str(info.annotation)
        if "Literal" in shape:
            body[info.alias or key] = info.annotation.__args__[0]
        elif "tuple" in shape:
            body[info.alias or key] = [text if key in files else name]
        elif "str" in shape:
            body[info.alias or key] = text if key in files else name
    return body


@pytest.fixture(scope="module")
def known(master: Face, source_server: MariadbServer, target_server: MariadbServer) -> dict[str, Any]:
    """A source that the master knows, and a task's form."""
    server = {"host": "127.0.0.1", "user": "root", "password": ""}
    source = yaml.safe_dump({"source-id": "s1", "from": {**server, "port": source_server.port}})
    answer = master.ask("POST", f"{PATH}/operate-source", "oda", {"op": "create", "config": [source]})
    assert answer.json()["result"], answer.text
    target_server.run("CREATE DATABASE canary", "CREATE TABLE canary.t (id INT PRIMARY KEY)")
    database = {**server, "port": target_server.port}
    return {"name": "t", "task-mode": "all", "target-database": database, "mysql-instances": [{"source-id": "s1"}]}


def task_of(known: dict[str, Any], text: str) -> dict[str, Any]:
    """A task with the text for each of its names."""
    tables = {"b": {"do-tables": [{"db-name": text, "tbl-name": text}]}}
    instance = {"source-id": "s1", "block-allow-list": "b"}
    return {**known, "name": text, "meta-schema": text, "block-allow-list": tables, "mysql-instances": [instance]}


def test_hostile_names_reach_nothing(
    master: Face, known: dict[str, Any], source_server: MariadbServer, target_server: MariadbServer
) -> None:
    schemas = {row for server in (source_server, target_server) for row in server.query("SHOW DATABASES")}
    for text in HOSTILE:
        for verb, kind in REQUESTS.items():
            body = values(kind, text, text)
            if verb in OF_TASKS and "\ud800" not in text:
                body |= {"task": yaml.safe_dump(task_of(known, text)), "sources": [], "startTime": ""}
            answer = master.ask("POST", f"{PATH}/{verb}", "ada", body)
            assert answer.status_code < 500, (verb, text, answer.text)
            assert "set-cookie" not in answer.headers
            assert "root:" not in answer.text
        for method, path, role in master.endpoints():
            if "{" in path:
                answer = master.ask(method, filled(path, quote(text, safe="", errors="ignore")), NAMES[role], {})
                assert answer.status_code < 500, (method, path, text, answer.text)
                assert "set-cookie" not in answer.headers
    assert {row for server in (source_server, target_server) for row in server.query("SHOW DATABASES")} >= schemas
    assert target_server.query("SELECT count(*) FROM canary.t") == [(0,)]
    assert master.ask("POST", f"{PATH}/query-status", "vic", {}).json()["result"] is True


def test_no_answer_and_no_line_has_a_secret(master: Face, known: dict[str, Any]) -> None:
    server = {"host": "127.0.0.1", "port": 1, "user": "u", "password": MARK}
    source = yaml.safe_dump({"source-id": "s2", "from": server})
    task = yaml.safe_dump({**known, "name": "t2", "target-database": {**server, "session": {"a": MARK}}})
    broken = f"from: {{password: {MARK}, x: [}}"
    for verb, kind in REQUESTS.items():
        for text in (source, task, broken, task.replace("task-mode: all", f"task-mode: {{x: {MARK}}}")):
            body = values(kind, text, "x")
            if verb not in ("encrypt", "config-export"):
                answer = master.ask("POST", f"{PATH}/{verb}", "ada", body)
                assert MARK not in answer.text, (verb, answer.text)
    assert MARK not in master.audit.read_text()
