"""The page behind a proxy that ends TLS, has a path of its own for it, and puts its own `Host` into each request.

So nginx does with no more than `proxy_pass`. Debian's nginx itself stands between in the last test, with a browser.
"""

from __future__ import annotations

import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from browsed import browser
from page_served import PageServed, page_served, status
from playwright.sync_api import Browser, Response
from test_page import read

from support.certificates import Authority
from support.chromium import new_tab
from support.waiting import wait_until
from unshard.api.status import Stage
from unshard.testing.server_trees import server_tree, unpacked

__all__ = ["browser"]

SITE = "https://db.example"
FROM_THE_PAGE = {"Origin": SITE, "Sec-Fetch-Site": "same-origin", "Connection": "close"}
"""What a browser says of itself in a form of the page, and nginx leaves as it is. `Host` is the master's address."""


@pytest.fixture
def page(tmp_path: Path) -> Iterator[PageServed]:
    with page_served(tmp_path, status()) as made:
        yield made


def test_forms_of_the_page_are_taken_though_their_host_is_another(page: PageServed) -> None:
    with httpx.Client(base_url=page.url, timeout=60, follow_redirects=True, headers=FROM_THE_PAGE) as browser:
        answer = browser.post("login", data={"token": "token-oda"}, follow_redirects=False)
        assert answer.status_code == 303
        assert answer.headers["location"] == "./"
        assert "; Secure" in answer.headers["set-cookie"], "it is never sent without TLS, which ends before us"
        kept = answer.headers["set-cookie"].partition(";")[0]
        browser.headers["Cookie"] = kept  # this client speaks plain HTTP, and would keep a secure one to itself
        csrf = read(browser, "do/pause-task?name=shop").hidden("csrf")
        assert browser.post("do/pause-task", data={"name": "shop", "csrf": csrf}).status_code == 200
    assert page.wanted() is Stage.PAUSED


@pytest.mark.parametrize("related", ["cross-site", "same-site", "none"])
def test_a_form_of_another_site_is_refused_by_what_the_browser_says_of_it(page: PageServed, related: str) -> None:
    with httpx.Client(base_url=page.url, timeout=60, follow_redirects=True) as browser:
        assert browser.post("login", data={"token": "token-oda"}).status_code == 200
        csrf = read(browser, "do/pause-task?name=shop").hidden("csrf")
        for origin in ("https://evil.example", f"http://{page.server.address}"):
            headers = {"Origin": origin, "Sec-Fetch-Site": related}
            for path, given in (("do/pause-task", {"name": "shop", "csrf": csrf}), ("login", {"token": "token-ada"})):
                assert browser.post(path, data=given, headers=headers).status_code == 403
    assert page.wanted() is Stage.RUNNING


def test_a_link_from_another_site_leads_to_the_page(page: PageServed) -> None:
    """A browser says that, too, of a link in a wiki; it sends no `Origin` with it."""
    headers = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}
    assert httpx.get(f"{page.url}login", headers=headers, timeout=60).status_code == 200


def test_without_tokens_the_page_is_taken_and_other_sites_are_not(tmp_path: Path) -> None:
    with page_served(tmp_path, status(), guarded=False) as page:
        with httpx.Client(base_url=page.url, timeout=60, headers=FROM_THE_PAGE) as browser:
            csrf = read(browser, "do/pause-task?name=shop").hidden("csrf")
            given = {"name": "shop", "csrf": csrf}
            crossed = {"Origin": "https://evil.example", "Sec-Fetch-Site": "cross-site"}
            assert browser.post("do/pause-task", data=given, headers=crossed).status_code == 403
            assert browser.post("do/pause-task", data=given).status_code == 200
        evil = {"Host": "evil.example", "Sec-Fetch-Site": "same-origin"}
        assert httpx.get(page.url, headers=evil, timeout=60).status_code == 403


