"""Chromium for the tests of the page: the one of the machine, and tabs in it that are as patient as other waits."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from playwright.sync_api import Browser, Page, expect, sync_playwright

from support.waiting import PATIENCE_SECONDS

PATIENCE = 1000 * PATIENCE_SECONDS
"""How many milliseconds a tab waits. Playwright's own 30 s, and the 5 s of `expect`, pass on a busy machine."""


@contextmanager
def chromium() -> Iterator[Browser]:
    """A Chromium that ends with the block."""
    program = next(filter(None, map(shutil.which, ("chromium", "google-chrome"))))
    expect.set_options(timeout=PATIENCE)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"], timeout=PATIENCE)
        yield browser
        browser.close()


def new_tab(browser: Browser, **settings: Any) -> Page:
    """The only tab of a new context, which has these settings and knows no cookie of another one."""
    context = browser.new_context(**settings)
    context.set_default_timeout(PATIENCE)
    return context.new_page()
