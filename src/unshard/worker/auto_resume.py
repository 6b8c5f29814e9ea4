"""Auto-resume: when a unit that an error has paused goes on by itself, and after which errors it does not. Pure.

The waits are DM's: `backoff-min`, then each time `backoff-factor` longer up to `backoff-max`, drawn at random from
its upper half with `backoff-jitter`; after `backoff-rollback` without a new error the next one is a step shorter.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from unshard.config.source import CheckerConfig
from unshard.errors import UnshardError

FINAL_NUMBERS = frozenset({1059, 1062, 1069, 1117, 1366, 1406, 8025})
"""Errors of the target that the same statement meets again: name or row too long, too many columns or keys, a
duplicate, a wrong value. As DM has them."""

FINAL_TEXTS = (
    "can't drop column with index",
    "with tidb_enable_change_multi_schema is disable",
    "unsupported add column",
    "unsupported modify column",
    "unsupported modify charset",
    "unsupported modify collate",
    "unsupported drop integer primary key",
    "unsupported drop primary key",
    "unsupported collation",
    "invalid default value for",
    "could not find first log file name in binary log index file",
    "the master has purged binary logs containing gtids that the slave requires",
)
"""What such an error's cause may say, in small letters: DDL that TiDB doesn't do, binlog files that are gone."""

WORTH_ANOTHER_TRY = frozenset(
    {
        "CONFIG-004",
        "SOURCE-002",
        "SOURCE-004",
        "SOURCE-008",
        "TARGET-002",
        "TARGET-004",
        "TARGET-008",
        "RELAY-012",
        "RELAY-013",
        "RELAY-014",
        "RELAY-021",
        "SYNC-009",
        "SYNC-079",
        "ENGINE-001",
        "ENGINE-003",
        "ENGINE-009",
    }
)
"""Errors that a call isn't repeated after, and that pass when somebody mends what is wrong: a password, a
certificate, a grant, a table, a full disk, a folder that another process still holds, a Spark master that is down."""

_NUMBER = re.compile(r"(?:^\s*\(?|\bError )(\d{4})\b", re.IGNORECASE | re.MULTILINE)


def makes_sense(error: UnshardError) -> bool:
    """Return whether the task may get past `error` by trying again later."""
    cause = error.cause.lower()
    if any(text in cause for text in FINAL_TEXTS) or FINAL_NUMBERS & numbers_of(error.cause):
        return False
    return error.retryable or error.code in WORTH_ANOTHER_TRY


def numbers_of(cause: str) -> frozenset[int]:
    """Return the server error numbers in a cause, as drivers write them: `1062: …`, `(1062, …)`, `Error 1062`."""
    return frozenset(int(number) for number in _NUMBER.findall(cause))


@dataclass(frozen=True, slots=True)
class Resumption:
    """The state of auto-resume for one subtask or relay; the master stores it so that it survives the worker.

    `step` counts the waits so far, less those rolled back; `due` is the time of the next resumption, None where nothing
    waits; `since` is when the last error came, or a step was rolled back.
    """

    step: int = 0
    due: datetime | None = None
    since: datetime | None = None

    def failed(self, now: datetime, checker: CheckerConfig, draw: Callable[[], float] = random.random) -> Resumption:
        """Return the state after an error has paused the task at `now`, with the time of the next resumption.

        `draw` returns a number from 0 to 1.
        """
        longest = min(checker.backoff_max, checker.backoff_min * checker.backoff_factor ** min(self.step, 64))
        share = 0.5 + draw() / 2 if checker.backoff_jitter else 1.0
        return Resumption(self.step + 1, now + timedelta(seconds=longest * share), now)

    def may_go_on(self, checker: CheckerConfig) -> bool:
        """Return whether another attempt is left of `max-resumes`."""
        return not checker.max_resumes or self.step < checker.max_resumes

    def is_due(self, now: datetime, checker: CheckerConfig) -> bool:
        """Return whether to resume now, also where `due` is further away than any wait.

        Then a clock has been set back, or was another machine's.
        """
        longest = timedelta(seconds=checker.backoff_max)
        return self.due is not None and not timedelta(0) < self.due - now <= longest

    def resumed(self) -> Resumption:
        """Return the state after the task was resumed. The wait is over, but still counts."""
        return Resumption(self.step, None, self.since)

    def ran(self, now: datetime, checker: CheckerConfig) -> Resumption:
        """Return the state of a task that runs at `now`: each `backoff-rollback` without an error takes a step back."""
        if not self.step or self.since is None or now < self.since + timedelta(seconds=checker.backoff_rollback):
            return self
        return Resumption(self.step - 1, self.due, now)

    @property
    def due_text(self) -> str:
        """Time of the next resumption as text; "" for none."""
        return self.due.isoformat(timespec="milliseconds") if self.due is not None else ""

    @classmethod
    def kept(cls, step: int, due: str, now: datetime) -> Resumption:
        """Return the state that the master has stored, continued at `now`."""
        return cls(step, datetime.fromisoformat(due) if due else None, now if step else None)


def utc_now() -> datetime:
    """Return the current time in UTC."""
    return datetime.now(UTC)
