"""Each action, done in a browser on the page of a real cluster, and seen in the target.

At the end the cluster has a lock, an error, a lost worker and 2,000 tables at once, and every screen is looked at.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from playwright.sync_api import Page
from shop import SHARDS, TARGET, Shop

from support.chromium import chromium, new_tab
from support.task_runs import newest
from unshard.model.table import TableName
from unshard.testing.cluster import ThrowawayCluster
from unshard.testing.mariadb_server import MariadbServer

pytestmark = [pytest.mark.server, pytest.mark.spark, pytest.mark.recovery, pytest.mark.browser, pytest.mark.cluster]

AXE = Path(__file__).parents[1] / "web" / "axe.min.js"
TABLES = 2000
TASK_SCREENS = ("", "/copy", "/tables", "/routes", "/validation", "/config", "/log")


@pytest.fixture(scope="module")
def shop(sources: dict[str, MariadbServer], target: MariadbServer, store: str) -> Iterator[Shop]:
    with ThrowawayCluster(store, 1, 3) as cluster:
        made = Shop(cluster, sources, target)
        made.create()
        yield made


@pytest.fixture(scope="module")
def tab() -> Iterator[Page]:
    with chromium() as browser:
        yield new_tab(browser, viewport={"width": 1280, "height": 900})


def url(shop: Shop, path: str = "") -> str:
    return f"http://127.0.0.1:{shop.cluster.gates[0].port}/ui/{path}"


def send(tab: Page, button: str, *, typed: str = "", done: bool = True) -> str:
    """Send the form that is open, with what has to be typed; what the page answers."""
    if typed:
        tab.get_by_label("To confirm").fill(typed)
    tab.get_by_role("button", name=button, exact=True).click()
    tab.wait_for_load_state()
    text = tab.inner_text("main")
    assert not done or "✔" in text or "◐ In progress" in text, text
    return text


def test_sources_are_added_and_a_task_is_started_from_its_file(shop: Shop, tab: Page) -> None:
    tab.goto(url(shop))
    assert "Nothing is migrated yet" in tab.inner_text("h1")
    for name in shop.sources:
        tab.goto(url(shop))
        tab.get_by_role("link", name="Add a source").first.click()
        tab.get_by_label("Source file (YAML)").fill(Path(shop.source_file(name)).read_text())
        send(tab, "Add a source")
    tab.goto(url(shop))
    tab.get_by_role("link", name="Start a task from a file").click()
    tab.get_by_label("Task file (YAML)").fill(Path(shop.task_file(spark={})).read_text())
    send(tab, "Start a task")
    shop.all_move()


def test_a_task_is_made_by_the_form(shop: Shop, tab: Page) -> None:
    shop.sources["s3"].run(
        "CREATE DATABASE many", *(f"CREATE TABLE many.t{at} (id INT PRIMARY KEY)" for at in range(TABLES))
    )
    shop.sources["s3"].run("INSERT INTO many.t7 VALUES (7)")
    tab.goto(url(shop))
    tab.get_by_role("link", name="New task").click()
    for label, text in (
        ("Name", "many"),
        ("Target: host", "127.0.0.1"),
        ("Port", str(shop.target.port)),
        ("User", "root"),
    ):
        tab.get_by_label(label, exact=True).fill(text)
    tab.get_by_label("s3").check()
    tab.get_by_label("Tables to migrate").fill("many")
    assert "task-mode: all" in send(tab, "Show the file", done=False)
    send(tab, "Start")
    count = "SELECT COUNT(*) FROM information_schema.TABLES WHERE TABLE_SCHEMA = 'many'"
    shop.until(lambda: shop.target.query(count) == [(TABLES,)], "all tables are in the target")
    shop.until(lambda: shop.target.query("SELECT id FROM many.t7") == [(7,)], "its row is there")
    shop.until(lambda: shop.stages("many") == {"s3": "Running"}, "it replicates")
    shop.sources["s3"].run("INSERT INTO many.t9 VALUES (9)")
    shop.until(lambda: shop.target.query("SELECT id FROM many.t9") == [(9,)], "a later row arrives")


def test_a_task_stands_still_until_it_is_resumed(shop: Shop, tab: Page) -> None:
    tab.goto(url(shop, "tasks/shop"))
    tab.get_by_role("link", name="Pause", exact=True).click()
    send(tab, "Pause")
    shop.are("Paused")
    last = shop.add("s1")
    tab.get_by_role("link", name="The task").click()
    tab.wait_for_selector(".state:has-text('paused')")
    assert not shop.arrives(last)()
    tab.get_by_role("link", name="Resume", exact=True).click()
    send(tab, "Resume")
    shop.until(shop.arrives(last), "the row arrives")


def test_a_row_that_does_not_fit_is_skipped(shop: Shop, tab: Page) -> None:
    shop.target.run(f"ALTER TABLE {TARGET.quoted} ADD CONSTRAINT short CHECK (note <> 'bad')")
    shop.sources["s2"].run(f"INSERT INTO {SHARDS[0].quoted} (id, note) VALUES (77, 'bad')")
    tab.goto(url(shop, "errors"))
    tab.wait_for_selector("article:has-text('SYNC-004')")
    tab.get_by_role("link", name="Skip", exact=True).first.click()
    send(tab, "Skip", typed="shop")
    tab.goto(url(shop, "errors"))
    resume(tab, shop)
    shop.until(shop.arrives(shop.add("s2")), "a later row of the source arrives")
    assert shop.target.query(f"SELECT * FROM {TARGET.quoted} WHERE id = 77") == []


def test_the_command_that_the_form_prints_skips_too(shop: Shop, tab: Page) -> None:
    shop.sources["s2"].run(f"INSERT INTO {SHARDS[0].quoted} (id, note) VALUES (79, 'bad')")
    tab.goto(url(shop, "errors"))
    tab.wait_for_selector("article:has-text('SYNC-004')")
    tab.get_by_role("link", name="Skip", exact=True).first.click()
    run(tab, shop)
    resume(tab, shop)
    shop.until(shop.arrives(shop.add("s2")), "a later row of the source arrives")
    assert shop.target.query(f"SELECT * FROM {TARGET.quoted} WHERE id = 79") == []


def run(tab: Page, shop: Shop) -> None:
    """Run the command that the form prints, in place of sending it."""
    words = shlex.split(tab.locator("#command").inner_text())
    assert words[:2] == ["unshard", "ctl"]
    shop.cluster.ctl(*words[2:])


def resume(tab: Page, shop: Shop, task: str = "shop") -> None:
    """Resume the task by its own screen."""
    tab.goto(url(shop, f"do/resume-task?name={task}"))
    send(tab, "Resume", done=False)


def test_a_statement_is_replaced(shop: Shop, tab: Page) -> None:
    shop.target.run("ALTER TABLE many.t1 ADD COLUMN mine INT NULL")
    shop.sources["s3"].run("ALTER TABLE many.t1 ADD COLUMN mine INT NULL", "INSERT INTO many.t1 VALUES (1, 11)")
    tab.goto(url(shop, "tasks/many"))
    tab.get_by_role("link", name="Replace", exact=True).first.click()
    tab.get_by_label("Statements").fill("ALTER TABLE many.t1 MODIFY COLUMN mine BIGINT NOT NULL DEFAULT 9")
    send(tab, "Replace", typed="many")
    resume(tab, shop, "many")
    shop.until(lambda: shop.target.query("SELECT * FROM many.t1") == [(1, 11)], "the row behind it arrives")
    ((found,),) = shop.target.query(
        "SELECT COLUMN_TYPE FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = 'many' AND COLUMN_NAME = 'mine'"
    )
    assert str(found).startswith("bigint")


def test_a_statement_is_run_first(shop: Shop, tab: Page) -> None:
    shop.target.run("ALTER TABLE many.t2 ADD COLUMN mine INT NULL")
    shop.sources["s3"].run("ALTER TABLE many.t2 ADD COLUMN mine INT NULL", "INSERT INTO many.t2 VALUES (2, 22)")
    shop.stopped("s3", task="many")
    tell(
        tab, shop, "inject", statements="ALTER TABLE many.t2 DROP COLUMN mine, ADD COLUMN early INT NOT NULL DEFAULT 5"
    )
    resume(tab, shop, "many")
    both = {"early", "mine"}  # the statement drops `mine`, and the one that it is run before adds it again
    shop.until(lambda: both <= set(columns(shop, TableName("many", "t2"))), "both statements are run")
    row = "SELECT id, early, mine FROM many.t2"
    shop.until(lambda: shop.target.query(row) == [(2, 5, 22)], "the row behind the two arrives")


def test_what_was_given_is_withdrawn(shop: Shop, tab: Page) -> None:
    pause(tab, shop, "many")
    before = newest(shop.sources["s3"])
    shop.sources["s3"].run("INSERT INTO many.t5 VALUES (5)")
    for op in ("skip", "revert"):
        tell(tab, shop, op, position=f"{before.file}:{before.offset}")
    resume(tab, shop, "many")
    shop.until(lambda: shop.target.query("SELECT id FROM many.t5") == [(5,)], "the row arrives")


def tell(tab: Page, shop: Shop, op: str, *, statements: str = "", position: str = "") -> None:
    """Tell task `many` what to do at a position, by default the one at which it has stopped."""
    tab.goto(url(shop, f"do/binlog-{op}?task=many&sources=s3"))
    tab.get_by_label("Position").fill(position)
    if statements:
        tab.get_by_label("Statements").fill(statements)
    send(tab, op.capitalize(), typed="many" if op != "revert" else "")


def pause(tab: Page, shop: Shop, task: str) -> None:
    """Pause the task by its own screen, and wait until it stands."""
    tab.goto(url(shop, f"tasks/{task}"))
    tab.get_by_role("link", name="Pause", exact=True).click()
    send(tab, "Pause")
    shop.until(lambda: set(shop.stages(task).values()) == {"Paused"}, "it is paused")


def test_a_changed_file_of_a_task_is_applied(shop: Shop, tab: Page) -> None:
    pause(tab, shop, "many")
    tab.goto(url(shop, "tasks/many/config"))
    draft = yaml.safe_load(tab.get_by_label("Task file (YAML)").input_value())
    (rule,) = draft["block-allow-list"].values()
    rule.clear()
    rule |= {"do-dbs": ["many"], "ignore-tables": [{"db-name": "many", "tbl-name": "t13"}]}
    tab.get_by_label("Task file (YAML)").fill(yaml.safe_dump(draft))
    tab.get_by_role("button", name="Check").click()
    tab.wait_for_selector("main:has-text('The draft can be applied now')")
    assert "ignore-tables" in tab.inner_text("pre.difference")
    tab.get_by_role("button", name="Apply").click()
    tab.wait_for_selector("main:has-text('✔ Applied')")
    resume(tab, shop, "many")
    shop.sources["s3"].run("INSERT INTO many.t13 VALUES (3)", "INSERT INTO many.t14 VALUES (4)")
    shop.until(lambda: shop.target.query("SELECT id FROM many.t14") == [(4,)], "a row of another table arrives")
    assert shop.target.query("SELECT id FROM many.t13") == []


def test_a_lock_is_unlocked(shop: Shop, tab: Page) -> None:
    shop.sources["s1"].run(*(f"ALTER TABLE {shard.quoted} ADD COLUMN extra INT" for shard in SHARDS))
    tab.goto(url(shop, "locks"))
    tab.wait_for_selector("article:has-text('ADD COLUMN')")
    assert "extra" not in columns(shop, TARGET)
    lock = tab.locator("article dd code").first.inner_text()
    tab.get_by_role("link", name="Unlock").first.click()
    send(tab, "Unlock", typed=lock)
    shop.until(lambda: "extra" in columns(shop, TARGET), "the target has the column")
    shop.until(shop.arrives(shop.add("s1")), "rows of the source arrive again")


def test_a_shard_that_waits_in_optimistic_mode_is_decided_about(shop: Shop, tab: Page) -> None:
    """One DDL is run by the form, another one is left out by the command that the form prints."""
    fair = TableName("fair", "stands")
    for name in ("s1", "s2"):
        shop.sources[name].run("CREATE DATABASE fair", "CREATE TABLE fair.stands (id INT PRIMARY KEY, v INT NOT NULL)")
    whole = yaml.safe_load(Path(shop.task_file()).read_text())
    instances = [{"source-id": name, "block-allow-list": "own"} for name in ("s1", "s2")]
    own = {"name": "fair", "shard-mode": "optimistic", "block-allow-list": {"own": {"do-dbs": ["fair"]}}}
    keys = {key: whole[key] for key in ("task-mode", "target-database")}
    file = shop.folder / "fair.yaml"
    file.write_text(yaml.safe_dump({**keys, **own, "mysql-instances": instances}))
    shop.do("start-task", str(file))
    shop.follows("fair")  # a copy that is made behind the DDL has its effect

    def has(number: int) -> bool:
        return bool(shop.target.query(f"SELECT 1 FROM fair.stands WHERE id = {number}"))

    shop.sources["s1"].run("ALTER TABLE fair.stands ADD COLUMN c INT DEFAULT 5")
    shop.until(lambda: "c" in columns(shop, fair), "the target has the column of the first shard")
    shop.sources["s2"].run(
        "ALTER TABLE fair.stands ADD COLUMN c INT DEFAULT 7", "INSERT INTO fair.stands VALUES (2, 0, 9)"
    )
    decide(tab, shop, "s2", "Run the DDL")
    send(tab, "Run the DDL", typed="fair-`fair`.`stands`")
    shop.until(lambda: has(2), "a row of the shard that waited")
    shop.sources["s1"].run(
        "ALTER TABLE fair.stands CHANGE v w INT NOT NULL", "INSERT INTO fair.stands VALUES (1, 4, 5)"
    )
    decide(tab, shop, "s1", "Leave the DDL out")
    run(tab, shop)
    shop.until(lambda: has(1), "a row of the shard that waited with its other DDL")
    assert {"v", "w"} <= set(columns(shop, fair)), "the target has the column of each shard"
    tab.goto(url(shop, "locks"))
    tab.wait_for_selector("main:not(:has-text('fair'))")
    shop.stop("fair")


def decide(tab: Page, shop: Shop, source: str, what: str) -> None:
    """Open the form of a decision about the shard of a source, from the screen of the task."""
    tab.goto(url(shop))
    tab.wait_for_selector("main:has-text('A shard waits with its DDL: `fair`.`stands`')")
    tab.goto(url(shop, "tasks/fair"))
    tab.locator(f"article:has(dt:text-is('Waits on source') + dd:has-text('{source}'))").get_by_role(
        "link", name=what, exact=True
    ).click()


def columns(shop: Shop, table: TableName) -> list[str]:
    sql = "SELECT COLUMN_NAME FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s"
    return [str(name) for (name,) in shop.target.query(sql, (table.schema, table.table))]


def test_all_at_once_on_every_screen(shop: Shop, tab: Page) -> None:
    """A lock of s1, an error of s2, the worker of s3 lost, 2,000 tables."""
    shop.sources["s1"].run(*(f"ALTER TABLE {shard.quoted} ADD COLUMN other INT" for shard in SHARDS))
    shop.sources["s2"].run(f"INSERT INTO {SHARDS[0].quoted} (id, note) VALUES (78, 'bad')")
    tab.goto(url(shop))
    tab.wait_for_selector("main:has-text('A DDL waits for other shards')")
    tab.wait_for_selector("main:has-text('SYNC-004')")
    lost = shop.worker_of("s3")
    lost.kill()
    tab.wait_for_selector(f"h1:has-text('Worker {lost.name} is lost')")
    tab.wait_for_selector("main:has-text('Source s3 is not served')")
    asked: list[str] = []
    tab.on("request", lambda one: asked.append(one.url))
    screens = ["", "errors", "locks", "cluster", "audit", "new-task"]
    screens += [f"tasks/{task}{screen}" for task in ("shop", "many") for screen in TASK_SCREENS]
    for theme in ("light", "dark"):
        tab.emulate_media(color_scheme="dark" if theme == "dark" else "light")
        for path in screens:
            tab.goto(url(shop, path))
            if path.endswith("/routes"):
                tab.wait_for_selector("svg .node")
            tab.evaluate(AXE.read_text())
            found = tab.evaluate(
                "async () => (await axe.run()).violations.map(one => [one.id, one.nodes.map(n => n.html)])"
            )
            assert found == [], (theme, path)
    tab.goto(url(shop, "tasks/many/routes"))  # one table is left out by its changed file
    assert tab.get_by_role("link", name=f"{TABLES - 1:,} tables: s3: many → no rule: same name").count() == 1
    ours = (url(shop).removesuffix("ui/"), "data:")
    assert [one for one in asked if not one.startswith(ours)] == []


def test_a_task_is_stopped(shop: Shop, tab: Page) -> None:
    shop.cluster.mend()
    shop.until(lambda: bool(shop.serves("s3")), "the source is served again")
    tab.goto(url(shop, "tasks/many"))
    tab.get_by_role("link", name="Stop", exact=True).click()
    send(tab, "Stop", typed="many")
    tab.goto(url(shop))
    assert tab.get_by_role("link", name="many", exact=True).count() == 0
    shop.sources["s3"].run("INSERT INTO many.t3 VALUES (3)")
    shop.until(shop.arrives(shop.add("s3")), "rows of the other task arrive")
    assert shop.target.query("SELECT * FROM many.t3") == []
