"""Rows that really differ, seen and settled in a browser on the page of `unshard run`; the target's record tells."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from support.chromium import chromium, new_tab
from support.task_runs import Command
from support.validated_tasks import QUICK, ValidationRecords, validated
from support.waiting import wait_until
from unshard.target.validation_errors import ErrorState
from unshard.testing.mariadb_server import MariadbServer
from unshard.testing.throwaway_server import ThrowawayServer

pytestmark = [pytest.mark.server, pytest.mark.spark, pytest.mark.browser, pytest.mark.page]
COLUMN = "<b>price</b>"


@pytest.fixture
def shop(source_server: MariadbServer, target_server: ThrowawayServer, schema: str) -> Iterator[str]:
    source_server.run(
        f"CREATE DATABASE {schema}",
        f"CREATE TABLE {schema}.t (id INT PRIMARY KEY, `{COLUMN}` INT, note VARCHAR(20))",
        f"CREATE TABLE {schema}.plain (v INT)",
        f"INSERT INTO {schema}.t VALUES (1, 1, 'a'), (2, 2, 'b'), (3, 3, 'c')",
    )
    yield schema
    for server in (source_server, target_server):
        server.run(f"DROP DATABASE IF EXISTS {schema}")


@pytest.fixture
def tab() -> Iterator[Page]:
    with chromium() as browser:
        yield new_tab(browser)


def act(tab: Page, link: str, button: str, typed: str = "") -> None:
    """Follow a button of the screen, send its form, and come back."""
    tab.get_by_role("link", name=link, exact=True).first.click()
    assert "unshard ctl validation " in tab.inner_text("main")
    if typed:
        tab.get_by_label("To confirm").fill(typed)
    tab.get_by_role("button", name=button, exact=True).click()
    tab.wait_for_selector("[role=status]:has-text('Done.')")
    tab.get_by_role("link", name="Validation", exact=True).click()


def test_rows_that_differ_are_seen_and_settled(
    shop: str, source_server: MariadbServer, target_server: ThrowawayServer, tmp_path: Path, tab: Page
) -> None:
    files = validated(tmp_path, shop, {"s1": source_server}, target_server, validator={**QUICK, "mode": "none"})
    records, task = ValidationRecords(files), files.name
    with Command(files) as command:
        command.catch_up()
        (url,) = re.findall(r"page: (http://127\.0\.0\.1:\d+/ui/)", command.text)
        tab.goto(f"{url}tasks/{task}")
        tab.get_by_role("link", name="Validation", exact=True).click()
        tab.wait_for_selector("text=No source of this task has a validator")
        act(tab, "Start the validator", "Start the validator")
        tab.wait_for_selector(".state:has-text('running')")
        source_server.run(f"INSERT INTO {shop}.plain VALUES (1)")
        records.settled()
        with records.held():
            source_server.run(f"UPDATE {shop}.t SET note = 'new' WHERE id < 4")
            wait_until(files.caught_up, "caught up")
            target_server.run(f"UPDATE {shop}.t SET `{COLUMN}` = 99 WHERE id < 4")
        first, second, third = records.new_errors(3)
        tab.wait_for_selector("tr.differs")
        expect(tab.locator("tr.differs")).to_have_count(3)
        marked = tab.locator("tr.differs").first.inner_text()
        assert COLUMN in marked, marked
        assert "differs" in marked, marked
        assert "99" in marked, marked
        assert "no primary key" in tab.inner_text("main"), "a table that can't be validated, and why"
        act(tab, "Ignore", "Ignore")
        expect(tab.locator("tr.differs")).to_have_count(2)
        act(tab, "Resolve", "Resolve")
        expect(tab.locator("tr.differs")).to_have_count(1)
        assert [one.number for one in records.errors(ErrorState.IGNORED)] == [first.number]
        assert [one.number for one in records.errors(ErrorState.RESOLVED)] == [second.number]
        act(tab, "Clear", "Clear", task)
        tab.wait_for_selector("text=No checked row differs")
        assert third.number not in [one.number for one in records.errors()]
        tab.get_by_label("State").select_option("ignored")
        tab.get_by_role("button", name="Show").click()
        expect(tab.locator("tr.differs")).to_have_count(1)
        act(tab, "Stop", "Stop the validator")
        tab.wait_for_selector(".state:has-text('stopped')")
        command.interrupt()
        assert command.wait() == 0, command.text
