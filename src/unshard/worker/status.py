"""A subtask's reading: which unit runs and how far it is; its stages; a server's answers for the status.

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

A server is asked at most every few seconds, on a connection of its own. `UpstreamWatch`: how far the source is ahead.
`TargetWatch`: for whom a step that takes long waits in the target.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum
from threading import Lock, Thread
from typing import Generic, TypeVar

from unshard.api.status import Stage
from unshard.errors import UnshardError
from unshard.model.progress import Progress
from unshard.mysql.connection import LOOK_SECONDS, Endpoint, session
from unshard.mysql.flavour import identify
from unshard.source.upstream import Upstream, read_upstream
from unshard.sync.checkpoint.store import CheckpointStore
from unshard.sync.status import SyncReading
from unshard.target.waits import standstill
from unshard.validation.validator import ValidationReading


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
    `backlog_at_least`: the source may have more, because its relay has to catch up itself.
    `copied` are the dump and the load of this run that are over, each as it ended.
    `note` says what is out of the ordinary (the relay reconnects, a step waits in the target), else is empty.
    `waits` is there while it waits for an error to pass, `validation` where its rows are validated.
    `waited` is the newest of these waits, also when it is over: it may be shorter than the time between two readings.
    """

    source: str
    unit: str
    unit_seconds: float = 0.0
    progress: Progress | None = None
    sync: SyncReading | None = None
    backlog_bytes: int | None = None
    backlog_at_least: bool = False
    upstream: Upstream | None = None
    note: str = ""
    copied: tuple[SubtaskStatus, ...] = ()
    waits: WaitingSubtask | None = None
    waited: WaitingSubtask | None = None
    validation: ValidationReading | None = None


class StageEvent(Enum):
    """The requests to a unit (`RUN` to `STOP`), and the events of a unit (the rest)."""

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


REFRESH_SECONDS = 2.0
OWN_PACE_SECONDS = 10.0
"""How often the target is asked what holds up a step that takes long, where nobody asks for a status."""
WAIT_SECONDS = 0.2
"""How long a look waits: a source that writes a large transaction to its binlog answers nobody meanwhile."""
SLOW_SECONDS = 5.0
"""How long a step may take before the target is asked what holds it up."""

Seen = TypeVar("Seen")


@dataclass(slots=True)
class _Watch(Generic[Seen]):
    """The last answer of a server. Any thread may look."""

    endpoint: Endpoint = field(repr=False)
    _seen: Seen | None = field(default=None, init=False)
    _due: float = field(default=0.0, init=False)
    _asking: Thread | None = field(default=None, init=False)
    _looking: Lock = field(default_factory=Lock, init=False)

    def look(self) -> Seen | None:
        """Return the last answer, REFRESH_SECONDS old where the server answers at once; None without one.

        Takes WAIT_SECONDS at most: a server that is slow to answer doesn't hold up what is shown of others.
        """
        with self._looking:
            self._start()
            if self._asking is not None:
                self._asking.join(WAIT_SECONDS)
            return self._seen

    def _start(self) -> None:
        """Begin to ask where that is due."""
        if self._asking is not None and not self._asking.is_alive():
            self._asking = None
        if self._asking is None and time.monotonic() >= self._due:
            self._asking = Thread(target=self._ask, name="watch", daemon=True)
            self._asking.start()

    def _ask(self) -> None:
        self._seen = self._look()
        self._due = time.monotonic() + REFRESH_SECONDS

    def _look(self) -> Seen | None:
        raise NotImplementedError


@dataclass(slots=True)
class UpstreamWatch(_Watch[Upstream]):
    """The source's newest position as last seen. While the source is out of reach it knows nothing."""

    def _look(self) -> Upstream | None:
        try:
            with session(self.endpoint, "source", patience_seconds=LOOK_SECONDS) as connection:
                return read_upstream(connection, identify(connection))
        except UnshardError:
            return None  # the relay meets the same trouble, reports it and decides


@dataclass(slots=True)
class TargetWatch(_Watch[tuple[float, str]]):
    """The reason why the source's sync waits in the target, and the step in which it was seen."""

    store: CheckpointStore
    step: float = field(default=0.0, init=False)

    def begin(self, begun: float) -> None:
        """Ask why the step that began at `begun` takes so long, every OWN_PACE_SECONDS, and wait for no answer."""
        now, due = time.monotonic(), self._due + OWN_PACE_SECONDS - REFRESH_SECONDS
        if now - begun >= SLOW_SECONDS and now >= due and self._looking.acquire(blocking=False):
            try:
                self.step = begun
                self._start()
            finally:
                self._looking.release()

    def note(self, begun: float, *, asks: bool = True) -> str:
        """Return why the step that began at `begun` (monotonic) takes so long; "" where it waits for nothing.

        Unless it `asks`, as far as that is known.
        """
        if time.monotonic() - begun < SLOW_SECONDS:
            return ""
        if asks:
            self.step = begun
        step, why = (self.look() if asks else self._seen) or (begun, "")
        return "; ".join(part for part in (self.store.failed, why if step == begun else "") if part)

    def _look(self) -> tuple[float, str]:
        step, store = self.step, self.store
        try:
            with session(self.endpoint, "target", patience_seconds=LOOK_SECONDS) as connection:
                return step, standstill(connection, store.meta, store.source, store.session)
        except UnshardError as error:
            return step, f"the target can't be asked what holds it up: {error.cause or error.message}"
