"""The suites of tests: what each one holds, which tests belong to it, and in which order its steps run.

A test belongs to `make test` unless a mark of `BESIDE` or its folder puts it into a suite that only `make test-all`
runs. Cheap tests come first, so that a wrong word or a stale page is told within a minute.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from suites.pairs import PAIRS, Pair

BESIDE: Final = ("faults", "cluster", "page", "docs", "scenarios", "storms")
"""Marks of suites beside `make test`. A test with one of them is left out of `make test`."""

HOUSE: Final = ("tests/test_docs.py", "tests/packaging", "tests/docs", "tests/test_advice.py", "tests/test_tidy.py")
"""What tells of tidiness, documents, reference pages and packaging; files that take long come first."""

NAMED: Final = ("spark", "recovery", *BESIDE)
"""Marks that each file of such a test names itself, so that a step collects no other files."""

_MYSQL_TESTS, _TIDB_TESTS = OWN_FOLDERS = ("tests/mysql_server", "tests/tidb_server")
"""Folders that only their own suites run."""


def misplaced(marks: set[str], text: str) -> str:
    """Why no step, or more than one, runs a test with these marks in a file with this text; "" where one does."""
    if len(suites := marks.intersection(BESIDE)) > 1:
        return f"belongs to several suites: {', '.join(sorted(suites))}"
    unnamed = sorted(mark for mark in marks.intersection(NAMED) if f"mark.{mark}" not in text)
    return f"has the mark {unnamed[0]}: its file has to name `pytest.mark.{unnamed[0]}` itself" if unnamed else ""


_GATE = " and ".join(f"not {mark}" for mark in BESIDE)
_NO_SERVERS = "not server and not spark and not recovery"


@dataclass(frozen=True, slots=True)
class Step:
    """One run of pytest.

    Attributes:
        name: what the progress and the summary call it.
        marks: pytest's expression of the marks that a test has.
        paths: files, folders or `@` with a file that lists them.
        ignored: paths below those that another step of the suite runs.
        without: tests that it leaves out, by node id.
        jobs: how many processes share the tests; 0 is this one alone. More than one per core are of use: tests wait for
            servers, for Spark's processes and for threads.
        environment: further variables of the environment.
    """

    name: str
    marks: str = ""
    paths: tuple[str, ...] = ("tests",)
    ignored: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    jobs: int = 2
    environment: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Suite:
    """Steps that run in order; a suite ends at its first step that fails.

    Attributes:
        name: `test-NAME` is its target of make; `test` itself has none.
        about: what it holds, in a line.
        steps: the runs of pytest.
        needs: commands that install what its tests need, and which do nothing where that is there.
        second_try: a test that has only waited too long for an event is run once more, alone.
        in_memory: its tests write no more than fits into memory.
    """

    name: str
    about: str
    steps: tuple[Step, ...]
    needs: tuple[tuple[str, ...], ...] = ()
    second_try: bool = False
    in_memory: bool = False


def _beside(name: str, about: str, *needs: tuple[str, ...], second_try: bool = False) -> Suite:
    return Suite(name, about, (Step(name, name),), needs, second_try)


def _of_pair(pair: Pair) -> Step:
    without = tuple(test for test, _ in pair.without)
    return Step(pair.name, paths=pair.paths, without=without, environment=pair.environment)


_BROWSER = ("tools/system-packages", "browser")
_MYSQL = ("tools/test-servers", "mysql")
_TIDB = ("tools/test-servers", "tidb")
_NGINX = ("tools/test-servers", "nginx")

GATE: Final = Suite(
    "test",
    "what every change must pass",
    (
        Step("house", f"{_NO_SERVERS} and {_GATE}", HOUSE),
        Step("unit", f"{_NO_SERVERS} and {_GATE}", ignored=HOUSE, jobs=3),
        Step("servers", f"server and not spark and not recovery and {_GATE}", jobs=3),
        Step("spark", f"spark and not recovery and {_GATE}", jobs=4),
        Step("processes", f"recovery and {_GATE}", jobs=3),
    ),
    (_BROWSER,),
    in_memory=True,
)
SUITES: Final = (
    GATE,
    _beside("faults", "processes and servers that are killed, frozen or cut off at every point", second_try=True),
    _beside("cluster", "masters, workers and ctl as processes", second_try=True),
    _beside("page", "the page in Chromium", _BROWSER, _NGINX),
    _beside("docs", "the tutorials and the demo, walked"),
    _beside("scenarios", "whole tasks in more shapes of tables, statements and settings"),
    _beside("storms", "random copies, shards, rows and statements"),
    Suite(
        "mysql",
        "real servers of MySQL and MariaDB, old and new",
        (Step("mysql", paths=(_MYSQL_TESTS,)),),
        (_MYSQL,),
    ),
    Suite(
        "tidb",
        "a real TiDB as the target",
        (Step("tidb", paths=(_TIDB_TESTS,)),),
        (_TIDB, _MYSQL),
    ),
    Suite(
        "pairs",
        "whole tasks from MySQL and MariaDB into TiDB, MySQL and MariaDB",
        tuple(map(_of_pair, PAIRS)),
        (_TIDB, _MYSQL, _BROWSER),
    ),
)
