"""Writes the reference page of task and source files, `docs/reference/config.md`, from the models."""

from __future__ import annotations

from inspect import cleandoc
from typing import Any, Literal, get_args, get_origin

from annotated_types import Ge, Gt, Le, MaxLen, MinLen
from pydantic.fields import FieldInfo

from unshard.config.keys import section_of
from unshard.config.listener import CtlConfig
from unshard.config.master import MasterConfig
from unshard.config.quantities import Unit
from unshard.config.section import Later, NoEffect, Section, written
from unshard.config.source import SourceConfig
from unshard.config.task import TaskConfig
from unshard.config.worker import WorkerConfig

_INTRO = """# Task and source files

YAML, in DM's format, read strictly: an unknown key, a key written twice, a rule that nobody uses or that does not
exist, and a value out of range are errors. All problems of a file are reported at once, each with its line.

* A key with nothing behind it counts as not set.
* *Not supported yet* marks keys of DM that a later version will act on. They are accepted with the values named,
  which ask for nothing, and refused with any other.
* *No effect* marks keys that are read for compatibility; using one prints a notice.
* Patterns: `*` (any characters), `?` (one), `[a-z]`, `[!a-z]` (one of a set, one outside of it), or `~` and a regular
  expression, which may match anywhere in the name. `*` stands only at the end, except in block-allow lists.
* Passwords are plain, encrypted, `env:NAME` or `file:PATH`, and are never shown.
"""
_KINDS = {str: "text", int: "whole number", float: "number", bool: "true or false", Any: "anything"}
_TITLES = (
    (TaskConfig, "Task file"),
    (SourceConfig, "Source file"),
    (MasterConfig, "Master file"),
    (WorkerConfig, "Worker file"),
    (CtlConfig, "File of ctl"),
)


def render() -> str:
    """Return the page as Markdown. The result depends only on the models."""
    parts = [_INTRO]
    for model, title in _TITLES:
        parts.append(f"## {title}\n")
        parts.append(_table(model))
        places: dict[type[Section], list[str]] = {}
        _place(model, "", places)
        for section, paths in places.items():
            parts.append("### " + ", ".join(f"`{path}`" for path in paths) + "\n")
            parts.append(_table(section))
    return "\n".join(parts)


def _place(model: type[Section], path: str, places: dict[type[Section], list[str]]) -> None:
    """Add every path of a section below `model` to `places`, in the order of the keys."""
    for name, info in model.model_fields.items():
        shape, inner = section_of(info.annotation)
        if inner is None:
            continue
        key = str(info.alias or name) + {None: "", dict: ".NAME", tuple: "[]"}[shape]
        here = f"{path}.{key}" if path else key
        places.setdefault(inner, []).append(here)
        _place(inner, here, places)


def _table(model: type[Section]) -> str:
    rows = "\n".join(_row(name, info, model) for name, info in model.model_fields.items())
    return f"{cleandoc(model.__doc__ or '')}\n\n| key | value | default | meaning |\n|---|---|---|---|\n{rows}\n"


def _row(name: str, info: FieldInfo, model: type[Section]) -> str:
    key = info.alias or name
    meaning = info.description or ""
    old = [old for old, new in model.old_names.items() if new == key]
    meaning += "".join(f" DM's old name: `{name}`." for name in old)
    if info.examples:
        meaning += " Example: " + ", ".join(f"`{_literal(example)}`" for example in info.examples) + "."
    for mark in info.metadata:
        if isinstance(mark, Later) and not _supported_value(info, mark):
            meaning += f" *Not supported yet*, except {_choices(mark)}."
        elif isinstance(mark, NoEffect):
            meaning += f" *No effect*: {mark.why}."
    cells = (f"`{key}`", _value(info), _default(info), meaning)
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _supported_value(info: FieldInfo, mark: Later) -> bool:
    """Return whether the mark refuses nothing that the type accepts."""
    return get_origin(info.annotation) is Literal and set(get_args(info.annotation)) == set(mark.neutral)


def _choices(mark: Later) -> str:
    return " or ".join("not setting it" if value is None else f"`{_literal(value)}`" for value in mark.neutral)


def _value(info: FieldInfo) -> str:
    text = _kind(info.annotation)
    for mark in info.metadata:
        if isinstance(mark, Unit):
            text += f" ({mark.name})"
    bounds = [_bound(mark) for mark in info.metadata]
    return ", ".join([text, *filter(None, bounds)])


def _bound(mark: Any) -> str:
    if isinstance(mark, Ge):
        return f"≥ {mark.ge}"
    if isinstance(mark, Gt):
        return f"> {mark.gt}"
    if isinstance(mark, Le):
        return f"≤ {mark.le}"
    if isinstance(mark, MaxLen):
        return f"at most {mark.max_length} characters"
    if isinstance(mark, MinLen) and mark.min_length == 1:
        return "not empty"
    return ""


def _kind(annotation: Any) -> str:
    shape, model = section_of(annotation)
    if model is not None:
        return {None: "mapping", dict: "named mappings", tuple: "list of mappings"}[shape]
    origin, parts = get_origin(annotation), get_args(annotation)
    if origin is Literal:
        return " or ".join(f"`{_literal(part)}`" for part in parts)
    if origin is dict:
        return "names and texts"
    if origin is tuple:
        return f"list of {_kind(parts[0])}s"
    if annotation in _KINDS:
        return _KINDS[annotation]
    # Annotated[X, …] inside a list, and X | None
    return _kind(next(part for part in parts if part is not type(None)))


def _default(info: FieldInfo) -> str:
    if info.is_required():
        return "required"
    value = info.get_default(call_default_factory=True, validated_data={})
    if isinstance(value, Section):
        return "as below"
    return "not set" if value is None else f"`{_literal(value)}`"


def _literal(value: Any) -> str:
    if isinstance(value, list):
        return "[" + ", ".join(_literal(item) for item in value) + "]"
    if isinstance(value, str) and value:
        return value
    return written(value)
