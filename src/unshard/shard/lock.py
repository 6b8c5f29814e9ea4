"""Lock: one DDL of one target table that all sources of a task have to meet before it is run, once, by its owner."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

from unshard.shard.sequence import Form, same, side_by_side


class Outcome(StrEnum):
    """What a source that has reported its DDL does now."""

    WAIT = "wait"
    EXECUTE = "execute"
    SKIP = "skip"
    MISMATCH = "mismatch"


@dataclass(frozen=True, slots=True)
class Lock:
    """The `number`th DDL of its target table.

    `reports`: by source, in the order in which they came, what each has met; `ddls` are the first one's.
    `resolved`: the owner may run it. `executed`: it is in the target, or was given up by a human, which leaves nothing
    to run. `excused`: sources that a human lets pass although they have met something else. `decision`: what a human
    has done, for the record. Times are ISO 8601, UTC. `begun`: the intent of an owner that was taken out of the task
    in the middle of its DDL, which the next one goes on with; where nobody else has reported there is no owner yet.
    """

    number: int
    ddls: tuple[str, ...]
    owner: str
    since: str
    reports: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    resolved: bool = False
    executed: bool = False
    excused: frozenset[str] = frozenset()
    decision: str = ""
    begun: Form | None = None

    @property
    def ready(self) -> frozenset[str]:
        """The sources that have met this very DDL, or are excused."""
        return frozenset(
            source for source, ddls in self.reports.items() if source in self.excused or same(ddls, self.ddls)
        )

    @property
    def mismatched(self) -> tuple[str, ...]:
        """The sources that have met something else."""
        return tuple(source for source in self.reports if source not in self.ready)

    def remain(self, needed: Iterable[str]) -> tuple[str, ...]:
        """Those of `needed` that are waited for."""
        return tuple(sorted(set(needed) - self.ready))

    def outcome(self, source: str) -> Outcome:
        """For a source that has reported."""
        if source not in self.ready:
            return Outcome.MISMATCH
        if self.executed:
            return Outcome.SKIP
        return Outcome.EXECUTE if self.resolved and source == self.owner else Outcome.WAIT

    def mismatch(self, source: str) -> str:
        """The DDL of the source and the lock's, under each other."""
        return side_by_side(source, self.reports[source], self.owner, self.ddls)

    def reported(self, source: str, ddls: tuple[str, ...]) -> Lock:
        return replace(self, reports={**self.reports, source: ddls}, owner=self.owner or source)

    def without(self, source: str) -> Lock | None:
        """The same when the source has no table left; None where nobody is left who could run it."""
        reports = {name: ddls for name, ddls in self.reports.items() if name != source}
        if self.executed or source != self.owner:
            return replace(self, reports=reports)
        owner = next((name for name in reports if name in self.ready), next(iter(reports), ""))
        if self.begun is not None:
            return replace(self, reports=reports, owner=owner, resolved=self.resolved and bool(reports))
        return replace(self, reports=reports, owner=owner, ddls=reports[owner]) if reports else None

    def unlocked(self, owner: str, by: str) -> Lock:
        """Resolved by a human: `owner` runs what it has met, all others that have reported pass."""
        excused, ddls = self.excused | frozenset(self.reports), self.reports[owner]
        decision = f"unlocked by {by}, {owner} runs its own"
        begun = self.begun if same(ddls, self.ddls) else None
        lock = replace(self, owner=owner, ddls=ddls, excused=excused, decision=decision)
        return replace(lock, resolved=True, begun=begun)

    def removed(self, by: str) -> Lock:
        """Given up by a human: nobody runs it any more, all pass."""
        excused = self.excused | frozenset(self.reports)
        return replace(self, resolved=True, executed=True, excused=excused, decision=f"removed by {by}")

    def to_dict(self) -> Form:
        return {
            "number": self.number,
            "ddls": list(self.ddls),
            "owner": self.owner,
            "since": self.since,
            "reports": {source: list(ddls) for source, ddls in self.reports.items()},
            "resolved": self.resolved,
            "executed": self.executed,
            "excused": sorted(self.excused),
            "decision": self.decision,
            **({"begun": self.begun} if self.begun is not None else {}),  # else a worker of before can read it too
        }

    @classmethod
    def from_dict(cls, form: Form) -> Lock:
        reports = {source: tuple(ddls) for source, ddls in form["reports"].items()}
        excused = frozenset(form["excused"])
        return cls(
            form["number"],
            tuple(form["ddls"]),
            form["owner"],
            form["since"],
            reports,
            form["resolved"],
            form["executed"],
            excused,
            form["decision"],
            form.get("begun"),
        )
