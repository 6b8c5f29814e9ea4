"""Pages of packages name all of their modules, and each name of a module in a docstring or document exists."""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from unshard.load.checkpoint import LoadTables
from unshard.load.deferred_keys import DeferredKeys
from unshard.target.meta import MetaTables
from unshard.target.rate_limiter import RateLimiter
from unshard.target.repairs import create_repairs
from unshard.target.validation_tables import create_validation

ROOT = Path(__file__).parent.parent.parent
SOURCES = ROOT / "src" / "unshard"
PACKAGES = sorted(path.parent for path in SOURCES.rglob("__init__.py"))
DOCUMENTS = sorted(
    (
        ROOT / "ARCHITECTURE.md",
        ROOT / "CONTRIBUTING.md",
        *SOURCES.rglob("DESIGN.md"),
        *(ROOT / "docs" / "adr").glob("*.md"),
    )
)
EMPTY_BASES = frozenset({"Enum", "Exception", "IntEnum", "BaseModel", "NamedTuple", "Protocol", "StrEnum"})
"""Bases from elsewhere that give a class no names of its own that a docstring would tell of."""

NAMES_OF_OTHER_THINGS = {
    "mysql.tidb_mdl_view": "a table of TiDB",
    "path.pid": "the form of a file's name",
    "purge.expires": "a key of the source file",
    "purge.interval": "a key of the source file",
    "s.t": "the form of a table's full name",
    "schema.table": "the form of a table's full name",
    "spark.dataSource.register(BinlogDataSource)": "a call in a user's program",
    "spark.read.format": "a call in a user's program",
}
"""Names in backticks that look like a module's name, and what they are."""

QUESTIONS = frozenset({"How", "What", "When", "Where", "Whether", "Which", "Who", "Why"})
"""Words that begin no docstring of a module."""

CODE = re.compile(r"(?<!`)`([^`\n]+)`(?!`)")
FENCED = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
DOTTED = re.compile(r"(\w+(?:\.\w+)+)(?:\(.*\))?")
PATH = re.compile(r"\w+(?:/[\w-]+)*(?:/|\.py|\.pxd|/[\w-]+)")
DATA_FILE = re.compile(r"\w+(\.\w+)*\.(parquet|json|md)")


@dataclass(frozen=True)
class Text:
    """A docstring or a document, and the file that it is in."""

    path: Path
    line: int
    contents: str

    def folders(self) -> Iterator[Path]:
        """Folders in which a name is looked up: the package, those that it is in, the whole tree."""
        yield from (folder for folder in self.path.parents if folder.is_relative_to(SOURCES))
        if not self.path.is_relative_to(SOURCES):
            yield SOURCES
        yield ROOT


@cache
def source(path: Path) -> str:
    return path.read_text(encoding="utf-8")


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(source(path))


def docstring(path: Path) -> re.Match[str] | None:
    """The beginning of a module's docstring, up to its first word."""
    return re.match(r'(?:#.*\n)*r?"""`*(\w+)', source(path))


@cache
def has_module(folder: Path, name: str) -> bool:
    return (folder / f"{name}.py").is_file() or (folder / name / "__init__.py").is_file()


@cache
def names_in(body: ast.Module | ast.ClassDef) -> dict[str, ast.stmt]:
    """Names that a module or class binds: its definitions, imports and variables, and attributes that methods set."""
    names: dict[str, ast.stmt] = {}
    for node in statements(body.body):
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            names[node.name] = node
            if isinstance(body, ast.ClassDef):
                stored = (one for one in ast.walk(node) if isinstance(one, ast.Attribute) and is_self(one.value))
                names.update((one.attr, node) for one in stored if isinstance(one.ctx, ast.Store))
        elif isinstance(node, ast.Import | ast.ImportFrom):
            names.update((alias.asname or alias.name, node) for alias in node.names)
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                names.update((one.id, node) for one in ast.walk(target) if isinstance(one, ast.Name))
    return names


def statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements of a module or class, also those under a condition."""
    for node in body:
        yield node
        if isinstance(node, ast.If | ast.Try | ast.With):
            yield from statements(node.body)
            yield from statements(getattr(node, "orelse", []))


def is_self(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id == "self"


def exists(folder: Path, parts: list[str]) -> bool:
    """Tell whether `a.b.c` is a module in `folder`, or a name in one; names in classes included."""
    first, *rest = parts
    if (folder / first / "__init__.py").is_file():
        if not rest or exists(folder / first, rest):
            return True
        path = folder / first / "__init__.py"
    else:
        path = folder / f"{first}.py"
        if not path.is_file():
            return False
    node: ast.stmt | ast.Module | None = tree(path)
    for name in rest:
        if not isinstance(node, ast.Module | ast.ClassDef):
            return True  # of an imported or computed thing nothing more is known here
        node = names_in(node).get(name)
        if node is None:
            return False
    return True


def docstrings() -> Iterator[Text]:
    """Docstrings of all modules that have anything of the form of a name in backticks: the others need no parsing."""
    for path in sorted(SOURCES.rglob("*.py")):
        if any(DOTTED.fullmatch(name) or PATH.fullmatch(name) for name in CODE.findall(source(path))):
            for literal in literals(tree(path)):
                yield Text(path, literal.lineno, str(literal.value))


def literals(node: ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[ast.Constant]:
    """Docstrings of a module, of its classes, functions and variables, and of what these contain."""
    for statement in node.body:
        if isinstance(statement, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield from literals(statement)
        elif isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
            yield statement.value


def documents() -> Iterator[Text]:
    for path in DOCUMENTS:
        yield Text(path, 1, FENCED.sub("", source(path)))


def wrong_names(text: Text) -> Iterator[str]:
    """Names in backticks that have the form of a name of ours and lead nowhere."""
    for name in CODE.findall(text.contents):
        if name in NAMES_OF_OTHER_THINGS:
            continue
        if PATH.fullmatch(name):
            right = leads_to_a_file(text, name)
        elif (dotted := DOTTED.fullmatch(name)) and not DATA_FILE.fullmatch(name):
            right = leads_to_a_name(text, dotted[1].removeprefix("unshard.").split("."))
        else:
            continue
        if not right:
            yield f"{text.path.relative_to(ROOT)}:{text.line}: {name}"


def leads_to_a_file(text: Text, name: str) -> bool:
    """Tell whether `a/b.py`, `a/b`, `a/` or `b.py` exists from one of the text's folders.

    `a/b` is only a path if `a` is there. A document may name a module of any package without its folder.
    """
    folders = list(text.folders())
    places = [folder / name for folder in folders]
    if text.path.suffix == ".md" and "/" not in name:
        places += SOURCES.rglob(name)
    is_path = name.endswith((".py", ".pxd")) or any((folder / name.partition("/")[0]).exists() for folder in folders)
    return not is_path or any(place.exists() or place.with_name(f"{place.name}.py").exists() for place in places)


def leads_to_a_name(text: Text, parts: list[str]) -> bool:
    """Tell whether `a.b.c` exists, where `a` is a module or package in one of the text's folders, or a class of ours.

    In a docstring any other `a` must be a name in that module.
    """
    first, *rest = parts
    if first == "information_schema":
        return True
    if first[0].isupper() and first[1:2].islower():
        return any(has_attribute(cls, rest[0]) for cls in classes(first))
    folders = [folder for folder in text.folders() if has_module(folder, first)]
    if folders:
        return any(exists(folder, parts) for folder in folders)
    return text.path.suffix == ".md" or first in vars(builtins) or first in identifiers(text.path)


@cache
def identifiers(path: Path) -> frozenset[str]:
    """Every name in the code of a file."""
    names: set[str] = set()
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Name):
            names.add(node.id)
        elif isinstance(node, ast.Attribute):
            names.add(node.attr)
        elif isinstance(node, ast.arg):
            names.add(node.arg)
    return frozenset(names)


@cache
def classes(name: str) -> tuple[ast.ClassDef, ...]:
    """All classes of that name at the top of a module."""
    line = f"\nclass {name}"
    found = [path for path in SOURCES.rglob("*.py") if line in source(path)]
    nodes = [node for path in found for node in tree(path).body]
    return tuple(node for node in nodes if isinstance(node, ast.ClassDef) and node.name == name)


def has_attribute(cls: ast.ClassDef, name: str) -> bool:
    """Tell whether a class or one of its bases binds `name`; of bases from elsewhere nothing is known."""
    if name in names_in(cls):
        return True
    bases = {ast.unparse(base).partition("[")[0].rpartition(".")[2] for base in cls.bases} - EMPTY_BASES
    return any(not classes(base) or any(has_attribute(one, name) for one in classes(base)) for base in bases)


class Recorder:
    """A connection to a server that has no tables, and its own cursor. `columns` are those of the tables made on it."""

    def __init__(self) -> None:
        self.columns: dict[str, list[str]] = {}

    def cursor(self) -> Recorder:
        return self

    def __enter__(self) -> Recorder:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def execute(self, statement: str, values: object = None) -> None:
        if found := re.match(r"\s*CREATE TABLE IF NOT EXISTS `meta`\.`(\w+)` \((.+)\) ENGINE", statement, re.DOTALL):
            words = [line.split()[0] for line in found[2].splitlines() if line.strip()]
            self.columns[found[1]] = [word for word in words if word not in ("PRIMARY", "UNIQUE", "KEY")]

    def fetchall(self) -> list[tuple[Any, ...]]:
        return []


@pytest.mark.parametrize("package", PACKAGES, ids=lambda path: path.relative_to(SOURCES.parent).as_posix())
def test_the_page_of_a_package_names_its_modules(package: Path) -> None:
    page = ast.get_docstring(tree(package / "__init__.py")) or ""
    rows = re.findall(r"^\| `(\w+)` \| [^|]+ \|$", page, re.MULTILINE)
    modules = {path.stem for path in package.glob("*.py")} - {"__init__"}
    packages = {path.parent.name for path in package.glob("*/__init__.py")}
    assert sorted(rows) == sorted(modules | packages)


def test_the_first_line_of_a_module_names_a_thing_or_an_action() -> None:
    heads = {path.relative_to(SOURCES): docstring(path) for path in sorted(SOURCES.rglob("*.py"))}
    assert [f"{path}: {head[1]}" for path, head in heads.items() if head and head[1] in QUESTIONS] == []


def test_names_of_modules_exist() -> None:
    texts = [*docstrings(), *documents()]
    assert [wrong for text in texts for wrong in wrong_names(text)] == []
    named = {name for text in texts for name in CODE.findall(text.contents)}
    assert NAMES_OF_OTHER_THINGS.keys() - named == set(), "need not be listed"


@pytest.mark.parametrize(
    "name",
    [
        "sync.follow.Log",
        "sync.moved",
        "ddl.fills",
        "unshard.ddl.fills",
        "scratch.show_create_database",
        "sync.statement.Nothing",
        "sync.statement.Statements.nothing",
        "target.receipts.nothing(cursor)",
        "CheckpointStore.nothing",
        "NoSuchClass.name",
        "sync/moved.py",
        "sync/follow",
        "statements/gone.py",
        "gone.py",
        "tests/gone.py",
    ],
)
def test_a_name_that_leads_nowhere_is_found(name: str) -> None:
    text = Text(SOURCES / "sync" / "unit.py", 1, f"Read by `{name}`, see `statements.reader` and `sync/rows.py`.")
    assert list(wrong_names(text)) == [f"src/unshard/sync/unit.py:1: {name}"]


def test_the_map_of_the_code_names_each_package() -> None:
    page = source(ROOT / "ARCHITECTURE.md")
    section = page.partition("## The map of the code")[2].partition("\n## ")[0]
    rows = [line.split("|")[1] for line in section.splitlines() if line.startswith("| `")]
    assert sorted(re.findall(r"`(\w+)`", "".join(rows))) == sorted(
        path.name for path in PACKAGES if path.parent == SOURCES
    )


def test_architecture_names_the_tables_in_the_target_and_their_columns() -> None:
    recorder, meta = Recorder(), MetaTables("meta", "T")
    meta.create(recorder)
    LoadTables("meta", "T", "source").create(recorder)
    DeferredKeys("meta", "T", "source").create(recorder)
    create_validation(recorder, meta)
    create_repairs(recorder, meta)
    RateLimiter("meta", rows_per_second=1).create(recorder)
    page = source(ROOT / "ARCHITECTURE.md")
    rows = re.findall(r"^\| `(T_\w+|unshard_\w+)` \| (.+) \| (.+) \|$", page, re.MULTILINE)
    assert {name: re.findall(r"`(\w+)`", columns) for name, _, columns in rows} == recorder.columns
