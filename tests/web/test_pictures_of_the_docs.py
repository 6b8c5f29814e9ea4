"""The pictures of the page in README and docs: each is of a real run of a shop, and of the screens as they are now.

`docs/images/page-*.txt` has the words of a screen that do not depend on the data, as they were when its picture was
taken. `UNSHARD_DOCS_PICTURES=15` takes them anew after a run of 15 minutes: the charts need something to show.
"""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest
from browsed import browser
from pictured_shop import PicturedShop
from playwright.sync_api import Browser, Page

from support.chromium import new_tab
from support.task_runs import Command
from support.waiting import PATIENCE_SECONDS, wait_until
from unshard.testing.mariadb_server import MariadbServer
from unshard.validation.full_load import LAG_SECONDS

pytestmark = [pytest.mark.browser, pytest.mark.page, pytest.mark.server, pytest.mark.spark]
__all__ = ["browser"]

IMAGES = Path(__file__).parents[2] / "docs" / "images"
TAKE = os.environ.get("UNSHARD_DOCS_PICTURES", "")
MINUTES, ORDERS = (float(TAKE), 20_000) if TAKE else (0, 600)
WORDS = "h1, h2, h3, th[scope=col], .tile > span:not(.quiet), .tabs a, .buttons a, .buttons button, dt, label, .chip"
"""What has the words of a screen."""
DRAWN = "main:not(:has(.chart:not(.drawn)))"


@dataclass(frozen=True)
class Picture:
    """Where it is taken, how, and what has to be read on it."""

    path: str
    theme: str
    height: int
    awaited: str
    says: tuple[str, ...]


PICTURES = {
    "page-task": Picture("tasks/shop?minutes=15", "dark", 1210, DRAWN, ("running", "berlin", "lyon")),
    "page-overview": Picture(
        "", "light", 760, "main:has-text('A DDL waits')",
        ("A DDL waits for other shards", "rows of task shop differ"),
    ),
    "page-validation": Picture(
        "tasks/shop/validation", "light", 900, ".differs", ("The row has other values in the target", "total")
    ),
    "page-routes": Picture("tasks/shop/routes", "light", 560, "svg .node", ("all-orders",)),
}  # fmt: skip


class Run:
    """`unshard run` of the shop, with its page."""

    def __init__(self, command: Command, shop: PicturedShop) -> None:
        self.shop = shop
        wait_until(lambda: "page: http" in command.text, "it has a page", told=lambda: command.text)
        (self.url,) = re.findall(r"page: (http://127\.0\.0\.1:\d+/ui/)", command.text)

    def shows(self, path: str, words: str, seconds: float = PATIENCE_SECONDS) -> None:
        wait_until(lambda: words in httpx.get(self.url + path, timeout=60).text, f"{path} shows {words}", seconds)

    def do(self, verb: str, **given: str) -> None:
        with httpx.Client(base_url=self.url, timeout=60) as browser:
            form = browser.get(f"do/{verb}", params=given).text
            csrf = form.split('name="csrf" value="')[1].split('"')[0]
            assert browser.post(f"do/{verb}", data={**given, "csrf": csrf}).status_code == 200


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    with (
        MariadbServer({"gtid_domain_id": "1"}) as berlin,
        MariadbServer({"gtid_domain_id": "2"}) as lyon,
        MariadbServer({"gtid_domain_id": "9"}) as target,
    ):
        shop = PicturedShop({"berlin": berlin, "lyon": lyon}, target, tmp_path_factory.mktemp("pictures"))
        files = shop.create(ORDERS)
        with Command(files) as command, shop.open():
            made = Run(command, shop)
            made.shows("", "All is fine")
            threading.Event().wait(60 * MINUTES)
            yield made
            command.interrupt()
            assert command.wait() == 0, command.text


def go_wrong(run: Run) -> None:
    """Somebody changes rows of the target, and runs a DDL on one shard alone. Idempotent."""
    target = run.shop.target
    if target.query("SELECT 1 FROM shop.customers WHERE name = 'nobody'"):
        return
    target.run(
        "UPDATE shop.orders SET total = total - 1 WHERE id IN (10000007, 10000019, 20000004)",
        "DELETE FROM shop.customers WHERE id = 20000011",
    )
    run.do("validation-start", task="shop", mode="full")
    run.shows("", "4 rows of task", 10 * LAG_SECONDS)  # while the sync lags, each table waits so long
    target.run("INSERT INTO shop.customers VALUES (1, 'nobody', NULL, 'Lyon', FALSE)")
    run.shop.servers["berlin"].run("ALTER TABLE shop.orders_1 ADD COLUMN coupon VARCHAR(20)")
    run.shows("locks", "coupon")


def words(tab: Page) -> str:
    """The words of a screen that stay the same from one run to the next, sorted: rows come in any order."""
    found = tab.locator("main").locator(WORDS).all_inner_texts()
    lines = {re.sub(r"\d[\d,.]*", "#", " ".join(text.split())) for text in found}
    return "".join(f"{line}\n" for line in sorted(lines) if line)


@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_is_of_a_real_run_and_of_the_screen_as_it_is(browser: Browser, run: Run, name: str) -> None:
    told = PICTURES[name]
    if name in ("page-overview", "page-validation"):
        go_wrong(run)
    theme, size = "dark" if told.theme == "dark" else "light", (1280, told.height)
    tab = new_tab(browser, color_scheme=theme, viewport={"width": size[0], "height": size[1]})
    tab.goto(run.url + told.path)
    tab.wait_for_selector(told.awaited)
    tab.wait_for_selector("#link:has-text('live')")
    shown = tab.inner_text("main")
    assert [one for one in told.says if one not in shown] == []
    assert "<script" not in shown
    picture, text = IMAGES / f"{name}.png", IMAGES / f"{name}.txt"
    found = words(tab)
    if TAKE:
        tab.screenshot(path=picture)
        text.write_text(found)
    assert found == text.read_text(), f"{name}.png is older than the screen: UNSHARD_DOCS_PICTURES=15 takes it anew"
    assert tuple(int.from_bytes(picture.read_bytes()[at : at + 4], "big") for at in (16, 20)) == size
    tab.context.close()


def test_each_picture_of_the_page_stands_in_the_docs() -> None:
    root = IMAGES.parents[1]
    told = "".join(path.read_text() for path in (root / "README.md", *(root / "docs").rglob("*.md")))
    assert {path.stem for path in IMAGES.glob("page-*.png")} == set(PICTURES)
    assert [name for name in PICTURES if f"images/{name}.png" not in told] == []
