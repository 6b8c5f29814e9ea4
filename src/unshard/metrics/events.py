"""Counts of what no unit keeps: units that ended by an error, attempts made again, time spent waiting for a limit.

A process has one `EVENTS`. What is counted in a Spark task is brought home with the task's result (`spark.jobs`): the
worker process's own is emptied there, and added to the driver's here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from threading import Lock

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
