"""The stages of a subtask, and the events that lead from one to the next.

| from | event | to |
|---|---|---|
| New | run | Running |
| Running | fail: its unit has ended by an error | Paused |
| Running | finish: its last unit has ended | Finished |
| New, Running | pause | Pausing, from New at once Paused |
| Pausing | rest: its unit has ended | Paused |
| Paused | resume | Resuming |
| Resuming | run: its unit works again | Running |
| any but Stopped | stop | Stopping, at once Stopped where nothing works |
| Stopping | rest | Stopped |

A stop overtakes a pause. An event that the table doesn't have for a stage leaves the stage as it is: both sides may say
a thing twice.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

from unshard.api.status import Stage


class StageEvent(Enum):
    """An event of a subtask: a request to its units (`RUN` to `STOP`), or an event in one of them (the others)."""

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
    """Return the stage that `event` leads to; `stage` itself where the event has no effect on it."""
    return _NEXT.get((stage, event), stage)


def towards(stage: Stage, wanted: Stage) -> StageEvent | None:
    """Return the event that takes something in `stage` towards `wanted` (Running, Paused or Stopped).

    None: it has that stage, or is on its way, or can't get there. Paused to Running is asked for by a human, or by
    auto-resume.
    """
    if wanted is Stage.STOPPED:
        return None if stage in (Stage.STOPPED, Stage.STOPPING) else StageEvent.STOP
    if wanted is Stage.PAUSED:
        return StageEvent.PAUSE if stage in (Stage.NEW, Stage.RUNNING, Stage.RESUMING) else None
    if wanted is Stage.RUNNING:
        return {Stage.NEW: StageEvent.RUN, Stage.PAUSED: StageEvent.RESUME}.get(stage)
    raise ValueError(f"{wanted} is passed through, never asked for")
