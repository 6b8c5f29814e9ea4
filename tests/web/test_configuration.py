"""The configuration of a task: running, draft, difference, check, apply; its password stays where it is."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from page_served import HOSTILE, SECRET, PageServed, page_served, status
from test_page import PageText, client, read

from unshard.api.status import Stage
from unshard.api.verbs import PauseTask
from unshard.errors import ClusterError
from unshard.master.passwords import with_kept_password
from unshard.web.page.draft import difference

LOGIN = "target-database: {host: h, port: 1, user: u, password: %s}\n"


@pytest.fixture
def page(tmp_path: Path) -> Iterator[PageServed]:
    with page_served(tmp_path, status()) as made:
        yield made


def sent(browser: httpx.Client, text: str, step: str, code: int = 200) -> PageText:
    csrf = read(browser, "tasks/shop/config").hidden("csrf")
    answer = browser.post("tasks/shop/config", data={"csrf": csrf, "task": text, "step": step})
    assert answer.status_code == code, answer.text
    assert SECRET not in answer.text
    assert "it&#39;s-hush" not in answer.text
    return PageText(answer.text)


def running(browser: httpx.Client) -> str:
    text = read(browser, "tasks/shop/config").text
    return text.partition("Passwords are shown as ******.")[2].partition("Draft")[0].strip() + "\n"


def test_a_kept_password_goes_to_the_same_login_only() -> None:
    stored = LOGIN % "'it''s'"
    assert with_kept_password(LOGIN % "'******'", stored) == stored
    assert with_kept_password(LOGIN % "other", stored) == LOGIN % "other"
    for other in ("host: evil", "port: 2", "user: root"):
        key = other.partition(":")[0]
        draft = (LOGIN % "'******'").replace({"host": "host: h", "port": "port: 1", "user": "user: u"}[key], other)
        with pytest.raises(ClusterError, match="another host, port or user"):
            with_kept_password(draft, stored)
    with pytest.raises(ClusterError, match="elsewhere"):
        with_kept_password(LOGIN % "x" + "spark: {conf: {a.token: '******'}}", stored)
    assert with_kept_password("a: [", stored) == "a: [", "its reader tells what is wrong"


def test_a_difference_shows_lines_with_some_around() -> None:
    before = "".join(f"line {at}\n" for at in range(30))
    found = difference(before, before.replace("line 12\n", "line twelve\n").replace("line 27\n", ""))
    assert [(one.sign, one.text) for one in found if one.kind in ("added", "removed")] == [
        ("-", "line 12"),
        ("+", "line twelve"),
        ("-", "line 27"),
    ]
    assert len(found) == 15
    assert difference(before, before) == []


def test_a_change_that_a_running_task_may_have_is_shown_checked_and_applied(page: PageServed) -> None:
    with client(page, "oda") as browser:
        draft = running(browser) + "clean-dump-file: false\n"
        shown = sent(browser, draft, "difference")
        assert "The draft can be applied now" in shown.text
        assert "+ clean-dump-file: false" in shown.text
        assert "goes on with the new file" in shown.text
        assert "The checks pass" in sent(browser, draft, "check").text
        assert "clean-dump-file" not in running(browser), "nothing is changed yet"
        assert "Applied." in sent(browser, draft, "apply").text
        assert "clean-dump-file: false" in running(browser)
    assert SECRET.replace("'", "''") in page.master.cluster.state.tasks["shop"].text
    assert "POST /ui/tasks/shop/config" in page.audit.read_text()
    assert SECRET not in page.audit.read_text()


def test_a_change_that_wants_a_pause_says_so(page: PageServed) -> None:
    with client(page, "oda") as browser:
        draft = running(browser).replace("target-table: all", "target-table: every")
        shown = sent(browser, draft, "difference")
        assert "pause the task first" in shown.text
        assert "../../do/pause-task?name=shop" in shown.links()
        assert "is not paused, as a change of routes wants" in sent(browser, draft, "apply", 422).text
        page.master.pause_task(PauseTask(name="shop"))
        assert page.wanted() is Stage.PAUSED
        assert "The task is paused, as this change requires" in sent(browser, draft, "difference").text
        assert "Applied." in sent(browser, draft, "apply").text
        assert "target-table: every" in running(browser)


def test_what_can_never_change_and_what_is_wrong_is_told(page: PageServed) -> None:
    with client(page, "oda") as browser:
        text = running(browser)
        never = sent(browser, text.replace("task-mode: all", "task-mode: full"), "check").text
        assert "task-mode can't change: start another task" in never
        assert "CONFIG-001" in sent(browser, text + "no-such-key: 1\n", "difference", 422).text
        assert (
            "its name can't change" in sent(browser, text.replace("name: shop", "name: x", 1), "difference", 422).text
        )
        assert "another host" in sent(browser, text.replace("port: 1", "port: 2"), "check", 422).text
        assert "<script>alert" not in browser.post(
            "tasks/shop/config", data={"csrf": read(browser, "").hidden("csrf"), "task": HOSTILE, "step": "check"}
        ).text  # fmt: skip


def test_a_viewer_sees_the_file_and_no_draft(page: PageServed) -> None:
    with client(page, "vic") as browser:
        found = read(browser, "tasks/shop/config")
        assert "name: shop" in found.text
        assert "Draft" not in found.text
        assert SECRET not in found.text
        csrf = read(browser, "").hidden("csrf")
        for step in ("difference", "check", "apply"):
            given = {"csrf": csrf, "task": "name: shop", "step": step}
            assert browser.post("tasks/shop/config", data=given).status_code == 403
    with client(page, "oda") as browser:
        assert browser.post("tasks/shop/config", data={"task": "name: shop", "step": "apply"}).status_code == 403
