"""`check-task` on a terminal: what is lacking, and what mends it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from rich.console import RenderableType
from rich.text import Text

STYLES = {"success": "green", "warn": "yellow", "fail": "bold red"}


def check_rows(answer: Mapping[str, Any]) -> Iterator[RenderableType]:
    """Each lack over the width of the terminal with what mends it, then how many there are."""
    for result in answer.get("results") or ():
        of = f" ({result['extra']})" if result.get("extra") else ""
        for finding in result["errors"]:
            head = Text(finding["severity"], STYLES.get(finding["severity"], "none"))
            yield head.append(f" {result['name']}{of}: {finding['short_error']}", "none")
            if finding["instruction"]:
                yield f"  {finding['instruction']}\n"
    counts = answer.get("summary")
    if counts is None:
        yield Text(str(answer.get("msg", "")), "none" if answer.get("result") else "bold red")
        return
    yield f"{counts['successful']} of {counts['total']} fine, {counts['warning']} warned, {counts['failed']} failed"
