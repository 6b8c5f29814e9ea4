"""DM's waits, and which errors end them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from unshard.config.source import CheckerConfig
from unshard.errors import ConfigError, DdlError, RelayError, SourceError, SyncError, TargetError, UnshardError
from unshard.worker.auto_resume import Resumption, makes_sense

NOW = datetime(2026, 1, 1, tzinfo=UTC)
STEADY = CheckerConfig(backoff_jitter=True, backoff_max=300.0)


def wait(state: Resumption, now: datetime) -> float:
    assert state.due is not None
    return (state.due - now).total_seconds()


def test_waits_double_up_to_the_longest() -> None:
    state, waits = Resumption(), []
    for _ in range(12):
        state = state.failed(NOW, STEADY, draw=lambda: 1.0)
        waits.append(wait(state, NOW))
    assert waits == [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300, 300]


def test_jitter_takes_at_most_half() -> None:
    assert wait(Resumption(3).failed(NOW, STEADY, draw=lambda: 0.0), NOW) == 4.0


def test_an_undisturbed_time_takes_one_step_back_each() -> None:
    state = Resumption(3, NOW, NOW).resumed()
    assert state.ran(NOW + timedelta(seconds=299), STEADY) == state
    state = state.ran(NOW + timedelta(seconds=300), STEADY)
    assert state.step == 2
    assert state.ran(NOW + timedelta(seconds=301), STEADY).step == 2
    assert state.ran(NOW + timedelta(seconds=600), STEADY).step == 1


def test_it_goes_on_where_another_worker_left_off() -> None:
    state = Resumption(5).failed(NOW, STEADY)
    kept = Resumption.kept(state.step, state.due_text, NOW)
    assert kept.step == 6
    assert kept.due is not None
    assert not kept.is_due(kept.due - timedelta(milliseconds=1), STEADY)
    assert kept.is_due(kept.due, STEADY)
    assert Resumption.kept(0, "", NOW) == Resumption()


def test_a_clock_that_is_set_back_makes_no_wait_longer() -> None:
    state = Resumption(3).failed(NOW, STEADY)
    assert state.due is not None
    assert not state.is_due(NOW, STEADY)
    assert state.is_due(NOW - timedelta(hours=1), STEADY)
    assert state.is_due(NOW + timedelta(hours=1), STEADY)


@pytest.mark.parametrize(
    ("error", "sense"),
    [
        (SourceError("SOURCE-001"), True),
        (TargetError("TARGET-005"), True),
        (TargetError("TARGET-004", cause="1146: Table 'd.t' doesn't exist"), True),
        (TargetError("TARGET-002", cause="1045: Access denied for user 'u'@'h'"), True),
        (TargetError("TARGET-004", cause="1062: Duplicate entry '1' for key 'PRIMARY'"), False),
        (TargetError("TARGET-004", cause="(1406, \"Data too long for column 'b' at row 1\")"), False),
        (TargetError("TARGET-004", cause="8200: Unsupported modify column: type of 1062 isn't"), False),
        (TargetError("TARGET-004", cause="1067: Invalid default value for 'c'"), False),
        (TargetError("TARGET-004", cause="1054: Unknown column '1062' in 'field list'"), True),
        (SyncError("SYNC-005", cause="SYNC failed\nError 1366: Incorrect value"), False),
        (SyncError("SYNC-079"), True),
        (ConfigError("CONFIG-004"), True),
        (ConfigError("CONFIG-001"), False),
        (SyncError("SYNC-001"), False),
        (RelayError("RELAY-001"), True),
        (RelayError("RELAY-005"), False),
        (RelayError("RELAY-001", cause="1236: Could not find first log file name in binary log index file"), False),
        (DdlError("DDL-001"), False),
    ],
)
def test_what_another_try_can_mend(error: UnshardError, sense: bool) -> None:
    assert makes_sense(error) is sense
