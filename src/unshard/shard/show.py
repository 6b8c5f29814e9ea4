"""The pending DDL in `query-status` and `shard-ddl-lock`: what waits, for whom, since when, and the remedy."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from unshard.api.status import UnresolvedGroup
from unshard.model.table import TableName
from unshard.shard.group import ShardingGroup
from unshard.shard.group_keeper import ShardingGroupKeeper
from unshard.shard.lock_keeper import Lock, LockKeeper
from unshard.shard.same_ddl import same
from unshard.shard.sequence import DdlItem, side_by_side

Groups = Mapping[str, ShardingGroup]
"""The unresolved group of the target, by source. A source without one has met nothing."""


def unresolved_groups(
    keeper: ShardingGroupKeeper, locks: Mapping[str, LockKeeper], listed: Sequence[str] = ()
) -> tuple[UnresolvedGroup, ...]:
    """Return the unresolved groups of one source, the oldest first.

    `locks`: the targets' locks, by quoted target name. `listed`: as in `waiting_locks`.
    """
    return tuple(_group(group, locks.get(group.target.quoted), listed) for group in keeper.unresolved)


def overdue(group: UnresolvedGroup, seconds: float, now: datetime) -> UnresolvedGroup:
    """Return the group with `overdue` set if its DDL was met over `seconds` before `now`, by the source's clock."""
    late = bool(group.since) and (now - datetime.fromisoformat(group.since)).total_seconds() > seconds
    return group.model_copy(update={"overdue": late})


def waiting_locks(
    keeper: LockKeeper, groups: Groups, files: str = "", listed: Sequence[str] = ()
) -> list[dict[str, Any]]:
    """Return the locks of a target that a source waits for, in DM's form with fields of ours after DM's.

    `files`: as in `what_helps`. `listed`: the sources of the task's file, empty where it is not known.
    """
    return [_lock_form(keeper, lock, groups, files, listed) for lock in keeper.locks if _is_waited_for(keeper, lock)]


def _is_waited_for(keeper: LockKeeper, lock: Lock) -> bool:
    """Return whether the lock is not executed, or a source has still to pass it.

    Such a source has met another DDL, or is late after a human's decision.
    """
    return not lock.executed or bool(lock.mismatched) or bool(lock.decision and lock.remain(keeper.needed(lock)))


def _lock_form(keeper: LockKeeper, lock: Lock, groups: Groups, files: str, listed: Sequence[str]) -> dict[str, Any]:
    return {
        "ID": keeper.id,
        "task": keeper.task,
        "mode": "pessimistic",
        "owner": lock.owner,
        "DDLs": list(lock.ddls),
        "synced": sorted(lock.ready),
        "unsynced": list(lock.remain(keeper.needed(lock))),
        "since": lock.since,
        "waitsFor": waits_for(keeper, lock, groups, listed),
        "mismatch": _mismatch(lock),
        "help": "; ".join(filter(None, (what_helps(keeper, lock, files, listed), _left_out_help(lock, groups, files)))),
    }


def _left_out_help(lock: Lock, groups: Groups, files: str) -> str:
    late = [group for group in groups.values() if not lock.executed and group.sequence.items and _left_out(group)]
    return "; ".join(_gives_it_anew(group, files) for group in late)


def waits_for(keeper: LockKeeper, lock: Lock, groups: Groups | None, listed: Sequence[str] = ()) -> str:
    """Return why the lock is not over, source by source. Without `groups` the missing tables are not known."""
    parts = [lock.decision] if lock.decision else []
    if lock.resolved and not lock.executed:
        parts.append(f"{lock.owner} runs it on the target")
    if not lock.owner:
        parts.append("its owner was taken out of the task in the middle of it; the next source that meets it goes on")
    for source in lock.remain(keeper.needed(lock)):
        if source in lock.mismatched:
            parts.append(f"{source} has met another DDL")
        elif source in keeper.silent:
            parts.append(f"{source} has not said yet which tables it owns: not started, or in its full load")
        else:
            parts.append(_missing_tables(keeper, lock, source, groups))
    if unlisted := _unlisted(keeper, lock, listed):
        parts.append(f"not in the task's file: {', '.join(unlisted)}")
    return "; ".join(parts)


def _unlisted(keeper: LockKeeper, lock: Lock, listed: Sequence[str]) -> tuple[str, ...]:
    """Return the sources that are waited for and not in the task's file, so that nobody starts them.

    They have to meet the DDL, or as its owner to run it.
    """
    waited = set(lock.remain(keeper.needed(lock)))
    if lock.resolved and not lock.executed and lock.owner:
        waited.add(lock.owner)
    return tuple(sorted(waited.difference(listed))) if listed else ()


def _missing_tables(keeper: LockKeeper, lock: Lock, source: str, groups: Groups | None) -> str:
    member = keeper.members[source]
    if member.passed + 1 < lock.number:
        return f"{source} has not passed the DDL before it"
    if groups is None:
        return f"{source} has not met it in all of {_named(member.tables)}"
    group = groups.get(source)
    if group is not None and group.behind:
        return f"{source} reads again what was held for the DDL before it"
    tables = group.unsynced if group is not None and group.unresolved else member.tables
    return (
        f"{source} has not met it in {_named(tables)}{_told_left_out(group)}"
        if tables
        else f"{source} has met it in all tables, and will report it"
    )


