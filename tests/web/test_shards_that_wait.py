"""What the page offers for a shard that waits in optimistic mode: a decision about that shard, and its command."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest
from browsed import browser, opened
from page_served import SINCE, page_served, status
from playwright.sync_api import Browser
from test_equal_commands import Printed
from test_page import PageText, client, read
from test_screens_in_a_browser import AXE, PICTURES

from unshard.api.status import SubTaskStatus, UnresolvedGroup
from unshard.model.table import TableName

__all__ = ["browser"]
ID = "shop-`shop`.`orders`"
ODD = TableName("shop 1", "it's`so")


def waits(*shards: TableName, mode: str = "optimistic") -> SubTaskStatus:
    """A source with these shards, which wait with a DDL."""
    told = status()
    assert told.sync is not None
    group = UnresolvedGroup(
        target="`shop`.`orders`", DDLs=("ALTER TABLE `orders` ADD COLUMN `c` INT DEFAULT 7",), since=SINCE, mode=mode,
        synced=tuple(name.quoted for name in shards), waits_for="have 5 in column c of the target, and 7",
    )  # fmt: skip
    return told.model_copy(update={"sync": told.sync.model_copy(update={"unresolved_groups": (group,)})})


def forms(page: PageText) -> list[str]:
    return [link for link in page.links() if "do/shard" in link]


def test_each_shard_has_its_own_decisions_with_their_commands(tmp_path: Path) -> None:
    plain = TableName("shop_1", "orders")
    with page_served(tmp_path, waits(plain, ODD), guarded=False) as page:
        where, shown = f"{page.url}locks", PageText(httpx.get(f"{page.url}locks", timeout=60).text)
        printed = {Printed(httpx.get(httpx.URL(where).join(link), timeout=60).text).command for link in forms(shown)}
        command = "unshard ctl shard-ddl-lock unlock 'shop-`shop`.`orders`' -s s1 --action"
        of_odd = "--database 'shop 1' --table 'it'\"'\"'s`so'"
        assert printed == {
            f"{command} exec --database shop_1 --table orders",
            f"{command} skip --database shop_1 --table orders",
            f"{command} exec {of_odd}",
            f"{command} skip {of_odd}",
        }
        assert "Unlock" not in shown.text
        assert "A shard waits with its DDL: `shop`.`orders`" in PageText(httpx.get(page.url, timeout=60).text).text


def test_many_shards_have_one_form_with_the_names_to_be_typed(tmp_path: Path) -> None:
    shards = [TableName("shop", f"orders_{at:03d}") for at in range(300)]
    with page_served(tmp_path, waits(*shards), guarded=False) as page:
        shown = PageText(httpx.get(f"{page.url}locks", timeout=60).text)
        assert "292 more shards" in shown.text
        assert len(forms(shown)) == 17
        (last,) = (link for link in forms(shown) if "database" not in link)
        printed = Printed(httpx.get(httpx.URL(f"{page.url}locks").join(last), timeout=60).text)
        assert printed.command.endswith("-s s1 --action skip --database SCHEMA --table TABLE")


@pytest.mark.parametrize(("who", "links"), [("vic", 0), ("oda", 2)])
def test_only_who_may_decide_is_offered_it(tmp_path: Path, who: str, links: int) -> None:
    with page_served(tmp_path, waits(ODD)) as page, client(page, who) as browser:
        assert len(forms(read(browser, "locks"))) == len(forms(read(browser, "tasks/shop"))) == links


@pytest.mark.page
@pytest.mark.browser
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_nothing_on_its_screens(browser: Browser, tmp_path: Path, theme: str) -> None:
    with page_served(tmp_path, waits(ODD, TableName("shop_1", "orders"))) as page:
        tab, wrong = opened(browser, page, theme)
        forms = {"": "A shard waits", "locks": "Run the DDL", f"do/shard-run?id={ID}&sources=s1": "Leave the DDL out"}
        for number, (path, words) in enumerate(forms.items()):
            tab.goto(page.url + path)
            assert words in tab.inner_text("main")
            if PICTURES:
                tab.screenshot(path=f"{PICTURES}/shards-{number}-{theme}.png", full_page=True)
            tab.evaluate(AXE.read_text())
            assert tab.evaluate("async () => (await axe.run()).violations.map(one => one.id)") == []
        assert wrong == []
        tab.context.close()


@pytest.mark.parametrize("mode", ["pessimistic", ""])
def test_a_lock_of_all_shards_is_unlocked_as_a_whole(tmp_path: Path, mode: str) -> None:
    """Without a mode: a worker of an older version reports it."""
    with page_served(tmp_path, waits(ODD, mode=mode), guarded=False) as page:
        shown = PageText(httpx.get(f"{page.url}locks", timeout=60).text)
        (link,) = forms(shown)
        assert "shard-ddl-lock-unlock" in link
        told = Printed(httpx.get(httpx.URL(f"{page.url}locks").join(link), timeout=60).text)
        assert told.command == "unshard ctl shard-ddl-lock unlock 'shop-`shop`.`orders`'"
