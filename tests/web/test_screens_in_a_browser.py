"""Each screen, in both themes and on a telephone: a lock, an error, a lost worker and 2,000 tables at once.

axe finds nothing, nothing is asked of another host, nothing is wider than the window.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from browsed import TABLES, browser, fill, opened
from page_served import HOSTILE, PageServed, page_served, status
from playwright.sync_api import Browser, Page

pytestmark = [pytest.mark.browser, pytest.mark.page]
__all__ = ["browser"]

AXE = Path(__file__).parent / "axe.min.js"
SCREENS = {
    "overview": "", "task": "tasks/shop", "tables": "tasks/shop/tables", "errors": "errors", "locks": "locks",
    "cluster": "cluster", "configuration": "tasks/shop/config", "audit": "audit", "stop": "do/stop-task?name=shop",
    "copy": "tasks/shop/copy", "routes": "tasks/shop/routes", "start": "do/start-task", "missing": "tasks/none",
    "new-task": "new-task", "log": "tasks/shop/log", "login": "login", "skip": "do/binlog-skip?task=shop&sources=s1",
    "validation": "tasks/shop/validation", "ignore": "do/validation-ignore-error?task=shop&sources=s1&id=1",
    "table": "tasks/shop/routes?source=s1&table=shop_1.orders&q=shop_1", "unlock": "do/shard-ddl-lock-unlock?id=shop-x",
}  # fmt: skip
DRAWN = {"routes": "svg .node", "validation": ".differs", "task": "main:not(:has(.chart:not(.drawn)))"}
"""What a screen has once it is whole."""
SHOWS = {
    "overview": ("Worker w2 is lost", "SYNC-011", "A DDL waits for other shards", "30 rows of task shop differ"),
    "task": ("SYNC-011", "Run the same DDL on the shards", "unknown"),
    "tables": (f"{TABLES:,} tables, page 1 of 20", HOSTILE.split("\u202e")[0]),
    "errors": ("SYNC-011", "widen the column", "CLUSTER-015", "start a worker"),
    "locks": ("ALTER TABLE", "s2 has not met it", "days ago"),
    "cluster": ("lost", "not served"),
    "copy": ("Source s2 does not report its tables", "2,000 tables, page 1 of 20"),
    "missing": ("Not found", "there is no task none"),
    "audit": ("POST /ui/do/pause-task",),
}
"""What has to be read on it."""
PICTURES = os.environ.get("UNSHARD_PAGE_PICTURES", "")
"""Folder to put pictures of all screens into."""


@pytest.fixture(scope="module")
def full_page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PageServed]:
    with page_served(tmp_path_factory.mktemp("browsed"), status(), sources=("s1", "s2")) as page:
        fill(page)
        yield page


def show(tab: Page, page: PageServed, name: str) -> None:
    tab.goto(page.url + SCREENS[name])
    if name in DRAWN:
        tab.wait_for_selector(DRAWN[name])


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_nothing_on_any_screen(browser: Browser, full_page: PageServed, theme: str, width: int) -> None:
    tab, wrong = opened(browser, full_page, theme, width=width)
    tab.goto(f"{full_page.url}do/pause-task?name=no")
    tab.get_by_role("button", name="Pause").click()  # a line of the audit log
    for name in SCREENS:
        show(tab, full_page, name)
        if PICTURES:
            whole = name not in ("tables", "copy", "validation", "table")
            tab.screenshot(path=f"{PICTURES}/{name}-{theme}-{width}.png", full_page=whole)
        text = tab.inner_text("body") + str(
            tab.evaluate("[...document.querySelectorAll('[data-ago]')].map(one => one.dataset.ago)")
        )
        assert [words for words in SHOWS.get(name, ()) if words not in text] == [], name
        assert tab.evaluate("document.documentElement.scrollWidth") <= width, f"{name} is wider than the window"
        tab.evaluate(AXE.read_text())
        found = tab.evaluate(
            "async () => (await axe.run()).violations.map(one => [one.id, one.nodes.map(n => n.html)])"
        )
        assert found == [], name
    assert wrong == []
    tab.context.close()
