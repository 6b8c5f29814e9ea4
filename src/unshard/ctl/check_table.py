"""`check-task` on a terminal: what is lacking, and what mends it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from rich.console import RenderableType
from rich.text import Text

from unshard.checks.groups import LocatedFinding, grouped

STYLES = {"success": "green", "warn": "yellow", "fail": "bold red"}


def check_rows(answer: Mapping[str, Any]) -> Iterator[RenderableType]:
    """Each lack over the width of the terminal with what mends it and its tables, then how many there are."""
    for group in grouped(_found(answer)):
        yield Text(group.severity, STYLES.get(group.severity, "none")).append(f" {group.head}", "none")
        if below := [text for text in (group.mend, group.also) if text]:
            yield "".join(f"  {line}\n" for line in below)
    counts = answer.get("summary")
    if counts is None:
        yield Text(str(answer.get("msg", "")), "none" if answer.get("result") else "bold red")
        return
    yield f"{counts['successful']} of {counts['total']} fine, {counts['warning']} warned, {counts['failed']} failed"


def _found(answer: Mapping[str, Any]) -> Iterator[LocatedFinding]:
    for result in answer.get("results") or ():
        for one in result["errors"]:
            texts = (str(one["short_error"]), str(one["instruction"]), str(one.get("self") or ""))
            yield LocatedFinding(one["severity"], result["name"], str(result.get("extra") or ""), *texts)
