"""Which master is asked, what ends the asking, and how it is told."""

from __future__ import annotations

import json
import re
import socket
import ssl
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from support.certificates import Authority
from unshard.cli.app import app
from unshard.ctl import client
from unshard.testing.proxy import FaultProxy

GOOD = {"result": True, "msg": "", "tasks": []}


def ctl(*words: str, **environment: str) -> Result:
    return CliRunner().invoke(app, ["ctl", *words], env=environment)


_TAKEN: list[socket.socket] = []


def nobody() -> str:
    """An address where nothing listens, and nobody else begins to."""
    taken = socket.socket()
    taken.bind(("127.0.0.1", 0))
    _TAKEN.append(taken)
    return f"127.0.0.1:{taken.getsockname()[1]}"


def test_masters_are_tried_in_order_until_one_answers(master: Any) -> None:
    master.answers["query-status"] = (200, GOOD)
    done = ctl("query-status", "--master-addr", f"{nobody()},{master.address}", "--master-addr", nobody())
    assert done.exit_code == 0
    assert json.loads(done.stdout) == GOOD
    assert done.stdout == json.dumps(GOOD, indent=4) + "\n"


@pytest.mark.parametrize("variable", ["UNSHARD_MASTER_ADDR", "DM_MASTER_ADDR"])
def test_the_environment_names_the_masters(master: Any, variable: str) -> None:
    assert ctl("query-status", **{variable: f" {nobody()} , {master.address}"}).exit_code == 0
    assert master.verbs == ["query-status"]


def test_no_answer_tells_why_for_each_master(master: Any) -> None:
    away = nobody()
    master.answers["query-status"] = (400, {"result": False, "msg": "CLUSTER-001: none", "error_code": "CLUSTER-001"})
    done = ctl("query-status", "--master-addr", f"{away},{master.address}")
    assert done.exit_code == 1
    assert done.stdout == ""
    assert "CLUSTER-041" in done.stderr
    assert "refused" in done.stderr
    assert "CLUSTER-001: none" in done.stderr
    master.answers["query-status"] = (503, {"result": False, "msg": "busy"})
    assert "busy" in ctl("query-status", "--master-addr", master.address).stderr