def test_a_proxy_is_told_to_pass_events_on_at_once(page: PageServed) -> None:
    """As nginx asks for it, in HTTP 1.0: else it keeps events back until 4 kB have come."""
    head = f"GET /ui/stream HTTP/1.0\r\nHost: {page.server.address}\r\nConnection: close\r\n"
    asked = f"{head}Accept: text/event-stream\r\nAuthorization: Bearer token-vic\r\n\r\n"
    host, port = page.server.address.split(":")
    with socket.create_connection((host, int(port)), 60) as connection:
        connection.sendall(asked.encode())
        got = b""
        while b"event: " not in got:
            piece = connection.recv(4096)
            assert piece, got
            got += piece
    assert b"x-accel-buffering: no\r\n" in got.lower()


@contextmanager
def nginx(folder: Path, address: str) -> Iterator[str]:
    """Debian's nginx as it is, with TLS, and the page below a path. Yields the address of the page."""
    pair = Authority(folder).issue("db.example")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    config = folder / "nginx.conf"
    config.write_text(f"""
        daemon off; master_process off; pid {folder}/nginx.pid; error_log {folder}/error.log;
        events {{}}
        http {{
          access_log off; client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy;
          fastcgi_temp_path {folder}/fastcgi; uwsgi_temp_path {folder}/uwsgi; scgi_temp_path {folder}/scgi;
          server {{
            listen 127.0.0.1:{port} ssl; ssl_certificate {pair.cert}; ssl_certificate_key {pair.key};
            location /db/unshard/ {{ proxy_pass http://{address}/; }}
          }}
        }}
        """)
    program = unpacked(server_tree("nginx"), "nginx")
    with subprocess.Popen([*program, "-c", str(config), "-e", f"{folder}/error.log"]) as process:
        try:
            url = f"https://127.0.0.1:{port}/db/unshard/ui/"
            wait_until(lambda: _answers(url), "nginx answers")
            yield url
        finally:
            process.terminate()


def _answers(url: str) -> bool:
    try:
        return httpx.get(f"{url}login", verify=False, timeout=60).status_code == 200
    except httpx.TransportError:
        return False


@pytest.mark.nginx
@pytest.mark.browser
@pytest.mark.page
def test_behind_nginx_with_its_defaults_all_of_it_works(browser: Browser, page: PageServed, tmp_path: Path) -> None:
    with nginx(tmp_path, page.server.address) as url:
        tab, asked, failed = new_tab(browser, ignore_https_errors=True), list[str](), list[tuple[str, int]]()

        def answered(one: Response) -> None:
            if one.status >= 400:
                failed.append((one.url, one.status))

        tab.on("request", lambda one: asked.append(one.url))
        tab.goto(url)
        tab.on("response", answered)
        tab.get_by_label("Token").fill("token-ada")
        tab.get_by_role("button", name="Log in").click()
        tab.wait_for_url(url)
        assert [one["secure"] for one in tab.context.cookies()] == [True]
        tab.wait_for_selector("#link:has-text('live')")
        tab.get_by_role("link", name="shop", exact=True).click()
        page.set(status(wrong=True, lag=4000))
        tab.wait_for_selector("td:has-text('67 min')")
        page.set(status())
        tab.get_by_role("link", name="Pause", exact=True).click()
        tab.get_by_role("button", name="Pause").click()
        tab.wait_for_selector("[role=status]:has-text('Done')")
        assert page.wanted() is Stage.PAUSED
        tab.get_by_role("link", name="The task").click()
        tab.get_by_role("link", name="Tables").click()
        tab.get_by_label("Target table contains").fill("orders")
        tab.keyboard.press("Enter")
        tab.wait_for_url("**/tables?q=orders*")
        tab.get_by_role("button", name="Log out").click()
        tab.wait_for_url(f"{url}login")
        assert failed == []
        assert [one for one in asked if not one.startswith((url, "data:"))] == []
        tab.context.close()
