"""LockKeeper: the sources that own tables of one target table, and the locks of its DDL, in order.

A `Lock` is one DDL of the target table. All sources of a task have to meet it before its owner runs it, once. Every
source counts the DDL of the target that it has passed (`LockMember.passed`); what it reports next is the DDL of
the next number. So a source may be a lock ahead of the others, and one that is late meets the same lock that was
executed without it. Every method returns a new keeper in which all that can be resolved is resolved.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

from unshard.errors import ShardError, Where
from unshard.model.stored_form import stamped, version_of
from unshard.model.table import TableName, name_form, name_of
from unshard.shard.same_ddl import same
from unshard.shard.sequence import Form, side_by_side


@dataclass(frozen=True, slots=True)
class LockMember:
    """A source that owns tables of one target table: these tables, and the number of DDL that the source has passed."""

    tables: tuple[TableName, ...]
    passed: int

    def to_dict(self) -> Form:
        """Return the JSON form, which `from_dict` reads."""
        return {"tables": list(map(name_form, self.tables)), "passed": self.passed}

    @classmethod
    def from_dict(cls, form: Form) -> LockMember:
        """Read the form of `to_dict`."""
        return cls(tuple(map(name_of, form["tables"])), form["passed"])


@dataclass(frozen=True, slots=True)
class LockKeeper:
    """The members and locks of one target table.

    Args:
        silent: the sources of the task that have not declared their tables yet; their declarations are waited for.
        members: the sources that own tables of the target.
        locks: the locks in the order of their numbers; at most the last one is not executed.
        gone: the number of the last lock that all sources have passed; it and the locks before it are no longer stored.
        copied: some copy has the DDL up to this number, so the target may have a part of them.
        left: tables that nobody waits for, because a human excluded their CREATE; each with its source.
        away: the sources that were taken out of the task, each with the number of DDL that it had passed; the locks
            after that number are kept for its return.
    """

    task: str
    target: TableName
    silent: frozenset[str] = frozenset()
    members: Mapping[str, LockMember] = field(default_factory=dict)
    locks: tuple[Lock, ...] = ()
    gone: int = 0
    copied: int = 0
    left: frozenset[tuple[str, TableName]] = frozenset()
    away: Mapping[str, int] = field(default_factory=dict)

    @property
    def open(self) -> Lock | None:
        """The lock that is waited for or being executed; None if there is none."""
        return next((lock for lock in self.locks if not lock.executed), None)

    @property
    def busy(self) -> bool:
        """True if the owner may be running a DDL now, so that no source may declare its first table."""
        return self.open is not None and self.open.resolved

    def needed(self, lock: Lock) -> frozenset[str]:
        """Return the sources that the lock waits, or has waited, for."""
        late = {source for source, member in self.members.items() if member.passed < lock.number}
        return self.silent | late | frozenset(lock.reports)

    def lock_of(self, source: str) -> Lock | None:
        """Return the lock that the source has reported to and not passed."""
        lock = self.ahead_of(source)
        return lock if lock is not None and source in lock.reports else None

    def ahead_of(self, source: str) -> Lock | None:
        """Return the lock that the source has to pass next, whether it has reported its DDL or not."""
        member = self.members.get(source)
        return next((lock for lock in self.locks if member is not None and lock.number == member.passed + 1), None)

    def outcome(self, source: str) -> Outcome | None:
        """Return the source's action for the DDL that it has reported; None where it has reported none."""
        lock = self.lock_of(source)
        return lock.outcome(source) if lock is not None else None

    @property
    def several(self) -> bool:
        """True if the target may have rows of more than one table."""
        return sum(len(member.tables) for member in self.members.values()) + len(self.left) + len(self.away) > 1

    @property
    def names(self) -> frozenset[str]:
        """The names, without schemas, of the target's upstream tables."""
        return frozenset(name.table for member in self.members.values() for name in member.tables)

    @property
    def ahead(self) -> bool:
        """True if a copy has a DDL that is not executed on the target yet."""
        return self.copied > self.executed

    def is_copied(self, source: str) -> bool:
        """Return whether some copy has the DDL that the source passes next."""
        return self.members[source].passed < self.copied

    def copy_has(self, source: str, met: int) -> LockKeeper:
        """Record that the snapshot of some table comes after the first `met` DDL that the source has still to report.

        Called before anything of the copy is loaded. May be repeated.
        """
        member = self.members.get(source)
        return replace(self, copied=max(self.copied, (member.passed if member else self.executed) + met))

    def heard(self, source: str) -> LockKeeper:
        """Mark the source as one that has declared its tables: none of this target, unless `declare` is called."""
        return replace(self, silent=self.silent - {source})._settled()

    def declare(self, source: str, tables: Collection[TableName]) -> LockKeeper:
        """Set the tables that the source owns; with none, it leaves the target.

        A source that has declared others before and gets its first table here has passed all that is executed: its
        table has the target's structure. It must not declare it while `busy`. A source that declares for the first time
        has passed none of the locks that are kept. One that was `away` goes on where it was.
        """
        away = {name: passed for name, passed in self.away.items() if name != source}
        if not tables:
            return replace(self, away=away)._without(source)
        left = self.left - {(source, table) for table in tables}
        member = self.members.get(source)
        first = self.gone if source in self.silent else self.executed
        passed = member.passed if member else self.away.get(source, first)
        members = {**self.members, source: LockMember(tuple(sorted(tables)), passed)}
        return replace(self, members=members, silent=self.silent - {source}, left=left, away=away)._settled()

    def take_out(self, source: str, begun: Form | None = None) -> LockKeeper:
        """Take the source out of the task: nobody waits for it.

        `begun`: the intent of this target's DDL that it has open; the next owner of the lock goes on with it.
        """
        member = self.members.get(source)
        if member is None and source not in self.silent:
            return self
        passed = member.passed if member else self.away.get(source, self.gone)
        lock = self.lock_of(source)
        runs = begun is not None and lock is not None and lock.outcome(source) is Outcome.EXECUTE
        kept = self._put(replace(lock, begun=begun)) if runs and lock is not None else self
        return replace(kept, away={**self.away, source: passed})._without(source)

    def leave(self, source: str, table: TableName) -> LockKeeper:
        """Record that the source has the table, and that nobody waits for it until the source declares it."""
        member = self.members.get(source)
        tables = [name for name in member.tables if name != table] if member is not None else []
        return replace(self.declare(source, tables), left=self.left | {(source, table)})

    def join(self, source: str, ddls: tuple[str, ...], time: str) -> LockKeeper:
        """Report the source's DDL: all its tables have met it, and the target has all that was written before it.

        The first source to report is the owner. May be repeated.
        """
        number = self.members[source].passed + 1
        found = next((lock for lock in self.locks if lock.number == number), None)
        lock = (found or Lock(number, ddls, source, time)).reported(source, ddls)
        return self._put(lock)._settled()

    def done(self, source: str) -> LockKeeper:
        """Make the source pass its lock: as the owner, whose DDL the target has now, or as one that skips it.

        If it is repeated before the source reports the next DDL, it changes nothing.
        """
        lock = self.lock_of(source)
        if lock is None:
            return self
        assert lock.outcome(source) in (Outcome.EXECUTE, Outcome.SKIP), "only what may go on goes on"
        member = replace(self.members[source], passed=lock.number)
        passed = replace(self, members={**self.members, source: member})
        return passed._put(replace(lock, executed=True))._settled()

    def unlock(self, owner: str, by: str) -> LockKeeper:
        """Resolve the open lock on a human's word: `owner`, or the lock's own if that is empty, runs what it has met.

        Where all is executed and a source waits with another DDL, that source is let pass. Sources that have not
        reported yet pass when they do. Raises ShardError SHARD-003 where there is nothing to unlock, SHARD-004 where
        the owner has not reported, SHARD-005 where another source may be running the DDL.
        """
        lock = self.to_settle()
        if lock.executed:
            return self._put(replace(lock, excused=lock.excused | frozenset(lock.reports)))._settled()
        owner = owner or lock.owner
        if owner not in lock.reports:
            raise ShardError("SHARD-004", Where(source=owner), "", {"id": self.id, "reported": ", ".join(lock.reports)})
        if lock.resolved and owner != lock.owner:
            raise ShardError("SHARD-005", Where(source=lock.owner), "", {"id": self.id})
        return self._put(lock.unlocked(owner, by))._settled()

    def remove(self, by: str) -> LockKeeper:
        """Give up the open lock on a human's word: no source runs its DDL, all pass. Raises ShardError SHARD-003."""
        return self._put(self.to_settle().removed(by))._settled()

    @property
    def id(self) -> str:
        """The name of the lock, as `lock_id` makes it."""
        return lock_id(self.task, self.target)

    @property
    def executed(self) -> int:
        """Number of DDL that the target has, or a human has given up."""
        return self.gone + sum(lock.executed for lock in self.locks)

    def to_settle(self) -> Lock:
        """Return the lock that a human's decision is about. Raises ShardError SHARD-003 where none waits."""
        waiting = next((lock for lock in self.locks if lock.mismatched or not lock.executed), None)
        if waiting is None:
            raise ShardError("SHARD-003", Where(), "", {"id": self.id})
        return waiting

    def _put(self, lock: Lock) -> LockKeeper:
        others = [one for one in self.locks if one.number != lock.number]
        return replace(self, locks=tuple(sorted((*others, lock), key=lambda one: one.number)))

    def _without(self, source: str) -> LockKeeper:
        members = {name: member for name, member in self.members.items() if name != source}
        locks = tuple(left for lock in self.locks if (left := lock.without(source)) is not None)
        return replace(self, members=members, locks=locks, silent=self.silent - {source})._settled()

    def _settled(self) -> LockKeeper:
        """Resolve the locks that all needed sources have reported, and drop those that all sources have passed."""
        locks = tuple(
            replace(lock, resolved=lock.resolved or bool(lock.reports and not lock.remain(self.needed(lock))))
            for lock in self.locks
        )
        counts = [*(member.passed for member in self.members.values()), *self.away.values()]
        slowest = min(counts, default=self.executed)
        gone = self.gone if self.silent else max(self.gone, slowest)
        kept = tuple(lock for lock in locks if lock.number > gone)
        return replace(self, locks=kept, gone=gone)

    def to_dict(self) -> Form:
        """Return the stored form: all but `silent`, which is the same for all targets of a task."""
        return stamped(
            {
                "members": {source: member.to_dict() for source, member in self.members.items()},
                "locks": [lock.to_dict() for lock in self.locks],
                "gone": self.gone,
                "copied": self.copied,
                "left": [[source, name.schema, name.table] for source, name in sorted(self.left)],
                "away": dict(self.away),
            }
        )

    @classmethod
    def from_dict(cls, task: str, target: TableName, silent: Collection[str], form: Form) -> LockKeeper:
        """Read the form of `to_dict`. Raises SyncError SYNC-075 for a record of a later version."""
        version_of(form, "the record of the locks", Where(table=str(target)))
        members = {source: LockMember.from_dict(one) for source, one in form["members"].items()}
        locks = tuple(map(Lock.from_dict, form["locks"]))
        left = frozenset((source, TableName(*name)) for source, *name in form.get("left", ()))
        counts = form["gone"], form.get("copied", 0)
        return cls(task, target, frozenset(silent), members, locks, *counts, left, form.get("away", {}))


