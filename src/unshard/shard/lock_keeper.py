"""LockKeeper: the sources that own tables of one target table, and the locks of its DDL in their order.

Every source counts the DDL of the target that it has behind it (`LockMember.passed`); what it reports next is the DDL
of the next number. So a source may be a lock ahead of the others, and one that is late meets the very lock that was
executed without it. Every method gives a new keeper, settled: what can be resolved is.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

from unshard.errors import ShardError, Where
from unshard.model.stored_form import stamped, version_of
from unshard.model.table import TableName, name_form, name_of
from unshard.shard.lock import Lock, Outcome
from unshard.shard.sequence import Form


@dataclass(frozen=True, slots=True)
class LockMember:
    """One source: its tables of the target, and how many DDL it has behind it."""

    tables: tuple[TableName, ...]
    passed: int

    def to_dict(self) -> Form:
        return {"tables": list(map(name_form, self.tables)), "passed": self.passed}

    @classmethod
    def from_dict(cls, form: Form) -> LockMember:
        return cls(tuple(map(name_of, form["tables"])), form["passed"])


@dataclass(frozen=True, slots=True)
class LockKeeper:
    """`silent`: sources of the task that have not said yet which tables they own; they are waited for.

    `gone` counts the locks that all sources have behind them. At most the last lock is not executed. `copied`: up to
    the DDL of this number some table was copied when it had met it, so the target may have a part of it. `left`: tables
    that a source has and that nobody waits for, for a human has left their CREATE out. `away`: sources that were taken
    out of the task, and how many DDL each had behind it: the locks from there on are kept for its return.
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
        """The lock that is waited for or being executed."""
        return next((lock for lock in self.locks if not lock.executed), None)

    @property
    def busy(self) -> bool:
        """Whether the owner may be running a DDL just now: no source gets its first table here."""
        return self.open is not None and self.open.resolved

    def needed(self, lock: Lock) -> frozenset[str]:
        """The sources that the lock waits, or has waited, for."""
        late = {source for source, member in self.members.items() if member.passed < lock.number}
        return self.silent | late | frozenset(lock.reports)

    def lock_of(self, source: str) -> Lock | None:
        """The lock that the source has reported to and not passed."""
        lock = self.ahead_of(source)
        return lock if lock is not None and source in lock.reports else None

    def ahead_of(self, source: str) -> Lock | None:
        """The lock that the source has to pass next, whether it has reported its DDL or not."""
        member = self.members.get(source)
        return next((lock for lock in self.locks if member is not None and lock.number == member.passed + 1), None)

    def outcome(self, source: str) -> Outcome | None:
        """What the source does about the DDL that it has reported; None where it has reported none."""
        lock = self.lock_of(source)
        return lock.outcome(source) if lock is not None else None

    @property
    def several(self) -> bool:
        """Whether the target may have rows of more than one table."""
        return sum(len(member.tables) for member in self.members.values()) + len(self.left) + len(self.away) > 1

    @property
    def names(self) -> frozenset[str]:
        """The names, without schemas, that the target's tables have upstream."""
        return frozenset(name.table for member in self.members.values() for name in member.tables)

    @property
    def ahead(self) -> bool:
        """Whether a copy has a DDL that is not run on the target yet."""
        return self.copied > self.executed

    def is_copied(self, source: str) -> bool:
        """Whether the DDL that the source meets, or has reported, next is one that a copy has."""
        return self.members[source].passed < self.copied

    def copy_has(self, source: str, met: int) -> LockKeeper:
        """A table of the source is copied behind the first `met` of the DDL that the source has still to report.

        Said before anything of the copy is loaded. May be said again.
        """
        member = self.members.get(source)
        return replace(self, copied=max(self.copied, (member.passed if member else self.executed) + met))

    def heard(self, source: str) -> LockKeeper:
        """The source has said which tables it owns; ones of this target it has none, or `declare` tells."""
        return replace(self, silent=self.silent - {source})._settled()

    def declare(self, source: str, tables: Collection[TableName]) -> LockKeeper:
        """The source owns these tables, or with none: no more.

        A source that has told of others before joins behind all that is executed: its first table has the structure of
        the target. It must not while `busy`. One that tells for the first time has met none of the DDL that is here.
        One that was `away` goes on where it was.
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
        """The source is no part of the task any more: nobody waits for it.

        `begun`: the intent of this target's DDL that it has open; whoever owns the lock next goes on with it.
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
        """The source has the table, and nobody waits for it until the source declares it."""
        member = self.members.get(source)
        tables = [name for name in member.tables if name != table] if member is not None else []
        return replace(self.declare(source, tables), left=self.left | {(source, table)})

    def join(self, source: str, ddls: tuple[str, ...], time: str) -> LockKeeper:
        """All tables of the source have met this DDL, and all that was written before it is in the target.

        May be said again. The first source to report is the owner.
        """
        number = self.members[source].passed + 1
        found = next((lock for lock in self.locks if lock.number == number), None)
        lock = (found or Lock(number, ddls, source, time)).reported(source, ddls)
        return self._put(lock)._settled()

    def done(self, source: str) -> LockKeeper:
        """The source goes on behind its lock: as its owner, for which the target has the DDL now, or by skipping.

        Said again, before it reports the next one, it changes nothing.
        """
        lock = self.lock_of(source)
        if lock is None:
            return self
        assert lock.outcome(source) in (Outcome.EXECUTE, Outcome.SKIP), "only what may go on goes on"
        member = replace(self.members[source], passed=lock.number)
        passed = replace(self, members={**self.members, source: member})
        return passed._put(replace(lock, executed=True))._settled()

    def unlock(self, owner: str, by: str) -> LockKeeper:
        """A human resolves the open lock; `owner`, or the one it has where that is empty, runs what it has met.

        Where all is executed and a source waits with another DDL, that one is let pass. Sources that have not
        reported yet pass when they do. Raises ShardError SHARD-003 where there is nothing to unlock, SHARD-004 where
        the owner has not reported, SHARD-005 where another one may be running the DDL.
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
        """A human gives the open lock up: nobody runs its DDL, all pass. Raises ShardError SHARD-003."""
        return self._put(self.to_settle().removed(by))._settled()

    @property
    def id(self) -> str:
        """As `lock_id`."""
        return lock_id(self.task, self.target)

    @property
    def executed(self) -> int:
        """How many DDL the target has got, or a human has given up."""
        return self.gone + sum(lock.executed for lock in self.locks)

    def to_settle(self) -> Lock:
        """The lock that a human's decision is about. Raises ShardError SHARD-003 where none waits."""
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
        """Resolve what all have reported, forget what all have passed."""
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
        """All but `silent`, which is the same for all targets of a task."""
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
        version_of(form, "the record of the locks", Where(table=str(target)))
        members = {source: LockMember.from_dict(one) for source, one in form["members"].items()}
        locks = tuple(map(Lock.from_dict, form["locks"]))
        left = frozenset((source, TableName(*name)) for source, *name in form.get("left", ()))
        counts = form["gone"], form.get("copied", 0)
        return cls(task, target, frozenset(silent), members, locks, *counts, left, form.get("away", {}))


def lock_id(task: str, target: TableName) -> str:
    """DM's name for the lock of a target table."""
    return f"{task}-{target.quoted}"
