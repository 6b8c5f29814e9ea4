"""A status snapshot of a subtask: the running unit and its progress."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from unshard.model.progress import Progress
from unshard.source.upstream import Upstream
from unshard.sync.status import SyncReading
from unshard.validation.validator import ValidationReading


@dataclass(frozen=True, slots=True)
class WaitingSubtask:
    """A subtask that an error has paused and that resumes by itself.

    `error` is the error; `since` is when the first of the errors came after which no run has made progress; `until` is
    when the subtask resumes. Both times are UTC.
    """

    error: str
    since: datetime
    until: datetime


@dataclass(frozen=True, slots=True)
class SubtaskStatus:
    """The status of one source's subtask at one moment.

    Args:
        progress: the progress of a dump or load, while one runs.
        sync: the figures of the sync, while it runs.
        backlog_at_least: the source may have more, because the relay itself has to catch up.
        upstream: the source's position when it was asked last; None: it can't be asked.
        note: an exceptional state (the relay reconnects, a step waits in the target), or a long step that no other
            field shows (the load builds keys); else empty.
        copied: the dump and the load of this run that are over, each with its last status.
        waits: the wait for an error to pass, during such a wait.
        waited: the newest of these waits, also when it is over: a wait may be shorter than the time between two
            readings.
        validation: the status of the validation, where the rows are validated.
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
