"""The copy, the routes, the draft and the log of a task, used in a real Chromium."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from browsed import browser, change_while_frozen, count_events, go_on, opened, write_log
from page_served import PageServed, copied, page_served, status
from playwright.sync_api import Browser

from unshard.model.table import TableName

pytestmark = [pytest.mark.browser, pytest.mark.page]
__all__ = ["browser"]


@pytest.fixture
def page(tmp_path: Path) -> Iterator[PageServed]:
    with page_served(tmp_path, status()) as made:
        yield made


def test_rows_of_a_copy_go_on_without_a_reload_and_a_search_stays(browser: Browser, page: PageServed) -> None:
    tables = copied(300)
    page.copy(tables)
    tab, wrong = opened(browser, page)
    tab.goto(f"{page.url}tasks/shop/copy")
    tab.get_by_label("Table contains").fill("orders_00002")
    tab.get_by_label("Stage", exact=True).select_option("loading")
    tab.get_by_role("button", name="Show").click()
    tab.wait_for_selector("td:has-text('30,000')")
    tab.wait_for_selector("#link:has-text('live')")
    page.copy((*tables[:3], replace(tables[3], rows=60_123), *tables[4:]))
    tab.wait_for_selector("td:has-text('60,123')")
    assert tab.locator("tbody tr").count() == 1
    assert "67 %" in tab.inner_text("tbody")
    assert wrong == []
    tab.context.close()


def test_an_arrow_leads_to_its_tables_and_a_table_to_its_rules(browser: Browser, page: PageServed) -> None:
    page.sources_have([TableName("shop_1", f"orders_{at}") for at in range(150)] + [TableName("old", "keys")])
    tab, wrong = opened(browser, page)
    tab.goto(f"{page.url}tasks/shop/routes")
    tab.get_by_role("link", name="150 tables: routes.whole → shop.all").click()
    assert "150 tables, page 1 of 2" in tab.inner_text("main")
    tab.get_by_role("link", name="Next").click()
    tab.get_by_role("link", name="shop_1.orders_120", exact=True).click()
    assert "→ goes to shop.all" in tab.inner_text("#explained")
    assert "routes.whole" in tab.inner_text("#explained")
    assert wrong == []
    tab.context.close()


def test_a_draft_is_compared_and_applied(browser: Browser, page: PageServed) -> None:
    tab, wrong = opened(browser, page)
    tab.goto(f"{page.url}tasks/shop/config")
    draft = tab.get_by_label("Task file")
    draft.fill(f"{draft.input_value()}clean-dump-file: false\n")
    tab.get_by_role("button", name="Show the difference").click()
    assert tab.locator(".difference .added").inner_text().strip() == "+ clean-dump-file: false"
    tab.get_by_role("button", name="Apply").click()
    tab.wait_for_selector("text=Applied.")
    assert "clean-dump-file: false" in page.master.cluster.state.tasks["shop"].text
    assert wrong == []
    tab.context.close()


def test_the_log_goes_on_and_is_held_still(browser: Browser, page: PageServed) -> None:
    def more() -> None:
        write_log(page)
        page.server._app.state.page.look()

    tab, wrong = opened(browser, page)
    count_events(tab)
    write_log(page)
    tab.goto(f"{page.url}tasks/shop/log?level=error")
    tab.wait_for_selector("td:has-text('batch 39 closed')")
    assert tab.locator("tbody tr").count() == 10
    tab.wait_for_selector("#link:has-text('live')")
    more()
    tab.wait_for_selector("tbody tr:nth-child(20)")
    change_while_frozen(tab, more)
    assert tab.locator("tbody tr").count() == 20
    go_on(tab)
    tab.wait_for_selector("tbody tr:nth-child(30)")
    assert wrong == []
    tab.context.close()


def test_they_read_without_javascript(browser: Browser, page: PageServed) -> None:
    page.copy(copied(20))
    page.sources_have([TableName("shop_1", "orders")])
    tab, _ = opened(browser, page, script=False)
    tab.get_by_role("link", name="shop", exact=True).click()
    tab.get_by_role("link", name="Copy").click()
    assert "shop.orders_00002" in tab.inner_text("main")
    tab.get_by_role("link", name="Routes").click()
    tab.get_by_role("link", name="1 table: routes.whole → shop.all").click()
    assert "shop_1.orders" in tab.inner_text("main")
    tab.context.close()
