"""The tutorials, walked: what a page has the reader write is written, what it has them type is typed, in its order.

Only addresses and ports are the test's.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

import pytest

from support.waiting import wait_until
from unshard.testing.mariadb_server import MariadbServer
from unshard.testing.throwaway_server import ThrowawayServer, reserved

pytestmark = [pytest.mark.server, pytest.mark.spark, pytest.mark.docs]
PAGES = Path(__file__).parents[2] / "docs" / "tutorial"
ADDRESS = re.compile(r"host: 10\.0\.0\.(\d)\n( +)port: \d+")
SHARDS = [(f"shop_{schema}", f"orders_{table}") for schema in (1, 2) for table in (1, 2)]
ORDERS = "(id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY, amount INT, state VARCHAR(20))"


class Page:
    """A page's blocks, taken in their order by kind: `sql`, `sh`, or a file."""

    def __init__(self, name: str) -> None:
        text = (PAGES / name).read_text()
        found = re.findall(r"([^\n]*)\n\n *```(\w+)\n(.*?)\n *```", text, re.DOTALL)
        self.text = text
        self.blocks = [(kind, intro, textwrap.dedent(body)) for intro, kind, body in found]

    def next(self, kind: str) -> str:
        """The next block of that kind; other kinds before it are yet to come."""
        place = next(place for place, block in enumerate(self.blocks) if block[0] == kind)
        return self.blocks.pop(place)[2]

    def write_files(self, folder: Path, servers: dict[str, ThrowawayServer]) -> None:
        """Each YAML block, under the name that the line before it gives first."""
        for kind, intro, body in list(self.blocks):
            if kind == "yaml":
                (name, *_) = re.findall(r"`([\w-]+\.yaml)`", intro)
                (folder / name).write_text(ADDRESS.sub(lambda m: address(servers[m[1]], m[2]), body) + "\n")
                self.blocks.remove((kind, intro, body))


def address(server: ThrowawayServer, indent: str) -> str:
    return f"host: 127.0.0.1\n{indent}port: {server.port}"


def run_sql(server: ThrowawayServer, text: str) -> list[tuple[object, ...]]:
    """Every statement; the rows of the last one."""
    *first, last = [one for one in re.sub(r" -- .*", "", text).split(";") if one.strip()]
    server.run(*first)
    return server.query(last)


class Shell:
    """A terminal in a folder: lines are typed, and Ctrl-C."""

    def __init__(self, folder: Path, name: str) -> None:
        self.folder, self.output = folder, folder / f"{name}.txt"
        self.child: subprocess.Popen[bytes] | None = None

    @property
    def text(self) -> str:
        return self.output.read_text() if self.output.exists() else ""

    def type(self, lines: str) -> None:
        """Lines, of which the last one stays in the foreground."""
        *before, last = lines.rstrip().split("\n")
        with self.output.open("w") as sink:
            self.child = subprocess.Popen(
                ["bash", "-ec", "\n".join((*before, f"exec {last}"))],
                cwd=self.folder,
                env=environment(),
                stdout=sink,
                stderr=sink,
                start_new_session=True,
            )

    def ends(self, how: int) -> int:
        """Its exit code behind that signal."""
        assert self.child is not None
        self.child.send_signal(how)
        return self.child.wait(120)

    def close(self) -> None:
        if self.child is not None:
            with suppress(ProcessLookupError):
                os.killpg(self.child.pid, signal.SIGKILL)
            self.child.wait()


@contextmanager
def shells(folder: Path, *names: str) -> Iterator[list[Shell]]:
    made = [Shell(folder, name) for name in names]
    try:
        yield made
    finally:
        for one in made:
            one.close()


def environment() -> dict[str, str]:
    return {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}


