"""What many open pages cost the master: processor time, which a busy machine does not change much."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urljoin

import httpx
import pytest
from page_served import PageServed, copied, differing, page_served, status, validation
from test_page import SCREENS, client, read

from support.task_runs import wait_until
from unshard.web.page.reader import LOOKED_AT_SECONDS
from unshard.web.page.screens import PageScreens

PAGES = 50
_BROWSERS = """
import sys, httpx
url, number, paths = sys.argv[1], int(sys.argv[2]), sys.argv[3:]
browsers = [httpx.Client(base_url=url, timeout=60) for _ in range(number)]
for one in browsers:
    assert one.post("login", data={"token": "token-vic"}).status_code == 303
    assert one.get(paths[0]).status_code == 200
print("ready", flush=True)
for _ in sys.stdin:
    for at, one in enumerate(browsers):
        assert one.get(paths[at % len(paths)]).status_code == 200
    print("read", flush=True)
"""


def cost(page: PageServed, pages: int, *paths: str) -> float:
    """Processor seconds of the master for one refresh of so many pages behind a change: the least of several."""
    command = [sys.executable, "-c", _BROWSERS, page.url, str(pages), *paths]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as browsers:
        assert browsers.stdin is not None
        assert browsers.stdout is not None
        assert browsers.stdout.readline() == "ready\n"
        found = []
        for number in range(8):
            page.set(status(10_000, lag=number))
            begun = time.process_time()
            browsers.stdin.write("\n")
            browsers.stdin.flush()
            assert browsers.stdout.readline() == "read\n"
            found.append(time.process_time() - begun)
        browsers.stdin.close()
    return min(found)


def test_fifty_open_pages_cost_less_than_a_twentieth_of_a_core(tmp_path: Path) -> None:
    with page_served(tmp_path, status(10_000)) as page:
        page.copy(copied(10_000))
        paths = ("", "tasks/shop", "tasks/shop/tables", "tasks/shop/copy", "errors")
        spent = cost(page, PAGES, *paths)
    assert spent < LOOKED_AT_SECONDS / 20, f"{spent:.3f} s of every {LOOKED_AT_SECONDS:g} s"


_OPEN_PAGES = """
import asyncio, os, sys, httpx
url, number, paths = sys.argv[1], int(sys.argv[2]), sys.argv[3:]
read = []

async def page(path, ready):
    async with httpx.AsyncClient(base_url=url, timeout=600) as one:
        assert (await one.post("login", data={"token": "token-vic"})).status_code == 303
        assert (await one.get(path)).status_code == 200
        async with one.stream("GET", "stream", headers={"Accept": "text/event-stream"}) as events:
            async for line in events.aiter_lines():
                if line.startswith("id: "):
                    assert (await one.get(path)).status_code == 200
                    if ready.done():
                        read.append(path)
                    else:
                        ready.set_result(True)

async def main():
    loop = asyncio.get_running_loop()
    ready = [loop.create_future() for _ in range(number)]
    pages = [asyncio.create_task(page(paths[at % len(paths)], ready[at])) for at in range(number)]
    await asyncio.gather(*ready)
    print("ready", flush=True)
    await asyncio.to_thread(sys.stdin.readline)
    print(len(read) if not any(one.done() for one in pages) else -1, flush=True)
    os._exit(0)

asyncio.run(main())
"""
_CHANGES = 8


def change(page: PageServed) -> float:
    """Processor seconds of the master from one look at which the cluster has changed to the next: the least of several.

    A machine that is busy makes single ones dearer.
    """
    found = []
    for number in range(_CHANGES):
        begun = time.process_time()
        page.set(status(10_000, lag=round(10 * time.monotonic()) + number))
        time.sleep(LOOKED_AT_SECONDS)
        found.append(time.process_time() - begun)
    return min(found)


@pytest.mark.page
def test_fifty_open_streams_and_their_pages_cost_less_than_a_twentieth_of_a_core(tmp_path: Path) -> None:
    """Whole pages: each has its stream, and is read again at each event."""
    with page_served(tmp_path, status(10_000)) as page:
        page.copy(copied(10_000))
        idle = change(page)
        paths = ("", "tasks/shop", "tasks/shop/tables", "errors", "locks")
        command = [sys.executable, "-c", _OPEN_PAGES, page.url, str(PAGES), *paths]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as browsers:
            assert browsers.stdout is not None
            assert browsers.stdout.readline() == "ready\n"
            spent = change(page) - idle
            told, _ = browsers.communicate("\n")
    assert int(told) >= PAGES * (_CHANGES - 1), "each page is open still, and was read again behind each change"
    assert spent < LOOKED_AT_SECONDS / 20, f"{spent:.3f} s of every {LOOKED_AT_SECONDS:g} s"


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
            for number in range(3):
                page.set(status(10_000, lag=number))
                for at in range(PAGES):
                    assert browser.get(paths[at % len(paths)]).status_code == 200
        assert len(made) == 3 * len(paths)
        assert page.link.asked == 3
        assert page.link.copies_asked == 3
        assert records == []


def test_a_look_that_takes_long_is_followed_by_a_long_rest(tmp_path: Path) -> None:
    with page_served(tmp_path, status()) as page:
        reader, ask = page.server._app.state.page, page.link.report
        page.link.report = lambda task, seconds: time.sleep(0.4) or ask(task, seconds)  # type: ignore[method-assign, func-returns-value]
        reader.watched()
        page.link.asked, begun = 0, time.monotonic()
        while time.monotonic() - begun < 7:
            reader.watched()
            time.sleep(0.1)
        assert page.link.asked <= 2, "it would be 3 in 7 s without a rest"
