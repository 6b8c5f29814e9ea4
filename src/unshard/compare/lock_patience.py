"""Waits for tables that somebody has locked, for a bounded time, and tells of it.

A statement waits for a table's lock for `TABLE_LOCK_SECONDS`. Its Spark task fails then, so that the driver learns of
the lock; the driver runs the task again for as long as it is to be waited for.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import TypeVar

from unshard.compare.executor.rows import LOCKED, TABLE_LOCK_SECONDS
from unshard.errors import UnshardError, disclose, enclose
from unshard.run_tasks import RunTasks

LOCK_SECONDS = 60.0
"""Seconds for which a locked table is waited for. All that is compared after it waits as well."""

TELL_SECONDS = 5.0
_PAUSE_SECONDS = 0.5
_NEW_AFTER_SECONDS = 30.0
"""Seconds after which a lock that is met again counts as another one."""

T = TypeVar("T")


@dataclass(slots=True)
class _MetLock:
    """A lock that is waited for: since when, when it was met last, and when it was told last."""

    since: float
    last: float
    told: float | None = None


@dataclass(slots=True)
class LockPatience:
    """Runs Spark tasks with `run`, and again those that met a locked table, until `seconds` are over for that table.

    `tell` takes lines of progress; `stopped` ends a wait. A table for which it has waited once that long is not waited
    for again.
    """

    run: RunTasks
    tell: Callable[[str], None]
    stopped: Callable[[], bool]
    seconds: float = field(default_factory=lambda: LOCK_SECONDS)
    clock: Callable[[], float] = time.monotonic
    _met: dict[str, _MetLock] = field(default_factory=dict)
    _over: set[str] = field(default_factory=set)

    def __call__(
        self, payloads: Sequence[bytes], task: Callable[[bytes], bytes], *, barrier: bool = False
    ) -> list[bytes]:
        """Run `task` on each payload, as `RunTasks`. An outcome tells of a lock once it was waited for."""
        outcomes = list(self.run(payloads, task, barrier=barrier))
        waiting = self._locked(range(len(payloads)), outcomes)
        while waiting:
            for number, outcome in zip(waiting, self.run([payloads[n] for n in waiting], task), strict=True):
                outcomes[number] = outcome
            waiting = self._locked(waiting, outcomes)
        return outcomes

    def call(self, operation: Callable[[], T]) -> T:
        """Return the operation's result; one that meets a locked table is tried again. Raises what it raises."""
        while True:
            try:
                return operation()
            except UnshardError as error:
                if error.code != LOCKED:
                    raise
                if not self._waits(error):
                    raise self._over_time(error) from error
                time.sleep(_PAUSE_SECONDS)

    def _locked(self, numbers: Sequence[int], outcomes: list[bytes]) -> list[int]:
        """Return the outcomes whose tables are to be waited for. Those for which it is too late get their error."""
        waiting = []
        for number in numbers:
            error = _error_of(outcomes[number])
            if error is None or error.code != LOCKED:
                continue
            if self._waits(error):
                waiting.append(number)
            else:
                outcomes[number] = enclose(_raising(self._over_time(error)))
        return waiting

    def _waits(self, error: UnshardError) -> bool:
        """Return whether to wait for the table on; say so."""
        place, now = f"{error.values['table']} in the {error.values['end']} {error.values['server']}", self.clock()
        met = self._met.get(place)
        if met is None or now - met.last > _NEW_AFTER_SECONDS:
            met = self._met[place] = _MetLock(now - TABLE_LOCK_SECONDS, now)
        met.last, waited = now, now - met.since
        if waited >= self.seconds:
            self._over.add(place)
        if place in self._over or self.stopped():
            return False
        if met.told is None or now - met.told >= TELL_SECONDS:
            met.told = now
            since = datetime.fromtimestamp(time.time() - waited, UTC)
            most = f"for {waited:.0f} of at most {self.seconds:g} s"
            self.tell(f"waiting for a lock on {place} since {since:%H:%M:%S} UTC, {most}")
        return True

    def _over_time(self, error: UnshardError) -> UnshardError:
        seconds = error.values["seconds"] if self.stopped() else f"{self.seconds:g}"
        return replace(error, values={**error.values, "seconds": seconds})


def _raising(error: UnshardError) -> Callable[[], None]:
    def work() -> None:
        raise error

    return work


def _error_of(outcome: bytes) -> UnshardError | None:
    if not outcome.startswith(b'{"error"'):
        return None
    try:
        disclose(outcome)
    except UnshardError as error:
        return error
    return None
