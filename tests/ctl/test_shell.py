"""`unshard ctl` at a prompt: lines, history, what completion offers."""

from __future__ import annotations

import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from prompt_toolkit import PromptSession
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.output import DummyOutput
from typer.main import get_group

import unshard.ctl.completion as completion_module
from unshard.ctl.app import ctl
from unshard.ctl.completion import NameCompletion, VerbCompleter
from unshard.ctl.session import CtlSession
from unshard.ctl.shell import DiscreetHistory, history_path, shell

TABLE = get_group(ctl)


@pytest.fixture
def session(master: Any, monkeypatch: pytest.MonkeyPatch) -> CtlSession:
    monkeypatch.setattr(completion_module, "_ASK_SECONDS", 60.0)
    monkeypatch.setattr(completion_module, "_FRESH_SECONDS", 3600.0)
    master.answers["query-status"] = (200, {"result": True, "msg": "", "tasks": [{"taskName": "orders"}]})
    shown = {"result": True, "msg": "", "sources": [{"source": "shop-01"}, {"source": "shop-02"}]}
    master.answers["operate-source"] = (200, shown)
    workers = [{"worker": {"msg": "", "workers": [{"name": "w1"}]}}]
    master.answers["list-member"] = (200, {"result": True, "msg": "", "members": workers})
    return CtlSession((master.address,))


@pytest.fixture
def prompt(tmp_path: Path) -> Iterator[Any]:
    """Gives a prompt that reads a text."""
    with create_pipe_input() as piped:

        def of(text: str) -> PromptSession[str]:
            piped.send_text(text)
            return PromptSession(input=piped, output=DummyOutput(), history=DiscreetHistory(tmp_path / "h" / "history"))

        yield of


def test_each_line_is_a_verb_and_errors_do_not_end_it(
    session: CtlSession, master: Any, prompt: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = ["pause-task orders -s shop-01", "", "nonsense", "stop-task", "'open", "help binlog", "list-member -w"]
    shell(TABLE, session, prompt("\n".join([*lines, "exit", "operate-leader evict\n"])))
    assert [(verb, body.get("sources")) for verb, body, _ in master.asked] == [
        ("pause-task", ["shop-01"]),
        ("list-member", None),
    ]
    told = capsys.readouterr()
    assert "nonsense" in told.err
    assert "name a task" in told.err
    assert "no closing quotation" in told.err
    assert "binlog skip" in told.out or "skip" in told.out


def test_flags_of_one_line_do_not_stay(session: CtlSession, master: Any, prompt: Any) -> None:
    shell(TABLE, session, prompt("query-status -s a\nquery-status\nquit\n"))
    assert [body.get("sources") for _, body, _ in master.asked] == [["a"], None]


def test_the_end_of_input_and_interrupts(session: CtlSession, master: Any, prompt: Any) -> None:
    shell(TABLE, session, prompt("half a li\x03query-status\n\x04"))
    assert master.verbs == ["query-status"]


def test_the_history_is_the_owners_and_keeps_no_password(session: CtlSession, prompt: Any, tmp_path: Path) -> None:
    shell(TABLE, session, prompt("query-status\nencrypt hunter2\n-s a encrypt hunter3\nexit\n"))
    file = tmp_path / "h" / "history"
    assert "query-status" in file.read_text()
    assert "hunter" not in file.read_text()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert history_path({"XDG_STATE_HOME": "/state"}) == Path("/state/unshard/ctl_history")


@pytest.mark.parametrize(
    ("text", "offered", "missing"),
    [
        ("", ["query-status", "exit", "help", "binlog"], ["handle-error", "show-ddl-locks"]),
        ("pause-t", ["pause-task"], ["pause-relay"]),
        ("binlog ", ["skip", "list"], ["query-status"]),
        ("binlog skip ", ["orders"], ["shop-01"]),
        ("stop-task or", ["orders"], []),
        ("stop-task orders -", ["--batch-size", "--source", "--help"], ["--force-remove"]),
        ("stop-task orders -s ", ["shop-01", "shop-02"], ["orders"]),
        ("stop-task orders --source shop-01,sh", ["shop-02"], ["orders"]),
        ("transfer-source shop-01 ", ["w1"], ["shop-02"]),
        ("operate-source ", ["create", "show"], []),
        ("operate-leader e", ["evict"], ["cancel-evict"]),
        ("binlog replace orders 'ALTER", [], ["orders"]),
        ("encrypt ", [], ["orders"]),
    ],
)
def test_what_is_offered(session: CtlSession, text: str, offered: list[str], missing: list[str]) -> None:
    completer = VerbCompleter(TABLE, NameCompletion(session))
    found = {one.text for one in completer.get_completions(Document(text), CompleteEvent())}
    assert set(offered) <= found, found
    assert not found.intersection(missing), found


def test_names_are_asked_for_once_in_a_while_and_a_silent_master_does_no_harm(session: CtlSession, master: Any) -> None:
    names = NameCompletion(session)
    assert names.of("task") == names.of("task") == ("orders",)
    assert master.verbs == ["query-status"]
    master.answers["operate-source"] = (500, {"detail": "broken"})
    assert names.of("source") == ()


def test_files_are_offered_too(session: CtlSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "orders.yaml").write_text("")
    monkeypatch.chdir(tmp_path)
    completer = VerbCompleter(TABLE, NameCompletion(session))
    found = list(completer.get_completions(Document("start-task or"), CompleteEvent()))
    assert "ders.yaml" in {one.text for one in found}