def test_without_a_master_it_says_how_to_name_one(master: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    del master
    monkeypatch.chdir(tmp_path)
    done = ctl("query-status")
    assert done.exit_code == 1
    assert "CLUSTER-040" in done.stderr
    assert "--master-addr" in done.stderr


def test_a_run_in_this_folder_is_found(master: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "unshard.addr").write_text(f"{master.address}\n")
    monkeypatch.chdir(tmp_path)
    assert ctl("query-status").exit_code == 0
    assert ctl("binlog", "skip", "orders").exit_code == 0
    assert master.verbs == ["query-status", "binlog"]
    for text in (b"\xff", b"203.0.113.1:8261", b"127.0.0.1.example:8261"):
        (tmp_path / "unshard.addr").write_bytes(text)
        assert "CLUSTER-040" in ctl("query-status").stderr


def test_a_run_is_found_whatever_its_log_is_called(
    master: Any, other: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("orders.addr").write_text(f"{master.address}\n")
    assert ctl("query-status").exit_code == 0
    for killed, left in {"a": f"{nobody()}\n", "b": "127.0.0.1:99999", "c": "none", "d": ""}.items():
        Path(f"{killed}.addr").write_text(left)
    Path("e.addr").mkdir()
    assert ctl("query-status").exit_code == 0, "it is the only one that lives"
    Path("stock.addr").write_text(f"{other.address}\n")
    several = ctl("pause-task", "orders")
    assert several.exit_code == 2
    assert "--master-addr" in several.stderr
    told = re.sub(r"[\s│]+", " ", several.stderr)
    assert f"{master.address} (orders.addr), {other.address} (stock.addr)" in told
    assert master.verbs == ["query-status", "query-status"]
    assert not other.asked


@pytest.mark.usefixtures("master")
def test_runs_that_were_all_killed_are_told_with_their_addresses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    killed = [nobody(), nobody()]
    for number, address in enumerate(killed):
        Path(f"{number}.addr").write_text(address)
    told = ctl("query-status").stderr
    assert "CLUSTER-041" in told
    assert all(address in told for address in killed)


def test_a_run_in_this_folder_is_asked_about_a_task_s_file_too(
    master: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "unshard.addr").write_text(f"{master.address}\n")
    (tmp_path / "task.yaml").write_text("name: orders\n")
    monkeypatch.chdir(tmp_path)
    assert ctl("check-task", "task.yaml").exit_code == 0
    assert ctl("check-task", "task.yaml", "-s", "source.yaml").exit_code == 1
    assert master.verbs == ["check-task"]


def test_a_file_has_the_flags_and_flags_count_over_it(master: Any, tmp_path: Path) -> None:
    toml, other = tmp_path / "dmctl.toml", tmp_path / "ctl.yaml"
    toml.write_text(f'master-addr = "{master.address}"\nrpc-timeout = "60s"\n')
    other.write_text(f"master-addr: {nobody()}\ntoken: env:MY_TOKEN\n")
    assert ctl("--config", str(toml), "query-status").exit_code == 0
    words = ["query-status", "--config", str(other)]
    assert "CLUSTER-041" in ctl(*words, MY_TOKEN="unshard_x").stderr
    assert ctl(*words, "--master-addr", master.address, MY_TOKEN="unshard_x").exit_code == 0
    assert [headers.get("Authorization") for _, _, headers in master.asked] == [None, "Bearer unshard_x"]
    other.write_text("master: 127.0.0.1:1\n")
    assert "CONFIG-001" in ctl(*words).stderr
    assert ctl("-V").stdout.startswith("unshard ")


def test_a_no_is_printed_and_ends_with_1(master: Any) -> None:
    refused = {"result": False, "msg": "CLUSTER-008: there is no such source", "sources": []}
    master.answers["pause-task"] = (400, refused)
    done = ctl("pause-task", "orders", "--master-addr", master.address)
    assert done.exit_code == 1
    assert json.loads(done.stdout) == refused


def test_the_token_is_shown_and_a_refusal_told(master: Any, tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("unshard_abc\n")
    ctl("query-status", "--master-addr", master.address, "--token-file", str(file))
    ctl("query-status", "--master-addr", master.address, UNSHARD_TOKEN="unshard_def")
    shown = [headers.get("Authorization") for _, _, headers in master.asked]
    assert shown == ["Bearer unshard_abc", "Bearer unshard_def"]
    master.answers["stop-task"] = (403, {"result": False, "msg": "alice is a viewer"})
    done = ctl("stop-task", "x", "--master-addr", master.address)
    assert done.exit_code == 1
    assert "CLUSTER-043" in done.stderr
    assert "alice is a viewer" in done.stderr
    gone = ctl("query-status", "--master-addr", master.address, "--token-file", str(tmp_path / "gone"))
    assert gone.exit_code == 1
    assert "CONFIG-004" in gone.stderr


@pytest.mark.parametrize("answer", [b"<html>a proxy</html>", b"[1]", b'{"detail": "Not Found"}', b"\xff"])
def test_what_is_no_master_is_said(master: Any, answer: bytes) -> None:
    master.answers["query-status"] = (404, answer)
    done = ctl("query-status", "--master-addr", master.address)
    assert done.exit_code == 1
    assert "CLUSTER-042" in done.stderr
    assert "HTTP 404" in done.stderr


@pytest.mark.parametrize("verb", ["query-status", "stop-task"])
def test_a_master_that_shows_no_sign_of_life_is_passed_over(
    master: Any, verb: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that is frozen takes connections and is silent; one that has died behind a proxy breaks them."""
    monkeypatch.setattr(client, "ALIVE_SECONDS", 4.0)
    with socket.create_server(("127.0.0.1", 0)) as frozen, FaultProxy("127.0.0.1", 1) as proxy:
        proxy.refuse()
        silent = f"127.0.0.1:{frozen.getsockname()[1]}"
        addresses = f"{silent},127.0.0.1:{proxy.port},{master.address}"
        assert ctl(verb, "x", "--master-addr", addresses).exit_code == 0
        none = ctl(verb, "x", "--rpc-timeout", "100ms", "--master-addr", silent)
    assert master.verbs == [verb]
    assert none.exit_code == 1
    assert "CLUSTER-041" in none.stderr
    assert "no answer within 0.1 s" in none.stderr


def test_what_only_looks_goes_on_to_the_next_master_where_the_connection_breaks(master: Any, other: Any) -> None:
    other.breaks |= {"query-status", "stop-task"}
    addresses = f"{other.address},{master.address}"
    assert ctl("query-status", "--master-addr", addresses).exit_code == 0
    assert "CLUSTER-045" in ctl("stop-task", "x", "--master-addr", addresses).stderr
    assert master.verbs == ["query-status"]


def test_a_request_that_may_be_under_way_goes_to_no_other_master(master: Any, other: Any) -> None:
    other.hangs.add("stop-task")
    done = ctl("stop-task", "x", "--rpc-timeout", "4s", "--master-addr", f"{other.address},{master.address}")
    assert done.exit_code == 1
    assert "CLUSTER-045" in done.stderr
    assert "query-status" in done.stderr
    assert other.verbs == ["stop-task"]
    assert master.asked == []


def test_what_only_looks_goes_on_where_the_leader_went_with_it_and_a_change_does_not(master: Any, other: Any) -> None:
    gone = {"result": False, "msg": "CLUSTER-087: gone", "error_code": "CLUSTER-087"}
    other.answers |= dict.fromkeys(("query-status", "stop-task"), (504, gone))
    addresses = f"{other.address},{master.address}"
    assert ctl("query-status", "--master-addr", addresses).exit_code == 0
    done = ctl("stop-task", "x", "--master-addr", addresses)
    assert done.exit_code == 1
    assert "CLUSTER-087: gone" in done.stdout
    assert master.verbs == ["query-status"]


@pytest.mark.parametrize("address", ["ftp://127.0.0.1:1", "http://[::1", "127.0.0.1:port"])
def test_an_address_that_is_none_is_wrong_use(master: Any, address: str) -> None:
    del master
    done = ctl("query-status", "--master-addr", address)
    assert done.exit_code == 2
    assert "--master-addr" in done.stderr


def test_with_certificates_it_speaks_tls_and_holds_the_master_to_its_authority(master: Any, tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    server, operator = authority.issue("master"), authority.issue("operator")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(server.cert, server.key)
    context.load_verify_locations(authority.ca)
    context.verify_mode = ssl.CERT_REQUIRED
    master.server.socket = context.wrap_socket(master.server.socket, server_side=True)
    words = ["query-status", "--master-addr", master.address, "--ssl-ca", str(authority.ca)]
    pair = ["--ssl-cert", str(operator.cert), "--ssl-key", str(operator.key)]
    assert ctl(*words, *pair).exit_code == 0
    other = Authority(tmp_path, "other")
    told = ctl("query-status", "--master-addr", master.address, "--ssl-ca", str(other.ca), *pair)
    assert told.exit_code == 1
    assert "CLUSTER-041" in told.stderr
    assert "certificate verify failed" in told.stderr
    assert "CLUSTER-052" in ctl(*words[:-1], str(tmp_path / "gone.pem")).stderr


def test_a_verb_loads_nothing_that_only_other_processes_need() -> None:
    """What they take to load is time before every answer."""
    heavy = "cryptography fastapi MySQLdb numpy prompt_toolkit pyarrow pymysql pyspark sqlalchemy structlog uvicorn"
    lines = (
        "import sys",
        "from unshard.cli.app import app",
        "try:",
        "    app(['ctl', '--master-addr', '127.0.0.1:1', 'list-member'])",
        "except SystemExit as end:",
        f"    print(end.code, *sorted({set(heavy.split())} & set(sys.modules)))",
    )
    done = subprocess.run([sys.executable, "-c", "\n".join(lines)], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["1"]
