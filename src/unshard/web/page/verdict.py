"""The headline of a cluster: a sentence for each problem, with its time and a link to the details. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from unshard.web.page.figures import ClusterFigures, Health, TaskFigures


@dataclass(frozen=True, slots=True)
class _Group:
    """A kind of concern and its texts.

    `sentence` is the text for one concern, with {} for its name; `many` is the text for several concerns.
    """

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
    "overdue shard": _Group(
        "error",
        "A shard has waited too long with its DDL: {}",
        "{} sharding DDLs have waited too long",
        "See what it waits for",
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
    "shard": _Group("waits", "A shard waits with its DDL: {}", "{} sharding DDLs wait", "See what it waits for"),
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
    """A sentence about a state; it contains at most one name, which the page highlights."""

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
    """One problem of the cluster.

    Args:
        name: the name of a task, a source, a worker or a lock.
        words: replace the group's sentence where it has a figure.
        details: further sentences.
        sources: the sources that it is about; none for all sources of a task.
        since: when it began, in unix seconds; None while unknown.
        at_least: it may have begun earlier than `since`.
        path: the path of its screen, from the page's root.
        count: how many things it stands for.
        task: the task whose screen shows it too.
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
    def rank(self) -> tuple[int, str]:
        """What sorts concerns, the worst first."""
        return _ORDER[self.group], self.name

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


_WITH_CARDS = ("failed", "locked", "overdue", "shard", "overdue shard")
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


@dataclass(slots=True)
class FirstSeen:
    """The time at which each concern was first seen. Not for two threads at once."""

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
