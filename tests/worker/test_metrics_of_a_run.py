"""A real task of a worker, scraped from dump to stop: what panels and alarms are of is really there, and is true."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from threading import Event

import httpx
import pytest
from agents import PaperMaster, Running, source_order, subtask_order
from prometheus_client.parser import text_string_to_metric_families
from pyspark.sql import SparkSession

from support.task_runs import TaskFiles
from support.waiting import PATIENCE_SECONDS, wait_until
from unshard.api.status import Stage
from unshard.config.listener import ListenerConfig
from unshard.metrics.of_process import CLUSTER
from unshard.metrics.of_units import SHARDING
from unshard.metrics.registry import METRICS
from unshard.testing.mariadb_server import MariadbServer
from unshard.web.audit import AuditLog
from unshard.web.guard import guarded_app
from unshard.web.observe import observing
from unshard.web.server import WebServer
from unshard.worker.agent import Agent
from unshard.worker.metrics import host_samples

pytestmark = [pytest.mark.server, pytest.mark.spark]

ELSEWHERE = {metric.name for metric in CLUSTER}
"""Told by masters (tests/master)."""
WAITING = {metric.name for metric in SHARDING} - {"dm_syncer_shard_lock_resolving"}
"""Told while a sharding DDL waits (test_worker_samples)."""
LAG = "dm_syncer_replication_lag_gauge"


@pytest.fixture
def files(source_server: MariadbServer, target_server: MariadbServer, schema: str, tmp_path: Path) -> TaskFiles:
    source_server.run(
        f"CREATE DATABASE {schema}",
        f"CREATE TABLE {schema}.t (id INT PRIMARY KEY, v INT)",
        f"CREATE TABLE {schema}.gone (id INT PRIMARY KEY)",
        f"INSERT INTO {schema}.t VALUES " + ", ".join(f"({n}, {n})" for n in range(500)),
    )
    filters = {"quiet": {"schema-pattern": schema, "table-pattern": "t", "events": ["delete"], "action": "Ignore"}}
    keys = {"filters": filters, "validators": {"all": {"mode": "full"}}}
    return TaskFiles(
        tmp_path,
        schema,
        {"s1": source_server},
        target_server,
        (schema,),
        keys=keys,
        instance={"filter-rules": ["quiet"], "validator-config-name": "all"},
    ).write()


def served(agent: Agent, folder: Path) -> WebServer:
    app = guarded_app("worker", audit=AuditLog(str(folder / "audit.log")))
    app.include_router(observing(lambda: host_samples(agent.name, agent.host), {}))
    server = WebServer(app, ListenerConfig(), "127.0.0.1:0")
    server.start()
    return server


class Scraper:
    """What a Prometheus would have seen so far: `seen`, names of series; `value`, of the last scrape."""

    def __init__(self, server: WebServer) -> None:
        self._url = f"http://{server.address}/metrics"
        self.seen: set[str] = set()
        self._last: dict[str, list[tuple[dict[str, str], float]]] = {}

    def scrape(self) -> Scraper:
        answer = httpx.get(self._url, timeout=PATIENCE_SECONDS).raise_for_status()
        self._last = {}
        for family in text_string_to_metric_families(answer.text):
            for sample in family.samples:
                # the parser writes every counter's name as OpenMetrics has it; DM's don't end so
                name = sample.name if sample.name in METRICS else sample.name.removesuffix("_total")
                self.seen |= {family.name, name}
                self._last.setdefault(name, []).append((sample.labels, sample.value))
        return self

    def value(self, name: str, **labels: str) -> float | None:
        found = [value for has, value in self._last.get(name, []) if labels.items() <= has.items()]
        return sum(found) if found else None

    def wait(self, there: Callable[[], bool], what: str, told: Callable[[], str] = str) -> None:
        def look() -> bool:
            self.scrape()
            return there()

        wait_until(look, what, told=told)


def held(monkeypatch: pytest.MonkeyPatch, module: str) -> Event:
    """A unit stands still at its last crash point until the event: a quick one might be over between two scrapes."""
    seen = Event()
    monkeypatch.setattr(f"{module}.reach", lambda place: seen.wait(PATIENCE_SECONDS))
    return seen


def test_a_run_is_told_from_dump_to_stop(
    spark: SparkSession, files: TaskFiles, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, name = files.sources["s1"], files.name
    units = {
        "dumpling_dump_finished_rows": held(monkeypatch, "unshard.dump.folder"),
        "unshard_load_rows": held(monkeypatch, "unshard.load.unit"),
    }
    master = PaperMaster()
    with Running(master, spark) as agent:
        server = served(agent, tmp_path)
        scraper = Scraper(server)
        assert scraper.scrape().value("dm_worker_task_state") is None
        master.give(source_order(subtask_order(files)))
        for metric, seen in units.items():
            scraper.wait(lambda metric=metric: scraper.value(metric) is not None, metric)  # type: ignore[misc]
            seen.set()
        scraper.wait(lambda: scraper.value(LAG) is not None, "a lag")

        source.run(f"UPDATE {name}.t SET v = v + 1000 WHERE id < 7", f"DELETE FROM {name}.t WHERE id < 3")
        source.run("CREATE DATABASE IF NOT EXISTS elsewhere", "CREATE TABLE IF NOT EXISTS elsewhere.t (id INT)")
        source.run("INSERT INTO elsewhere.t VALUES (1)")
        jobs, changes = "dm_syncer_finished_jobs_total", "unshard_sync_changes_total"
        scraper.wait(lambda: scraper.value(jobs, type="update", target_table="t") == 7, "updates written")
        scraper.wait(lambda: scraper.value(changes, fate="filtered") == 3, "deletes filtered")
        scraper.wait(lambda: scraper.value("unshard_sync_passed_over_events_total") is not None, "passed over")
        scraper.wait(lambda: scraper.value("unshard_sync_left_out_total", rule="filters.quiet") == 3, "by which rule")
        assert scraper.value("dm_worker_task_state", task=name, source_id="s1", worker="w1") == 2
        scraper.wait(lambda: scraper.value(LAG) == 0.0, "in step")

        master.give(source_order(subtask_order(files, Stage.PAUSED, 2)))
        master.wait(name, Stage.PAUSED)
        source.run(f"INSERT INTO {name}.t VALUES (900, 1)")
        backlog = "unshard_sync_backlog_bytes"
        scraper.wait(lambda: bool(scraper.value(LAG)) and bool(scraper.value(backlog)), "a paused task lags")
        before = scraper.value(LAG) or 0
        scraper.wait(lambda: (scraper.value(LAG) or 0) > before, "its lag grows")
        assert scraper.value("dm_worker_task_state") == 3
        table_lag = scraper.value("unshard_sync_table_lag_seconds", target_table="t")
        assert table_lag == scraper.value(LAG)

        master.give(source_order(subtask_order(files, Stage.RUNNING, 3)))
        scraper.wait(lambda: scraper.value(LAG) == 0.0, "in step again")
        validated = {name for name in set(METRICS) - ELSEWHERE - WAITING if "_validator_" in name}
        scraper.wait(lambda: validated <= scraper.seen, "a validator", lambda: str(validated - scraper.seen))
        files.target.run(f"DROP TABLE {name}.t")
        source.run(f"INSERT INTO {name}.t VALUES (901, 1)")
        exits = "dm_syncer_exit_with_error_count"
        scraper.wait(lambda: (scraper.value(exits, task=name) or 0) > 0, "an end by an error")
        expected = set(METRICS) - ELSEWHERE - WAITING
        scraper.wait(lambda: expected <= scraper.seen, "every series", lambda: str(expected - scraper.seen))

        master.give(source_order(subtask_order(files, Stage.STOPPED, 4)))
        scraper.wait(lambda: scraper.value("dm_worker_task_state") is None, "series that end")
        server.stop(1)
