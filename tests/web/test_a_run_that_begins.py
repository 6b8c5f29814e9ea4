"""A run that has just begun shows its copy on the screen of its tables, and says where there is nothing to show yet."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from browsed import browser, fill, opened
from page_served import PageServed, copied, page_served, status
from playwright.sync_api import Browser
from test_page import client, read

from unshard.api.status import LoadStatus, Stage, SubTaskStatus, UnitName

__all__ = ["browser"]


def loading(share: str = "40.00 %") -> SubTaskStatus:
    load = LoadStatus(progress=share, finished_bytes=40 << 20, total_bytes=100 << 20, bps=1 << 20)
    return SubTaskStatus(name="shop", stage=Stage.RUNNING, unit=UnitName.LOAD, load=load)


@pytest.fixture
def page(tmp_path: Path) -> Iterator[PageServed]:
    with page_served(tmp_path, loading()) as made:
        yield made


def test_its_tables_are_there_with_rows_bytes_and_the_time_left(page: PageServed) -> None:
    with client(page, "vic") as browser:
        begins = read(browser, "tasks/shop/tables").text
        assert "The copy begins" in begins
        assert "No row change" not in begins
        page.copy(copied(200))
        found = read(browser, "tasks/shop/tables").text
        assert "40 % is done, about 42 s to 2 min left on s1" in found.replace("\n", "")
        assert "The 50 tables that are at work, or come next, of 200" in found
        assert "shop.orders_00002" in found, "it is loaded now"
        assert "30,000" in found
        assert "4.2 MB" in found
        assert "No row change" not in found


def test_its_own_screen_tells_how_fast_it_is_and_no_rate_of_rows(page: PageServed) -> None:
    with client(page, "vic") as browser:
        found = read(browser, "tasks/shop")
        assert "about 42 s to 2 min left, at 1.0 MB a second" in found.text
        cells = found.text.partition("How far")[2].partition("Charts")[0]
        assert cells.count("unknown") == 1, "but for the position"


def test_a_run_that_replicates_shows_what_it_applies(page: PageServed) -> None:
    with client(page, "vic") as browser:
        page.copy(copied(200))
        page.set(status())
        found = read(browser, "tasks/shop/tables").text
        assert "3 tables, page 1 of 1" in found
        assert "at work, or come next" not in found


def test_a_copy_that_is_over_is_shown_until_there_are_row_changes(page: PageServed) -> None:
    with client(page, "vic") as browser:
        page.copy(copied(20))
        told = status()
        assert told.sync is not None
        page.set(told.model_copy(update={"sync": told.sync.model_copy(update={"tables": ()})}))
        assert "shop.orders_00002" in read(browser, "tasks/shop/tables").text
        page.copy(())
        assert "No row change has been replicated yet" in read(browser, "tasks/shop/tables").text


@pytest.mark.browser
@pytest.mark.page
def test_the_charts_say_that_there_is_no_data_yet(browser: Browser, page: PageServed) -> None:
    tab, wrong = opened(browser, page)
    tab.goto(f"{page.url}tasks/shop")
    tab.wait_for_selector("#chart-lag:has-text('No data yet')")
    for name in ("rows", "batch", "target", "steps"):
        tab.wait_for_selector(f"#chart-{name}:has-text('No data yet')")
    assert "the lag is known once the task replicates" in tab.inner_text("#chart-lag")
    reader = page.server._app.state.page
    for _ in range(3):
        reader._due = 0.0
        page.set(loading("41.00 %"))
    tab.reload()
    tab.wait_for_selector("#chart-lag:has-text('No data yet')")
    assert tab.locator(".chart.drawn").count() == 0, "points without a value are no data"
    assert wrong == []
    tab.context.close()


@pytest.mark.browser
@pytest.mark.page
def test_the_legend_of_a_chart_has_values_without_a_mouse(browser: Browser, tmp_path: Path) -> None:
    with page_served(tmp_path, status(), sources=("s1", "s2")) as page:
        fill(page, "orders_archive", lost=False)
        points, now = page.server._app.state.page._points, round(time.time())
        points["shop", "s1"].append((now, 7, 1300))
        points["shop", "s2"].append((now, None, None))
        tab, wrong = opened(browser, page)
        tab.goto(f"{page.url}tasks/shop")
        for name in ("lag", "rows", "batch", "target", "steps"):
            tab.wait_for_selector(f"#chart-{name}.drawn .u-legend")
            said = tab.locator(f"#chart-{name} .u-legend .u-value").all_inner_texts()
            assert len(said) > 1
            assert [value for value in said if not re.search(r"\d|unknown", value)] == []
        for name, value in (("lag", "7"), ("rows", "1,300")):
            assert tab.locator(f"#chart-{name} .u-legend .u-value").all_inner_texts()[1:] == [value, "unknown"]
        assert wrong == []
        tab.context.close()
