"""The command that a form prints: it asks the master for the same as the form, and the same is done."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml
from browsed import browser
from page_served import SOURCE, PageServed, page_served, status, task_file
from playwright.sync_api import Browser
from test_page import PageText
from typer.testing import CliRunner

from support.chromium import new_tab
from support.waiting import PATIENCE_SECONDS
from unshard.api.status import Stage
from unshard.cli.app import app
from unshard.ctl import client
from unshard.master.service import Master
from unshard.web.page.actions import ACTIONS

__all__ = ["browser"]
LOCK = "shop-`shop`.`or'ders`"
SHARD = {"sources": "s1", "database": "shop_1", "table": "orders"}
UNLOCK = "shard-ddl-lock unlock 'shop-`a`.`b`'"
SQL = "ALTER TABLE shop.orders ADD COLUMN note TEXT COMMENT 'it''s';\nALTER TABLE shop.keys DROP COLUMN a"
FILE = task_file("young", ["s1"])
CHANGED = yaml.safe_dump({**yaml.safe_load(task_file("shop", ["s1"])), "clean-dump-file": False})
SOURCE_FILE = yaml.safe_dump({"source-id": "s2", "from": SOURCE})
CASES: tuple[tuple[str, dict[str, str], str], ...] = (
    ("pause-task", {"name": "shop"}, "pause-task shop"),
    ("pause-task", {"name": "shop", "sources": "s1"}, "pause-task shop -s s1"),
    ("pause-task", {"name": "-shop", "sources": "s1"}, "pause-task -s s1 -- -shop"),
    ("resume-task", {"name": "shop & co", "sources": "s1"}, "resume-task 'shop & co' -s s1"),
    ("stop-task", {"name": "shop"}, "stop-task shop"),
    ("binlog-skip", {"task": "shop", "sources": "s1"}, "binlog skip shop -s s1"),
    ("binlog-skip", {"task": "shop", "binlog_pos": "b.000003:99"}, "binlog skip shop -b b.000003:99"),
    ("binlog-replace", {"task": "shop", "sources": "s1", "sqls": SQL}, ""),
    ("binlog-inject", {"task": "shop", "sources": "s1", "sqls": "-- first\nDROP TABLE a.b", "binlog_pos": "b.1:4"}, ""),
    ("binlog-revert", {"task": "shop", "sources": "s1"}, "binlog revert shop -s s1"),
    ("shard-ddl-lock-unlock", {"id": LOCK}, ""),
    ("shard-ddl-lock-unlock", {"id": LOCK, "owner": "s1"}, ""),
    ("shard-run", {**SHARD, "id": "shop-`a`.`b`"}, f"{UNLOCK} -s s1 --action exec --database shop_1 --table orders"),
    ("shard-leave-out", {**SHARD, "id": LOCK, "database": "-d", "table": "it's $HOME"}, ""),
    ("pause-relay", {"sources": "s1"}, "pause-relay -s s1"),
    ("resume-relay", {"sources": "s1"}, "resume-relay -s s1"),
    ("transfer-source", {"source": "s1"}, "transfer-source s1 w2"),
    ("transfer-source", {"source": "s1", "worker": "w9"}, "transfer-source s1 w9"),
    ("offline-member", {"type": "worker", "name": "w2"}, "offline-member --worker -n w2"),
    ("offline-member", {"type": "master", "name": "m2"}, "offline-member --master -n m2"),
    ("operate-source", {"config": SOURCE_FILE}, "operate-source create SOURCE.yaml"),
    ("check-task", {"task": FILE}, "check-task TASK.yaml"),
    ("start-task", {"task": FILE}, "start-task TASK.yaml"),
    ("update-task", {"task": FILE}, "update-task TASK.yaml"),
    ("validation-start", {"task": "shop", "sources": "s1"}, "validation start shop --mode full -s s1"),
    ("validation-start", {"task": "shop", "mode": "fast"}, "validation start shop --mode fast"),
    ("validation-stop", {"task": "shop", "sources": "s1"}, "validation stop shop -s s1"),
    ("validation-ignore-error", {"task": "shop", "sources": "s1", "id": "7"}, "validation ignore-error shop 7 -s s1"),
    ("validation-resolve-error", {"task": "shop"}, "validation resolve-error shop --all"),
    ("validation-clear-error", {"task": "shop"}, "validation clear-error shop --all"),
)  # fmt: skip


class Printed(HTMLParser):
    """The command on a page, and the values of its form."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.command, self.fields, self._inside = "", dict[str, str](), False
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        told = dict(attrs)
        self._inside = self._inside or told.get("id") == "command"
        if tag == "input" and told.get("type") == "hidden":
            self.fields[str(told["name"])] = str(told["value"])

    def handle_endtag(self, tag: str) -> None:
        self._inside = self._inside and tag != "code"

    def handle_data(self, data: str) -> None:
        self.command += data if self._inside else ""


