"""The page in a real Chromium: each screen in both themes, nothing that axe finds, actions, no request elsewhere."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from page_served import HOSTILE, PageServed, page_served, status
from playwright.sync_api import Browser, Page, sync_playwright

from unshard.api.status import Stage

pytestmark = pytest.mark.browser

AXE = Path(__file__).parent / "axe.min.js"
SCREENS = {
    "overview": "", "task": "tasks/shop", "tables": "tasks/shop/tables", "errors": "errors", "locks": "locks",
    "cluster": "cluster", "configuration": "tasks/shop/config", "audit": "audit", "stop": "do/stop-task?name=shop",
    "start": "do/start-task", "missing": "tasks/none",
}  # fmt: skip
PICTURES = os.environ.get("UNSHARD_PAGE_PICTURES", "")
"""Folder to put pictures of all screens into."""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    program = next(filter(None, map(shutil.which, ("chromium", "google-chrome"))))
    with sync_playwright() as playwright:
        made = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield made
        made.close()


@pytest.fixture(scope="module")
def served_page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PageServed]:
    with page_served(tmp_path_factory.mktemp("browsed"), status(2000)) as made:
        yield made


def opened(browser: Browser, page: PageServed, theme: str = "light", *, script: bool = True) -> tuple[Page, list[str]]:
    """A browser's page that ada has logged in with, and what goes wrong in it."""
    context = browser.new_context(
        color_scheme="dark" if theme == "dark" else "light", java_script_enabled=script,
        viewport={"width": 1280, "height": 900},
    )  # fmt: skip
    tab, wrong = context.new_page(), []
    tab.on("pageerror", lambda error: wrong.append(str(error)))
    tab.on("console", lambda line: wrong.append(line.text) if "Content Security" in line.text else None)
    ours = f"http://{page.server.address}/"
    tab.on("request", lambda one: wrong.append(one.url) if not one.url.startswith((ours, "data:")) else None)
    tab.goto(page.url)
    tab.get_by_label("Token").fill("token-ada")
    tab.get_by_role("button", name="Log in").click()
    tab.wait_for_url(page.url)
    return tab, wrong


@pytest.mark.page
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_nothing_on_any_screen(browser: Browser, served_page: PageServed, theme: str) -> None:
    served_page.set(status(2000, wrong=True, locked=True))
    reader = served_page.server._app.state.page
    now = round(time.time())
    points = reader._points["shop", "s1"]
    points.extend((now - 10 * at, 25 if 100 < at < 130 else at % 4, 1200 + at % 90) for at in range(700, 0, -1))
    tab, wrong = opened(browser, served_page, theme)
    for name, path in SCREENS.items():
        tab.goto(served_page.url + path)
        if name == "task":
            tab.wait_for_selector(".chart canvas")
        if PICTURES:
            tab.screenshot(path=f"{PICTURES}/{name}-{theme}.png", full_page=name != "tables")
        tab.evaluate(AXE.read_text())
        found = tab.evaluate(
            "async () => (await axe.run()).violations.map(one => [one.id, one.nodes.map(n => n.html)])"
        )
        assert found == [], name
    assert wrong == []
    tab.context.close()


def test_a_task_is_paused_and_stopped_by_hand(browser: Browser, served_page: PageServed, tmp_path: Path) -> None:
    with page_served(tmp_path, status()) as page:
        tab, wrong = opened(browser, page)
        tab.get_by_role("link", name="shop").click()
        assert tab.get_by_role("heading", level=1).inner_text() == "shop"
        tab.get_by_role("link", name="Pause", exact=True).click()
        assert "unshard ctl pause-task shop" in tab.inner_text("main")
        tab.get_by_role("button", name="Pause").click()
        tab.wait_for_selector("[role=status]")
        assert page.wanted() is Stage.PAUSED
        tab.goto(f"{page.url}do/stop-task?name=shop")
        tab.get_by_label("To agree").fill("shop")
        tab.get_by_role("button", name="Stop").click()
        tab.wait_for_selector("[role=status]")
        assert page.master.cluster.state.tasks == {}
        assert wrong == []
        tab.context.close()


@pytest.mark.page
def test_what_changes_is_shown_without_a_reload(browser: Browser, served_page: PageServed) -> None:
    served_page.set(status())
    tab, wrong = opened(browser, served_page)
    tab.goto(f"{served_page.url}tasks/shop")
    tab.wait_for_selector("#link:has-text('live')")
    tab.evaluate("window.kept = document.querySelector('h1')")
    served_page.set(status(wrong=True, lag=77))
    tab.wait_for_selector("text=SYNC-011")
    assert tab.evaluate("window.kept === document.querySelector('h1')"), "what stays the same is not drawn anew"
    tab.get_by_role("button", name="Freeze").click()
    served_page.set(status(lag=78))
    tab.wait_for_timeout(1500)
    assert tab.get_by_text("SYNC-011").count() == 1
    assert HOSTILE.split("\u202e")[0] in tab.inner_text("main")
    assert wrong == []
    tab.context.close()


def test_it_reads_without_javascript(browser: Browser, served_page: PageServed) -> None:
    served_page.set(status(wrong=True))
    tab, _ = opened(browser, served_page, script=False)
    tab.get_by_role("link", name="What to do").click()
    assert "widen the column" in tab.inner_text("main")
    tab.get_by_role("link", name="Skip or replace").click()
    assert "Data could be lost" in tab.inner_text("main")
    tab.context.close()


@pytest.mark.page
def test_a_lost_connection_is_told(browser: Browser, tmp_path: Path) -> None:
    with page_served(tmp_path, status()) as page:
        tab, _ = opened(browser, page)
        tab.wait_for_selector("#link:has-text('live')")
    tab.wait_for_selector("#link:has-text('connection lost')")
    tab.context.close()
