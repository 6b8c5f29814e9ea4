"""Counters of a whole process: units that ended with an error, repeated attempts, time spent waiting for a limit.

They are metrics that no unit keeps itself. A unit's error is counted once, where it is reported. A process has one
`EVENTS`. The counts of a Spark task are returned with the task's result (`spark.worker_process`): they are taken from
the Spark worker process and added to those of the driver.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from threading import Lock

from unshard.errors import UnshardError

Counted = Mapping[tuple[str, tuple[tuple[str, str], ...]], float]
"""Amounts by name of the metric and its labels, which are sorted by name."""


@dataclass(slots=True)
class EventCounters:
    """A set of counters, by name and labels. Any thread may call any method."""

    _counts: dict[tuple[str, tuple[tuple[str, str], ...]], float] = field(default_factory=dict)
    _lock: Lock = field(default_factory=Lock)

    def count(self, name: str, amount: float = 1, /, **labels: str) -> None:
        """Add to one count, which is created at its first use."""
        self.add({(name, tuple(sorted(labels.items()))): amount})

    def add(self, counted: Counted) -> None:
        """Add to several counts."""
        with self._lock:
            for key, amount in counted.items():
                self._counts[key] = self._counts.get(key, 0) + amount

    def bring_home(self, counted: Counted) -> None:
        """Add the counts of a Spark task.

        The task doesn't know its task and source, so these are the ones that this thread works for.
        """
        own = tuple(sorted(_whose().items()))
        self.add({(name, own if labels == _NOBODY else labels): amount for (name, labels), amount in counted.items()})

    def value(self, name: str, /, **labels: str) -> float:
        """Return a count; 0 if nothing was counted."""
        with self._lock:
            return self._counts.get((name, tuple(sorted(labels.items()))), 0)

    def values(self, name: str) -> Counted:
        """Return all counts under that name."""
        with self._lock:
            return {key: amount for key, amount in self._counts.items() if key[0] == name}

    def take(self) -> Counted:
        """Return all counts, and reset them."""
        with self._lock:
            taken, self._counts = self._counts, {}
            return taken

    def forget(self, **labels: str) -> None:
        """Drop all counts with those labels, because their task has ended or begins anew."""
        with self._lock:
            gone = set(labels.items())
            self._counts = {key: amount for key, amount in self._counts.items() if not gone.issubset(key[1])}


EVENTS = EventCounters()
_NOBODY = (("source_id", ""), ("task", ""))


def count_own(name: str, amount: float = 1, /, **labels: str) -> None:
    """Count for the task and source that this thread works for, according to its log fields (`log.fields`)."""
    EVENTS.count(name, amount, **_whose(), **labels)


def _whose() -> dict[str, str]:
    from unshard.log import known_fields  # not above: Spark worker processes rarely log

    known = known_fields()
    return {"task": str(known.get("task", "")), "source_id": str(known.get("source", ""))}


UNIT_EXITS = {
    "dump": "dm_dumpling_exit_with_error_count",
    "load": "dm_loader_exit_with_error_count",
    "sync": "dm_syncer_exit_with_error_count",
}
RELAY_EXIT = "dm_relay_exit_with_error_count"
OPERATE = "dm_worker_operate_error"
RELAY_FAULTS = {
    "dm_relay_data_corruption": frozenset({"RELAY-003", "RELAY-004", "RELAY-005", "RELAY-015", "BINLOG-001"}),
    "dm_relay_write_error_count": frozenset({"RELAY-013", "RELAY-014", "RELAY-016"}),
}
"""By name of the metric, the error codes that it counts."""


def count_exit(unit: str, error: UnshardError) -> None:
    """Count that a unit of this thread's task and source (`log.fields`) ended with that error.

    `unit` is `dump`, `load` or `sync`; others are not counted.
    """
    if unit in UNIT_EXITS:
        count_own(UNIT_EXITS[unit], resumable_err=_flag(error))


def count_relay_exit(source: str, error: UnshardError) -> None:
    """Count that the source's relay stopped with that error."""
    EVENTS.count(RELAY_EXIT, source_id=source, resumable_err=_flag(error))
    for name, codes in RELAY_FAULTS.items():
        if error.code in codes:
            EVENTS.count(name, source_id=source)


def count_operation(kind: str) -> None:
    """Count that an operation on this thread's task and source failed: Start, Resume, AutoResume."""
    count_own(OPERATE, type=kind)


def _flag(error: UnshardError) -> str:
    return "true" if error.retryable else "false"
