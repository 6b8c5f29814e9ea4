"""The house rules that a program can check: layers, sizes, names, what may not stand in a tracked file."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from functools import cache
from pathlib import Path

import pytest

from unshard.error_catalogue import CATALOGUE

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "src" / "unshard"

LAYERS: tuple[frozenset[str], ...] = (
    frozenset({"cli", "ctl", "web"}),
    frozenset({"explain", "worker", "master"}),
    frozenset({"spark"}),
    frozenset({"operate"}),
    frozenset({"checks", "compare", "dump", "load", "relay", "sync", "validation"}),
    frozenset({"source", "target", "transform", "ddl", "shard", "binlog"}),
    frozenset({"kernels"}),
    frozenset({"schema"}),
    frozenset({"mysql"}),
    frozenset({"api"}),
    frozenset(
        {
            "model",
            "config",
            "errors",
            "error_catalogue",
            "crash_point",
            "credentials",
            "retry",
            "run_tasks",
            "log",
            "metrics",
        }
    ),
)
"""From the top down: a package imports those of its own row and of the rows below it, and no two import each other."""

APART = "testing"
"""May import all but the packages of `ABOVE_TESTING`; of the product only the command line (its demo) imports it."""

ABOVE_TESTING = frozenset({"cli", "worker", "spark"})
PRINTING = frozenset({"cli", APART})
FORBIDDEN_NAMES = frozenset({"utils", "util", "common", "helpers", "helper", "misc", "core", "manager", "base"})
LONGEST_FILE = 400
CLOCKS = frozenset({"time.sleep", "asyncio.sleep", "time.monotonic", "time.perf_counter", "time.process_time"})
CLOCK_METHODS = frozenset({"wait_for_timeout", "elapsed"})
"""Of Playwright's tabs and of httpx's answers."""
BY_THE_CLOCK = frozenset(
    {
        "tests/support/waiting.py",  # what all others wait by
        "tests/support/seeds.py",  # ends a random test behind the time that somebody gave it
        "tests/support/copy_storm.py",  # pauses of random length between changes and kills; nothing is judged by them
        "tests/support/shard_storm.py",  # the same
        "tests/suites/run.py",  # tells how long each step took
        "tests/bench/test_decode_cost.py",  # processor time of two things, the least of many turns
    }
)
"""Files of the tests that may sleep or measure time, and why."""
MODULES_OF_A_WORKER = 60
"""Our modules that a worker process of Spark loads: each one takes time of the first task."""
BUILD_FILES = re.compile(
    r"(^|/)(Makefile|pyproject\.toml|setup\.py|requirements[^/]*|[^/]*lock[^/]*|[^/]*\.sh)$|^(\.ci|tools)/"
)
CODE = re.compile(
    r'"((?:CONFIG|CHECK|SOURCE|TARGET|BINLOG|RELAY|DUMP|LOAD|SYNC|DDL|SHARD|COMPARE|CLUSTER|ENGINE)-\d{3})"'
)


@cache
def tracked() -> tuple[Path, ...]:
    """Every file of the project: tracked, or new and not ignored."""
    command = ["git", "-C", str(ROOT), "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, capture_output=True, check=True).stdout.decode()
    return tuple(path for name in sorted(listed.split("\0")) if name and (path := ROOT / name).is_file())


def python_files(*folders: str) -> list[Path]:
    tops = {ROOT / folder for folder in folders}
    return [path for path in tracked() if path.suffix == ".py" and tops.intersection(path.parents)]


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(), str(path))


def imported(path: Path) -> Iterator[str]:
    """Absolute names of all that a file imports, wherever in it: `unshard.model.table.Table`, `pyspark`."""
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def part(path: Path) -> str:
    """The package or top-level module of `unshard` that a file belongs to."""
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def edges() -> Iterator[tuple[Path, str, str]]:
    """(file, its part, a part of unshard that it imports)."""
    for path in python_files("src"):
        for name in imported(path):
            pieces = name.split(".")
            if pieces[0] == "unshard" and len(pieces) > 1:
                yield path, part(path), pieces[1]


def row(name: str) -> int:
    return next(place for place, layer in enumerate(LAYERS) if name in layer)


def place(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def test_compiled_kernels_are_those_of_the_source() -> None:
    """The first test of this file: where it fails, tests that import kernels fail for no reason that they can tell."""
    sources = {path.stem: path for path in (PACKAGE / "kernels").glob("*.py") if path.name != "__init__.py"}
    compiled = {path.name.partition(".")[0]: path for path in (PACKAGE / "kernels").glob("*.so")}
    deleted = [f"{name} has no source" for name in compiled.keys() - sources.keys()]
    missing = [f"{name} is not compiled" for name in sources.keys() - compiled.keys()]
    older = [
        f"{name} is older than its source"
        for name in compiled.keys() & sources.keys()
        if compiled[name].stat().st_mtime < sources[name].stat().st_mtime
    ]
    assert sorted(deleted + missing + older) == [], "run `make build`"


def test_every_part_has_a_layer() -> None:
    known = frozenset.union(*LAYERS) | {APART, "__init__", "__main__"}
    assert {part(path) for path in python_files("src")} <= known


def test_parts_import_only_their_own_row_and_below() -> None:
    wrong = []
    for path, importer, target in edges():
        if importer in (target, "__init__", "__main__"):
            continue
        if importer == APART:
            allowed = target not in ABOVE_TESTING
        elif target == APART:
            allowed = importer == "cli"
        else:
            allowed = row(importer) <= row(target)
        if not allowed:
            wrong.append(f"{place(path)} imports {target}")
    assert wrong == []


def test_no_two_parts_import_each_other() -> None:
    pairs = {(importer, target) for _, importer, target in edges() if importer != target}
    assert sorted(pair for pair in pairs if pair[::-1] in pairs) == []


def modules() -> dict[str, Path]:
    """Each module of unshard by its name; a package is its `__init__`."""
    names = {path: ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts) for path in python_files("src")}
    return {name.removesuffix(".__init__"): path for path, name in names.items()}


def needed(path: Path, known: Collection[str]) -> Iterator[str]:
    """Modules that a file imports, wherever in it; also by `import_module`."""
    for name in imported(path):
        yield from [one for one in (name, name.rpartition(".")[0]) if one in known][:1]
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("import_module"):
            yield from (str(one.value) for one in node.args if isinstance(one, ast.Constant) and one.value in known)


def circles(graph: Mapping[str, Collection[str]]) -> list[str]:
    """What is left of a graph without what leads out of no circle, and into none."""
    left = {name: set(others) - {name} for name, others in graph.items()}
    while ends := {name for name, others in left.items() if not others & left.keys()} | (
        left.keys() - {other for others in left.values() for other in others}
    ):
        left = {name: others - ends for name, others in left.items() if name not in ends}
    return sorted(left)


def test_no_modules_import_each_other_in_a_circle() -> None:
    """Within functions neither: then a module can be read after those that it needs."""
    known = modules()
    assert circles({name: set(needed(path, known)) for name, path in known.items()}) == []


def package(name: str, known: Mapping[str, Path]) -> str:
    """The package that a module is in; of a package itself, its own name."""
    return name if known[name].name == "__init__.py" else name.rpartition(".")[0]


def test_no_packages_side_by_side_import_each_other_in_a_circle() -> None:
    """A package and one within it may: the folder's page names what it is made of."""
    known = modules()
    graph: dict[str, set[str]] = {package(name, known): set() for name in known}
    for name, path in known.items():
        importer = package(name, known)
        for target in needed(path, known):
            other = package(target, known)
            if not f"{importer}.".startswith(f"{other}.") and not f"{other}.".startswith(f"{importer}."):
                graph[importer].add(other)
    assert circles(graph) == []