@dataclass
class Asked:
    """What the master is asked; while `on`, nothing of it is done."""

    requests: list[tuple[str, Any]] = field(default_factory=list)
    on: bool = False


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Asked:
    found = Asked()
    for name in {action.verb.replace("-", "_") for action in ACTIONS.values()}:

        def record(self: Master, request: Any, *more: Any, _name: str = name, **named: Any) -> dict[str, Any]:
            if not found.on:
                return verbs[_name](self, request, *more, **named)
            found.requests.append((_name, request))
            return {"result": True, "msg": "", "sources": []}

        monkeypatch.setattr(Master, name, record)
    return found


verbs: dict[str, Callable[..., dict[str, Any]]] = {
    name: getattr(Master, name) for name in {action.verb.replace("-", "_") for action in ACTIONS.values()}
}


@pytest.fixture
def page(asked: Asked, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[PageServed]:
    with served(tmp_path, monkeypatch) as made:
        yield made


def served(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.chdir(folder)
    return page_served(folder, status(), guarded=False)


def form(page: PageServed, action: str, given: dict[str, str]) -> Printed:
    """The form that a link leads to: it has what an address may hold."""
    plain = {one.name for one in ACTIONS[action].fields if not one.file}
    return Printed(
        httpx.get(
            f"{page.url}do/{action}", params={key: text for key, text in given.items() if key in plain}, timeout=60
        ).text
    )


def send(page: PageServed, action: str, given: dict[str, str]) -> Printed:
    """Send the form as it is filled in, with the choices that it has made."""
    asked = form(page, action, given)
    typed = given.get(ACTIONS[action].typed, "")
    answer = httpx.post(f"{page.url}do/{action}", data={**asked.fields, **given, "typed": typed}, timeout=60)
    assert answer.status_code == 200, PageText(answer.text).text
    return Printed(answer.text)


def run(page: PageServed, command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run a printed command as a user does, in a folder with the files that it names."""
    program, *words = shlex.split(command)
    assert program == "unshard"
    monkeypatch.setenv("UNSHARD_MASTER_ADDR", page.server.address)
    monkeypatch.setattr(client, "ALIVE_SECONDS", PATIENCE_SECONDS)  # the master is a thread of this process
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output


@pytest.mark.parametrize(
    ("action", "given", "command"), CASES, ids=[f"{name}-{at}" for at, (name, *_) in enumerate(CASES)]
)
def test_the_command_asks_for_the_same_as_the_form(
    page: PageServed, asked: Asked, monkeypatch: pytest.MonkeyPatch, action: str, given: dict[str, str], command: str
) -> None:
    Path("TASK.yaml").write_text(given.get("task", ""))
    Path("SOURCE.yaml").write_text(given.get("config", ""))
    before, asked.on = form(page, action, given).command, True
    printed = send(page, action, given).command
    assert command in ("", printed.removeprefix("unshard ctl "))
    assert before == printed, "the form prints it before it is sent, too"
    run(page, printed, monkeypatch)
    by_form, by_command = asked.requests
    assert by_form == by_command


def test_every_action_is_in_the_list() -> None:
    assert {name for name, _, _ in CASES} == set(ACTIONS)


def test_what_is_missing_has_a_word_in_the_command(page: PageServed) -> None:
    told = form(page, "binlog-replace", {"task": "shop", "sources": "s1"}).command
    assert told == "unshard ctl binlog replace shop STATEMENTS -s s1"
    page.lose_the_second_worker()
    assert form(page, "transfer-source", {"source": "s1"}).command == "unshard ctl transfer-source s1 WORKER"


def test_no_link_to_a_form_lacks_what_its_command_needs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of all links to forms on all screens: the command has no empty word, and a verb for `binlog`."""
    monkeypatch.chdir(tmp_path)
    with page_served(tmp_path, status(wrong=True, locked=True), guarded=False) as page:
        links = {
            (path, link)
            for path in ("", "errors", "locks", "cluster", "tasks/shop", "tasks/shop/validation")
            for link in PageText(httpx.get(page.url + path, timeout=60).text).links()
            if "do/" in link
        }
        names = {link.partition("do/")[2].partition("?")[0] for _, link in links}
        assert {"binlog-skip", "binlog-replace", "transfer-source", "resume-task", "shard-ddl-lock-unlock"} <= names
        for path, link in links:
            printed = Printed(httpx.get(httpx.URL(page.url + path).join(link), timeout=60).text)
            assert printed.command.startswith("unshard ctl "), link
            assert "''" not in printed.command, link


@pytest.mark.page
@pytest.mark.browser
def test_the_command_follows_what_is_typed(browser: Browser, page: PageServed) -> None:
    """The server makes it, which knows how to quote; the address that it is asked at holds no secret."""
    tab = new_tab(browser)
    asked: list[str] = []
    tab.goto(f"{page.url}do/binlog-replace?task=shop&sources=s1")
    assert tab.locator("#command").inner_text() == "unshard ctl binlog replace shop STATEMENTS -s s1"
    tab.on("request", lambda one: asked.append(one.url))
    tab.get_by_label("Statements").fill("DROP TABLE `a`.`it's`")
    tab.wait_for_selector("#command:has-text('DROP TABLE')")
    words = shlex.split(tab.locator("#command").inner_text())
    assert words[2:] == ["binlog", "replace", "shop", "DROP TABLE `a`.`it's`", "-s", "s1"]
    tab.get_by_label("Position").fill("b.000003:99")
    tab.wait_for_selector("#command:has-text('-b b.000003:99')")
    assert asked
    assert not [url for url in asked if "csrf" in url or "typed" in url]
    tab.get_by_role("link", name="Skip", exact=True).click()
    assert tab.locator("#command").inner_text() == "unshard ctl binlog skip shop -s s1"
    tab.context.close()


DONE: tuple[tuple[str, dict[str, str]], ...] = (
    ("pause-task", {"name": "shop"}),
    ("resume-task", {"name": "shop"}),
    ("stop-task", {"name": "shop"}),
    ("start-task", {"task": FILE}),
    ("operate-source", {"config": SOURCE_FILE}),
    ("offline-member", {"type": "worker", "name": "w2"}),
    ("pause-relay", {"sources": "s1"}),
    ("resume-relay", {"sources": "s1"}),
    ("update-task", {"task": CHANGED}),
)


BEFORE: dict[str, tuple[tuple[str, dict[str, str]], ...]] = {
    "resume-task": (("pause-task", {"name": "shop"}),),
    "resume-relay": (("pause-relay", {"sources": "s1"}),),
    "update-task": (("pause-task", {"name": "shop"}),),
}
"""What is done first, so that there is something to do."""


def state(page: PageServed) -> object:
    """What the cluster is to do, without what counts each change."""
    found = page.master.cluster.state
    rows = sorted((row.task, row.source, row.stage) for row in found.subtasks.values())
    relays = {name: (row.text, row.relay_stage, row.enabled) for name, row in found.sources.items()}
    texts = {name: row.text for name, row in found.tasks.items()}
    return rows, relays, texts, sorted(found.workers), {name: one.worker for name, one in found.bounds.items()}


@pytest.mark.parametrize(("action", "given"), DONE, ids=[name for name, _ in DONE])
def test_the_command_does_the_same_as_the_form(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, action: str, given: dict[str, str]
) -> None:
    found: list[object] = []
    printed = ""
    (tmp_path / "TASK.yaml").write_text(given.get("task", ""))
    (tmp_path / "SOURCE.yaml").write_text(given.get("config", ""))
    for by_form in (True, False):
        with served(tmp_path, monkeypatch) as page:
            for first in BEFORE.get(action, ()):
                send(page, *first)
            if action == "offline-member":
                page.master.liveness.forget("w2")
            before = state(page)
            if by_form:
                printed = send(page, action, given).command
            else:
                run(page, printed, monkeypatch)
            found.append(state(page))
            assert found[-1] != before
    assert found[0] == found[1]
    if action == "pause-task":
        assert ("shop", "s1", Stage.PAUSED) in found[1][0]  # type: ignore[index]
