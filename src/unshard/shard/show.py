"""What waits, for whom, since when and what helps: for `query-status` of one source and `shard-ddl-lock` of a task."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from unshard.api.status import UnresolvedGroup
from unshard.shard.group import ShardingGroup
from unshard.shard.group_keeper import ShardingGroupKeeper
from unshard.shard.lock import Lock
from unshard.shard.lock_keeper import LockKeeper

Groups = Mapping[str, ShardingGroup]
"""By source, its unresolved group of the target; a source without one has met nothing."""


def unresolved_groups(keeper: ShardingGroupKeeper, locks: Mapping[str, LockKeeper]) -> tuple[UnresolvedGroup, ...]:
    """Of one source, the oldest first. `locks`: the targets' by their quoted names."""
    return tuple(_group(group, locks.get(group.target.quoted)) for group in keeper.unresolved)


def overdue(group: UnresolvedGroup, seconds: float, now: datetime) -> UnresolvedGroup:
    """The group with `overdue` set where its DDL was met more than that before `now`, by the source's clock."""
    late = bool(group.since) and (now - datetime.fromisoformat(group.since)).total_seconds() > seconds
    return group.model_copy(update={"overdue": late})


def waiting_locks(keeper: LockKeeper, groups: Groups, files: str = "") -> list[dict[str, Any]]:
    """DM's form of the locks of a target that somebody waits for, and ours behind it; `files` as `what_helps`."""
    return [_lock_form(keeper, lock, groups, files) for lock in keeper.locks if _is_waited_for(keeper, lock)]


def _is_waited_for(keeper: LockKeeper, lock: Lock) -> bool:
    """Not run yet, or left without a source that has still to pass it: with another DDL, or late behind a human."""
    return not lock.executed or bool(lock.mismatched) or bool(lock.decision and lock.remain(keeper.needed(lock)))


def _lock_form(keeper: LockKeeper, lock: Lock, groups: Groups, files: str) -> dict[str, Any]:
    return {
        "ID": keeper.id,
        "task": keeper.task,
        "mode": "pessimistic",
        "owner": lock.owner,
        "DDLs": list(lock.ddls),
        "synced": sorted(lock.ready),
        "unsynced": list(lock.remain(keeper.needed(lock))),
        "since": lock.since,
        "waitsFor": waits_for(keeper, lock, groups),
        "mismatch": _mismatch(lock),
        "help": what_helps(keeper, lock, files),
    }


def waits_for(keeper: LockKeeper, lock: Lock, groups: Groups) -> str:
    """Why the lock is not over, source by source."""
    parts = [lock.decision] if lock.decision else []
    if lock.resolved and not lock.executed:
        parts.append(f"{lock.owner} runs it on the target")
    for source in lock.remain(keeper.needed(lock)):
        if source in lock.mismatched:
            parts.append(f"{source} has met another DDL")
        elif source in keeper.silent:
            parts.append(f"{source} has not said yet which tables it owns: not started, or in its full load")
        else:
            parts.append(_missing_tables(keeper, lock, source, groups.get(source)))
    return "; ".join(parts)


def _missing_tables(keeper: LockKeeper, lock: Lock, source: str, group: ShardingGroup | None) -> str:
    member = keeper.members[source]
    if member.passed + 1 < lock.number:
        return f"{source} has not passed the DDL before it"
    if group is not None and group.behind:
        return f"{source} reads again what was held for the DDL before it"
    tables = group.unsynced if group is not None and group.unresolved else member.tables
    named = ", ".join(map(str, tables[:10])) + (f" and {len(tables) - 10} more" if len(tables) > 10 else "")
    return f"{source} has not met it in {named}" if tables else f"{source} has met it in all tables, and will report it"


def what_helps(keeper: LockKeeper, lock: Lock, files: str = "") -> str:
    """The command for a human, and when. `files`: what it takes where there is no master, as it is typed."""
    command = f"unshard ctl shard-ddl-lock unlock {shlex.quote(keeper.id)} {files}".rstrip()
    if lock.mismatched:
        return (
            f"`{command} --owner SOURCE` runs the DDL that SOURCE has met and lets the others pass theirs; then bring"
            " their tables into the same structure"
        )
    if lock.resolved and not lock.executed:
        return (
            f"nothing, while {lock.owner} runs; where it is gone for good, `{command} --force-remove` lets all pass,"
            " and it is on you to run the DDL on the target"
        )
    if lock.remain(keeper.needed(lock)):
        return (
            "run the DDL on the tables that miss it, and start the sources that are not started. Only where a source"
            f" never will: `{command}` lets the others go on, and that source skips the DDL when it comes"
        )
    return ""


def _mismatch(lock: Lock) -> list[str]:
    return [line.strip() for source in lock.mismatched for line in lock.mismatch(source).splitlines()]


def _group(group: ShardingGroup, locks: LockKeeper | None) -> UnresolvedGroup:
    items = group.sequence.items
    first = group.first
    lock = locks.lock_of(group.source) if locks is not None and group.reported else None
    why, helps = _own_tables(group), ""
    mismatch: tuple[str, ...] = ()
    if lock is not None and locks is not None:
        why = waits_for(locks, lock, {}) or "the next look at the lock"
        mismatch = tuple(_mismatch(lock))
        helps = what_helps(locks, lock)
    elif group.unsynced and items:
        helps = "run the DDL on the tables that miss it, or drop those that are not needed any more"
    return UnresolvedGroup(
        target=group.target.quoted,
        DDLs=items[0].ddls if items else (),
        first_location=str(first) if first is not None else "",
        synced=tuple(name.quoted for name in group.synced),
        unsynced=tuple(name.quoted for name in group.unsynced) if items else (),
        since=min((item.time for item in items if item.time), default=""),
        waits_for=why,
        mismatch=mismatch,
        help=helps,
    )


def _own_tables(group: ShardingGroup) -> str:
    if group.behind:
        return "what was held is read again"
    if group.unsynced:
        return f"{group.source} has not met it in {', '.join(map(str, group.unsynced[:10]))}"
    return f"{group.source} has met it in all tables, and will report it"