RUNS_WITH = {
    "unshard.sync.batch": ("unshard.sync.batch",),
    "unshard.sync.changes": ("unshard.sync.batch", "unshard.sync.changes"),
    "unshard.sync.steps": ("unshard.sync.batch", "unshard.sync.changes", "unshard.sync.steps"),
}
"""What a package for executors may import of `sync`; all else of it runs on the driver."""

BEGINS_THE_STEPS = frozenset({"src/unshard/spark/batches.py", "src/unshard/spark/batch_tasks.py"})


def test_what_runs_on_executors_imports_nothing_of_the_driver() -> None:
    """Each worker process of Spark loads what the steps import; the path tells which code runs where."""
    wrong = [
        f"{place(path)} imports {name}"
        for folder, allowed in RUNS_WITH.items()
        for path in (PACKAGE.parent / folder.replace(".", "/")).glob("*.py")
        for name in imported(path)
        if name.startswith("unshard.sync") and not name.startswith(tuple(f"{one}." for one in allowed))
    ]
    assert wrong == []


def test_the_driver_imports_no_step_of_the_executors() -> None:
    """Only what begins a batch does; what the driver asks too is in `sync/changes`."""
    importers = {
        place(path)
        for path in python_files("src")
        for name in imported(path)
        if name.startswith("unshard.sync.steps") and path.parent.name != "steps"
    }
    assert importers == BEGINS_THE_STEPS


def test_the_changes_of_a_batch_ask_no_server() -> None:
    asking = ("MySQLdb", "pymysql", "unshard.target", "unshard.source", "unshard.mysql.connection")
    wrong = [
        f"{place(path)} imports {name}"
        for path in (PACKAGE / "sync" / "changes").glob("*.py")
        for name in imported(path)
        if name.startswith(asking)
    ]
    assert wrong == []


def test_a_worker_process_of_spark_loads_what_its_tasks_need() -> None:
    """What the tasks of a batch import: no unit that begins them, nothing that reads statements or a task's files."""
    code = "import sys, unshard.spark.batch_tasks; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert {"pydantic", "yaml", "structlog"} & set(loaded) == set()
    own = [name for name in loaded if name.partition(".")[0] == "unshard"]
    parts = {name.split(".")[1] for name in own if "." in name}
    assert {"config", "dump", "load", "ddl", "shard", "compare", "worker"} & parts == set()
    assert "sync" in parts
    assert len(own) <= MODULES_OF_A_WORKER, "\n".join(sorted(own))


