"""How a person gets around on the page: with the keyboard, and behind a proxy that puts a prefix before it."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from threading import Thread

import httpx
import pytest
import uvicorn
from browsed import browser, fill, opened
from page_served import PageServed, page_served, status
from playwright.sync_api import Browser
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from support.chromium import new_tab

pytestmark = [pytest.mark.browser, pytest.mark.page]
__all__ = ["browser"]
PREFIX = "/db/unshard"
DATA_IS_SEEN = """() => {
    const plot = document.getElementById("chart-lag").plot, setData = plot.setData;
    plot.setData = (...given) => { setData(...given); window.given = true; };
    window.plot = plot;
}"""


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PageServed]:
    with page_served(tmp_path_factory.mktemp("reached"), status(), sources=("s1", "s2")) as made:
        fill(made)
        yield made


def test_keys_lead_to_the_screens_the_search_and_the_rows(browser: Browser, page: PageServed) -> None:
    tab, wrong = opened(browser, page)
    for key, path in (("e", "errors"), ("l", "locks"), ("c", "cluster"), ("t", "")):
        tab.keyboard.press("g")
        tab.keyboard.press(key)
        tab.wait_for_url(page.url + path)
    tab.keyboard.press("Tab")
    assert tab.evaluate("document.activeElement.textContent") == "Skip to the content"
    tab.keyboard.press("j")
    assert tab.evaluate("document.activeElement.textContent") == "shop"
    assert tab.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid", "the focus is seen"
    tab.keyboard.press("Enter")
    tab.wait_for_url(f"{page.url}tasks/shop")
    tab.goto(f"{page.url}tasks/shop/tables")
    tab.keyboard.press("/")
    tab.keyboard.type("ge_00")
    assert tab.get_by_label("Target table contains").input_value() == "ge_00", "letters in a field lead nowhere"
    tab.keyboard.press("Enter")
    tab.wait_for_url("**/tables?q=ge_00*")
    tab.keyboard.press("?")
    assert tab.get_by_role("dialog").is_visible()
    assert "freeze" in tab.inner_text("dialog")
    tab.keyboard.press("Escape")
    assert not tab.get_by_role("dialog").is_visible()
    tab.keyboard.press("f")
    assert "frozen" in tab.inner_text("#link")
    assert wrong == []
    tab.context.close()


@contextmanager
def behind_a_prefix(page: PageServed) -> Iterator[str]:
    """A proxy that takes its prefix from each path, as one before several tools does. Yields the page's address."""
    upstream = httpx.AsyncClient(base_url=f"http://{page.server.address}", timeout=60)

    async def passed(request: Request) -> Response:
        path = request.url.path.removeprefix(PREFIX) + (f"?{request.url.query}" if request.url.query else "")
        asked = upstream.build_request(request.method, path, headers=request.headers.raw, content=await request.body())
        answer = await upstream.send(asked, stream=True)

        async def pieces() -> AsyncIterator[bytes]:
            async for piece in answer.aiter_raw():
                yield piece
            await answer.aclose()

        made = StreamingResponse(pieces(), answer.status_code)
        made.raw_headers = [one for one in answer.headers.raw if one[0].lower() not in (b"transfer-encoding",)]
        return made

    app = Starlette(routes=[Route(PREFIX + "/{rest:path}", passed, methods=["GET", "POST"])])
    listening = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(app, log_level="warning", timeout_graceful_shutdown=1))
    thread = Thread(target=server.run, args=([listening],), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}{PREFIX}/ui/"
    finally:
        server.should_exit = True
        thread.join(30)


def test_behind_a_prefix_the_page_is_whole(browser: Browser, page: PageServed) -> None:
    with behind_a_prefix(page) as url:
        tab, asked = new_tab(browser), list[str]()
        tab.on("request", lambda one: asked.append(one.url))
        tab.goto(url)
        tab.get_by_label("Token").fill("token-ada")
        tab.get_by_role("button", name="Log in").click()
        tab.wait_for_url(url)
        tab.wait_for_selector("#link:has-text('live')")
        tab.get_by_role("link", name="shop", exact=True).click()
        tab.wait_for_selector(".chart.drawn canvas")
        page.set(status(wrong=True, lag=4000))
        tab.wait_for_selector("td:has-text('67 min')")
        tab.get_by_role("link", name="Pause", exact=True).click()
        tab.get_by_role("link", name="Cancel").click()
        tab.wait_for_url(url)
        tab.get_by_role("button", name="Log out").click()
        tab.wait_for_url(f"{url}login")
        assert [one for one in asked if not one.startswith((url, "data:"))] == []
        tab.context.close()


def test_a_chart_is_not_drawn_anew_and_keeps_its_zoom(browser: Browser, page: PageServed) -> None:
    tab, wrong = opened(browser, page)
    tab.goto(f"{page.url}tasks/shop?minutes=60")
    tab.wait_for_selector("#chart-lag.drawn canvas")
    assert tab.get_by_role("link", name="1 h").get_attribute("aria-current") == "true"
    extent = "(() => { const x = document.getElementById('chart-lag').plot.scales.x; return [x.min, x.max]; })()"
    first, last = tab.evaluate(extent)
    assert 3000 < last - first <= 3700, "an hour is shown"
    tab.evaluate(
        "([a, b]) => document.getElementById('chart-lag').plot.setScale('x', {min: a, max: b})",
        [last - 900, last - 300],
    )
    tab.evaluate(DATA_IS_SEEN)
    tab.wait_for_function("() => document.getElementById('chart-lag').plot !== window.plot || window.given")
    assert tab.evaluate("document.getElementById('chart-lag').plot === window.plot"), "it is not drawn anew"
    assert tab.locator("#chart-lag canvas").count() == 1
    assert tab.evaluate(extent) == [last - 900, last - 300]
    assert wrong == []
    tab.context.close()
