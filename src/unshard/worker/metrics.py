"""Samples of what a worker does: read from the units' own figures when `/metrics` is asked for."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from unshard.api.status import Stage
from unshard.metrics.events import EVENTS, OPERATE, RELAY_EXIT, RELAY_FAULTS, UNIT_EXITS, EventCounters
from unshard.metrics.sample import Sample
from unshard.model.position import Position
from unshard.model.progress import Progress
from unshard.relay.unit import RelayUnitStatus
from unshard.source.upstream import Upstream
from unshard.sync.batch.row_counts import RowCounts
from unshard.sync.status import SyncReading
from unshard.target.validation import RUNNING
from unshard.validation.validator import ValidationReading
from unshard.worker.purging import PURGED_BYTES, PURGED_FILES
from unshard.worker.source_worker import SourceWorker
from unshard.worker.status import SubtaskStatus

STAGES = {Stage.NEW: 1, Stage.RUNNING: 2, Stage.PAUSED: 3, Stage.STOPPED: 4, Stage.FINISHED: 5}
STAGES |= {Stage.PAUSING: 2, Stage.STOPPING: 2, Stage.RESUMING: 2}
"""DM's numbers; a stage that is passed through counts as the one that goes on until then."""

GONE = frozenset({Stage.STOPPED, Stage.FINISHED})
Labels = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class SubtaskSeen:
    """The present state of one task on the worker's source."""

    task: str
    source: str
    stage: Stage
    status: SubtaskStatus


@dataclass(frozen=True, slots=True)
class RelaySeen:
    """The present state of a source's relay, with the folder that it writes to."""

    source: str
    status: RelayUnitStatus
    directory: Path
    upstream: Upstream | None = None


def host_samples(worker: str, host: SourceWorker | None) -> Iterator[Sample]:
    """Yield every series of the source that a worker serves; None: it serves none."""
    if host is None:
        return worker_samples(worker, (), ())
    source = host.source.source_id
    subtasks = [
        SubtaskSeen(hosted.order.task, source, hosted.stage, hosted.reading()) for hosted in host.subtasks.values()
    ]
    relay, upstreams = host.relay.reading(), [seen.status.upstream for seen in subtasks]
    relays = [RelaySeen(source, relay, host.relay.folder, next(filter(None, upstreams), None))] if relay else []
    return worker_samples(worker, subtasks, relays)


def worker_samples(
    worker: str,
    subtasks: Iterable[SubtaskSeen],
    relays: Iterable[RelaySeen],
    events: EventCounters = EVENTS,
) -> Iterator[Sample]:
    """Yield every series of this worker, but none of a subtask that is stopped or finished."""
    failed: Counter[str] = Counter()
    for subtask in subtasks:
        if subtask.stage not in GONE:
            yield from _subtask(worker, subtask, events)
            failed.update(_operations(subtask, events))
    for relay in relays:
        yield from _relay(relay, events)
    for kind, count in failed.items():
        yield Sample(OPERATE, {"worker": worker, "type": kind}, count)


def _operations(seen: SubtaskSeen, events: EventCounters) -> dict[str, int]:
    kinds = ("Start", "Resume", "AutoResume")
    return {kind: int(events.value(OPERATE, task=seen.task, source_id=seen.source, type=kind)) for kind in kinds}


def _subtask(worker: str, seen: SubtaskSeen, events: EventCounters) -> Iterator[Sample]:
    own = {"task": seen.task, "source_id": seen.source}
    here = {**own, "worker": worker}
    status = seen.status
    yield Sample("dm_worker_task_state", here, STAGES[seen.stage])
    yield Sample("unshard_unit_seconds", {**own, "unit": status.unit}, status.unit_seconds)
    for name in ("unshard_retries_total", "unshard_throttle_wait_seconds_total"):
        yield Sample(name, own, events.value(name, **own))
    for name in UNIT_EXITS.values():
        for truth in ("true", "false"):
            labels = {**own, "resumable_err": truth}
            yield Sample(name, labels, events.value(name, **labels))
    if status.progress is not None:
        yield from (_dump if status.unit == "dump" else _load)(own, status.progress)
    if status.sync is not None:
        yield from _sync(own, here, status.sync, status.backlog_bytes)
        if status.sync.location is not None:
            yield from _places("dm_syncer", "syncer", own, status.sync.location.position, status.upstream)
        yield Sample("dm_syncer_shard_lock_resolving", own, len(status.sync.waiting) > 0)
    if status.validation is not None:
        yield from _validation(own, status.validation, status.upstream)
    if status.sync is None and status.progress is None and status.unit not in ("dump", "load"):
        yield Sample("unshard_sync_lag_known", own, 0)


def _validation(own: Labels, reading: ValidationReading, upstream: Upstream | None) -> Iterator[Sample]:
    for state, count in zip(("new", "ignored", "resolved"), reading.errors, strict=True):
        yield Sample("dm_validator_validator_error_count", {**own, "state": state}, count)
    yield Sample("unshard_validator_pending_rows", own, reading.pending.rows)
    yield Sample("unshard_validator_running", own, reading.state.stage == RUNNING)
    place = reading.state.location
    if place is None or not place.position.file:
        return
    yield Sample("dm_validator_binlog_file", own, place.position.number)
    yield Sample("dm_validator_binlog_pos", own, place.position.offset)
    if upstream is not None:
        end = upstream.location.position
        yield Sample("dm_validator_logfile_latency", own, end.number - place.position.number)
        yield Sample("dm_validator_logpos_latency", own, end.offset - place.position.offset)


