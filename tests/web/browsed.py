"""Chromium for the page, and a cluster that has a lock, an error, a lost worker and 2,000 tables at once."""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable, Iterator

import pytest
from page_served import HOSTILE, STEPS, PageServed, copied, differing, status, validation
from playwright.sync_api import Browser, Page

from support.chromium import chromium, new_tab
from unshard.model.table import TableName
from unshard.web.page.step_times import WHOLE

TABLES = 2000


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as made:
        yield made


def opened(
    browser: Browser, page: PageServed, theme: str = "light", *, script: bool = True, width: int = 1280
) -> tuple[Page, list[str]]:
    """A browser's page that ada has logged in with, and what goes wrong in it."""
    tab, wrong = new_tab(
        browser, color_scheme="dark" if theme == "dark" else "light", java_script_enabled=script,
        viewport={"width": width, "height": 900},
    ), list[str]()  # fmt: skip
    tab.on("pageerror", lambda error: wrong.append(str(error)))
    tab.on("console", lambda line: wrong.append(line.text) if "Content Security" in line.text else None)
    ours = f"http://{page.server.address}/"
    tab.on("request", lambda one: wrong.append(one.url) if not one.url.startswith((ours, "data:")) else None)
    tab.goto(page.url)
    tab.get_by_label("Token").fill("token-ada")
    tab.get_by_role("button", name="Log in").click()
    tab.wait_for_url(page.url)
    return tab, wrong


_EVENTS_ARE_COUNTED = """
    window.refreshes = 0;
    document.addEventListener("refresh", () => { window.refreshes += 1; }, true);
    window.EventSource = class extends EventSource {
        constructor(address) {
            super(address);
            this.addEventListener("state", (event) => { window.heard = event.lastEventId; });
        }
    };
"""


def count_events(tab: Page) -> None:
    """For `change_while_frozen`; before the tab goes to its screen."""
    tab.add_init_script(_EVENTS_ARE_COUNTED)


def change_while_frozen(tab: Page, change: Callable[[], None]) -> None:
    """Freeze the page and change what it shows: it hears of the change and does not read itself anew."""
    tab.get_by_role("button", name="Freeze").click()
    tab.wait_for_selector("#link:has-text('frozen')")
    heard, refreshes = tab.evaluate("[window.heard, window.refreshes]")
    change()
    tab.wait_for_function("before => window.heard !== before", arg=heard)
    assert tab.evaluate("window.refreshes") == refreshes


def go_on(tab: Page) -> None:
    """The page that is frozen reads itself anew at once."""
    refreshes = tab.evaluate("window.refreshes")
    tab.get_by_role("button", name="Freeze").click()
    assert tab.evaluate("window.refreshes") == refreshes + 1


def write_log(page: PageServed) -> None:
    levels = ("info", "info", "warning", "error")
    for at in range(40):
        known = {"task": "shop", "source": "s1", "rows": str(1000 + at), "position": f"mysql-bin.000003:{1200 + at}"}
        stamp = f"2026-01-02T03:04:{at:02d}.123456Z"
        line = {"timestamp": stamp, "level": levels[at % 4], "logger": "sync", "event": f"batch {at} closed", **known}
        page.link.ring.keep(None, "info", line)


def fill(page: PageServed, odd: str = HOSTILE, *, lost: bool = True) -> None:
    """All screens have something to show; `odd` is the name of one table and one column. `page` has two sources.

    `lost`: the worker of the second one is lost.
    """
    page.target_has(differing(30, odd), odd=odd)
    page.set(status(TABLES, wrong=True, locked=True, validated=validation(30), odd=odd))
    if lost:
        page.lose_the_second_worker()
    page.copy(copied(TABLES, odd))
    shards = [TableName(f"shop_{at % 3}", f"orders_{at}") for at in range(TABLES)]
    page.sources_have([*shards, TableName("crm", "people"), TableName("crm", odd), TableName("old", "keys")])
    write_log(page)
    reader, now = page.server._app.state.page, round(time.time())
    lags = [600 - at if at < 560 else max(2, 40 - (at - 560)) + at % 3 for at in range(700)]
    other = [(None, None) if lost else (at % 3, 900 + at % 70) for at in range(700)]
    reader._points["shop", "s2"] = deque((now - 10 * (700 - at), *other[at]) for at in range(700))
    reader._points["shop", "s1"] = deque((now - 10 * (700 - at), lags[at], 1200 + at % 90) for at in range(700))
    kept = reader._steps._tasks["shop"]
    for at in range(700):
        load = 1 + 0.3 * math.sin(at / 40) + 0.05 * math.sin(at)
        seconds = {step: part * load for step, part in STEPS.items()}
        kept.points.append((now - 10 * (700 - at), {**seconds, WHOLE: load}))
    kept_lags = deque((now // 60 - 60 + at, 300 - 4 * at if at < 50 else 70) for at in range(60))
    reader._trends._minutes["shop"] = kept_lags
    reader._due = 0.0
    reader.look()
