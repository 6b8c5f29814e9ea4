"""Computes the figures that the web page shows from the workers' `query-status` answers. No I/O."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from operator import add
from typing import Any

from unshard.api.status import RelayStatus, SourceReport, Stage, SubTaskStatus, UnitName
from unshard.ddl.execute import unquoted
from unshard.web.page.figures import (
    LAG_LIMIT,
    NOT_SERVED,
    SIGNS,
    ClusterFigures,
    DdlLock,
    Health,
    SourceFigures,
    SubtaskFigures,
    TableFigures,
    TaskFigures,
    Trouble,
    time_left,
)
from unshard.web.page.validation import validator_figures

_COUNTED = ("inserted", "updated", "deleted", "filtered", "missing")
_COPYING = (UnitName.DUMP, UnitName.LOAD)


def cluster_figures(
    names: Iterable[str],
    reports: Mapping[str, SourceReport],
    sources_of: Mapping[str, tuple[str, ...]],
    disabled: Collection[str] = (),
) -> ClusterFigures:
    """Return the figures of the cluster. `names`: the tasks; `sources_of`: the sources of each; `disabled`: sources."""
    tasks = tuple(_task(name, [reports[one] for one in sources_of[name] if one in reports]) for name in names)
    return ClusterFigures(
        tasks=tuple(sorted(tasks, key=lambda one: (one.health.kind not in ("error", "unknown"), one.name))),
        sources=tuple(
            replace(_source(name, report), enabled=name not in disabled) for name, report in sorted(reports.items())
        ),
        troubles=tuple(trouble for _, report in sorted(reports.items()) for trouble in _source_troubles(report)),
    )


def _task(name: str, reports: list[SourceReport]) -> TaskFigures:
    found = [(report, one) for report in reports for one in report.sub_task_status if one.name == name]
    troubles = [
        Trouble(report.source_status.source, error, name)
        for report, one in found
        if one.result is not None
        for error in one.result.errors
    ]
    locks = tuple(lock for report, one in found for lock in _locks(name, report.source_status.source, one))
    subtasks = tuple(_subtask(report, one) for report, one in found)
    return TaskFigures(name, _task_health(subtasks, locks), subtasks, tuple(troubles), locks, _tables(found))


def _task_health(subtasks: tuple[SubtaskFigures, ...], locks: tuple[DdlLock, ...]) -> Health:
    """Return the worst state of its sources."""
    if not subtasks:
        return Health("unknown", "unknown")
    kinds = tuple(SIGNS)
    worst = min((one.health for one in subtasks), key=lambda one: kinds.index(one.kind))
    return Health("waits", "waits for DDL") if locks and worst.kind == "fine" else worst


def _subtask(report: SourceReport, one: SubTaskStatus) -> SubtaskFigures:
    heard = not (report.source_status.result is not None and report.source_status.result.errors)
    errors = one.result.errors if one.result is not None else ()
    shown: dict[str, Any] = {}
    if one.sync is not None:
        shown = {
            "lag": one.sync.seconds_behind_master,
            "rows_per_second": one.sync.recent_rps if one.stage is Stage.RUNNING and not errors else None,
            "backlog": one.sync.backlog_bytes,
            "backlog_at_least": one.sync.backlog_at_least,
            "position": one.sync.syncer_binlog,
            "doing": one.sync.doing,
            "safe_mode": one.sync.safe_mode,
            "batches": one.sync.batches,
            "batch_seconds": one.sync.batch_seconds,
            "step_seconds": tuple(one.sync.step_seconds.items()),
        }
    if one.validation is not None:
        shown["validator"] = validator_figures(one.validation, str(shown.get("position", "")))
    copy = one.dump or one.load
    if copy is not None:
        share = _share(copy.progress)
        shown |= {"bytes_per_second": copy.bps, "share": share, "eta": _eta(copy.finished_bytes, copy.bps, share)}
    unit = "" if one.unit is UnitName.NONE else one.unit.value.lower()
    worker = report.source_status.worker
    by_hand = one.result is not None and one.result.is_canceled
    return SubtaskFigures(
        one.name, report.source_status.source, worker, _health(report, one), unit, heard, one.stage, one.since, by_hand,
        note=one.note, **shown,
    )  # fmt: skip


def _health(report: SourceReport, one: SubTaskStatus) -> Health:
    """Return the state of a task on a source. It is fine only while it replicates with a known lag below the limit."""
    faults = report.source_status.result.errors if report.source_status.result is not None else ()
    if one.result is not None and one.result.errors:
        return Health("error", "error")
    if any(fault.err_code == NOT_SERVED for fault in faults) and one.stage in (Stage.NEW, Stage.RUNNING):
        return Health("error", "not served")
    if faults:
        return Health("unknown", "unknown")
    if one.stage is Stage.FINISHED:
        return Health("done", "finished")
    if one.stage is not Stage.RUNNING or one.unit is UnitName.NONE:
        word = "starting" if one.stage in (Stage.NEW, Stage.RUNNING) else one.stage.value.lower()
        return Health("waits", word)
    return Health("works", "copying") if one.unit in _COPYING else _replicates(report.source_status.relay_status, one)


def _replicates(relay: RelayStatus | None, one: SubTaskStatus) -> Health:
    if relay is None:
        return Health("unknown", "relay unknown")
    if relay.result is not None and relay.result.errors:
        return Health("error", "relay error")
    if relay.stage is not Stage.RUNNING:
        return Health("waits", f"relay {relay.stage.value.lower()}")
    lag = one.sync.seconds_behind_master if one.sync is not None else None
    if lag is None:
        return Health("unknown", "lag unknown")
    if lag >= LAG_LIMIT:
        return Health("waits", "lagging")
    return Health("waits", "waiting") if one.note else Health("fine", "running")


def _share(progress: str) -> float | None:
    try:
        return float(progress.removesuffix("%").strip()) / 100
    except ValueError:
        return None


def _eta(done: float, rate: int, share: float | None) -> str:
    """Return a range for the rest of a copy, by its average rate: copies slow down and speed up with their tables."""
    if not share or not rate or share >= 1:
        return ""
    left = done / rate * (1 - share) / share
    return time_left(0.7 * left, 1.5 * left)


def _locks(task: str, source: str, one: SubTaskStatus) -> Iterable[DdlLock]:
    for group in one.sync.unresolved_groups if one.sync is not None else ():
        yield DdlLock(
            id=f"{task}-{group.target}", task=task, source=source, target=group.target, ddls=group.ddls,
            owner=group.owner, synced=group.synced, unsynced=group.unsynced, since=group.since,
            waits_for=group.waits_for, mismatch=group.mismatch, help=group.help, overdue=group.overdue,
            shards=tuple(map(unquoted, group.synced)) if group.mode == "optimistic" else (),
        )  # fmt: skip


def _tables(found: Iterable[tuple[SourceReport, SubTaskStatus]]) -> tuple[TableFigures, ...]:
    sums: dict[str, tuple[int, ...]] = {}
    for _, one in found:
        for entry in one.sync.tables if one.sync is not None else ():
            counts = tuple(entry.counts.get(kind, 0) for kind in _COUNTED)
            known = sums.get(entry.table)
            sums[entry.table] = counts if known is None else tuple(map(add, known, counts))
    return tuple(TableFigures(name, *sums[name]) for name in sorted(sums))


def _source_troubles(report: SourceReport) -> Iterable[Trouble]:
    status = report.source_status
    if status.result is not None:
        yield from (Trouble(status.source, error) for error in status.result.errors)
    relay = status.relay_status
    if relay is not None and relay.result is not None:
        yield from (Trouble(status.source, error, of_relay=True) for error in relay.result.errors)


def _source(name: str, report: SourceReport) -> SourceFigures:
    status = report.source_status
    relay: RelayStatus | None = status.relay_status
    served = bool(status.worker) and not (status.result is not None and status.result.errors)
    wrong = any(True for _ in _source_troubles(report))
    health = Health("error", "error" if served else "not served") if wrong else Health("fine", "served")
    return SourceFigures(
        name,
        status.worker,
        health,
        served,
        relay.stage.value.lower() if relay is not None else "unknown",
        relay.relay_binlog if relay is not None else "",
        tuple(one.name for one in report.sub_task_status),
    )
