"""A stream that says nothing any more: its page tells so within five seconds."""

from __future__ import annotations

import re
from importlib.resources import files
from pathlib import Path
from threading import Event

import httpx
import pytest
from browsed import browser
from page_served import page_served, status
from playwright.sync_api import Browser
from served import bearer, tokens

from support.chromium import new_tab
from unshard.testing.proxy import FaultProxy
from unshard.web.page import screens
from unshard.web.page.screens import ALIVE_SECONDS

__all__ = ["browser"]


def test_a_page_waits_for_two_signs_of_life_and_less_than_five_seconds() -> None:
    script = files("unshard.web.page").joinpath("static/page.js").read_text()
    (silence,) = re.findall(r"const SILENCE = (\d+);", script)
    assert 2 * ALIVE_SECONDS <= int(silence) / 1000 <= 4, "it looks once a second whether it has heard something"


def test_a_stream_is_never_silent_though_a_worker_keeps_the_master_waiting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(screens, "_TICK_SECONDS", 0.02)
    monkeypatch.setattr(screens, "ALIVE_SECONDS", 0.04)
    answers = Event()
    with page_served(tmp_path, status()) as page:
        report = page.link.report
        page.link.report = lambda task, seconds: answers.wait(60) and report(task, seconds)  # type: ignore[method-assign, return-value, assignment]
        headers = {**bearer("vic"), "Accept": "text/event-stream"}
        with httpx.stream("GET", f"{page.url}stream", headers=headers, timeout=60) as stream:
            lines = (line for line in stream.iter_lines() if line.startswith("event: "))
            assert [next(lines) for _ in range(3)][1:] == ["event: alive"] * 2
        answers.set()


def test_a_stream_ends_with_the_token_of_its_reader(tmp_path: Path) -> None:
    with page_served(tmp_path, status()) as page, httpx.Client(base_url=page.url, timeout=60) as browser:
        browser.post("login", data={"token": "token-vic"})
        with browser.stream("GET", "stream", headers={"Accept": "text/event-stream"}) as stream:
            lines = (line for line in stream.iter_lines() if line.startswith("event: "))
            assert next(lines) == "event: state"
            tokens(tmp_path, oda="operator")
            assert "event: over" in list(lines), "and the stream has ended"


@pytest.mark.page
@pytest.mark.browser
def test_a_master_that_neither_answers_nor_hangs_up_is_lost_and_found_again(browser: Browser, tmp_path: Path) -> None:
    """As one that is frozen, or behind a line that is cut without a word."""
    with page_served(tmp_path, status(), guarded=False) as page:
        proxy = FaultProxy(*_address(page.server.address))
        tab = new_tab(browser)
        tab.goto(f"http://127.0.0.1:{proxy.port}/ui/tasks/shop")
        tab.wait_for_selector("#link:has-text('live')")
        proxy.stall()
        tab.wait_for_selector("#link:has-text('connection lost')")
        assert "The master does not answer" in tab.inner_text("#lost")
        page.set(status(lag=4000))
        proxy.flow()
        tab.wait_for_selector("#link:has-text('live')")
        tab.wait_for_selector("td:has-text('67 min')")
        assert not tab.locator("#lost").is_visible()
        tab.context.close()


def _address(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    return host, int(port)
