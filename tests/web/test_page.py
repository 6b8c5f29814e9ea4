"""The page without a browser: names as text, roles, forms, headers, sizes."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from threading import Event
from urllib.parse import quote

import httpx
import pytest
from page_served import HOSTILE, PageServed, copied, page_served, status, task_file
from served import bearer

from unshard.api.heartbeat import Heartbeat
from unshard.api.status import Stage
from unshard.api.verbs import StartTask
from unshard.metrics.sample import own_version
from unshard.web.page import reader as state_reader
from unshard.web.page.actions import ACTIONS
from unshard.web.page.reader import IDLE_SECONDS, StateReader
from unshard.web.page.screens import ROWS_A_PAGE

SCREENS = (
    "",
    "errors",
    "locks",
    "cluster",
    "tasks/shop",
    "tasks/shop/tables",
    "tasks/shop/copy",
    "tasks/shop/routes",
    "tasks/shop/config",
)


class PageText(HTMLParser):
    """What a page says, and the tags and attributes that it has."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.texts: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.texts.append(data)

    @property
    def text(self) -> str:
        return "".join(self.texts)

    def links(self) -> set[str]:
        return {str(attrs.get("href")) for tag, attrs in self.tags if tag == "a"}

    def hidden(self, name: str) -> str:
        return next(str(attrs["value"]) for tag, attrs in self.tags if tag == "input" and attrs.get("name") == name)


@pytest.fixture(scope="module")
def served_page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PageServed]:
    with page_served(tmp_path_factory.mktemp("page"), status(wrong=True, locked=True)) as made:
        yield made


@pytest.fixture
def page(served_page: PageServed) -> PageServed:
    served_page.set(status(wrong=True, locked=True))
    return served_page


@contextmanager
def client(page: PageServed, who: str = "") -> Iterator[httpx.Client]:
    with httpx.Client(base_url=page.url, timeout=60, follow_redirects=True) as made:
        if who:
            assert made.post("login", data={"token": f"token-{who}"}).status_code == 200
        yield made


def read(browser: httpx.Client, path: str, code: int = 200) -> PageText:
    answer = browser.get(path)
    assert answer.status_code == code, answer.text
    return PageText(answer.text)


def test_a_browser_without_a_token_gets_a_form(page: PageServed) -> None:
    with client(page) as browser:
        for path in SCREENS:
            assert 'name="token"' in browser.get(path).text
            assert browser.get(path).status_code == 401
        assert browser.post("login", data={"token": "token-nobody"}).status_code == 401
        assert browser.get("static/page.css").status_code == 200


def test_the_cookie_is_for_the_page_alone(page: PageServed) -> None:
    with client(page) as browser:
        answer = browser.post("login", data={"token": "token-ada"}, follow_redirects=False)
        cookie = answer.headers["set-cookie"]
        assert answer.headers["location"] == "./"
        assert "HttpOnly" in cookie
        assert "SameSite=Strict" in cookie
        assert "token-ada" not in cookie
        assert browser.get("").status_code == 200
        assert browser.get(f"http://{page.server.address}/api/v1/tasks").status_code == 401


def test_a_log_out_ends_the_session(page: PageServed) -> None:
    with client(page, "vic") as browser:
        csrf = read(browser, "").hidden("csrf")
        kept = dict(browser.cookies)
        assert browser.post("logout", data={"csrf": csrf}).status_code == 200
        browser.cookies.update(kept)
        assert browser.get("").status_code == 401


def test_hostile_names_are_text(page: PageServed) -> None:
    with client(page, "ada") as browser:
        for path in ("", "errors", "tasks/shop", "tasks/shop/tables"):
            html = browser.get(path).text
            assert "<script>alert" not in html
            table = path.endswith("tables")
            assert (HOSTILE if table else HOSTILE.replace("\u202e", "\\u202e")) in PageText(html).text
            assert table or "\u202e" not in html, "no sentence is turned around"
        assert "<script>alert" not in browser.get("tasks/shop/tables", params={"q": HOSTILE}).text
        assert "<script>alert" not in browser.get("do/stop-task", params={"name": HOSTILE}).text
        assert "<script>alert" not in browser.get(f"tasks/{HOSTILE.replace('/', '')}").text


