"""A subtask's reading: which unit runs and how far it is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import Enum

from unshard.api.status import Stage
from unshard.model.progress import Progress
from unshard.source.upstream import Upstream
from unshard.sync.status import SyncReading


@dataclass(frozen=True, slots=True)
class WaitingSubtask:
    """A subtask that an error has paused and that goes on by itself: what it waits to pass, since when, until when.

    `since` is when the first of the errors came that nothing has worked between; both times are UTC.
    """

    error: str
    since: datetime
    until: datetime


@dataclass(frozen=True, slots=True)
class SubtaskStatus:
    """One reading of one source's subtask. `progress` is there while it dumps or loads, `sync` while it follows.

    `upstream` is how far the source was when it was asked last; None: it can't be.
    `copied` are the dump and the load of this run that are over, each as it ended.
    `note` tells what is out of the ordinary (the relay reconnects, a step waits in the target), else is empty.
    `waits` is there while it waits for an error to pass.
    """

    source: str
    unit: str
    unit_seconds: float = 0.0
    progress: Progress | None = None
    sync: SyncReading | None = None
    backlog_bytes: int | None = None
    upstream: Upstream | None = None
    note: str = ""
    copied: tuple[SubtaskStatus, ...] = ()
    waits: WaitingSubtask | None = None


# The stages of a subtask and of a relay, and what leads from one to another. Pure.
#
# | from | event | to |
# |---|---|---|
# | New | run | Running |
# | Running | fail: its unit has ended by an error | Paused |
# | Running | finish: its last unit has ended | Finished |
# | New, Running | pause | Pausing, from New at once Paused |
# | Pausing | rest: its unit has ended | Paused |
# | Paused | resume | Resuming |
# | Resuming | run: its unit works again | Running |
# | any but Stopped | stop | Stopping, at once Stopped where nothing works |
# | Stopping | rest | Stopped |
#
# A stop overtakes a pause. What a stage doesn't have in the table leaves it as it is: both sides may say a thing
# twice.


class StageEvent(Enum):
    """What is asked of it (`RUN` to `STOP`), or what became of its unit (the rest)."""

    RUN = "run"
    PAUSE = "pause"
    RESUME = "resume"
    STOP = "stop"
    FAIL = "fail"
    FINISH = "finish"
    REST = "rest"


_NEXT: Mapping[tuple[Stage, StageEvent], Stage] = {
    (Stage.NEW, StageEvent.RUN): Stage.RUNNING,
    (Stage.NEW, StageEvent.PAUSE): Stage.PAUSED,
    (Stage.NEW, StageEvent.STOP): Stage.STOPPED,
    (Stage.RUNNING, StageEvent.FAIL): Stage.PAUSED,
    (Stage.RUNNING, StageEvent.FINISH): Stage.FINISHED,
    (Stage.RUNNING, StageEvent.PAUSE): Stage.PAUSING,
    (Stage.RUNNING, StageEvent.STOP): Stage.STOPPING,
    (Stage.PAUSING, StageEvent.FAIL): Stage.PAUSED,
    (Stage.PAUSING, StageEvent.FINISH): Stage.FINISHED,
    (Stage.PAUSING, StageEvent.REST): Stage.PAUSED,
    (Stage.PAUSING, StageEvent.STOP): Stage.STOPPING,
    (Stage.PAUSED, StageEvent.RESUME): Stage.RESUMING,
    (Stage.PAUSED, StageEvent.STOP): Stage.STOPPED,
    (Stage.RESUMING, StageEvent.RUN): Stage.RUNNING,
    (Stage.RESUMING, StageEvent.FAIL): Stage.PAUSED,
    (Stage.RESUMING, StageEvent.PAUSE): Stage.PAUSING,
    (Stage.RESUMING, StageEvent.STOP): Stage.STOPPING,
    (Stage.STOPPING, StageEvent.FAIL): Stage.STOPPED,
    (Stage.STOPPING, StageEvent.FINISH): Stage.STOPPED,
    (Stage.STOPPING, StageEvent.REST): Stage.STOPPED,
    (Stage.FINISHED, StageEvent.STOP): Stage.STOPPED,
}


def after(stage: Stage, event: StageEvent) -> Stage:
    """The stage that `event` leads to; `stage` itself where it means nothing to it."""
    return _NEXT.get((stage, event), stage)


def towards(stage: Stage, wanted: Stage) -> StageEvent | None:
    """What is to be said to something in `stage` so that it comes to `wanted` (Running, Paused or Stopped).

    None: it is there, or on its way, or can't get there; Paused to Running is asked for by a human, or auto-resume.
    """
    if wanted is Stage.STOPPED:
        return None if stage in (Stage.STOPPED, Stage.STOPPING) else StageEvent.STOP
    if wanted is Stage.PAUSED:
        return StageEvent.PAUSE if stage in (Stage.NEW, Stage.RUNNING, Stage.RESUMING) else None
    if wanted is Stage.RUNNING:
        return {Stage.NEW: StageEvent.RUN, Stage.PAUSED: StageEvent.RESUME}.get(stage)
    raise ValueError(f"{wanted} is passed through, never asked for")
