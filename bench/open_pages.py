"""Processor time of a master for open pages that are all read again at each change of the cluster, at many tables.

Each page has its stream of events, as in a browser. The pages are in another process; the worker's task is a stand-in
whose counts change with each reading, everything else is the real thing.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path
from threading import Event
from typing import Any

import yaml

from unshard.cli.embedded_cluster import EmbeddedCluster, Texts
from unshard.config.files import parse_source, parse_task
from unshard.config.listener import ListenerConfig
from unshard.config.subtask import SubtaskConfig, plan_subtasks
from unshard.model.progress import TableProgress
from unshard.sync.batch.row_counts import RowCounts
from unshard.sync.status import Meter
from unshard.web.audit import AuditLog
from unshard.web.links import WorkerLinks
from unshard.web.master_app import master_app
from unshard.web.page.reader import LOOKED_AT_SECONDS
from unshard.web.server import WebServer
from unshard.worker.status import SubtaskStatus

_LOOKS = 8
_PATHS = ("", "tasks/bench", "tasks/bench/tables", "tasks/bench/copy", "errors")
_PAGES = """
import asyncio, os, sys, httpx
url, number, paths = sys.argv[1], int(sys.argv[2]), sys.argv[3:]

async def page(path, ready):
    try:
        await opened(path, ready)
    except Exception as error:
        if not ready.done():
            ready.set_exception(error)
        raise

async def opened(path, ready):
    async with httpx.AsyncClient(base_url=url, timeout=600) as one:
        async with one.stream("GET", "stream", headers={"Accept": "text/event-stream"}) as events:
            async for line in events.aiter_lines():
                if line.startswith("id: "):
                    assert (await one.get(path)).status_code == 200
                    if not ready.done():
                        ready.set_result(True)

async def main():
    ready = [asyncio.get_running_loop().create_future() for _ in range(number)]
    pages = [asyncio.create_task(page(paths[at % len(paths)], ready[at])) for at in range(number)]
    await asyncio.gather(*ready)
    print("ready", flush=True)
    await asyncio.to_thread(sys.stdin.readline)
    os._exit(any(one.done() for one in pages))

asyncio.run(main())
"""


def run(tables: int = 10_000, pages: int = 50) -> dict[str, Any]:
    """Return `{"tables", "pages", "idle_ms", "open_ms", "core_share"}`.

    `idle_ms` and `open_ms` are the master's processor time from one look at the cluster to the next, without and with
    open pages, the least of several; `core_share` is the share of a core that the pages cost.
    """
    with tempfile.TemporaryDirectory(prefix="unshard-bench-") as name, _cluster(Path(name), tables) as cluster:
        links = WorkerLinks(ListenerConfig(), "http", 10.0)
        server = WebServer(master_app(cluster.master, AuditLog(""), links.client), ListenerConfig(), "127.0.0.1:0")
        server.start()
        cluster.master.advertise(server.address)
        url = f"http://{server.address}/ui/"
        idle, opened = _with_pages(url, 1), _with_pages(url, 1 + pages)
        server.stop(1.0)
        links.close()
        cluster.stop.set()
    return {
        "tables": tables,
        "pages": pages,
        "idle_ms": round(1000 * idle, 1),
        "open_ms": round(1000 * opened, 1),
        "core_share": round((opened - idle) / LOOKED_AT_SECONDS, 3),
    }


def _with_pages(url: str, pages: int) -> float:
    """Return the processor time of this process between two looks while so many pages are open: the least of several.

    A machine that is busy makes single ones dearer.
    """
    command = [sys.executable, "-c", _PAGES, url, str(pages), *_PATHS]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as browsers:
        if browsers.stdout is None or browsers.stdout.readline() != "ready\n":
            raise AssertionError("the pages did not open")
        found = []
        for _ in range(_LOOKS):
            begun = time.process_time()
            time.sleep(LOOKED_AT_SECONDS)
            found.append(time.process_time() - begun)
        browsers.communicate("\n")
        if browsers.returncode:
            raise AssertionError("a page has closed")
    return min(found)


class _Following:
    """A subtask that follows a source, and that has applied one row more of one table at each reading."""

    unit = worked = "sync"
    claimed = True
    validation = None

    def __init__(self, source: str, tables: int) -> None:
        self.source = source
        self.entered = datetime.now(UTC)
        self._meter = Meter(tables={f"bench.orders_{at:05}": RowCounts(inserted=1) for at in range(tables)})

    def run(self, stop: Event) -> None:
        stop.wait()

    def cancel_copy(self) -> bool:
        return False

    def cancel_sync(self) -> None: ...

    def look_around(self) -> None: ...

    def tables(self) -> tuple[TableProgress, ...]:
        return ()

    def status(self, *, asks: bool = True) -> SubtaskStatus:
        del asks
        self._meter.rows += 1
        return SubtaskStatus(self.source, "sync", sync=self._meter.read(time.monotonic(), None))


def _cluster(folder: Path, tables: int) -> EmbeddedCluster:
    database = {"host": "127.0.0.1", "port": 1, "user": "root"}
    source = yaml.safe_dump({"source-id": "one", "from": database, "relay-dir": str(folder)})
    task = {"name": "bench", "task-mode": "incremental", "target-database": database}
    text = yaml.safe_dump({**task, "mysql-instances": [{"source-id": "one"}]})

    def build(config: SubtaskConfig, *given: object) -> Any:
        return _Following(config.source_id, tables)

    return EmbeddedCluster(
        plan_subtasks(parse_task(text), [parse_source(source)]), Texts(text, (source,)), build, wait_on_stop=0.0
    )