def test_every_answer_has_a_strict_policy_and_nothing_from_elsewhere(page: PageServed) -> None:
    with client(page, "ada") as browser:
        for path in (*SCREENS, "audit", "do/stop-task?name=shop", "static/page.js", "nothing"):
            answer = browser.get(path)
            policy = answer.headers["content-security-policy"]
            assert "default-src 'none'" in policy
            assert "unsafe" not in policy
            assert "frame-ancestors 'none'" in policy
            assert "style=" not in answer.text or "static" in path
            assert not re.search(r'(src|href|action)="(https?:)?//', answer.text)


def test_every_link_is_relative(page: PageServed) -> None:
    """A proxy may put any prefix before the page."""
    with client(page, "ada") as browser:
        for path in (*SCREENS, "do/stop-task?name=shop"):
            found = read(browser, path)
            named = [attrs.get(key) for _, attrs in found.tags for key in ("href", "src", "action")]
            assert not [one for one in named if one and one.startswith("/")]


def test_who_may_not_sees_no_button_and_is_refused_by_hand(page: PageServed) -> None:
    with client(page, "vic") as browser:
        csrf = read(browser, "").hidden("csrf")
        for path in SCREENS:
            assert not [link for link in read(browser, path).links() if "do/" in link or "audit" in link]
        for verb in ACTIONS:
            assert browser.get(f"do/{verb}").status_code == 403
            assert browser.post(f"do/{verb}", data={"name": "shop", "csrf": csrf}).status_code == 403
        assert browser.get("audit").status_code == 403
    assert page.wanted() is Stage.RUNNING


def test_a_form_of_another_site_changes_nothing(page: PageServed) -> None:
    with client(page, "oda") as browser:
        csrf = read(browser, "do/pause-task?name=shop").hidden("csrf")
        for data in ({"name": "shop"}, {"name": "shop", "csrf": "x"}, {"name": "shop", "csrf": csrf[:-1]}):
            assert browser.post("do/pause-task", data=data).status_code == 403
        headers = {"Origin": "http://elsewhere.example"}
        given = {"name": "shop", "csrf": csrf}
        assert browser.post("do/pause-task", data=given, headers=headers).status_code == 403
        with client(page, "ada") as other:
            assert other.post("do/pause-task", data=given).status_code == 403
    assert page.wanted() is Stage.RUNNING


def test_an_action_shows_its_command_and_stands_in_the_audit_log(page: PageServed) -> None:
    with client(page, "oda") as browser:
        asked = read(browser, "do/binlog?task=shop&sources=s1&op=skip")
        assert "unshard ctl binlog skip shop -s s1" in asked.text
        assert "Data could be lost" in asked.text
        given = {"csrf": asked.hidden("csrf"), "name": "shop"}
        refused = browser.post("do/stop-task", data={**given, "typed": "shop2"})
        assert refused.status_code == 422
        assert page.wanted() is Stage.RUNNING
        lines = [json.loads(line) for line in page.audit.read_text().splitlines()]
        last = lines[-2]
        assert (last["verb"], last["who"], last["object"]) == ("POST /ui/do/stop-task", "oda", {"name": "shop"})
        assert lines[-1]["status"] == 422


def test_an_action_that_all_have_carried_out_says_so(tmp_path: Path) -> None:
    with page_served(tmp_path, status()) as page, client(page, "oda") as browser:
        form = {"csrf": read(browser, "do/pause-task?name=shop").hidden("csrf"), "name": "shop"}
        assert "✔ Done." in browser.post("do/pause-task", data=form).text
        assert page.wanted() is Stage.PAUSED


