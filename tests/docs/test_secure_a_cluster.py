"""The page "Secure a cluster", followed: its certificates, its tokens, its key, on a served application."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from test_commands_and_files import ROOT, blocks
from typer.testing import CliRunner

from unshard.cli.app import app
from unshard.config.access import Role
from unshard.config.encryption import KEY_PATH
from unshard.config.files import load_access
from unshard.config.listener import LinkSecurity, ListenerConfig
from unshard.config.secret import read_secret
from unshard.web.audit import AuditLog
from unshard.web.guard import guarded_app
from unshard.web.observe import audit_routes
from unshard.web.server import WebServer
from unshard.web.tls import http_client
from unshard.web.tokens import Access

PAGE = ROOT / "docs" / "how-to" / "secure-a-cluster.md"


def say(*words: str, given: str = "") -> str:
    answer = CliRunner().invoke(app, words, input=given)
    assert answer.exit_code == 0, answer.output
    return answer.output


def test_its_certificates_and_tokens_let_the_right_ones_in(tmp_path: Path) -> None:
    certificates = next(text for text in blocks(PAGE, "sh") if "req -x509" in text)
    subprocess.run(["/bin/sh", "-e"], input=certificates, text=True, cwd=tmp_path, check=True, capture_output=True)
    told = say("ctl", "token", "ann", "admin")
    token = next(line.split()[-1] for line in told.splitlines() if line.startswith("token:"))
    entry = next(line for line in told.splitlines() if "sha256" in line)
    (tmp_path / "tokens.yaml").write_text(f"tokens:\n{entry}\n")
    assert Access(str(tmp_path / "tokens.yaml")).find(token, "") == ("ann", Role.ADMIN)
    keys = {"ssl_ca": "ca.pem", "ssl_cert": "master-1.pem", "ssl_key": "master-1.key", "token_file": "tokens.yaml"}
    config = ListenerConfig.model_validate({key: str(tmp_path / file) for key, file in keys.items()})
    served = guarded_app("page", audit=AuditLog(""))
    served.include_router(audit_routes())
    server = WebServer(served, config, "0.0.0.0:0")
    server.start()
    try:
        own = {key: str(tmp_path / file) for key, file in keys.items() if key != "token_file"}
        security = LinkSecurity.model_validate({**own, "token": token})
        with http_client(security, f"https://localhost:{server.port}") as client:
            assert client.get("/api/v1/cluster/audit").status_code == 200
            assert client.get("/api/v1/cluster/audit", headers={"Authorization": "x"}, auth=None).status_code == 401
    finally:
        server.stop(1)


def test_its_key_encrypts_what_a_file_may_hold(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = next(text for text in blocks(PAGE, "sh") if "rand -hex" in text).splitlines()
    making = "\n".join(line for line in made if not line.startswith("unshard"))
    subprocess.run(["/bin/sh", "-e"], input=making, text=True, cwd=tmp_path, check=True)
    monkeypatch.setenv(KEY_PATH, "")
    told = say("ctl", "--json", "encrypt", "--secret-key-path", str(tmp_path / "secret.key"), given="geheim\n")
    text = next(word.strip('",') for word in told.split() if "aes:v1:" in word)
    assert read_secret(text) == "geheim"


def test_its_roles_are_those_that_there_are() -> None:
    text = PAGE.read_text()
    assert {role for role in Role if f"| {role} |" in text} == set(Role)
    tokens = next(block for block in blocks(PAGE, "yaml") if block.startswith("tokens:"))
    assert {f"role: {role}" in tokens for role in Role} == {True}


def test_its_file_of_tokens_loads(tmp_path: Path) -> None:
    path = tmp_path / "tokens.yaml"
    path.write_text(next(block for block in blocks(PAGE, "yaml") if block.startswith("tokens:")))
    assert len(load_access(path).tokens) == 5
