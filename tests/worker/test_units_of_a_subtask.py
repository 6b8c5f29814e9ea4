"""The chain of a subtask's units: it shows a unit from its beginning on, and none before its turn."""

from __future__ import annotations

from threading import Event
from types import SimpleNamespace
from typing import Any

import pytest

from unshard.errors import LoadError, Where
from unshard.model.progress import Progress
from unshard.worker.subtask import Subtask


class Beginning:
    """Of a task that was never begun; `check` looks at the dump."""

    def __init__(self, check: Any) -> None:
        self.check_dump = check

    def checkpoint(self) -> None: ...
    def is_copied(self) -> bool:
        return False

    def forget_dump(self) -> None: ...


def copying(check: Any, shown: list[str]) -> Subtask:
    """Dump and load that only note what is shown in them."""
    unit: Any = SimpleNamespace(run=lambda *_: shown.append(subtask.unit), progress=Progress)
    beginning: Any = Beginning(check)
    subtask: Subtask = Subtask("s1", beginning, None, dump=unit, load=unit, sync=None)
    return subtask


def test_a_load_is_not_shown_before_its_dump() -> None:
    shown: list[str] = []
    subtask: Subtask = copying(lambda: shown.append(subtask.unit), shown)
    subtask.run(Event())
    assert shown == ["starting", "dump", "load"]
    assert subtask.unit == "finished"


def test_a_load_that_has_another_dump_is_what_fails() -> None:
    def refuse() -> None:
        raise LoadError("LOAD-008", Where("s1"), values={"fault": "another dump"})

    subtask = copying(refuse, [])
    with pytest.raises(LoadError):
        subtask.run(Event())
    assert subtask.worked == "load"
