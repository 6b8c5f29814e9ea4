"""The page of real masters: what workers do is seen on it, and what is done on it is seen in the target."""

from __future__ import annotations

from collections.abc import Iterator
from html import unescape

import httpx
import pytest
from shop import PATIENT, SHARDS, TARGET, Shop

from unshard.testing.cluster import ThrowawayCluster
from unshard.testing.mariadb_server import MariadbServer

pytestmark = [pytest.mark.server, pytest.mark.spark, pytest.mark.recovery, pytest.mark.cluster]

SAID = {200: "✔ Done.", 202: "◐ In progress"}
"""By the status of its answer, what the page says of an action."""


@pytest.fixture(scope="module")
def shop(sources: dict[str, MariadbServer], target: MariadbServer, store: str) -> Iterator[Shop]:
    target.run("CREATE USER keeper", "GRANT ALL ON unshard.* TO keeper")  # the masters are told from the workers by it
    with ThrowawayCluster(store.replace("root@", "keeper@"), 2, 4, master=PATIENT) as cluster:
        shop = Shop(cluster, sources, target)
        shop.create()
        for name in sources:
            cluster.ctl("operate-source", "create", shop.source_file(name))
        shop.do("start-task", shop.task_file())
        shop.all_move()
        shop.are("Running")
        yield shop


def shown(shop: Shop, path: str) -> str:
    """A page of whichever master is asked first; the browser is sent on to the leader."""
    for gate in shop.cluster.gates:
        try:
            url = f"http://127.0.0.1:{gate.port}/ui/{path}"
            return unescape(httpx.get(url, timeout=30, follow_redirects=True).text)
        except httpx.TransportError:
            continue
    return ""


def do(shop: Shop, verb: str, **given: str) -> None:
    """Fill in the form of an action and send it, at the leader. The page says that it is done, or on its way."""
    port = shop.cluster.gates[shop.cluster.masters.index(shop.cluster.leader())].port
    with httpx.Client(base_url=f"http://127.0.0.1:{port}/ui/", timeout=60) as browser:
        form = browser.get(f"do/{verb}", params=given).text
        csrf = form.split('name="csrf" value="')[1].split('"')[0]
        answer = browser.post(f"do/{verb}", data={**given, "csrf": csrf})
        assert answer.status_code in SAID, answer.text
        assert SAID[answer.status_code] in unescape(answer.text)


def test_a_follower_sends_the_browser_to_the_leader(shop: Shop) -> None:
    ports = {master.name: gate.port for gate, master in zip(shop.cluster.gates, shop.cluster.masters, strict=True)}

    def sent_on() -> bool:
        leader = ports.get(shop.cluster.leads(), 0)
        (follower, *_) = (port for port in ports.values() if port != leader)
        answer = httpx.get(f"http://127.0.0.1:{follower}/ui/tasks/shop?x=1", timeout=30)
        where = f"http://127.0.0.1:{leader}/ui/tasks/shop?x=1"
        return (answer.status_code, answer.headers.get("location")) == (307, where)

    shop.until(sent_on, "who follows sends the browser on")


def test_the_task_is_seen_and_paused(shop: Shop) -> None:
    shop.until(shop.arrives(shop.add("s1")), "the row arrives")
    shop.until(lambda: str(TARGET) in shown(shop, "tasks/shop/tables"), "the page has the target's table")
    shop.until(lambda: shop.fine() in shown(shop, ""), "the page shows that all is fine")
    do(shop, "pause-task", name="shop")
    shop.are("Paused")
    shop.until(lambda: "paused" in shown(shop, "tasks/shop"), "the page shows that it is paused")
    last = shop.add("s1")
    shop.until(lambda: "Task <bdi>shop</bdi> is paused" in shown(shop, ""), "the page tells that it is paused")
    assert "All is fine" not in shown(shop, "")
    assert "do/pause-task" not in shown(shop, "tasks/shop")
    assert not shop.arrives(last)()
    do(shop, "resume-task", name="shop")
    shop.until(shop.arrives(last), "the row arrives")
    shop.until(lambda: shop.fine() in shown(shop, ""), "it is well again")


