"""Names with characters that turn text around: an element isolates each, or the character is spelled out."""

from __future__ import annotations

from collections.abc import Iterator
from html.parser import HTMLParser
from urllib.parse import quote

import pytest
from browsed import fill
from page_served import HOSTILE, PageServed, page_served, status
from test_page import SCREENS, client

MARK = "\u202e"
ODD = quote(HOSTILE, safe="")
ISOLATING = {"bdi", "textarea", "option", "text"}
"""`text` is that of an SVG, which the style sheet isolates."""
VOID = {"meta", "link", "input", "br", "path", "rect"}
RAW = {"value", "href", "content", "d"}
"""Attributes that are no text to read."""


class Marks(HTMLParser):
    """The elements and the attributes in which a mark stands as it is."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.stack: list[str] = []
        self.found: list[str] = []
        self.isolated = 0
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found += [f"{tag}@{name}" for name, text in attrs if name not in RAW and MARK in (text or "")]
        if tag not in VOID:
            self.stack.append(tag)

    def handle_endtag(self, tag: str) -> None:
        while self.stack and self.stack.pop() != tag:
            pass

    def handle_data(self, data: str) -> None:
        if MARK not in data:
            return
        if ISOLATING.intersection(self.stack):
            self.isolated += 1
        else:
            self.found.append(">".join(self.stack[-3:]))


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PageServed]:
    with page_served(tmp_path_factory.mktemp("marks"), status(), sources=("s1", "s2")) as made:
        fill(made)
        told = made.link.status
        assert told.sync is not None
        made.set(told.model_copy(update={"note": f"session 7 holds {HOSTILE}"}))
        yield made


PATHS = (
    *SCREENS,
    "tasks/shop/copy?stage=dumping",
    "tasks/shop/validation",
    "tasks/shop/log",
    "audit",
    f"tasks/shop/routes?source=s1&table=crm.%60{ODD}%60",
    "tasks/shop/routes?q=npexe",
    f"do/stop-task?name={ODD}",
    f"do/pause-task?name={ODD}&sources={ODD}",
    f"do/binlog-replace?task={ODD}&sources=s1&sqls={ODD}",
    f"do/transfer-source?source={ODD}",
    f"do/shard-ddl-lock-unlock?id={ODD}",
    f"do/validation-ignore-error?task={ODD}",
    f"tasks/shop/tables?q={ODD}",
    f"tasks/{quote(MARK)}",
)


@pytest.mark.parametrize("path", PATHS)
def test_a_mark_turns_nothing_around_it(page: PageServed, path: str) -> None:
    with client(page, "ada") as browser:
        html = browser.get(path).text
    assert Marks(html).found == []


def test_the_marks_are_on_the_screens(page: PageServed) -> None:
    """Else the tests above would hold for any page."""
    with client(page, "ada") as browser:
        for path in (
            "tasks/shop/tables",
            "tasks/shop/copy?stage=dumping",
            "tasks/shop/validation",
            f"do/stop-task?name={ODD}",
        ):
            assert Marks(browser.get(path).text).isolated, path
        assert f"\\u{ord(MARK):04x}" in browser.get("errors").text
        assert Marks(f"<p>a {MARK}</p><b title='{MARK}'>b</b><bdi>{MARK}</bdi>").found == ["p", "b@title"]
