"""What many open pages cost the master: how often workers are asked and screens rendered, and the bytes that are sent.

`python -m bench open_pages` measures the processor time.
"""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Thread
from types import SimpleNamespace
from urllib.parse import urljoin

import httpx
import pytest
from page_served import PageServed, copied, differing, page_served, status, validation
from test_page import SCREENS, client, read

from support.waiting import wait_until
from unshard.api.status import SourceReport
from unshard.web.page import reader as state_reader
from unshard.web.page import screens as page_screens
from unshard.web.page.reader import IDLE_SECONDS, StateReader
from unshard.web.page.screens import PageScreens

PAGES = 50
CHANGES = 3


async def _open(url: str, path: str, seen: list[str]) -> None:
    """Open a page as a browser does: with its stream, and read again at each event."""
    async with httpx.AsyncClient(base_url=url, timeout=600) as one:
        assert (await one.post("login", data={"token": "token-vic"})).status_code == 303
        async with one.stream("GET", "stream", headers={"Accept": "text/event-stream"}) as events:
            async for line in events.aiter_lines():
                if line.startswith("id: "):
                    assert (await one.get(path)).status_code == 200
                    seen.append(path)


@contextmanager
def open_pages(page: PageServed, *paths: str) -> Iterator[list[str]]:
    """`PAGES` pages are open within the context. Gives the paths that they have read, which grow."""
    loop, seen = asyncio.new_event_loop(), list[str]()

    async def all_of_them() -> None:
        await asyncio.gather(*(_open(page.url, paths[at % len(paths)], seen) for at in range(PAGES)))

    pages = loop.create_task(all_of_them())

    def run() -> None:
        with suppress(asyncio.CancelledError):
            loop.run_until_complete(pages)

    thread = Thread(target=run, name="open pages")
    thread.start()
    try:
        yield seen
    finally:
        loop.call_soon_threadsafe(pages.cancel)
        thread.join()
        loop.close()