def _named(tables: Sequence[TableName]) -> str:
    return ", ".join(map(str, tables[:10])) + (f" and {len(tables) - 10} more" if len(tables) > 10 else "")


def what_helps(keeper: LockKeeper, lock: Lock, files: str = "", listed: Sequence[str] = ()) -> str:
    """Return the command for a human to run, and when to run it.

    `files`: the command's arguments where there is no master, as they are typed.
    """
    command = _command(keeper, files)
    if not lock.executed and (unlisted := ", ".join(_unlisted(keeper, lock, listed))):
        task = shlex.quote(keeper.task)
        return (
            f"put {unlisted} back into the task's file and start it; where it is to leave the task, `unshard ctl"
            f" pause-task {task}`, `unshard ctl update-task` with a file that has it, `unshard ctl update-task` with"
            f" the file without it, `unshard ctl resume-task {task}`: that takes it out, and nobody waits for it"
        )
    if lock.executed:
        others = ", ".join(lock.mismatched)
        passes = f"`{command}` lets {others} pass, whose DDL is run by nobody; then bring the tables into one structure"
        return passes if lock.mismatched else "nothing: who is missing skips the DDL on meeting it"
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


def _command(keeper: LockKeeper, files: str = "") -> str:
    return f"unshard ctl shard-ddl-lock unlock {shlex.quote(keeper.id)} {files}".rstrip()


def _mismatch(lock: Lock) -> list[str]:
    return [line for source in lock.mismatched for line in _lines(lock.mismatch(source))]


def _lines(lists: str) -> tuple[str, ...]:
    return tuple(line.strip() for line in lists.splitlines())


def _group(group: ShardingGroup, locks: LockKeeper | None, listed: Sequence[str]) -> UnresolvedGroup:
    items = group.sequence.items
    first = group.first
    lock = locks.ahead_of(group.source) if locks is not None and items else None
    why, helps = _own_tables(group), ""
    mismatch: tuple[str, ...] = ()
    if lock is not None and locks is not None and group.reported:
        why = waits_for(locks, lock, None, listed) or "the next look at the lock"
        mismatch = tuple(_mismatch(lock))
        helps = what_helps(locks, lock, listed=listed)
    elif group.unsynced and items:
        helps = "run the DDL on the tables that miss it, or drop those that are not needed any more"
        if _left_out(group):
            helps += f"; {_gives_it_anew(group, shlex.quote(locks.task) if locks is not None else '')}"
        if lock is not None:
            why = "; ".join(part for part in (lock.decision, why) if part)
            mismatch = _other_than(group.source, items[0], lock)
        if mismatch and locks is not None:
            helps = (
                "run on the tables that miss it what the others of this source have; then choose which DDL the target"
                f" gets: `{_command(locks)} --owner SOURCE`"
            )
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
        owner=lock.owner if lock is not None else "",
        mode="pessimistic",
    )


def _left_out(group: ShardingGroup) -> dict[TableName, str]:
    """Return the tables that miss the DDL, and of which a statement was left out since others wait, with its position.

    An event filter or an operator has left it out (`ShardingGroup.pass_by`).
    """
    found = {}
    for name in group.unsynced:
        state = group.tables[name]
        left = [item for item in (*state.earlier, *state.passed) if not item.ddls]
        if left:
            found[name] = str(left[-1].begin.position)
    return found


def _told_left_out(group: ShardingGroup | None) -> str:
    found = _left_out(group) if group is not None else {}
    places = ", ".join(f"{name} ({place})" for name, place in list(found.items())[:10])
    return f"; a statement was left out of {places} since, by an event filter or `binlog skip`" if found else ""


def _gives_it_anew(group: ShardingGroup, task: str) -> str:
    """Return the way to give a table the DDL that was left out of it, which it never meets by itself."""
    names, source = _named(list(_left_out(group))), shlex.quote(group.source)
    return (
        f"where it is this DDL that was left out of {names}, the table never meets it: run `ALTER TABLE …"
        " ENGINE=InnoDB` on it, and when the task stops there (SHARD-001), `unshard ctl binlog replace"
        f' {task or "TASK"} -s {source} "ALTER TABLE …"` with the DDL for this table'
    )


def _other_than(source: str, item: DdlItem, lock: Lock) -> tuple[str, ...]:
    """Return the DDL of the source and that of the lock's owner under each other; empty where they are the same."""
    if same(item.ddls, lock.ddls):
        return ()
    return _lines(side_by_side(source, item.ddls, lock.owner, lock.ddls))


def _own_tables(group: ShardingGroup) -> str:
    if group.behind:
        return "what was held is read again"
    if group.unsynced:
        return f"{group.source} has not met it in {_named(group.unsynced)}{_told_left_out(group)}"
    return f"{group.source} has met it in all tables, and will report it"
