"""The stages of a subtask and of a relay, and what leads from one to another. Pure.

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

A stop overtakes a pause. What a stage doesn't have in the table leaves it as it is: both sides may say a thing twice.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

from unshard.api.stage import Stage


class Event(Enum):
    """What is asked of it (`RUN` to `STOP`), or what became of its unit (the rest)."""

    RUN = "run"
    PAUSE = "pause"
    RESUME = "resume"
    STOP = "stop"
    FAIL = "fail"
    FINISH = "finish"
    REST = "rest"


_NEXT: Mapping[tuple[Stage, Event], Stage] = {
    (Stage.NEW, Event.RUN): Stage.RUNNING,
    (Stage.NEW, Event.PAUSE): Stage.PAUSED,
    (Stage.NEW, Event.STOP): Stage.STOPPED,
    (Stage.RUNNING, Event.FAIL): Stage.PAUSED,
    (Stage.RUNNING, Event.FINISH): Stage.FINISHED,
    (Stage.RUNNING, Event.PAUSE): Stage.PAUSING,
    (Stage.RUNNING, Event.STOP): Stage.STOPPING,
    (Stage.PAUSING, Event.FAIL): Stage.PAUSED,
    (Stage.PAUSING, Event.FINISH): Stage.FINISHED,
    (Stage.PAUSING, Event.REST): Stage.PAUSED,
    (Stage.PAUSING, Event.STOP): Stage.STOPPING,
    (Stage.PAUSED, Event.RESUME): Stage.RESUMING,
    (Stage.PAUSED, Event.STOP): Stage.STOPPED,
    (Stage.RESUMING, Event.RUN): Stage.RUNNING,
    (Stage.RESUMING, Event.FAIL): Stage.PAUSED,
    (Stage.RESUMING, Event.PAUSE): Stage.PAUSING,
    (Stage.RESUMING, Event.STOP): Stage.STOPPING,
    (Stage.STOPPING, Event.FAIL): Stage.STOPPED,
    (Stage.STOPPING, Event.FINISH): Stage.STOPPED,
    (Stage.STOPPING, Event.REST): Stage.STOPPED,
    (Stage.FINISHED, Event.STOP): Stage.STOPPED,
}


def after(stage: Stage, event: Event) -> Stage:
    """The stage that `event` leads to; `stage` itself where it means nothing to it."""
    return _NEXT.get((stage, event), stage)


def towards(stage: Stage, wanted: Stage) -> Event | None:
    """What is to be said to something in `stage` so that it comes to `wanted` (Running, Paused or Stopped).

    None: it is there, or on its way, or can't get there; Paused to Running is asked for by a human, or auto-resume.
    """
    if wanted is Stage.STOPPED:
        return None if stage in (Stage.STOPPED, Stage.STOPPING) else Event.STOP
    if wanted is Stage.PAUSED:
        return Event.PAUSE if stage in (Stage.NEW, Stage.RUNNING, Stage.RESUMING) else None
    if wanted is Stage.RUNNING:
        return {Stage.NEW: Event.RUN, Stage.PAUSED: Event.RESUME}.get(stage)
    raise ValueError(f"{wanted} is passed through, never asked for")
