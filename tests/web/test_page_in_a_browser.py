"""The page in a real Chromium: actions, changes without a reload, a lost connection, without JavaScript."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from browsed import browser, change_while_frozen, count_events, go_on, opened
from page_served import HOSTILE, PageServed, page_served, status
from playwright.sync_api import Browser, Route

from unshard.api.status import Stage

pytestmark = pytest.mark.browser

__all__ = ["browser"]


@pytest.fixture(scope="module")
def served_page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PageServed]:
    with page_served(tmp_path_factory.mktemp("browsed"), status(2000)) as made:
        yield made


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
        page.set(status().model_copy(update={"stage": Stage.PAUSED}))
        tab.get_by_role("link", name="The task").click()
        assert tab.get_by_role("link", name="Resume", exact=True).count() == 1
        assert tab.get_by_role("link", name="Pause", exact=True).count() == 0
        tab.goto(f"{page.url}do/stop-task?name=shop")
        tab.get_by_label("To confirm").fill("shop")
        tab.get_by_role("button", name="Stop").click()
        tab.wait_for_selector("[role=status]")
        assert page.master.cluster.state.tasks == {}
        assert wrong == []
        tab.context.close()


@pytest.mark.page
def test_what_changes_is_shown_without_a_reload(browser: Browser, served_page: PageServed) -> None:
    served_page.set(status())
    tab, wrong = opened(browser, served_page)
    count_events(tab)
    tab.goto(f"{served_page.url}tasks/shop")
    tab.wait_for_selector("#link:has-text('live')")
    tab.evaluate("window.kept = document.querySelector('h1')")
    served_page.set(status(wrong=True, lag=77))
    tab.wait_for_selector("text=SYNC-011")
    assert tab.evaluate("window.kept === document.querySelector('h1')"), "what stays the same is not drawn anew"
    change_while_frozen(tab, lambda: served_page.set(status(lag=78)))
    assert tab.get_by_text("SYNC-011").count() == 1
    assert HOSTILE.split("\u202e")[0] in tab.inner_text("main")
    go_on(tab)
    tab.wait_for_selector("text=SYNC-011", state="detached")
    assert wrong == []
    tab.context.close()


def test_what_has_changed_before_the_stream_opens_is_shown_too(browser: Browser, served_page: PageServed) -> None:
    served_page.set(status())
    tab, wrong = opened(browser, served_page)

    def late(route: Route) -> None:
        served_page.set(status(wrong=True, lag=77))
        route.continue_()

    tab.route("**/stream?*", late)
    tab.goto(f"{served_page.url}tasks/shop")
    tab.wait_for_selector("text=SYNC-011")
    assert wrong == []
    tab.context.close()


def test_it_reads_without_javascript(browser: Browser, served_page: PageServed) -> None:
    served_page.set(status(wrong=True))
    tab, _ = opened(browser, served_page, script=False)
    tab.get_by_role("link", name="What to do").click()
    assert "widen the column" in tab.inner_text("main")
    tab.get_by_role("link", name="Skip", exact=True).click()
    assert "Data could be lost" in tab.inner_text("main")
    tab.context.close()


@pytest.mark.page
def test_a_lost_connection_is_told(browser: Browser, tmp_path: Path) -> None:
    with page_served(tmp_path, status()) as page:
        tab, _ = opened(browser, page)
        tab.wait_for_selector("#link:has-text('live')")
    tab.wait_for_selector("#link:has-text('connection lost')")
    assert re.search(r"The master does not answer. The figures below are of \d\d:\d\d UTC", tab.inner_text("#lost"))
    assert "All is fine" not in tab.inner_text("#lost")
    assert tab.get_by_role("heading", level=1).count() == 1
    tab.context.close()
