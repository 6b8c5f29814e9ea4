"""Servers that all tests of a process share, and the order of the run: what needs no server first."""

from __future__ import annotations

import gc
import itertools
import os
import shutil
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest
from hypothesis import settings
from pyspark.sql import SparkSession

from suites.catalogue import misplaced
from suites.report import Reporter
from support.source_servers import new_source
from support.target_servers import new_target
from unshard.spark.session import spark_session
from unshard.sync.planning import planner
from unshard.testing.programs import MissingProgramError
from unshard.testing.server_trees import server_tree
from unshard.testing.throwaway_server import ThrowawayServer
from unshard.testing.tidb_server import tidb_program

# A gate that everybody has to pass draws the same examples each time; by hand new ones are drawn at each run.
settings.register_profile("patient", deadline=None)  # a busy machine is no fault of what is tested
settings.register_profile("ci", derandomize=True, deadline=None)
settings.load_profile("patient")
if os.environ.get("CI"):
    settings.load_profile("ci")

_COSTLY = ("server", "spark", "recovery")
_SERVERS = frozenset({"source_server", "second_source", "target_server"})
_NOT_TESTED = {
    "mydumper": "dumps of mydumper, and ours in myloader: neither program is installed",
    "browser": "the page in a browser: Chromium is not installed",
    "nginx": "the page behind nginx: `make test-page` fetches it",
    "maven": "a task on YARN: Maven, which fetches YARN, is not installed",
    "tidb_program": "TiDB in `make test`: `make test-tidb` builds its server",
    "mysql_80_program": "MySQL 8.0 in `make test`: `make test-mysql` fetches its server",
}
"""By mark, what is left out where its program is not installed."""


def _there(place: Callable[[], object]) -> bool:
    try:
        place()
    except MissingProgramError:
        return False
    return True


_PROGRAMS: dict[str, Callable[[], bool]] = {
    "mydumper": lambda: shutil.which("mydumper") is not None,
    "browser": lambda: any(map(shutil.which, ("chromium", "google-chrome"))),
    "nginx": lambda: _there(lambda: server_tree("nginx")),
    "maven": lambda: shutil.which("mvn") is not None,
    "tidb_program": lambda: _there(tidb_program),
    "mysql_80_program": lambda: _there(lambda: server_tree("mysql-8.0")),
}
_LACKING = [mark for mark, there in _PROGRAMS.items() if not there()]
_numbers = itertools.count(1)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Unmarked tests run first, then those with servers, with Spark, with kills; the order is else kept.

    Where several processes share the tests it is the other way round: no process is left with the long ones at the end.
    A test that asks for a server by fixture is marked `server`, whether or not its author thought of it.
    """
    left_out = [item for item in items if any(map(item.get_closest_marker, _LACKING))]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in left_out]
    text_of = cache(Path.read_text)
    for item in items:
        if fault := misplaced({mark.name for mark in item.iter_markers()}, text_of(item.path)):
            raise pytest.UsageError(f"{item.nodeid} {fault}")
        if _SERVERS.intersection(getattr(item, "fixturenames", ())):
            item.add_marker("server")
    items.sort(key=_cost, reverse="PYTEST_XDIST_WORKER" in os.environ)


def pytest_collection_finish() -> None:
    """Collect garbage less often, and without looking at modules and tests: they last as long as the process."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 100)


@pytest.hookimpl(trylast=True)  # behind pytest's own, which makes the terminal reporter
def pytest_configure(config: pytest.Config) -> None:
    """Tell failures at once, in the process that was started."""
    terminal = config.pluginmanager.get_plugin("terminalreporter")
    if terminal is not None and "PYTEST_XDIST_WORKER" not in os.environ:
        config.pluginmanager.register(Reporter(terminal, [_NOT_TESTED[mark] for mark in _LACKING]))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say what can't be tested on this system: the archive of Debian 13 has no mydumper."""
    for mark in _LACKING:
        terminalreporter.write_line(f"NOT TESTED: {_NOT_TESTED[mark]}")


def _cost(item: pytest.Item) -> int:
    return sum(2**rank for rank, mark in enumerate(_COSTLY) if item.get_closest_marker(mark))


@pytest.fixture(scope="session")
def source_server() -> Iterator[ThrowawayServer]:
    """The upstream of the run: a MariaDB, or what UNSHARD_TEST_SOURCE names.

    Use a schema of your own (`schema`), and leave its variables as they are.
    """
    with new_source() as server:
        yield server


@pytest.fixture(scope="session")
def second_source() -> Iterator[ThrowawayServer]:
    """Another upstream, with its own binlog and its own GTIDs."""
    with new_source(2) as server:
        yield server


@pytest.fixture(scope="session")
def target_server() -> Iterator[ThrowawayServer]:
    """The downstream of the run: a MariaDB, or what UNSHARD_TEST_TARGET names."""
    with new_target() as server:
        yield server


@pytest.fixture
def schema() -> str:
    """A schema name that no other test uses; the test creates it where it wants it."""
    return f"t{os.getpid()}_{next(_numbers)}"


@pytest.fixture
def small_jobs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Batches that this process plans are Spark jobs of several partitions, however small they are."""
    monkeypatch.setattr(planner, "HERE_BYTES", 0)


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """The one Spark session of the run: two slots on this machine."""
    folder = tmp_path_factory.mktemp("spark")
    with spark_session("local[2]", {}, folder / "spark.log") as session:
        yield session