@pytest.fixture
def servers() -> Iterator[dict[str, ThrowawayServer]]:
    """By the last number of their address on the page: two sources with shards, and the target."""
    with MariadbServer() as one, MariadbServer() as two, MariadbServer() as target:
        for server in (one, two):
            server.run("CREATE DATABASE shop_1", "CREATE DATABASE shop_2")
            for schema, table in SHARDS:
                server.run(f"CREATE TABLE {schema}.{table} {ORDERS}", work(schema, table))
        yield {"1": one, "2": two, "9": target}


def work(schema: str, table: str) -> str:
    return f"INSERT INTO {schema}.{table} (amount, state) VALUES (1, 'new'), (NULL, 'paid'), (3, NULL)"


def write_more(*sources: ThrowawayServer) -> None:
    for source in sources:
        source.run(*(work(*shard) for shard in SHARDS))


def arrived(target: ThrowawayServer, *sources: ThrowawayServer) -> bool:
    """Whether as many rows are there as in all shards. There is no table at first."""
    wanted = sum(source.query(f"SELECT COUNT(*) FROM {s}.{t}")[0][0] for source in sources for s, t in SHARDS)
    there = target.query("SELECT 1 FROM information_schema.TABLES WHERE TABLE_SCHEMA = 'shop'")
    return bool(there) and target.query("SELECT COUNT(*) FROM shop.orders") == [(wanted,)]


def test_the_first_migration(servers: dict[str, ThrowawayServer], tmp_path: Path) -> None:
    page = Page("first-migration.md")
    one, two, target = servers.values()
    asked, account, sum_of_shard = page.next("sql"), page.next("sql"), ""
    for source in (one, two):
        assert run_sql(source, asked) == [(1, "ROW", "FULL")]
        run_sql(source, account)
    run_sql(target, page.next("sql"))
    page.write_files(tmp_path, servers)
    start = page.next("sh")
    with shells(tmp_path, "run") as (shell,):
        shell.type(start)
        wait_until(lambda: arrived(target, one, two), "copied", told=lambda: shell.text)
        write_more(one, two)
        wait_until(lambda: arrived(target, one, two), "followed", told=lambda: shell.text)
        assert shell.ends(signal.SIGINT) == 0, shell.text
        (told,) = re.findall(r"Ctrl-C once.*?prints `([^`]*)`\s+and exits with code 0", page.text, re.DOTALL)
        assert told in shell.text
        write_more(one, two)
        shell.type(start)
        wait_until(lambda: arrived(target, one, two), "gone on", told=lambda: shell.text)
        write_more(one, two)
        shell.ends(signal.SIGKILL)
        shell.close()
        write_more(one)
        shell.type(start)
        wait_until(lambda: arrived(target, one, two), "gone on behind a kill", told=lambda: shell.text)

        sum_of_shard = page.next("sql")
        sums = [
            run_sql(
                source, sum_of_shard.replace("+ 0", f"+ {bits(number, s, t)}").replace("shop_1.orders_1", f"{s}.{t}")
            )[0]
            for number, source in ((1, one), (2, two))
            for s, t in SHARDS
        ]
        ((count, total),) = run_sql(
            target, sum_of_shard.replace("id + 0", "id").replace("shop_1.orders_1", "shop.orders")
        )
        assert (count, total) == (sum(int(str(c)) for c, _ in sums), sum(int(str(s)) for _, s in sums))

        assert "`SET GLOBAL read_only = ON`" in page.text
        for source in (one, two):
            source.run("SET GLOBAL read_only = ON")
        assert shell.ends(signal.SIGINT) == 0, shell.text
    reached = {name: (file, position) for name, file, position in run_sql(target, page.next("sql"))}
    for name, source in (("shop-01", one), ("shop-02", two)):
        assert reached[name] == source.query("SHOW MASTER STATUS")[0][:2]
    assert "AUTO_INCREMENT counter is larger than the largest id" in page.text
    target.run("INSERT INTO shop.orders (amount) VALUES (7)")
    assert target.query("SELECT MAX(id) = (SELECT id FROM shop.orders WHERE amount = 7) FROM shop.orders") == [(1,)]
    assert "`DROP DATABASE dm_meta`" in page.text
    target.run("DROP DATABASE dm_meta")
    assert page.blocks == [], "the walk has left something out"


