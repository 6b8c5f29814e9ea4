"""Pages of packages name all of their modules, and each name of a module in a docstring or document exists."""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

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
KNOWN_BASES = frozenset({"Enum", "Exception", "IntEnum", "NamedTuple", "Protocol", "StrEnum"})
"""Bases from elsewhere that give a class no names of its own that a docstring would tell of."""

NAMES_OF_OTHER_THINGS = {
    "mysql.tidb_mdl_view": "a table of TiDB",
    "purge.expires": "a key of the source file",
    "purge.interval": "a key of the source file",
    "schema.table": "the form of a table's full name",
}
"""Names in backticks that begin as a module of ours does, and what they are."""

CODE = re.compile(r"(?<!`)`([^`\n]+)`(?!`)")
FENCED = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
DOTTED = re.compile(r"(\w+(?:\.\w+)+)(?:\(.*\))?")
PATH = re.compile(r"\w+(?:/[\w-]+)*(?:/|\.py|\.pxd|/[\w-]+)")
FILES = frozenset({"parquet", "json", "md", "meta", "index", "sql", "yaml", "h", "cc"})
"""Ends of names of files: what has one is no name of Python."""


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
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def has_module(folder: Path, name: str) -> bool:
    return (folder / f"{name}.py").is_file() or (folder / name / "__init__.py").is_file()


@cache
def names_in(body: ast.Module | ast.ClassDef) -> dict[str, ast.stmt]:
    """Names that a module or class binds: its definitions, imports and variables, and attributes that methods set."""
    names: dict[str, ast.stmt] = {}
    for node in ast.walk(body):
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            names.setdefault(node.name, node)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            names.update((alias.asname or alias.name, node) for alias in node.names)
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                names.update((one.attr, node) for one in ast.walk(target) if isinstance(one, ast.Attribute))
                names.update((one.id, node) for one in ast.walk(target) if isinstance(one, ast.Name))
    return names


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
        contents = path.read_text(encoding="utf-8")
        if any(DOTTED.fullmatch(name) or PATH.fullmatch(name) for name in CODE.findall(contents)):
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
        yield Text(path, 1, FENCED.sub("", path.read_text(encoding="utf-8")))


def wrong_names(text: Text) -> Iterator[str]:
    """Names in backticks that have the form of a name of ours and lead nowhere."""
    for name in CODE.findall(text.contents):
        if name in NAMES_OF_OTHER_THINGS:
            continue
        if PATH.fullmatch(name):
            right = leads_to_a_file(text, name)
        elif dotted := DOTTED.fullmatch(name):
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
    if rest[-1] in FILES:
        return True
    if first[0].isupper() and first[1:2].islower():
        return any(has_attribute(cls, rest[0]) for cls in classes().get(first, []))
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
def classes() -> dict[str, list[ast.ClassDef]]:
    """All classes of the package by name."""
    found: dict[str, list[ast.ClassDef]] = {}
    for path in SOURCES.rglob("*.py"):
        if re.search(r"^class ", path.read_text(encoding="utf-8"), re.MULTILINE):
            for node in tree(path).body:
                if isinstance(node, ast.ClassDef):
                    found.setdefault(node.name, []).append(node)
    return found


def has_attribute(cls: ast.ClassDef, name: str) -> bool:
    """Tell whether a class or one of its bases binds `name`; of bases from elsewhere nothing is known."""
    if name in names_in(cls):
        return True
    bases = [ast.unparse(base).partition("[")[0].rpartition(".")[2] for base in cls.bases]
    return any(has_attribute(base, name) for one in bases for base in classes().get(one, [])) or any(
        one not in classes() and one not in KNOWN_BASES for one in bases
    )


@pytest.mark.parametrize("package", PACKAGES, ids=lambda path: path.relative_to(SOURCES.parent).as_posix())
def test_the_page_of_a_package_names_its_modules(package: Path) -> None:
    page = ast.get_docstring(tree(package / "__init__.py")) or ""
    rows = re.findall(r"^\| `(\w+)` \| [^|]+ \|$", page, re.MULTILINE)
    modules = {path.stem for path in package.glob("*.py")} - {"__init__"}
    packages = {path.parent.name for path in package.glob("*/__init__.py")}
    assert sorted(rows) == sorted(modules | packages)


def test_names_of_modules_exist() -> None:
    assert [wrong for text in (*docstrings(), *documents()) for wrong in wrong_names(text)] == []