def _dump(own: Labels, progress: Progress) -> Iterator[Sample]:
    yield Sample("dumpling_dump_finished_rows", own, progress.rows_done)
    yield Sample("dumpling_dump_estimate_total_rows", own, progress.rows_total_estimate)
    yield Sample("unshard_dump_bytes", own, progress.bytes_done)
    yield from _states("unshard_dump_tables", own, progress.tables_done, progress.tables_total)


def _load(own: Labels, progress: Progress) -> Iterator[Sample]:
    yield Sample("unshard_load_rows", own, progress.rows_done)
    yield from _states("unshard_load_bytes", own, progress.bytes_done, progress.bytes_total)
    yield from _states("unshard_load_tables", own, progress.tables_done, progress.tables_total)


def _states(name: str, own: Labels, finished: float, total: float) -> Iterator[Sample]:
    yield Sample(name, {**own, "state": "finished"}, finished)
    yield Sample(name, {**own, "state": "total"}, total)


def _sync(own: Labels, here: Labels, sync: SyncReading, backlog: int | None) -> Iterator[Sample]:
    yield Sample("unshard_sync_lag_known", own, sync.lag_seconds is not None)
    if sync.lag_seconds is not None:
        yield Sample("dm_syncer_replication_lag_gauge", here, sync.lag_seconds)
    if backlog is not None:
        yield Sample("unshard_sync_backlog_bytes", own, backlog)
        if sync.pace or not backlog:
            yield Sample("dm_syncer_remaining_time", here, backlog / sync.pace if backlog else 0)
    for table, one in sync.waiting.items():
        yield Sample("dm_syncer_unsynced_table_number", {**own, "table": table}, len(one.unsynced))
        yield Sample("unshard_shard_lock_age_seconds", {**own, "table": table}, one.seconds)
        yield Sample("unshard_shard_lock_overdue", {**own, "table": table}, one.overdue)
    for table, lag in sync.table_lag.items():
        if lag is not None:
            yield Sample("unshard_sync_table_lag_seconds", {**own, **_target(table)}, lag)
    yield Sample("dm_syncer_finished_transaction_total", here, sync.transactions)
    yield Sample("unshard_sync_bytes_total", own, sync.bytes)
    yield Sample("unshard_sync_safe_mode", own, bool(sync.safe_mode))
    for stage, seconds in sync.step_seconds.items():
        yield Sample("unshard_sync_stage_seconds_total", {**own, "stage": stage}, seconds)
    if sync.batch_seconds is not None:
        yield Sample("unshard_sync_batch_seconds", own, sync.batch_seconds)
    if sync.checkpoint_intervals is not None:
        yield Sample("dm_syncer_flush_checkpoints_time_interval", here, sync.checkpoint_intervals)
    for table, entry in sync.tables.items():
        yield from _ledger(own, here, _target(table), entry)
    for (table, rule), events in sync.skipped.items():
        yield Sample("unshard_sync_passed_over_events_total", {**own, "source_table": table, "rule": rule}, events)


def _ledger(own: Labels, here: Labels, table: Labels, entry: RowCounts) -> Iterator[Sample]:
    for kind, count in (("insert", entry.inserted), ("update", entry.updated), ("delete", entry.deleted)):
        yield Sample("dm_syncer_finished_jobs_total", {**here, **table, "type": kind}, count)
    for fate in ("decoded", "filtered", "compacted", "missing"):
        yield Sample("unshard_sync_changes_total", {**own, **table, "fate": fate}, entry.counts[fate])
    for rule, count in entry.rules.items():
        yield Sample("unshard_sync_left_out_total", {**own, **table, "rule": rule}, count)


def _target(table: str) -> dict[str, str]:
    schema, _, name = table.partition(".")
    return {"target_schema": schema, "target_table": name}


def _relay(seen: RelaySeen, events: EventCounters) -> Iterator[Sample]:
    own, status = {"source_id": seen.source}, seen.status
    yield Sample("unshard_relay_stage", own, STAGES[Stage(status.stage)])
    yield Sample("unshard_relay_received_bytes_total", own, status.received_bytes)
    yield Sample("dm_relay_read_error_count", own, status.reconnects)
    for name in (*RELAY_FAULTS, PURGED_FILES, PURGED_BYTES):
        yield Sample(name, own, events.value(name, **own))
    for truth in ("true", "false"):
        labels = {**own, "resumable_err": truth}
        yield Sample(RELAY_EXIT, labels, events.value(RELAY_EXIT, **labels))
    if status.location is not None:
        yield from _places("dm_relay", "relay", own, status.location.position, seen.upstream)
    uuid, _, number = status.sub_directory.rpartition(".")
    if number.isdigit():
        yield Sample("dm_relay_sub_dir_index", {**own, "node": "relay", "uuid": uuid}, int(number))
    if seen.directory.exists():
        space = shutil.disk_usage(seen.directory)
        yield Sample("dm_relay_space", {**own, "type": "capacity"}, space.total)
        yield Sample("dm_relay_space", {**own, "type": "available"}, space.free)


def _places(prefix: str, node: str, own: Labels, at: Position, upstream: Upstream | None) -> Iterator[Sample]:
    ends = {node: at} if upstream is None else {node: at, "master": upstream.location.position}
    for name, position in ends.items():
        yield Sample(f"{prefix}_binlog_file", {**own, "node": name}, position.number)
        yield Sample(f"{prefix}_binlog_pos", {**own, "node": name}, position.offset)
