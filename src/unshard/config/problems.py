"""Problems of a file, which are collected, get their line and their remedy, and are reported together.

Keys that a user has set and that have no effect are reported too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from unshard.config.section import NOT_SUPPORTED, NoEffect, Section
from unshard.credentials import without_credentials
from unshard.errors import ConfigError, Where

KeyPath = tuple[str | int, ...]
_SECRET = frozenset({"password", "session", "extra-args", "conf", "token", "sha256", "security"})
"""Keys whose value is never shown, because it is a secret or may contain one."""

_REMEDIES = {
    "missing": "missing: it has to be set",
    "int_parsing": "write a whole number",
    "int_type": "write a whole number",
    "int_from_float": "write a whole number",
    "float_parsing": "write a number",
    "bool_parsing": "write true or false",
    "bool_type": "write true or false",
    "string_type": "write a text",
    "model_type": "write a mapping: keys and values, indented below it",
    "model_attributes_type": "write a mapping: keys and values, indented below it",
    "dict_type": "write a mapping: keys and values, indented below it",
    "tuple_type": "write a list: [a, b], or each entry behind a `- `, below the key",
    "string_too_short": "write at least {min_length} character(s)",
    "string_too_long": "write at most {max_length} characters",
    "greater_than": "write a number over {gt}",
    "greater_than_equal": "write a number of at least {ge}",
    "less_than_equal": "write a number of at most {le}",
    "literal_error": "write one of {expected}",
}


@dataclass(frozen=True, slots=True)
class Problem:
    """One problem at one place. `text` is complete: the dotted path, the value, what to write instead."""

    path: KeyPath
    text: str


def dotted(path: KeyPath) -> str:
    """Return a path in the form `mysql-instances[0].meta.binlog-pos`."""
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else str(part)
    return text or "the file"


def problem(path: KeyPath, fault: str) -> Problem:
    """Return a problem at a key, whose text begins with the key's dotted path."""
    return Problem(path, f"{dotted(path)}: {fault}")


def suggestion(word: str, known: Iterable[str]) -> str:
    """Return ` (did you mean `x`?)`, or nothing if no known word is similar."""
    near = get_close_matches(word, list(known), n=1, cutoff=0.6)
    return f" (did you mean `{near[0]}`?)" if near else ""


def from_validation(details: Mapping[str, Any]) -> Problem:
    """Return the problem for one of pydantic's error details. Values that may contain a secret are left out."""
    path: KeyPath = tuple(details["loc"])
    kind, value, context = details["type"], details.get("input"), details.get("ctx", {})
    if kind == NOT_SUPPORTED:
        key = (*path, *context["below"])
        return Problem(key, f"not supported yet: {dotted(key)} ({context['advice']})")
    if kind == "value_error":
        remedy = str(context["error"])
    else:
        remedy = _REMEDIES[kind].format_map(context) if kind in _REMEDIES else details["msg"]
    if kind == "tuple_type" and isinstance(value, str) and not _SECRET.intersection(path):
        words = ", ".join(f'"{word.strip(" []")}"' for word in value.split(","))
        remedy = f"write a list: [{words}]"
    elif kind == "string_type" and isinstance(value, list | dict):
        kept = "a list" if isinstance(value, list) else "a mapping"
        remedy = f"write a text, not {kept}; in quotes where it begins with [ or {{"
    if kind == "literal_error" and isinstance(value, str):
        remedy += suggestion(value, str(context["expected"]).replace("'", "").replace(" or ", ", ").split(", "))
    shown = isinstance(value, str | int | float) and kind not in ("missing", "model_type", "model_attributes_type")
    if shown and not _SECRET.intersection(path):
        return problem(path, f"{without_credentials(repr(value))} is refused; {remedy}")
    return problem(path, remedy)


def refuse(file: str, problems: Iterable[Problem], lines: Mapping[KeyPath, int]) -> None:
    """Raise CONFIG-001 with all problems, one per line in the file's order, each once; return if there are none."""
    found = {(line_of(one.path, lines), one.text) for one in problems}
    if found:
        cause = "\n       ".join(f"line {line}: {text}" for line, text in sorted(found))
        raise ConfigError("CONFIG-001", Where(file=file), cause, {"count": len(found)}) from None


def line_of(path: KeyPath, lines: Mapping[KeyPath, int]) -> int:
    """Return the line of that key, or of the nearest section around it."""
    while path and path not in lines:
        path = path[:-1]
    return lines.get(path, 1)


def used_without_effect(section: Section, path: KeyPath) -> Iterator[str]:
    """Yield one sentence for each key under `section` that is marked NoEffect and does not have its default value.

    A key with its default value asks for nothing: dmctl writes every key that exists.
    """
    for name, info in type(section).model_fields.items():
        if name not in section.model_fields_set:
            continue
        here = (*path, info.alias or name)
        asks = getattr(section, name) not in (info.get_default(call_default_factory=True), "", {})
        for mark in info.metadata if asks else ():
            if isinstance(mark, NoEffect):
                yield f"{dotted(here)} has no effect: {mark.why}"
        yield from _within(getattr(section, name), here)


def _within(value: Any, path: KeyPath) -> Iterator[str]:
    if isinstance(value, Section):
        yield from used_without_effect(value, path)
    elif isinstance(value, dict):
        for name, item in value.items():
            yield from _within(item, (*path, name))
    elif isinstance(value, tuple):
        for index, item in enumerate(value):
            yield from _within(item, (*path, index))
