"""The chain of a subtask's units: it shows a unit from its beginning on, and none before its turn."""

from __future__ import annotations

from threading import Event
from types import SimpleNamespace
from typing import Any, cast

import pytest

from support.waiting import wait_until
from unshard.api.heartbeat import SubtaskBrief, SubtaskOrder
from unshard.api.status import Stage
from unshard.config.subtask import SubtaskConfig
from unshard.errors import LoadError, Where
from unshard.model.progress import Progress
from unshard.worker.subtask import Subtask
from unshard.worker.subtask_runner import SubtaskRunner


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
    unit: Any = SimpleNamespace(
        run=lambda *_: shown.append(subtask.unit), progress=lambda **_: Progress(), tables=tuple, note=""
    )
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


def hosted(subtask: Subtask, *, kept: str) -> SubtaskRunner:
    """On worker w1; the master has it that the dump is on `kept`."""
    brief = SubtaskBrief(task="t", stage=Stage.PAUSED, dump_at=kept)
    order = SubtaskOrder(task="t", stage=Stage.RUNNING, revision=2, config={}, kept=brief)
    config = cast(SubtaskConfig, SimpleNamespace(source_id="s1", attempt="", source=SimpleNamespace(checker=None)))
    return SubtaskRunner(order, config, lambda _: subtask, lambda: None, "w1", resumes=False)


def test_a_worker_that_looks_for_the_dump_does_not_say_that_it_has_it() -> None:
    said: list[str] = []

    def refuse() -> None:
        beat = one.brief()  # the master keeps it, and gives it back with its next order
        said.append(beat.dump_at)
        one.obey(one.order.model_copy(update={"kept": beat}), one.config)
        raise LoadError("LOAD-008", Where("s1"), values={"fault": "another dump"})

    one = hosted(copying(refuse, []), kept="w2")
    one.obey(one.order, one.config)
    wait_until(lambda: one.brief().lost_dump, "LOAD-008")
    assert [*said, one.brief().dump_at] == ["w2", "w2"]


def test_a_load_that_meets_another_dump_still_knows_who_has_the_first() -> None:
    subtask = copying(lambda: None, [])

    def refuse(*_: object) -> None:
        one.obey(one.order.model_copy(update={"kept": one.brief()}), one.config)
        raise LoadError("LOAD-008", Where("s1"), values={"fault": "another dump"})

    subtask.load = cast(Any, SimpleNamespace(run=refuse, progress=lambda **_: Progress(), tables=tuple, note=""))
    one = hosted(subtask, kept="w2")
    one.obey(one.order, one.config)
    wait_until(lambda: one.brief().lost_dump, "LOAD-008")
    assert one.brief().dump_at == "w2"
