"""A draft that changes a task.

The page shows how it differs from the file in force, what the checks say, and whether it can be applied.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from unshard.api.verbs import CheckTask, Config, UpdateTask
from unshard.config.redact import hidden_text
from unshard.errors import UnshardError
from unshard.master.service import Master
from unshard.master.updates import TaskDraft

DRAFT_STEPS = ("difference", "check", "apply")
_AROUND = 3


@dataclass(frozen=True, slots=True)
class DiffLine:
    """One line of a difference. `sign`: `+`, `-`, a space, or `@` for lines that are left out."""

    sign: str
    text: str

    @property
    def kind(self) -> str:
        """Kind of the line, for its style."""
        return {"+": "added", "-": "removed", "@": "skipped"}.get(self.sign, "same")


def difference(running: str, draft: str) -> list[DiffLine]:
    """Return the lines that differ, with some lines around them; none where nothing differs."""
    lines = difflib.unified_diff(running.splitlines(), draft.splitlines(), n=_AROUND, lineterm="")
    return [DiffLine(line[0], line[1:] if line[0] != "@" else "⋯") for line in _body(lines)]


def _body(lines: Iterator[str]) -> Iterator[str]:
    """Yield the lines without the two that name the files, and without the first mark of omitted lines."""
    for number, line in enumerate(lines):
        if number > 2:
            yield line


def draft_values(master: Master, task: str, given: str, step: str) -> dict[str, Any]:
    """Return the values of the configuration screen after a step of `DRAFT_STEPS`.

    Raises ClusterError CLUSTER-017.
    """
    given = given.replace("\r\n", "\n")
    running = str(master.config(Config(type="task", name=task))["cfg"])
    shown = difference(running, hidden_text(given)) if given else []
    values: dict[str, Any] = {
        "text": running, "draft": given or running, "step": step, "difference": shown, "change": None, "check": None,
        "applied": None, "message": "",
    }  # fmt: skip
    if not step:
        return values
    try:
        change: TaskDraft = master.draft(task, given)
        values["change"] = change
        if step == "check":
            values["check"] = master.check_task(CheckTask(task=change.text))
        elif step == "apply":
            values["applied"] = master.update_task(UpdateTask(task=change.text))
            values["text"] = str(master.config(Config(type="task", name=task))["cfg"])
    except UnshardError as error:
        values["message"] = str(error)
    return values