def test_unknown_is_unknown(tmp_path: Path) -> None:
    with page_served(tmp_path, status()) as page, client(page, "vic") as browser:
        assert "All is fine" in read(browser, "").text
        page.set(status(lag=None))
        found = read(browser, "")
        assert "Largest lagunknown" in found.text.replace("\n", "")
        assert "All is fine" not in found.text
        assert "The lag of task shop is unknown" in found.text
        assert "./tasks/shop" in found.links()
        page.master.liveness.forget("w1")
        page.set(status())
        silent = read(browser, "").text
        assert "All is fine" not in silent
        assert "Worker w1 is lost" in silent
        assert "Source s1 is not served" in silent


def test_a_full_disk_and_another_version_are_told(tmp_path: Path) -> None:
    with page_served(tmp_path, status()) as page, client(page, "vic") as browser:
        told = Heartbeat(name="w2", addr="w2:1", life="b", number=9, version="0.0.<1>", disk_free=0.024)
        page.master.beat(told)
        page.set(status())
        found = read(browser, "").text
        assert "The disk of worker w2 is 97 % full" in found
        assert "2 versions of Unshard run" in found
        assert "0.0.<1>: w2." in found
        assert f"{own_version()}: m1." in found
        assert "97 %" in read(browser, "cluster").text


def test_a_task_that_is_younger_than_the_last_reading_has_its_page(tmp_path: Path) -> None:
    with page_served(tmp_path, status()) as page, client(page, "vic") as browser:
        read(browser, "")
        page.server._app.state.page.stop()
        page.master.start_task(StartTask(task=task_file("young", ["s1"])), checked=True)
        assert "young" in read(browser, "tasks/young").text
        assert browser.get("tasks/never").status_code == 404


def test_without_a_file_of_tokens_nobody_logs_in_and_forms_are_guarded(tmp_path: Path) -> None:
    with page_served(tmp_path, status(), guarded=False) as page, client(page) as browser:
        assert "do/pause-task" in str(read(browser, "tasks/shop").links())
        assert browser.post("do/pause-task", data={"name": "shop"}).status_code == 403
        assert browser.get("", headers={"Host": "evil.example"}).status_code == 403
        csrf = read(browser, "do/pause-task?name=shop").hidden("csrf")
        crossed = {"Origin": "http://evil.example"}
        assert browser.post("do/pause-task", data={"name": "shop", "csrf": csrf}, headers=crossed).status_code == 403


def test_ten_thousand_tables_are_paged(tmp_path: Path) -> None:
    """A screen has as many rows as a page of it, and 60 kB at most; `python -m bench open_pages` measures the time."""
    with page_served(tmp_path, status(10_000)) as page, client(page, "vic") as browser:
        page.copy(copied(10_000))
        for path in (*SCREENS, "tasks/shop/tables?sort=applied&page=99", "tasks/shop/tables?q=orders_09"):
            text = browser.get(path).text
            assert text.count("<tr") <= ROWS_A_PAGE + 10, path
            assert len(text.encode()) < 60_000, path
        packed = [browser.get(f"static/{name}").headers for name in ("htmx.min.js", "idiomorph-ext.min.js")]
        whole = sum(int(one["content-length"]) for one in packed)
        whole += int(browser.get("static/uPlot.iife.min.js").headers["content-length"])
        assert whole < 45_000
        assert "orders_09999" not in browser.get("tasks/shop/tables").text
        assert "orders_09998" in browser.get("tasks/shop/tables?page=100").text


def test_a_stream_tells_of_what_is_new_and_asks_workers_once_for_all(page: PageServed) -> None:
    events = {**bearer("vic"), "Accept": "text/event-stream"}
    with httpx.Client(timeout=60) as browser, browser.stream("GET", f"{page.url}stream", headers=events) as stream:
        lines = stream.iter_lines()
        first = next(line for line in lines if line.startswith("id: "))
        page.set(status(lag=77))
        second = next(line for line in lines if line.startswith("id: "))
        assert int(second[4:]) > int(first[4:])
    assert len(httpx.get(f"{page.url}stream", headers=bearer("vic"), timeout=60).text) < 200


