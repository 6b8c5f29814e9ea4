"""YAML text parsed into plain data with the line of every key.

Scalars stay the text that the user wrote (`0123`, `on`, `1e3`), so that a password or a version is never turned into a
number; the models give them their types. Duplicate keys, which YAML readers drop silently, are reported as problems.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from unshard.config.problems import KeyPath, Problem, problem, refuse
from unshard.config.syntax_errors import explained
from unshard.errors import ConfigError, Where

_NULL = "tag:yaml.org,2002:null"
_MERGE = "tag:yaml.org,2002:merge"
_TAGS = {f"tag:yaml.org,2002:{kind}" for kind in ("null", "str", "int", "float", "bool", "timestamp", "merge", "value")}


_NO_PASSWORD = re.compile(r"(?:- +)?password *: +#[^ #].*")
_TYPOGRAPHIC = "\u201c\u201d\u201e\u2018\u2019\u00ab\u00bb"
_MOST_REPEATED = 200_000
"""The number of values that the aliases of a file may stand for: a few lines of them can stand for more than fits."""

_NO_KEYS = "the file has to begin with a key at the left edge, as in `name: value`, not with a list or a text"


@dataclass(slots=True)
class Document:
    """One parsed file: its content, the 1-based line of each path, and the problems of the text itself."""

    data: dict[str, Any] = field(default_factory=dict)
    lines: dict[KeyPath, int] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    file: str = ""
    _read: set[int] = field(default_factory=set)
    _repeated: int = 0

    def count(self, node: yaml.Node, path: KeyPath) -> None:
        """Count a value that is read. Raises ConfigError CONFIG-001 where aliases stand for too many."""
        if id(node) not in self._read:
            self._read.add(id(node))
            return
        self._repeated += 1
        if self._repeated > _MOST_REPEATED:
            fault = f"aliases (*name) stand for more than {_MOST_REPEATED:,} values; write fewer of them"
            refuse(self.file, [problem(path[:1], fault)], self.lines)


def text_of(path: Path | str) -> str:
    """Return a file's text. Raises ConfigError CONFIG-002."""
    try:
        return Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise ConfigError("CONFIG-002", Where(file=str(path)), error.strerror or "") from None
    except UnicodeDecodeError as error:
        raise ConfigError("CONFIG-002", Where(file=str(path)), f"byte {error.start} is not UTF-8") from None


def parse_document(text: str, file: str) -> Document:
    """Parse one YAML document whose top level is a mapping.

    Raises ConfigError CONFIG-003 with the line, CONFIG-001 where its aliases stand for too many values.
    """
    try:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.YAMLError as error:
        raise ConfigError("CONFIG-003", Where(file=file), explained(text, error)) from None
    if node is None:
        raise ConfigError("CONFIG-003", Where(file=file), "line 1: the file is empty; write keys and their values")
    if not isinstance(node, yaml.MappingNode):
        raise ConfigError("CONFIG-003", Where(file=file), f"line {node.start_mark.line + 1}: {_NO_KEYS}")
    document = Document(file=file)
    document.data = _mapping(node, (), document, (node,))
    lines = text.split("\n")
    for path, line in document.lines.items():
        if path[-1] == "password" and _NO_PASSWORD.fullmatch(lines[line - 1].strip()):
            document.problems.append(problem(path, "# begins a comment, so it is empty; put the password in quotes"))
    return document


def _value(node: yaml.Node, path: KeyPath, document: Document, above: tuple[yaml.Node, ...]) -> Any:
    document.count(node, path)
    if any(node is parent for parent in above):
        document.problems.append(problem(path, "an alias that contains itself; write the value out"))
        return None
    if isinstance(node, yaml.MappingNode):
        return _mapping(node, path, document, (*above, node))
    if isinstance(node, yaml.SequenceNode):
        values = []
        for index, item in enumerate(node.value):
            document.lines[(*path, index)] = item.start_mark.line + 1
            values.append(_value(item, (*path, index), document, (*above, node)))
        return values
    if node.tag not in _TAGS:
        document.problems.append(problem(path, "a value that begins with ! is a tag to YAML; put it in quotes"))
    elif node.tag == _NULL and not node.value and node.start_mark.index != node.end_mark.index:
        document.problems.append(problem(path, "a value that begins with & is an anchor to YAML; put it in quotes"))
    elif isinstance(node, yaml.ScalarNode) and node.style is None and node.value[:1] in tuple(_TYPOGRAPHIC):
        fault = "it begins with a typographic quote, which is a part of the value; write \" or ' around it"
        document.problems.append(problem(path, fault))
    return None if node.tag == _NULL else node.value


def _mapping(node: yaml.MappingNode, path: KeyPath, document: Document, above: tuple[yaml.Node, ...]) -> dict[str, Any]:
    merged: dict[str, Any] = {}
    own: dict[str, Any] = {}
    for key, value in node.value:
        if key.tag == _MERGE:
            for part in value.value if isinstance(value, yaml.SequenceNode) else [value]:
                content = _value(part, path, document, above)
                if isinstance(content, dict):
                    merged = {**content, **merged}
                else:
                    document.problems.append(problem(path, "`<<` takes a mapping or a list of mappings"))
            continue
        name = key.value if isinstance(key, yaml.ScalarNode) else str(key.start_mark.line + 1)
        here = (*path, name)
        if name in own:
            again = f"written twice, on lines {document.lines[here]} and {key.start_mark.line + 1}; keep one"
            document.problems.append(problem(here, again))
            continue
        document.lines[here] = key.start_mark.line + 1
        own[name] = _value(value, here, document, above)
    return {**merged, **own}
