"""Counts of what no unit keeps: units that ended by an error, attempts made again, time spent waiting for a limit.

A process has one `EVENTS`. What is counted in a Spark task is brought home with the task's result (`spark.jobs`): the
worker process's own is emptied there, and added to the driver's here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from threading import Lock

from unshard.errors import UnshardError
from unshard.log import known_fields

Counted = Mapping[tuple[str, tuple[tuple[str, str], ...]], float]
"""By name of the metric and its labels, in the order of their names."""


@dataclass(slots=True)
class EventCounters:
    """Counters by name and labels. Any thread may call any method."""

    _counts: dict[tuple[str, tuple[tuple[str, str], ...]], float] = field(default_factory=dict)
    _lock: Lock = field(default_factory=Lock)

    def count(self, name: str, amount: float = 1, /, **labels: str) -> None:
        self.add({(name, tuple(sorted(labels.items()))): amount})

    def add(self, counted: Counted) -> None:
        with self._lock:
            for key, amount in counted.items():
                self._counts[key] = self._counts.get(key, 0) + amount

    def bring_home(self, counted: Counted) -> None:
        """Add what a Spark task counted, which doesn't know whose task it is: for those whom this thread works for."""
        own = tuple(sorted(_whose().items()))
        self.add({(name, own if labels == _NOBODY else labels): amount for (name, labels), amount in counted.items()})

    def value(self, name: str, /, **labels: str) -> float:
        """0 for what was never counted."""
        with self._lock:
            return self._counts.get((name, tuple(sorted(labels.items()))), 0)

    def values(self, name: str) -> Counted:
        """All that was counted under that name."""
        with self._lock:
            return {key: amount for key, amount in self._counts.items() if key[0] == name}

    def take(self) -> Counted:
        """All that was counted, which is forgotten here."""
        with self._lock:
            taken, self._counts = self._counts, {}
            return taken

    def forget(self, **labels: str) -> None:
        """Drop all that was counted with those labels: their task is gone, or begins anew."""
        with self._lock:
            gone = set(labels.items())
            self._counts = {key: amount for key, amount in self._counts.items() if not gone.issubset(key[1])}


EVENTS = EventCounters()
_NOBODY = (("source_id", ""), ("task", ""))


def count_own(name: str, amount: float = 1, /, **labels: str) -> None:
    """Count for the task and source that this thread works for, as its log lines tell (`log.fields`)."""
    EVENTS.count(name, amount, **_whose(), **labels)


def _whose() -> dict[str, str]:
    known = known_fields()
    return {"task": str(known.get("task", "")), "source_id": str(known.get("source", ""))}


# Counts of ends by error, by what ended: taken where a unit's error is told, once each.


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
"""By name of the metric, the codes that it counts."""


def count_exit(unit: str, error: UnshardError) -> None:
    """A unit ended by that error: `dump`, `load` or `sync` of the task and source of this thread (`log.fields`)."""
    if unit in UNIT_EXITS:
        count_own(UNIT_EXITS[unit], resumable_err=_flag(error))


def count_relay_exit(source: str, error: UnshardError) -> None:
    """The source's relay stopped by that error."""
    EVENTS.count(RELAY_EXIT, source_id=source, resumable_err=_flag(error))
    for name, codes in RELAY_FAULTS.items():
        if error.code in codes:
            EVENTS.count(name, source_id=source)


def count_operation(kind: str) -> None:
    """An operation on the task and source of this thread failed: Start, Resume, AutoResume."""
    count_own(OPERATE, type=kind)


def _flag(error: UnshardError) -> str:
    return "true" if error.retryable else "false"
