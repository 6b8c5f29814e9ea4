"""Counts of ends by error, by what ended: taken where a unit's error is told, once each."""

from __future__ import annotations

from unshard.errors import UnshardError
from unshard.metrics.events import EVENTS, count_own

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