def lock_id(task: str, target: TableName) -> str:
    """Return DM's name for the lock of a target table."""
    return f"{task}-{target.quoted}"


class Outcome(StrEnum):
    """The next action of a source that has reported its DDL."""

    WAIT = "wait"
    EXECUTE = "execute"
    SKIP = "skip"
    MISMATCH = "mismatch"


@dataclass(frozen=True, slots=True)
class Lock:
    """The `number`th DDL of its target table, and the sources' reports of it. Times are ISO 8601, UTC.

    Args:
        ddls: the statements of the DDL, as its owner has met them.
        owner: the source that runs it; empty while no other source has reported since the owner was taken out.
        since: when it was first reported.
        reports: by source, in the order of arrival, the statements that each has met.
        resolved: the owner may run it.
        executed: it is in the target, or a human has given it up, which leaves nothing to run.
        excused: the sources that a human lets pass although they have met another DDL.
        decision: what a human has done, for the record.
        begun: the intent of an owner that was taken out of the task in the middle of its DDL; the next owner goes on
            with it.
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
        """The sources that have met this DDL, or are excused."""
        return frozenset(
            source for source, ddls in self.reports.items() if source in self.excused or same(ddls, self.ddls)
        )

    @property
    def mismatched(self) -> tuple[str, ...]:
        """The sources that have met another DDL and are not excused."""
        return tuple(source for source in self.reports if source not in self.ready)

    def remain(self, needed: Iterable[str]) -> tuple[str, ...]:
        """Return the sources of `needed` that the lock waits for."""
        return tuple(sorted(set(needed) - self.ready))

    def outcome(self, source: str) -> Outcome:
        """Return the present action of a source that has reported."""
        if source not in self.ready:
            return Outcome.MISMATCH
        if self.executed:
            return Outcome.SKIP
        return Outcome.EXECUTE if self.resolved and source == self.owner else Outcome.WAIT

    def mismatch(self, source: str) -> str:
        """Return the DDL of the source and the lock's, under each other."""
        return side_by_side(source, self.reports[source], self.owner, self.ddls)

    def reported(self, source: str, ddls: tuple[str, ...]) -> Lock:
        """Return the lock with the source's report; the first source to report becomes the owner."""
        return replace(self, reports={**self.reports, source: ddls}, owner=self.owner or source)

    def without(self, source: str) -> Lock | None:
        """Return the lock without a source that has no table left; None where no source is left that could run it."""
        reports = {name: ddls for name, ddls in self.reports.items() if name != source}
        if self.executed or source != self.owner:
            return replace(self, reports=reports)
        owner = next((name for name in reports if name in self.ready), next(iter(reports), ""))
        if self.begun is not None:
            return replace(self, reports=reports, owner=owner, resolved=self.resolved and bool(reports))
        return replace(self, reports=reports, owner=owner, ddls=reports[owner]) if reports else None

    def unlocked(self, owner: str, by: str) -> Lock:
        """Return the lock as a human resolves it: `owner` runs what it has met, all others that have reported pass."""
        excused, ddls = self.excused | frozenset(self.reports), self.reports[owner]
        decision = f"unlocked by {by}, {owner} runs its own"
        begun = self.begun if same(ddls, self.ddls) else None
        lock = replace(self, owner=owner, ddls=ddls, excused=excused, decision=decision)
        return replace(lock, resolved=True, begun=begun)

    def removed(self, by: str) -> Lock:
        """Return the lock as a human gives it up: no source runs it any more, all pass."""
        excused = self.excused | frozenset(self.reports)
        return replace(self, resolved=True, executed=True, excused=excused, decision=f"removed by {by}")

    def to_dict(self) -> Form:
        """Return the JSON form, which `from_dict` reads."""
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
        """Read the form of `to_dict`."""
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
