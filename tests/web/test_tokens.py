"""Tokens and roles: who gets in, what they may, and that a changed file counts at once."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from served import bearer, get, served, server_client, tokens

from unshard.config.access import Role, new_token, token_hash
from unshard.config.files import load_access
from unshard.config.listener import LinkSecurity
from unshard.errors import ClusterError, ConfigError, Where
from unshard.web.tls import http_client
from unshard.web.tokens import Access, Caller

ALL = {"vic": "viewer", "oda": "operator", "ada": "admin", "w1": "worker", "m1": "master"}
ASKED = (("GET", "/status"), ("POST", "/tasks/t"), ("DELETE", "/tasks/t"), ("POST", "/beat"))
ANSWERS = {
    "vic": (200, 403, 403, 403),
    "oda": (200, 200, 403, 403),
    "ada": (200, 200, 200, 403),
    "w1": (403, 403, 403, 200),
    "m1": (403, 403, 403, 403),
}


def test_each_role_may_what_it_may(tmp_path: Path) -> None:
    with served(tmp_path, token_file=str(tokens(tmp_path, **ALL))) as server, server_client(server) as client:
        for name, answers in ANSWERS.items():
            found = [
                client.request(verb, path, headers=bearer(name), json={"name": "n", "password": "p"}).status_code
                for verb, path in ASKED
            ]
            assert tuple(found) == answers, name
        for wrong in ("", "Bearer", "Bearer token-an", "Basic token-ada", "Bearer " + token_hash("x")):
            for verb, path in (*ASKED, ("GET", "/nowhere"), ("PUT", "/status")):
                answer = client.request(verb, path, headers={"Authorization": wrong})
                assert (answer.status_code, answer.json()["error_code"]) == (401, "CLUSTER-053")
        assert client.get("/nowhere", headers=bearer("vic")).status_code == 404
        assert client.put("/status", headers=bearer("vic")).status_code == 405


def test_a_body_may_ask_for_more_than_its_route(tmp_path: Path) -> None:
    with served(tmp_path, token_file=str(tokens(tmp_path, **ALL))) as server, server_client(server) as client:
        asked = [(who, op) for who in ("vic", "ada", "w1") for op in ("list", "drop")]
        found = [client.post("/either", headers=bearer(who), json={"op": op}).status_code for who, op in asked]
        assert found == [200, 403, 200, 200, 403, 403]


def test_a_master_passes_a_caller_on_and_nobody_else_does(tmp_path: Path) -> None:
    with served(tmp_path, token_file=str(tokens(tmp_path, **ALL))) as server:
        url = f"http://{server.address}/status"
        told = get(url, headers={**bearer("m1"), "unshard-as": "viewer vic"}).json()
        assert told == {"who": "vic", "role": "viewer", "via": "m1"}
        assert get(url, headers={**bearer("w1"), "unshard-as": "admin ada"}).status_code == 403
        assert get(url, headers={**bearer("vic"), "unshard-as": "admin ada"}).json()["role"] == "viewer"
        assert get(url, headers={**bearer("m1"), "unshard-as": "master m1"}).status_code == 401
        for name in ("Jürgen Käse", "a\nb: c", "100%25", "名"):
            told = get(url, headers={**bearer("m1"), **Caller(name, Role.VIEWER, "").passed_on()}).json()
            assert told == {"who": name, "role": "viewer", "via": "m1"}


def test_a_changed_file_counts_at_once_and_a_broken_one_not(tmp_path: Path) -> None:
    file = tokens(tmp_path, ann="viewer")
    with served(tmp_path, token_file=str(file)) as server:
        url = f"http://{server.address}/status"
        assert get(url, headers=bearer("ann")).status_code == 200
        tokens(tmp_path, bob="viewer", cat="admin")
        assert get(url, headers=bearer("ann")).status_code == 401
        assert get(url, headers=bearer("bob")).status_code == 200
        file.write_text("tokens: [")
        assert get(url, headers=bearer("bob")).status_code == 200
        file.unlink()
        assert get(url, headers=bearer("bob")).status_code == 200


def test_a_file_that_may_be_read_again_is_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tokens(tmp_path, ann="viewer")
    access = Access(str(file))
    tokens(tmp_path, bob="viewer")
    with monkeypatch.context() as forbidden:
        forbidden.setattr("unshard.web.tokens.load_access", unreadable)
        assert access.find(bearer("ann")["Authorization"].removeprefix("Bearer "), "") == ("ann", Role.VIEWER)
    file.chmod(0o640)
    assert access.find(bearer("bob")["Authorization"].removeprefix("Bearer "), "") == ("bob", Role.VIEWER)


def unreadable(file: str) -> Any:
    raise ConfigError("CONFIG-001", Where(file=file), "Permission denied")


def test_a_token_counts_to_the_end_of_its_last_day(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tokens(tmp_path, ann="viewer")
    file.write_text(file.read_text().replace("}", ", expires: 2030-02-28}"))
    last = datetime(2030, 2, 28, 23, 59, 59, 999_999, tzinfo=UTC)
    with served(tmp_path, token_file=str(file)) as server:
        for now, status in ((last, 200), (last + timedelta(microseconds=1), 401)):
            monkeypatch.setattr("unshard.web.tokens.datetime", SimpleNamespace(now=now.astimezone))
            assert get(f"http://{server.address}/status", headers=bearer("ann")).status_code == status


def test_a_client_shows_its_token_as_it_is_now(tmp_path: Path) -> None:
    shown = tmp_path / "token"
    shown.write_text("token-ann\n")
    callers, security = tokens(tmp_path, ann="viewer", bob="viewer"), LinkSecurity(token=f"file:{shown}")
    with (
        served(tmp_path, token_file=str(callers)) as server,
        http_client(security, f"http://{server.address}") as client,
    ):
        assert client.get("/status").json()["who"] == "ann"
        shown.write_text("token-bob\n")
        assert client.get("/status").json()["who"] == "bob"
    assert "token-x" not in repr(LinkSecurity(token="token-x"))


def test_new_tokens_are_long_and_their_own() -> None:
    made = {new_token() for _ in range(10)}
    assert len(made) == 10
    assert all(token_hash(token) == digest and len(token) > 48 for token, digest in made)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("tokens: []", "tokens"),
        ("tokens:\n  - {name: a, role: king, sha256: %s}" % ("0" * 64), "role"),
        ("tokens:\n  - {name: a, role: viewer, sha256: unshard_secret}", "never the token itself"),
        ("tokens:\n  - {name: a, role: viewer}", "either sha256 or certificate"),
        ("tokens:\n  - {name: a, role: viewer, token: unshard_secret}", "unknown key"),
        ("tokens:\n  - &a {name: a, role: viewer, certificate: x}\n  - *a", "the same name"),
    ],
)
def test_a_wrong_file_of_tokens_is_refused_and_never_quoted(tmp_path: Path, text: str, why: str) -> None:
    file = tmp_path / "tokens.yaml"
    file.write_text(text)
    with pytest.raises(ConfigError, match=why) as caught:
        load_access(file)
    assert "unshard_secret" not in str(caught.value)


def test_roles_cover_those_before_them() -> None:
    covered = {role: {needed for needed in Role if role.covers(needed)} for role in Role}
    assert covered[Role.ADMIN] == {Role.VIEWER, Role.OPERATOR, Role.ADMIN}
    assert covered[Role.OPERATOR] == {Role.VIEWER, Role.OPERATOR}
    assert all(covered[role] == {role} for role in (Role.VIEWER, Role.WORKER, Role.MASTER))


@pytest.mark.parametrize("text", ["", "token: unshard_x", "unshard_x\nfor the token-file", "unshard_\N{EN DASH}x"])
def test_a_file_that_holds_more_than_the_token_is_told_without_what_it_holds(tmp_path: Path, text: str) -> None:
    path = tmp_path / "ann.token"
    path.write_text(text, encoding="utf-8")
    with (
        http_client(LinkSecurity(token=f"file:{path}"), "http://127.0.0.1:9", seconds=1) as client,
        pytest.raises(ClusterError, match="CLUSTER-095") as caught,
    ):
        client.get("/status")
    assert "unshard_" not in str(caught.value)
    assert str(path) in str(caught.value)
