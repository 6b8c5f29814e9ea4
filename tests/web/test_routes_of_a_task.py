"""The routes of a task: what is grouped, what the picture has, the screen."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import httpx
import yaml
from page_served import HOSTILE, RULES, SOURCE, PageServed, page_served, status
from test_page import PageText, client, read

from support.waiting import wait_until
from unshard.config.files import parse_source, parse_task
from unshard.config.subtask import plan_subtask
from unshard.errors import SourceError, Where
from unshard.model.table import TableName
from unshard.transform.source_rules import SourceRules
from unshard.web.page.routes import (
    MOST_ON_A_SIDE,
    RoutedTable,
    chosen_tables,
    grouped,
    route_picture,
    routed_tables,
)


def rules_of(routes: dict[str, Any] | None = None) -> SourceRules:
    chosen = dict(RULES)
    if routes is not None:
        chosen |= {"routes": routes, "mysql-instances": [{"source-id": "s1", "route-rules": list(routes)}]}
        del chosen["block-allow-list"]
    task = {"name": "shop", "task-mode": "all", "target-database": SOURCE, **chosen}
    source = parse_source(yaml.safe_dump({"source-id": "s1", "from": SOURCE}))
    return SourceRules.of(plan_subtask(parse_task(yaml.safe_dump(task)), source))


def names(*texts: str) -> list[TableName]:
    return [TableName(*text.split(".", 1)) for text in texts]


def shop(count: int) -> list[TableName]:
    """Shards, tables that keep their names, one that is left out, one with a hostile name."""
    shards = [f"shop_{at % 8}.orders_{at:05d}" for at in range(count - 4)]
    return [*names(*shards, "crm.people", "crm.firms", "secret.keys"), TableName("crm", HOSTILE)]


def told(tables: Iterable[RoutedTable]) -> list[tuple[str, str, str]]:
    return [(str(one.name), one.rule, one.group) for one in tables]


def test_each_table_has_the_rule_that_decides_about_it() -> None:
    found = grouped(routed_tables(rules_of(), names("shop_1.a", "crm.a", "secret.a")))
    assert told(found) == [
        ("shop_1.a", "routes.whole", "shop.all"),
        ("crm.a", "no rule: same name", "crm.a"),
        ("secret.a", "do-dbs", "left out"),
    ]


def test_two_rules_for_one_table_are_shown_as_what_stops_the_task() -> None:
    rule = {"schema-pattern": "sh[a-z]p", "table-pattern": "*", "target-schema": "x", "target-table": "y"}
    both = rules_of({"a": rule, "b": {**rule, "schema-pattern": "sho[o-q]"}})
    found = grouped(routed_tables(both, names("shop.t")))
    assert told(found) == [("shop.t", "CONFIG-006", "stops the task")]
    assert {node.kind for node in route_picture(found).nodes} == {"source", "stops"}


def test_thousands_of_tables_are_a_small_picture() -> None:
    found = grouped(routed_tables(rules_of(), shop(10_000)))
    picture = route_picture(found)
    counts = {(node.kind, node.name): node.count for node in picture.nodes}
    assert counts["target", "shop.all"] == 9_996
    assert counts["left", "left out"] == 1
    assert len(picture.nodes) < 25
    assert len(picture.arrows) < 25
    assert sum(arrow.count for arrow in picture.arrows) == 2 * 10_000, "each table is on two arrows"
    assert all(one.y >= 0 and one.y + one.height <= picture.height for one in picture.nodes)


def test_thousands_of_schemas_and_targets_are_grouped() -> None:
    several = [RoutedTable("s1", TableName(f"d{at}", "t"), f"r{at}", f"x{at}.t", "") for at in range(3000)]
    found = grouped(several)
    picture = route_picture(found)
    targets = [node for node in picture.nodes if node.kind == "target"]
    assert len(targets) == MOST_ON_A_SIDE
    assert sum(node.count for node in targets) == 3000
    assert len([node for node in picture.nodes if node.kind == "rule"]) <= MOST_ON_A_SIDE
    same = grouped(routed_tables(rules_of({}), names(*(f"d.t{at}" for at in range(3000)))))
    assert {one.group for one in same} == {"d.*"}


def test_an_arrow_leads_to_its_tables() -> None:
    found = grouped(routed_tables(rules_of(), shop(100)))
    for arrow in route_picture(found).arrows:
        query = dict(arrow.query)
        chosen = chosen_tables(found, query.get("origin", ""), query["rule"], query.get("group", ""))
        assert len(chosen) == arrow.count


def shown(browser: httpx.Client, path: str = "tasks/shop/routes") -> PageText:
    wait_until(lambda: "being read from the sources" not in read(browser, path).text, "the names are read")
    return read(browser, path)


def test_the_screen_at_ten_thousand_tables(tmp_path: Path) -> None:
    with page_served(tmp_path, status()) as page, client(page, "vic") as browser:
        page.sources_have(shop(10_000))
        found = shown(browser)
        assert "10,000 tables, read from the sources" in found.text
        whole = browser.get("tasks/shop/routes").text
        assert "<script>alert" not in whole
        assert "<svg" in whole
        assert len(whole) < 60_000
        linked = sorted(link for link in found.links() if "group=" in link and "all" in link)
        tables = read(browser, f"tasks/shop/routes{linked[0]}")
        assert "9,996 tables, page 1 of 100" in tables.text
        assert "shop_0.orders_00000" in tables.text
        hostile = browser.get("tasks/shop/routes", params={"q": "script"}).text
        assert "<script>alert" not in hostile
        assert HOSTILE in PageText(hostile).text


def test_a_table_leads_to_the_rules_that_decide_about_it(tmp_path: Path) -> None:
    with page_served(tmp_path, status()) as page, client(page, "vic") as browser:
        page.sources_have(shop(20))
        shown(browser)
        listed = read(browser, "tasks/shop/routes?q=orders_00003")
        (link,) = [link for link in listed.links() if "table=" in link]
        explained = read(browser, f"tasks/shop/routes{link.partition('#')[0]}").text
        assert "→ goes to shop.all" in explained
        assert "routes.whole" in explained
        assert "do-dbs" in explained
        kept = read(browser, "tasks/shop/routes?source=s1&table=secret.keys").text
        assert "→ left out" in kept
        refused = read(browser, "tasks/shop/routes?source=s1&table=a.b.c")
        assert "CONFIG-025" in refused.text
        assert read(browser, "tasks/shop/routes?source=none&table=a.b", 404)


def asked(page: PageServed) -> list[str]:
    """The sources that are asked for their tables from now on; a test says when they answer."""
    found: list[str] = []

    def ask(config: Any) -> list[TableName]:
        found.append(config.source_id)
        answers.wait(60)
        return names("shop_1.a")

    answers = threading.Event()
    answers.set()
    page.server._app.state.page.routes.names_of = ask
    return found


def test_a_source_is_asked_once_for_all_pages(tmp_path: Path) -> None:
    with page_served(tmp_path, status()) as page, client(page, "vic") as one, client(page, "oda") as other:
        questions = asked(page)
        for browser in (one, other) * 5:
            shown(browser)
        assert questions == ["s1"]
        assert other.get("tasks/shop/routes/again", follow_redirects=False).headers["location"] == "../routes"
        assert questions == ["s1"], "not again within ten seconds"
        routes = page.server._app.state.page.routes
        routes._found["shop"] = routes._found["shop"].__class__(0, (), {}, routes._found["shop"].picture, None)
        shown(one)
        wait_until(lambda: questions == ["s1", "s1"], "an old reading is renewed")


def test_a_source_that_does_not_answer_is_named(tmp_path: Path) -> None:
    def refuse(config: object) -> list[TableName]:
        raise SourceError("SOURCE-001", Where("s1"), values={"host": "h", "port": 1, "user": "u"})

    with page_served(tmp_path, status()) as page, client(page, "vic") as browser:
        page.server._app.state.page.routes.names_of = refuse
        assert "Source s1 did not report its tables. SOURCE-001" in shown(browser).text