def bits(source: int, schema: str, table: str) -> int:
    """What the page says that `partition id` puts into the high bits."""
    return (source << 59) + (int(schema[-1]) << 52) + (int(table[-1]) << 44)


def test_the_first_cluster(servers: dict[str, ThrowawayServer], tmp_path: Path) -> None:
    before, page = Page("first-migration.md"), Page("first-cluster.md")
    source, target = servers["1"], servers["9"]
    before.next("sql"), run_sql(source, before.next("sql")), run_sql(target, before.next("sql"))
    before.write_files(tmp_path, servers)
    target.run(
        "CREATE DATABASE shop", f"CREATE TABLE shop.orders {ORDERS}", "INSERT INTO shop.orders VALUES (1, 1, '')"
    )
    run_sql(target, page.next("sql")), run_sql(source, page.next("sql"))
    page.write_files(tmp_path, servers)
    places = {port: reserved() for port in ("8261", "8262", "8263")}
    ports = {port: str(place.getsockname()[1]) for port, place in places.items()}
    for path in tmp_path.glob("*.yaml"):
        path.write_text(with_ports(path.read_text(), ports))

    def typed(lines: str) -> str:
        """What short commands print, one after the other."""
        done = subprocess.run(
            ["bash", "-ec", lines],
            cwd=tmp_path,
            env={**environment(), "UNSHARD_MASTER_ADDR": f"127.0.0.1:{ports['8261']}"},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == 0, f"{lines}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    with shells(tmp_path, "master", "worker-1", "worker-2") as processes:
        start = page.next("sh")
        passwords = start.split("\n")[0]
        for process, lines in zip(processes, (start, page.next("sh"), page.next("sh")), strict=True):
            process.type(f"{passwords}\n{lines}")
        members = with_ports(page.next("sh"), ports)
        wait_until(lambda: printed(typed, members).count('"free"') == 2, "both workers are free")
        assert '"bound"' in typed(page.next("sh"))
        typed(page.next("sh"))
        wait_until(lambda: arrived(target, source), "copied", told=lambda: processes[1].text + processes[2].text)
        wait_until(lambda: '"Sync"' in typed("unshard ctl query-status shop"), "it follows")
        write_more(source)
        wait_until(lambda: arrived(target, source), "followed")
        kill = page.next("sh")
        listed = typed(kill.split("\n")[0])
        (has_it,) = [n for n in (1, 2) if re.search(rf'"name": "worker-{n}",[^{{}}]*"stage": "bound"', listed)]
        assert "kill -9 $(pgrep -f 'worker --config worker-1.yaml')" in kill
        processes[has_it].ends(signal.SIGKILL)
        processes[has_it].close()
        write_more(source)
        wait_until(lambda: arrived(target, source), "the spare goes on", told=lambda: processes[3 - has_it].text)
        assert typed(page.next("sh"))
        for verb in page.next("sh").split("\n"):
            wait_until(partial(works, typed, verb), verb)
        for process in (processes[0], processes[3 - has_it]):
            assert process.ends(signal.SIGINT) == 0, process.text
    assert page.blocks == [], "the walk has left something out"
    for place in places.values():
        place.close()


def with_ports(text: str, ports: dict[str, str]) -> str:
    return re.sub(r"127\.0\.0\.1:(\d+)", lambda m: f"127.0.0.1:{ports.get(m[1], m[1])}", text)


def printed(typed: Callable[[str], str], lines: str) -> str:
    """What the lines print; nothing where they fail, as they do before a master leads."""
    try:
        return typed(lines)
    except AssertionError:
        return ""


def works(typed: Callable[[str], str], verb: str) -> bool:
    """Whether the verb is done: another stage may be on its way when its answer comes, which is no yes."""
    return printed(typed, verb) != ""
