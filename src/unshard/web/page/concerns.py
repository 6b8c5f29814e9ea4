"""Derives warnings from the figures of a cluster. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from urllib.parse import quote

from unshard.api.status import Stage
from unshard.web.page.figures import (
    NOT_SERVED,
    ClusterFigures,
    DdlLock,
    SubtaskFigures,
    TaskFigures,
    Trouble,
    duration,
)
from unshard.web.page.verdict import Concern, Sentence, said


def concerns_of(figures: ClusterFigures, *, read: bool = True, trouble: str = "", at: float = 0) -> tuple[Concern, ...]:
    """Return all that is not fine, the worst first.

    `read`: whether the cluster has been read at all; `at`: when. `trouble`: why the figures are not those of now.
    """
    found = [Concern("blind", details=(said(trouble),) if trouble else (), since=at or None, path="cluster")]
    if read:
        blind = found if trouble else []
        found = [*blind, *_of_members(figures), *_of_sources(figures)]
        found += [one for task in figures.tasks for one in _of_task(task, figures)]
    return tuple(sorted(found, key=lambda one: one.rank))


def _of_members(figures: ClusterFigures) -> Iterator[Concern]:
    for name in figures.silent_workers:
        lost = name in figures.lost_workers
        stranded = [one.name for one in figures.sources if not one.served and one.enabled] if lost else []
        advice = "Start the worker again, or start another one: a free worker takes over."
        if not lost:
            advice = "Other workers serve all sources. Start it again, or remove it."
        yield Concern(
            "lost" if lost else "silent worker", name, path="cluster", sources=tuple(stranded),
            details=(*(said("Source {} is not served.", one) for one in stranded), said(advice)),
        )  # fmt: skip
    for name in figures.silent_masters:
        advice = "The cluster goes on with the other masters."
        yield Concern("silent master", name, details=(said(advice),), path="cluster")
    for name, percent in figures.full_disks:
        advice = (
            "It has the relay log. If it becomes full, the source stops. Make room there, or delete relay files that "
            "no task needs with unshard ctl purge-relay."
        )
        words = f"The disk of worker {{}} is {percent} % full"
        yield Concern("disk", name, words, details=(said(advice),), path="cluster")
    if len(figures.versions) > 1:
        told = [said(f"{version}: {{}}.", ", ".join(names)) for version, names in figures.versions.items()]
        words = f"{len(figures.versions)} versions of Unshard run in the cluster"
        yield Concern("versions", words=words, details=(*told, said("Update the older ones.")), path="cluster")


def _of_sources(figures: ClusterFigures) -> Iterator[Concern]:
    troubles: dict[str, list[Trouble]] = defaultdict(list)
    for trouble in figures.troubles:
        troubles[trouble.source].append(trouble)
    replicating = {
        one.source
        for task in figures.tasks
        for one in task.subtasks
        if one.heard and one.stage is Stage.RUNNING and one.unit == "sync"
    }
    for source in figures.sources:
        own = troubles.pop(source.name, [])
        if not source.enabled:
            yield Concern("disabled", source.name, details=(said("None of its tasks runs."),), path="cluster")
            continue
        yield from _of_troubles(source.name, own, lost=bool(figures.lost_workers))
        of_relay = any(one.of_relay for one in own)
        if source.served and source.name in replicating and not of_relay and source.relay != "running":
            group = {"paused": "relay", "unknown": "relay unknown"}.get(source.relay, "relay rests")
            yield Concern(group, source.name, path="cluster", sources=(source.name,))
        elif source.served and source.relay == "paused" and not of_relay:
            yield Concern("relay", source.name, path="cluster", sources=(source.name,))
    for name, own in troubles.items():
        yield from _of_troubles(name, own, lost=False)


def _of_troubles(source: str, troubles: Sequence[Trouble], *, lost: bool) -> Iterator[Concern]:
    """Yield the errors of a source. `lost`: a lost worker is named, with the sources that it served."""
    for one in troubles:
        code = one.error.err_code
        told = (said(f"{code}: {one.error.message}"),)
        if one.of_relay:
            yield Concern("failed relay", source, details=told, since=_unix(one.error.time), path="errors")
        elif code == NOT_SERVED:
            if not lost:
                advice = (said(one.error.workaround),)
                yield Concern("unserved", source, details=advice, path="cluster", sources=(source,))
        elif code in _SILENT:
            yield Concern("silent", source, details=told, path="cluster", sources=(source,))
        else:
            yield Concern("failed source", source, details=told, since=_unix(one.error.time), path="errors")


_SILENT = ("CLUSTER-023", "CLUSTER-039")
"""Errors of a worker that does not answer, or does not have the source yet."""


def _of_task(task: TaskFigures, figures: ClusterFigures) -> Iterator[Concern]:
    path = f"tasks/{quote(task.name, safe='')}"
    if task.troubles:
        told = tuple(
            said(f"Source {{}}: {one.error.err_code}: {one.error.message}", one.source) for one in task.troubles
        )
        begun = [at for one in task.troubles if (at := _unix(one.error.time)) is not None]
        yield Concern(
            "failed", task.name, details=told, since=min(begun, default=None), path="errors", count=len(told),
            task=task.name,
        )  # fmt: skip
    if task.differing:
        count = task.differing
        words = f"{count:,} {'row' if count == 1 else 'rows'} of task {{}} {'differs' if count == 1 else 'differ'}"
        yield Concern("differs", task.name, words, path=f"{path}/validation", task=task.name)
    yield from _of_locks(task)
    explained = {one.name for one in figures.sources if not (one.served and one.enabled)}
    disabled = {one.name for one in figures.sources if not one.enabled}
    by_group: dict[str, list[SubtaskFigures]] = defaultdict(list)
    for one in task.subtasks:
        group = _group_of(one)
        known = one.source in explained and group in ("unknown", "moving")
        if group and not known and not (one.source in disabled and group == "stopped"):
            by_group[group].append(one)
    for group, subtasks in by_group.items():
        told, words = _TOLD.get(group, _nothing)(task, subtasks)
        begun = [at for one in subtasks if (at := _unix(one.since)) is not None] if group in _DATED else []
        named = len(subtasks) == len(task.subtasks) or {one.source for one in subtasks} <= {one.name for one in told}
        some = () if named else tuple(one.source for one in subtasks)
        yield Concern(
            group, task.name, words, told, some, min(begun, default=None),
            path=f"{path}/copy" if group == "copying" else path, task=task.name,
        )  # fmt: skip


def _group_of(one: SubtaskFigures) -> str:
    """Return the group of what a task does on a source; empty where that is fine or told elsewhere."""
    if one.health.kind in ("fine", "done", "error") or one.health.word.startswith("relay"):
        return ""
    return one.health.word if one.health.word in _OF_WORDS else "moving"


_OF_WORDS = ("unknown", "lag unknown", "paused", "stopped", "copying", "lagging", "waiting")
_Told = tuple[tuple[Sentence, ...], str]
_DATED = ("paused", "stopped", "moving", "copying")
"""Groups that have begun when the task came to its present stage."""


def _nothing(task: TaskFigures, subtasks: Sequence[SubtaskFigures]) -> _Told:
    del task, subtasks
    return (), ""


def _lags(task: TaskFigures, subtasks: Sequence[SubtaskFigures]) -> _Told:
    del task
    return _notes(subtasks), f"Task {{}} lags by {duration(max(one.lag or 0 for one in subtasks))}"


def _waits(task: TaskFigures, subtasks: Sequence[SubtaskFigures]) -> _Told:
    del task
    return _notes(subtasks), ""


def _notes(subtasks: Sequence[SubtaskFigures]) -> tuple[Sentence, ...]:
    """Return what each of them waits for."""
    return tuple(said(f"Source {{}}: {one.note}", one.source) for one in subtasks if one.note)


def _moves(task: TaskFigures, subtasks: Sequence[SubtaskFigures]) -> _Told:
    del task
    return (), f"Task {{}} is {subtasks[0].health.word}"


def _copies(task: TaskFigures, subtasks: Sequence[SubtaskFigures]) -> _Told:
    told = () if task.copied is None else (said(f"{task.copied * 100:.0f} % is done."),)
    left = (said(f"Source {{}}: about {one.eta} left.", one.source) for one in subtasks if one.eta)
    return (*told, *left, *_notes(subtasks)), ""


def _rests(task: TaskFigures, subtasks: Sequence[SubtaskFigures]) -> _Told:
    del task
    by_hand = all(one.by_hand or one.stage is Stage.STOPPED for one in subtasks)
    return ((said("By hand."),) if by_hand else ()), ""


_TOLD: Mapping[str, Callable[[TaskFigures, Sequence[SubtaskFigures]], _Told]] = {
    "lagging": _lags, "waiting": _waits, "moving": _moves, "copying": _copies, "paused": _rests, "stopped": _rests,
}  # fmt: skip


def _of_locks(task: TaskFigures) -> Iterator[Concern]:
    by_lock: dict[str, list[DdlLock]] = defaultdict(list)
    for lock in task.locks:
        by_lock[lock.target].append(lock)
    for target, locks in by_lock.items():
        begun = [at for one in locks if (at := _unix(one.since)) is not None]
        late, of_shards = any(one.overdue for one in locks), any(one.shards for one in locks)
        group = ("overdue shard" if late else "shard") if of_shards else ("overdue" if late else "locked")
        yield Concern(group, target, since=min(begun, default=None), path="locks", task=task.name)


def _unix(text: str) -> float | None:
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        return None
    return at.timestamp() if at.tzinfo is not None else None
