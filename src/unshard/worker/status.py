"""The status of a subtask at one moment: the unit that runs, and its progress."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from unshard.model.progress import Progress
from unshard.source.upstream import Upstream
from unshard.sync.status import SyncReading
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
