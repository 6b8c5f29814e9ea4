"""What is not fine in a cluster: for each such thing a sentence, since when, and the screen that tells more. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from urllib.parse import quote

from unshard.api.status import Stage
from unshard.web.page.figures import (
    NOT_SERVED,
    ClusterFigures,
    DdlLock,
    Health,
    SubtaskFigures,
    TaskFigures,
    Trouble,
    duration,
)


@dataclass(frozen=True, slots=True)
class _Group:
    """Concerns of one sort. In `sentence`, {} is the name; `many` is said of several of them."""

    kind: str
    sentence: str
    many: str
    label: str


_GROUPS: Mapping[str, _Group] = {
    "lost": _Group("error", "Worker {} is lost", "{} workers are lost", "Cluster"),
    "failed": _Group("error", "Task {} has stopped with an error", "{} errors need a decision", "What to do"),
    "failed source": _Group("error", "Source {} has an error", "{} errors need a decision", "What to do"),
    "failed relay": _Group(
        "error", "The relay of source {} has stopped with an error", "{} errors need a decision", "What to do"
    ),
    "unserved": _Group("error", "No worker serves source {}", "No worker serves {} sources", "Cluster"),
    "differs": _Group("error", "Rows of task {} differ", "Rows of {} tasks differ", "See the rows"),
    "overdue": _Group(
        "error",
        "A DDL has waited too long for other shards: {}",
        "{} sharding DDLs have waited too long",
        "See which shards are missing",
    ),
    "blind": _Group("unknown", "The state of the cluster is unknown", "", "Cluster"),
    "silent": _Group("unknown", "The worker of source {} does not answer", "{} workers do not answer", "Cluster"),
    "unknown": _Group("unknown", "The state of task {} is unknown", "The state of {} tasks is unknown", "The task"),
    "relay unknown": _Group(
        "unknown", "The relay of source {} has not been heard", "{} relays have not been heard", "Cluster"
    ),
    "lag unknown": _Group("unknown", "The lag of task {} is unknown", "The lag of {} tasks is unknown", "The task"),
    "stopped": _Group("waits", "Task {} is stopped", "{} tasks are stopped", "The task"),
    "paused": _Group("waits", "Task {} is paused", "{} tasks are paused", "The task"),
    "disabled": _Group("waits", "Source {} is disabled", "{} sources are disabled", "Cluster"),
    "relay": _Group("waits", "The relay of source {} is paused", "{} relays are paused", "Cluster"),
    "relay rests": _Group("waits", "The relay of source {} does not run", "{} relays do not run", "Cluster"),
    "locked": _Group(
        "waits", "A DDL waits for other shards: {}", "{} sharding DDLs wait", "See which shards are missing"
    ),
    "lagging": _Group("waits", "Task {} lags", "{} tasks lag", "The task"),
    "waiting": _Group("waits", "Task {} waits", "{} tasks wait", "The task"),
    "moving": _Group("waits", "Task {} is starting", "{} tasks are changing their state", "The task"),
    "disk": _Group(
        "waits", "The disk of worker {} is nearly full", "The disks of {} workers are nearly full", "Cluster"
    ),
    "silent master": _Group("waits", "Master {} does not answer", "{} masters do not answer", "Cluster"),
    "silent worker": _Group("waits", "Worker {} does not answer", "{} workers do not answer", "Cluster"),
    "versions": _Group("waits", "Several versions of Unshard run in the cluster", "", "Cluster"),
    "copying": _Group("works", "Task {} copies its tables", "{} tasks copy their tables", "Copy by table"),
}
"""By name, the worst first."""
_ORDER = {name: number for number, name in enumerate(_GROUPS)}


@dataclass(frozen=True, slots=True)
class Sentence:
    """A state in words with the name of one thing in it, which the page sets apart."""

    kind: str
    before: str
    name: str = ""
    after: str = ""

    @property
    def sign(self) -> str:
        """Sign of the kind of health."""
        return Health(self.kind, "").sign

    @property
    def text(self) -> str:
        """The whole sentence."""
        return f"{self.before}{self.name}{self.after}"


def said(pattern: str, name: str = "") -> Sentence:
    """Return the sentence with the name in place of {}; without a name as it is."""
    before, _, after = pattern.partition("{}") if name else (pattern, "", "")
    return Sentence("", before, name, after)


@dataclass(frozen=True, slots=True)
class Concern:
    """One thing that is not fine.

    `name`: of a task, a source, a worker or a lock. `words` replace the group's sentence where that has a figure.
    `details` tell more; `sources` are those that it is about, none for all of a task. `since` is in unix seconds; None
    while unknown, and where `at_least` it may have begun earlier. `path` leads to its screen, from the page's root.
    `count`: how many things it stands for. `task`: the task whose screen shows it too.
    """

    group: str
    name: str = ""
    words: str = ""
    details: tuple[Sentence, ...] = ()
    sources: tuple[str, ...] = ()
    since: float | None = None
    at_least: bool = False
    path: str = ""
    count: int = 1
    task: str = ""

    @property
    def sentence(self) -> Sentence:
        """The concern in words."""
        return replace(said(self.words or _GROUPS[self.group].sentence, self.name), kind=_GROUPS[self.group].kind)

    @property
    def label(self) -> str:
        """What the link to its screen says."""
        return _GROUPS[self.group].label

    @property
    def key(self) -> tuple[str, str]:
        """What makes it the same concern in the next reading."""
        return self.group, self.name


def headline(concerns: Sequence[Concern], figures: ClusterFigures) -> Sentence:
    """Return the first line of the overview: that all is fine, else the worst of what is not."""
    if concerns and concerns[0].sentence.kind != "works":
        worst = concerns[0].sentence
        kind, many = _GROUPS[concerns[0].group].kind, _GROUPS[concerns[0].group].many
        count = sum(one.count for one in concerns if _GROUPS[one.group].many == many and one.sentence.kind == kind)
        return worst if count == 1 or not many else Sentence(kind, many.format(f"{count:,}"))
    if not figures.tasks:
        return Sentence("waits", "Nothing is migrated yet")
    if concerns:
        copying = [one for one in concerns if one.sentence.kind == "works"]
        return (
            copying[0].sentence if len(copying) == 1 else Sentence("works", f"{len(copying):,} tasks copy their tables")
        )
    if all(one.health.kind == "done" for one in figures.tasks):
        return Sentence("done", "All tasks are finished")
    return Sentence("fine", "All is fine")


def shortened(concerns: Iterable[Concern], most: int = 4) -> list[tuple[Concern, int]]:
    """Return the first `most` concerns of each group, the last of them with the number of those that are left out."""
    by_group: dict[str, list[Concern]] = defaultdict(list)
    for one in concerns:
        by_group[one.group].append(one)
    return [
        (one, len(alike) - most if number == most - 1 and len(alike) > most else 0)
        for alike in by_group.values()
        for number, one in enumerate(alike[:most])
    ]


_WITH_CARDS = ("failed", "locked", "overdue")
"""Groups that the screen of a task shows otherwise."""


def of_task(concerns: Iterable[Concern], task: TaskFigures) -> list[Concern]:
    """Return the concerns about a task, and about its sources, for its own screen."""
    sources = {one.source for one in task.subtasks}
    return [
        one
        for one in concerns
        if one.group not in _WITH_CARDS
        and (one.task == task.name or (not one.task and sources.intersection(one.sources)))
    ]


def concerns_of(figures: ClusterFigures, *, read: bool = True, trouble: str = "", at: float = 0) -> tuple[Concern, ...]:
    """Return all that is not fine, the worst first.

    `read`: whether the cluster has been read at all; `at`: when. `trouble`: why the figures are not those of now.
    """
    found = [Concern("blind", details=(said(trouble),) if trouble else (), since=at or None, path="cluster")]
    if read:
        blind = found if trouble else []
        found = [*blind, *_of_members(figures), *_of_sources(figures)]
        found += [one for task in figures.tasks for one in _of_task(task, figures)]
    return tuple(sorted(found, key=lambda one: (_ORDER[one.group], one.name)))


@dataclass(slots=True)
class FirstSeen:
    """When each concern was first seen. Not for two threads at once."""

    _seen: dict[tuple[str, str], tuple[float, bool]] = field(default_factory=dict)
    _begun: bool = False

    def dated(self, concerns: Iterable[Concern], at: float) -> tuple[Concern, ...]:
        """Return the concerns of a reading at `at`, each with its beginning, also where nobody has reported that."""
        told = tuple(concerns)
        self._seen = {one.key: self._seen.get(one.key, (at, not self._begun)) for one in told}
        self._begun = True
        return tuple(one if one.since is not None else self._dated(one) for one in told)

    def _dated(self, one: Concern) -> Concern:
        since, at_least = self._seen[one.key]
        return replace(one, since=since, at_least=at_least)


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
    by_group: dict[str, list[SubtaskFigures]] = defaultdict(list)
    for one in task.subtasks:
        group = _group_of(one)
        if group and not (one.source in explained and group in ("unknown", "moving")):
            by_group[group].append(one)
    for group, subtasks in by_group.items():
        told, words = _TOLD.get(group, _nothing)(task, subtasks)
        begun = [at for one in subtasks if (at := _unix(one.since)) is not None] if group in _DATED else []
        some = tuple(one.source for one in subtasks) if len(subtasks) < len(task.subtasks) else ()
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
    return (), f"Task {{}} lags by {duration(max(one.lag or 0 for one in subtasks))}"


def _waits(task: TaskFigures, subtasks: Sequence[SubtaskFigures]) -> _Told:
    del task
    return tuple(said(f"Source {{}}: {one.note}", one.source) for one in subtasks), ""


def _moves(task: TaskFigures, subtasks: Sequence[SubtaskFigures]) -> _Told:
    del task
    return (), f"Task {{}} is {subtasks[0].health.word}"


def _copies(task: TaskFigures, subtasks: Sequence[SubtaskFigures]) -> _Told:
    told = () if task.copied is None else (said(f"{task.copied * 100:.0f} % is done."),)
    return (*told, *(said(f"Source {{}}: about {one.eta} left.", one.source) for one in subtasks if one.eta)), ""


def _rests(task: TaskFigures, subtasks: Sequence[SubtaskFigures]) -> _Told:
    del task
    by_hand = all(one.by_hand or one.stage is Stage.STOPPED for one in subtasks)
    return ((said("By hand."),) if by_hand else ()), ""


_TOLD: Mapping[str, Callable[[TaskFigures, Sequence[SubtaskFigures]], _Told]] = {
    "lagging": _lags, "waiting": _waits, "moving": _moves, "copying": _copies, "paused": _rests, "stopped": _rests,
}  # fmt: skip


_OF_SHARDS = {
    "locked": "A shard waits with its DDL: {}",
    "overdue": "A shard has waited too long with its DDL: {}",
}
"""In optimistic mode. It may wait for a human."""


def _of_locks(task: TaskFigures) -> Iterator[Concern]:
    by_lock: dict[str, list[DdlLock]] = defaultdict(list)
    for lock in task.locks:
        by_lock[lock.target].append(lock)
    for target, locks in by_lock.items():
        begun = [at for one in locks if (at := _unix(one.since)) is not None]
        group = "overdue" if any(one.overdue for one in locks) else "locked"
        words = _OF_SHARDS[group] if any(one.shards for one in locks) else ""
        yield Concern(group, target, words, since=min(begun, default=None), path="locks", task=task.name)


def _unix(text: str) -> float | None:
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        return None
    return at.timestamp() if at.tzinfo is not None else None