def test_a_page_that_is_watched_asks_the_servers_nothing(shop: Shop) -> None:
    """Neither the sources nor the target: all that it shows comes with what the workers do anyway."""
    shop.saved("shop")
    servers = {**shop.sources, "target": shop.target}
    for one in servers.values():
        one.run("SET GLOBAL userstat = ON")

    def connections() -> dict[str, int]:
        asked = "SELECT TOTAL_CONNECTIONS FROM information_schema.USER_STATISTICS WHERE USER = 'root'"
        return {name: sum(int(count) for (count,) in one.query(asked)) for name, one in servers.items()}

    connections()
    leader = shop.cluster.gates[shop.cluster.masters.index(shop.cluster.leader())].port
    asked, events = connections(), 0
    accept = {"Accept": "text/event-stream"}
    with httpx.stream("GET", f"http://127.0.0.1:{leader}/ui/stream", headers=accept, timeout=60) as stream:
        for line in stream.iter_lines():
            if line.startswith("event: "):
                events += 1
                for path in ("", "tasks/shop", "tasks/shop/tables", "tasks/shop/copy"):
                    assert "out of date" not in shown(shop, path)
            if events == 6:
                break
    own = 1
    assert {name: count - asked[name] for name, count in connections().items()} == dict.fromkeys(servers, own)


def a_free_worker(shop: Shop) -> str:
    found: list[str] = []

    def there() -> bool:
        found[:] = [one["name"] for one in shop.workers() if one["stage"] == "free"]
        return bool(found)

    shop.until(there, "a worker is free")
    return found[0]


def test_a_source_moves_to_the_free_worker(shop: Shop) -> None:
    free = a_free_worker(shop)
    do(shop, "transfer-source", source="s1", worker=free)
    shop.until(lambda: shop.serves("s1") == free, "the other worker serves it")
    shop.until(shop.arrives(shop.add("s1")), "a row arrives by it")


def test_a_relay_is_paused_and_resumed(shop: Shop) -> None:
    do(shop, "pause-relay", sources="s2")
    shop.until(lambda: "Resume the relay" in shown(shop, "cluster"), "the page shows that it is paused")
    last = shop.add("s2")
    do(shop, "resume-relay", sources="s2")
    shop.until(shop.arrives(last), "the row arrives")
    shop.until(lambda: "Resume the relay" not in shown(shop, "cluster"), "the page shows that it runs")


def test_a_lock_is_told_until_all_shards_have_the_ddl(shop: Shop) -> None:
    ddl = "ALTER TABLE {} ADD COLUMN extra INT"
    shop.sources["s1"].run(*(ddl.format(shard.quoted) for shard in SHARDS))
    shop.until(lambda: "ADD COLUMN" in shown(shop, "locks"), "the page shows the lock")
    shop.until(lambda: "DDL waits for other shards" in shown(shop, ""), "the first page tells it")
    for name in ("s2", "s3"):
        shop.sources[name].run(*(ddl.format(shard.quoted) for shard in SHARDS))
    shop.until(lambda: "No DDL waits" in shown(shop, "locks"), "the lock is gone from the page")


def test_a_silent_worker_is_seen(shop: Shop) -> None:
    free = a_free_worker(shop)
    shop.cluster.worker(free).kill()
    shop.gives_up(shop.cluster.worker(free))
    shop.until(lambda: "</span> lost</span>" in shown(shop, "cluster"), "the page shows the worker as lost")
    do(shop, "offline-member", type="worker", name=free, typed=free)

    def is_gone() -> bool:
        known = [one["name"] for one in shop.workers()]
        return bool(known) and free not in known

    shop.until(is_gone, "it is no member any more")


def test_the_page_goes_on_behind_another_leader(shop: Shop) -> None:
    old = shop.cluster.leader()
    old.kill()
    shop.until(lambda: "shop" in shown(shop, "") and "out of date" not in shown(shop, ""), "the other master shows it")
    shop.until(lambda: shop.cluster.leads() not in ("", old.name), "another master leads")