def test_two_hours_are_kept_of_each_source(page: PageServed) -> None:
    reader = page.server._app.state.page
    reader._due = 0.0
    begun = time.time()
    page.set(status(lag=9))
    ended = time.time()
    with client(page, "vic") as browser:
        at, lag, rows = browser.get("tasks/shop/history").json()["s1"][-1]
    assert (lag, rows) == (9, 1234)
    assert round(begun) <= at <= round(ended)


def test_the_first_look_after_nobody_has_looked_is_fresh_but_waits_for_nobody(
    page: PageServed, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader, released = page.server._app.state.page, Event()
    with client(page, "vic") as browser:
        read(browser, "")
        page.link.status = status(lag=4321)
        monkeypatch.setattr(state_reader, "FIRST_SECONDS", 60.0)
        idle(reader)
        assert "72 min" in read(browser, "tasks/shop").text, "it is of now"
        monkeypatch.setattr(state_reader, "FIRST_SECONDS", 0.5)
        ask = page.link.report
        page.link.report = lambda task, seconds: released.wait(600) and ask(task, seconds)  # type: ignore[method-assign, return-value, assignment]
        page.link.asked = 0
        idle(reader)
        for _ in range(20):
            assert "72 min" in read(browser, "tasks/shop").text
        assert page.link.asked == 0, "it was asked once, and has not answered yet: no page has waited for it"
        released.set()
        page.link.report = ask  # type: ignore[method-assign]
        reader.look()


def idle(reader: StateReader) -> None:
    """Nobody has looked for a while, and the last reading is from then. None is under way."""
    with reader._latch:
        reader.now = replace(reader.now, at=reader.now.at - IDLE_SECONDS)
        reader._watched -= 60


def test_a_master_that_has_just_begun_to_lead_sends_nobody_back_to_the_last_leader(page: PageServed) -> None:
    reader = page.server._app.state.page
    with client(page, "vic") as browser:
        reader.now = replace(reader.now, leader="127.0.0.1:1", number=reader.now.number + 1)
        assert browser.get("tasks/shop", follow_redirects=False).status_code == 200
    events = {**bearer("vic"), "Accept": "text/event-stream"}
    reader.now = replace(reader.now, leader="127.0.0.1:1", number=reader.now.number + 1)
    with httpx.Client(timeout=60) as browser, browser.stream("GET", f"{page.url}stream", headers=events) as stream:
        assert "leader" not in next(line for line in stream.iter_lines() if line.startswith("data: "))


@pytest.mark.parametrize("name", ["shop", "größe", "注文", "a?b#c", "50%"])
def test_a_master_that_follows_sends_the_browser_to_the_leader(
    page: PageServed, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    reader = page.server._app.state.page
    monkeypatch.setattr(reader, "leads", lambda: False)
    path = f"tasks/{quote(name, safe='')}?q=%E6%B3%A8"
    with client(page, "vic") as browser:
        reader.now = replace(reader.now, leader="127.0.0.1:1", number=reader.now.number + 1)
        answer = browser.get(path, follow_redirects=False)
    assert (answer.status_code, answer.headers["location"]) == (307, f"http://127.0.0.1:1/ui/{path}")
    assert answer.headers["location"] in unescape(answer.text)


def test_a_master_tells_anybody_whether_it_leads_and_lets_the_page_ask_the_others(page: PageServed) -> None:
    leads = httpx.get(f"{page.url}leads", timeout=60)
    assert (leads.status_code, leads.text, leads.headers["access-control-allow-origin"]) == (204, "", "*")
    reader = page.server._app.state.page
    own = reader.now.figures.masters
    others = ({"clientURLs": ["m2.example:8261"]}, {"clientURLs": ["m3 'unsafe-inline'; x"]})
    reader.now = replace(reader.now, figures=replace(reader.now.figures, masters=(*own, *others)))
    policy = httpx.get(f"{page.url}login", timeout=60).headers["content-security-policy"]
    assert "connect-src 'self' http://m2.example:8261; " in policy
    assert "unsafe" not in policy
