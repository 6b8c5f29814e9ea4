"""The pictures of the page in README and docs are taken here, and are those of the screens as they are now.

`docs/images/page-*.txt` is what stood on the screen when its picture was taken. `UNSHARD_DOCS_PICTURES=1` takes them
anew.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import page_served
import pytest
from browsed import browser, fill, opened
from playwright.sync_api import Browser

pytestmark = [pytest.mark.browser, pytest.mark.page]
__all__ = ["browser"]

IMAGES = Path(__file__).parents[2] / "docs" / "images"
TAKE = bool(os.environ.get("UNSHARD_DOCS_PICTURES"))
PICTURES = {
    "page-overview": ("", "light", 660, "main"),
    "page-task": ("tasks/shop", "dark", 1540, "main:not(:has(.chart:not(.drawn)))"),
    "page-validation": ("tasks/shop/validation", "light", 860, ".differs"),
    "page-routes": ("tasks/shop/routes", "light", 860, "svg .node"),
}
"""Path, theme, height, and what is waited for, by the name of the picture."""


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[page_served.PageServed]:
    since = (datetime.now(UTC) - timedelta(minutes=25)).isoformat(timespec="seconds")
    with (
        pytest.MonkeyPatch.context() as patch,
        page_served.page_served(
            tmp_path_factory.mktemp("pictures"), page_served.status(), sources=("s1", "s2")
        ) as made,
    ):
        patch.setattr(page_served, "SINCE", since)
        made.other.status = page_served.status(
            2000, odd="orders_archive", validated=page_served.validation(0, source="s2")
        )
        fill(made, "orders_archive", lost=False)
        yield made


def constant(text: str) -> str:
    """The text without what is another one at each time."""
    text = re.sub(r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d|\d\d:\d\d(:\d\d)?", "TIME", text)
    return "\n".join(line.rstrip() for line in text.splitlines() if line.strip()) + "\n"


@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_shows_what_the_screen_shows_now(browser: Browser, page: page_served.PageServed, name: str) -> None:
    path, theme, height, awaited = PICTURES[name]
    tab, wrong = opened(browser, page, theme)
    tab.set_viewport_size({"width": 1280, "height": height})
    tab.goto(page.url + path)
    tab.wait_for_selector(awaited)
    tab.wait_for_selector("#link:has-text('live')")
    found = constant(tab.inner_text("main"))
    picture, text = IMAGES / f"{name}.png", IMAGES / f"{name}.txt"
    if TAKE:
        tab.screenshot(path=picture)
        text.write_text(found)
    assert found == text.read_text(), f"{name}.png is older than the screen: UNSHARD_DOCS_PICTURES=1 takes it anew"
    assert "<script>" not in found
    size = tuple(int.from_bytes(picture.read_bytes()[at : at + 4], "big") for at in (16, 20))
    assert size == (1280, height)
    assert wrong == []
    tab.context.close()


def test_each_picture_of_the_page_stands_in_the_docs() -> None:
    root = IMAGES.parents[1]
    told = "".join(path.read_text() for path in (root / "README.md", *(root / "docs").rglob("*.md")))
    assert {path.stem for path in IMAGES.glob("page-*.png")} == set(PICTURES)
    assert [name for name in PICTURES if f"images/{name}.png" not in told] == []
