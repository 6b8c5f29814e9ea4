"""What a worker tells Prometheus, from readings alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from unshard.api.status import Stage
from unshard.errors import RelayError, SyncError
from unshard.log import fields
from unshard.metrics import events as events_of_process
from unshard.metrics.events import EventCounters, count_exit, count_operation, count_relay_exit
from unshard.metrics.sample import Sample, exposition
from unshard.model.position import Location, Position
from unshard.model.progress import Progress
from unshard.relay.unit import RelayUnitStatus
from unshard.source.upstream import Upstream
from unshard.sync.status import SyncReading, WaitingDdl
from unshard.target.validation import PendingSize, ValidationState
from unshard.validation.validator import ValidationReading
from unshard.worker.metrics import RelaySeen, SubtaskSeen, worker_samples
from unshard.worker.status import SubtaskStatus

OWN = {"task": "t", "source_id": "s"}
SYNC = SyncReading(
    location=Location(Position("b.000012", 345)),
    rows=0,
    rows_per_second=0,
    batches=0,
    lag_seconds=None,
    missing=0,
    doing="waiting",
    step_seconds={},
    tables={},
)
RUNNING = SubtaskSeen("t", "s", Stage.RUNNING, SubtaskStatus("s", "sync", sync=SYNC))


def told(*seen: SubtaskSeen, relays: tuple[RelaySeen, ...] = (), events: EventCounters | None = None) -> list[Sample]:
    found = list(worker_samples("w", seen, relays, events or EventCounters()))
    assert exposition(found)
    return found


def value(samples: list[Sample], name: str, /, **labels: str) -> object:
    found = [one.value for one in samples if one.name == name and labels.items() <= one.labels.items()]
    assert len(found) < 2, f"{name} has several"
    return found[0] if found else None


def syncing(**changes: object) -> SubtaskSeen:
    backlog = changes.pop("backlog", None)
    return replace(RUNNING, status=replace(RUNNING.status, sync=replace(SYNC, **changes), backlog_bytes=backlog))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("stage", "number"),
    [(Stage.NEW, 1), (Stage.RUNNING, 2), (Stage.PAUSING, 2), (Stage.PAUSED, 3), (Stage.RESUMING, 2)],
)
def test_stages_have_dm_s_numbers(stage: Stage, number: int) -> None:
    assert value(told(replace(RUNNING, stage=stage)), "dm_worker_task_state", worker="w", **OWN) == number


@pytest.mark.parametrize("stage", [Stage.STOPPED, Stage.FINISHED])
def test_series_of_a_task_that_is_gone_end(stage: Stage) -> None:
    other = replace(RUNNING, task="other")
    assert {sample.labels.get("task", "other") for sample in told(replace(RUNNING, stage=stage), other)} == {"other"}


def test_an_unknown_lag_is_no_lag_of_0() -> None:
    lag = "dm_syncer_replication_lag_gauge"
    unknown = told(syncing(table_lag={"d.t": None}))
    assert (value(unknown, lag), value(unknown, "unshard_sync_lag_known")) == (None, 0)
    assert value(unknown, "unshard_sync_table_lag_seconds") is None
    known = told(syncing(lag_seconds=0.0, table_lag={"d.t": 7.5}))
    assert (value(known, lag), value(known, "unshard_sync_lag_known")) == (0, 1)
    assert value(known, "unshard_sync_table_lag_seconds", target_schema="d", target_table="t") == 7.5
    before = told(replace(RUNNING, status=SubtaskStatus("s", "relay")))
    assert value(before, "unshard_sync_lag_known") == 0


@pytest.mark.parametrize(
    ("backlog", "pace", "seconds"), [(None, 10.0, None), (0, 0.0, 0), (100, 0.0, None), (100, 50.0, 2.0)]
)
def test_the_remaining_time_is_told_while_something_moves(backlog: int, pace: float, seconds: float | None) -> None:
    assert value(told(syncing(backlog=backlog, pace=pace)), "dm_syncer_remaining_time") == seconds


def test_places_of_all_that_is_known() -> None:
    relay = RelayUnitStatus("Running", "2a-4.000003", Location(Position("b.000013", 9)), 0, 77, 2, None, None)
    seen = told(RUNNING, relays=(RelaySeen("s", relay, Path("/nowhere")),))
    assert value(seen, "dm_syncer_binlog_file", node="syncer") == 12
    assert value(seen, "dm_syncer_binlog_pos", node="syncer") == 345
    assert value(seen, "dm_syncer_binlog_file", node="master") is None
    assert value(seen, "dm_relay_binlog_file", node="relay") == 13
    assert value(seen, "dm_relay_sub_dir_index", uuid="2a-4") == 3
    assert value(seen, "dm_relay_read_error_count") == 2
    assert value(seen, "dm_relay_space", type="available") is None
    assert value(seen, "unshard_relay_received_bytes_total") == 77


def test_a_copy_tells_its_unit_s_progress() -> None:
    progress = Progress(1, 4, 10, 100, 1000, 9000)
    dump = told(replace(RUNNING, status=SubtaskStatus("s", "dump", 3.0, progress=progress)))
    load = told(replace(RUNNING, status=SubtaskStatus("s", "load", 3.0, progress=progress)))
    assert value(dump, "dumpling_dump_finished_rows") == 10
    assert value(dump, "unshard_load_rows") is None
    assert value(dump, "unshard_unit_seconds", unit="dump") == 3.0
    assert value(load, "unshard_load_bytes", state="total") == 9000
    assert value(load, "unshard_load_tables", state="finished") == 1


def test_sharding_ddl_that_waits() -> None:
    seen = told(syncing(waiting={"d.t": WaitingDdl(("d.t1", "d.t2"), 100.0), "d.u": WaitingDdl((), 0.0, overdue=True)}))
    assert value(seen, "dm_syncer_shard_lock_resolving") == 1
    assert value(seen, "dm_syncer_unsynced_table_number", table="d.t") == 2
    assert value(seen, "unshard_shard_lock_age_seconds", table="d.t") == 100
    assert value(seen, "dm_syncer_unsynced_table_number", table="d.u") == 0
    assert [value(seen, "unshard_shard_lock_overdue", table=table) for table in ("d.t", "d.u")] == [0, 1]
    assert value(told(RUNNING), "dm_syncer_shard_lock_resolving") == 0


def test_ends_by_error_are_counted_from_0(monkeypatch: pytest.MonkeyPatch) -> None:
    events = EventCounters()
    for module in (events_of_process, "unshard.metrics.events"):
        name = module if isinstance(module, str) else module.__name__
        monkeypatch.setattr(f"{name}.EVENTS", events)
    relay = RelayUnitStatus("Paused", "", None, 0, 0, 0, None, None)
    relays = (RelaySeen("s", relay, Path("/nowhere")),)
    before = told(RUNNING, relays=relays, events=events)

    with fields(task="t", source="s"):
        count_exit("sync", SyncError("SYNC-001"))
        count_exit("dump", RelayError("RELAY-001"))
        count_operation("Start")
    count_relay_exit("s", RelayError("RELAY-005"))
    count_relay_exit("s", RelayError("RELAY-013"))
    after = told(RUNNING, relays=relays, events=events)

    expected: Mapping[tuple[str, str], int] = {
        ("dm_syncer_exit_with_error_count", "false"): 1,
        ("dm_syncer_exit_with_error_count", "true"): 0,
        ("dm_dumpling_exit_with_error_count", "true"): 1,
        ("dm_loader_exit_with_error_count", "false"): 0,
        ("dm_relay_exit_with_error_count", "false"): 2,
    }
    for (name, truth), count in expected.items():
        assert value(before, name, resumable_err=truth) == 0, name
        assert value(after, name, resumable_err=truth) == count, name
    assert value(after, "dm_relay_data_corruption") == 1
    assert value(after, "dm_relay_write_error_count") == 1
    assert value(after, "dm_worker_operate_error", type="Start", worker="w") == 1


def test_rows_that_are_validated() -> None:
    state = ValidationState("full", "Running", Location(Position("b.000011", 200)))
    reading = ValidationReading(state, PendingSize(5, 100, (1, 2, 3)), (4, 5, 6))
    upstream = Upstream(Location(Position("b.000012", 345)), (), 0.0, 0.0)
    status = replace(RUNNING.status, validation=reading, upstream=upstream)
    samples = told(replace(RUNNING, status=status))
    for kind, count in (("new", 4), ("ignored", 5), ("resolved", 6)):
        assert value(samples, "dm_validator_validator_error_count", state=kind) == count
    assert value(samples, "unshard_validator_pending_rows") == 11
    assert value(samples, "unshard_validator_running")
    assert value(samples, "dm_validator_binlog_file") == 11
    assert value(samples, "dm_validator_binlog_pos") == 200
    assert value(samples, "dm_validator_logfile_latency") == 1
    assert value(samples, "dm_validator_logpos_latency") == 145
    assert value(told(RUNNING), "unshard_validator_running") is None
