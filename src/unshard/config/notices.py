"""Keys that a user set and that do nothing: told, not silently passed over."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from unshard.config.problems import KeyPath, dotted
from unshard.config.section import NoEffect, Section


def used_without_effect(section: Section, path: KeyPath) -> Iterator[str]:
    """One sentence for each key under `section` that asks for something and is marked NoEffect.

    A key with its default asks for nothing: dmctl writes every key that there is.
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