def test_relative_imports_are_not_used() -> None:
    relative = [
        f"{place(path)}:{node.lineno}"
        for path in python_files("src")
        for node in ast.walk(tree(path))
        if isinstance(node, ast.ImportFrom) and node.level
    ]
    assert relative == []


def test_only_the_spark_package_imports_pyspark() -> None:
    importers = {path for path in python_files("src") for name in imported(path) if name.split(".")[0] == "pyspark"}
    assert sorted(place(path) for path in importers if part(path) != "spark") == []


def test_files_stay_below_the_wall() -> None:
    lengths = {place(path): len(path.read_text().splitlines()) for path in python_files("src", "tests", "bench")}
    assert {name: length for name, length in lengths.items() if length > LONGEST_FILE} == {}


def test_no_file_or_folder_has_a_name_that_says_nothing() -> None:
    named = [path for path in tracked() if {path.stem, *path.relative_to(ROOT).parts[:-1]} & FORBIDDEN_NAMES]
    assert [place(path) for path in named] == []


def test_only_programs_print() -> None:
    printing = [
        f"{place(path)}:{node.lineno}"
        for path in python_files("src")
        if part(path) not in PRINTING
        for node in ast.walk(tree(path))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print"
    ]
    assert printing == []


def test_no_test_is_skipped_or_expected_to_fail() -> None:
    ways = {"skip", "skipif", "xfail", "importorskip"}
    skipping = [
        f"{place(path)}:{node.lineno}"
        for path in python_files("tests")
        for node in ast.walk(tree(path))
        if isinstance(node, ast.Attribute) and node.attr in ways and "pytest" in ast.unparse(node)
    ]
    assert skipping == []


def clock_uses(path: Path) -> Iterator[str]:
    """Where a file of the tests sleeps or reads a clock that measures time; children's scripts in texts apart."""
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Attribute) and (ast.unparse(node) in CLOCKS or node.attr in CLOCK_METHODS):
            yield f"{place(path)}:{node.lineno} {ast.unparse(node)}"
        elif isinstance(node, ast.ImportFrom) and any(f"{node.module}.{one.name}" in CLOCKS for one in node.names):
            yield f"{place(path)}:{node.lineno} imports of {node.module}"


def test_no_test_waits_or_judges_by_the_clock() -> None:
    """On a busy machine all takes longer: tests wait for events, by `support.waiting`."""
    using = {place(path): list(clock_uses(path)) for path in python_files("tests")}
    assert [use for name, uses in using.items() if name not in BY_THE_CLOCK for use in uses] == []
    assert [name for name in BY_THE_CLOCK if not using.get(name)] == [], "need not be listed"


def test_build_files_name_no_host() -> None:
    naming = [
        f"{place(path)}: {line.strip()}"
        for path in tracked()
        if BUILD_FILES.search(place(path))
        for line in path.read_text().splitlines()
        if re.search(r"\w+://|--(extra-)?index-url|--find-links|--trusted-host", line)
    ]
    assert naming == []


def test_files_name_no_path_of_a_machine() -> None:
    machine = re.compile(rf"{re.escape(str(ROOT))}\b|/home/\w|/Users/\w|/root/\.")
    naming = []
    for path in tracked():
        try:
            text = path.read_text()
        except UnicodeDecodeError:
            continue  # bytes of a server, for a test
        if path != Path(__file__):
            naming += [f"{place(path)}: {match[0]}" for match in machine.finditer(text)]
    assert naming == []


@pytest.mark.parametrize("code", sorted(CATALOGUE))
def test_every_error_code_is_raised_somewhere(code: str) -> None:
    texts = "".join(path.read_text() for path in python_files("src") if "error_catalogue" not in path.parts)
    kind, number = code.split("-")
    by_side = kind in ("SOURCE", "TARGET") and f'{{prefix}}-{number}"' in texts
    assert by_side or f'"{code}"' in texts


def test_every_raised_error_code_stands_in_the_catalogue() -> None:
    used = {code for path in python_files("src") for code in CODE.findall(path.read_text())}
    assert used - CATALOGUE.keys() == set()


def test_test_modules_have_names_of_their_own() -> None:
    """Without packages around them pytest tells them apart by their names alone, and stops where two are the same."""
    names = Counter(path.name for path in (ROOT / "tests").rglob("*.py") if path.name != "conftest.py")
    assert [name for name, count in names.items() if count > 1] == []


def test_a_class_name_means_one_class() -> None:
    """Private ones apart: they are of one file. A kernel's compiled classes count too."""
    names = Counter(
        node.name
        for path in python_files("src")
        for node in ast.parse(path.read_text()).body
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    )
    assert sorted(name for name, count in names.items() if count > 1) == []