def test_fifty_open_streams_and_their_pages_ask_and_render_no_more_than_one_of_each(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whole pages, which are all read again at the same moment: each has its stream."""
    for name in ("LOOKED_AT_SECONDS", "IDLE_SECONDS"):
        monkeypatch.setattr(state_reader, name, 3600.0)  # each look is one of the test
    monkeypatch.setattr(page_screens, "_TICK_SECONDS", 0.05)
    paths = ("", "tasks/shop", "tasks/shop/tables", "errors", "locks")
    with page_served(tmp_path, status(10_000)) as page:
        wait_until(lambda: page.server._app.state.page.now.at > 0, "the look of the start")
        with open_pages(page, *paths) as seen, rendered_screens() as made:
            all_have_read(seen, 1)
            page.link.asked = 0
            made.clear()
            for number in range(CHANGES):
                page.set(status(10_000, lag=number))
                all_have_read(seen, number + 2)
        assert len(seen) == PAGES * (CHANGES + 1), "once for each change"
        assert len(made) == CHANGES * len(paths)
        assert page.link.asked == CHANGES


def all_have_read(seen: list[str], times: int) -> None:
    wait_until(lambda: len(seen) >= PAGES * times, f"each page is read {times} times", told=lambda: str(Counter(seen)))


def test_a_screen_is_made_once_for_all_that_ask_for_it_at_the_same_moment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first is not made before all stand in front of it."""
    taken, take, render = list[int](), PageScreens.snapshot, PageScreens.render

    def snapshot(screens: PageScreens) -> state_reader.Snapshot:
        taken.append(1)
        return take(screens)

    def slow(screens: PageScreens, *given: object, **values: object) -> str:
        wait_until(lambda: len(taken) == 4, "all four have asked")
        return render(screens, *given, **values)  # type: ignore[arg-type]

    with page_served(tmp_path, status()) as page, client(page, "vic") as browser:
        page.set(status(lag=7))
        monkeypatch.setattr(PageScreens, "snapshot", snapshot)
        monkeypatch.setattr(PageScreens, "render", slow)
        with rendered_screens() as made:
            readers = [Thread(target=read, args=(browser, "tasks/shop")) for _ in range(4)]
            for one in readers:
                one.start()
            for one in readers:
                one.join()
        assert made == ["task.html"]


@contextmanager
def rendered_screens() -> Iterator[list[str]]:
    """The templates that are filled in within the context."""
    made: list[str] = []
    render = PageScreens.render

    def counted(screens: PageScreens, request: object, template: str, **values: object) -> str:
        made.append(template)
        return render(screens, request, template, **values)  # type: ignore[arg-type]

    PageScreens.render = counted  # type: ignore[method-assign, assignment]
    try:
        yield made
    finally:
        PageScreens.render = render  # type: ignore[method-assign]


def test_one_text_serves_all_of_a_role_with_the_name_and_the_form_token_of_each(tmp_path: Path) -> None:
    with page_served(tmp_path, status()) as page, client(page, "vic") as one, client(page, "vic") as other:
        with rendered_screens() as made:
            page.set(status(lag=7))
            tokens = {read(browser, "tasks/shop").hidden("csrf") for browser in (one, other, one, other)}
            with client(page, "oda") as third:
                assert "oda (operator)" in read(third, "tasks/shop").text
            assert "vic (viewer)" in read(one, "tasks/shop").text
        assert len(tokens) == 2, "each session has its own"
        shown = [template for template in made if template == "task.html"]
        assert len(shown) == 2, "one for each role"


def test_a_whole_page_at_ten_thousand_tables_is_small_on_the_wire(tmp_path: Path) -> None:
    with page_served(tmp_path, status(10_000, wrong=True, locked=True, validated=validation(300))) as page:
        page.copy(copied(10_000))
        page.target_has(differing(300), stopped=1000)
        with client(page, "oda") as browser:
            wait_until(lambda: "300 rows" in browser.get("tasks/shop/validation").text, "the record is read")
            for path in (*SCREENS, "tasks/shop/validation", "tasks/shop/log"):
                own = urljoin(page.url, path)
                parts = {
                    urljoin(own, name)
                    for name in re.findall(r'(?:src|href)="([^"]*static/[^"]*)"', browser.get(own).text)
                }
                assert len(parts) >= 5
                sizes = {one: on_the_wire(browser, one) for one in (own, *parts)}
                assert sum(sizes.values()) < 100_000, sizes


def on_the_wire(browser: httpx.Client, url: str) -> int:
    with browser.stream("GET", url) as answer:
        return sum(map(len, answer.iter_raw()))


def test_fifty_pages_ask_and_render_no_more_than_one_of_each(tmp_path: Path) -> None:
    """At 10,000 tables: one reading of the worker for a change, one rendering of each screen, nothing of the target."""
    paths = ("", "tasks/shop", "tasks/shop/tables", "tasks/shop/copy", "errors")
    with page_served(tmp_path, status(10_000)) as page, client(page, "vic") as browser:
        reader = page.server._app.state.page
        reader.stop()  # each look is one of the test
        assert browser.get("tasks/shop/copy").status_code == 200
        records, page.link.asked, page.link.copies_asked = page.target_has([]), 0, 0
        with rendered_screens() as made:
            for number in range(CHANGES):
                page.set(status(10_000, lag=number))
                for at in range(PAGES):
                    assert browser.get(paths[at % len(paths)]).status_code == 200
        assert len(made) == CHANGES * len(paths)
        assert page.link.asked == CHANGES
        assert page.link.copies_asked == CHANGES
        assert records == []


class _Rests:
    """In place of the event that wakes the reader: notes for how long it rests, and ends it then."""

    def __init__(self, reader: StateReader) -> None:
        self._reader = reader
        self.seconds: list[float] = []
        self.woken = 0

    def wait(self, seconds: float) -> None:
        self.seconds.append(seconds)
        self._reader._stop.set()

    def set(self) -> None:
        self.woken += 1

    def clear(self) -> None:
        """As an event."""


def test_a_look_that_takes_long_is_followed_by_a_long_rest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with page_served(tmp_path, status()) as page:
        page.server._app.state.page.stop()
        clock = [1000.0]
        monkeypatch.setattr(state_reader, "time", SimpleNamespace(monotonic=lambda: clock[0], time=lambda: clock[0]))
        reader, ask = StateReader(page.master), page.link.report

        def slow(task: str | None, seconds: float) -> SourceReport:
            clock[0] += 0.4
            return ask(task, seconds)

        monkeypatch.setattr(page.link, "report", slow)
        reader._wake = rests = _Rests(reader)  # type: ignore[assignment]
        reader.watched()
        reader._run()
        assert rests.seconds == [pytest.approx(20 * 0.4)]
        rests.woken = 0
        clock[0] += 0.9 * rests.seconds[0]
        reader.watched()
        assert not rests.woken, "it rests, though somebody looks"
        clock[0] += IDLE_SECONDS
        reader.watched()
        assert rests.woken, "it has rested"
