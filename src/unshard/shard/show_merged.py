"""Shows the waiting statements of optimistic mode: what each waits for, since when, and the command to end the wait."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping
from typing import Any

from unshard.api.status import UnresolvedGroup
from unshard.model.table import TableName
from unshard.shard.group import ShardingGroup
from unshard.shard.group_keeper import ShardingGroupKeeper
from unshard.shard.lock_keeper import lock_id
from unshard.shard.merged_parts import ShardId, Wait, WaitKind
from unshard.shard.merged_table import MergedTable

_TOLD = 10
"""The most shards whose waits, conflicts and ways out are told one by one."""
_LOOKS = Wait(WaitKind.BUSY, "the next look at the target")


def waits_of(merged: MergedTable) -> dict[ShardId, Wait]:
    """Return why each request of the merged table is not in force. A request that may run waits for its source."""
    decision = merged.evaluate()
    found = dict(decision.waits)
    for change in decision.changes:
        runs = Wait(WaitKind.BUSY, f"{', '.join({one.source for one in change.shards})} runs it next")
        found |= dict.fromkeys(change.shards, runs)
    met = Wait(WaitKind.BUSY, "all shards have met it; the next source that looks runs it")
    return found | dict.fromkeys(decision.barrier, met)


def leaves_of(merged: MergedTable) -> str:
    """Return which columns are to be dropped next, and which sources that waits for; empty if there are none."""
    if not merged.leaving:
        return ""
    since = max(merged.leaving.values())
    late = {one for one in merged.sources if one not in merged.seen or merged.seen[one].version < since}
    late |= set(merged.awaited)
    waits = f"; {', '.join(sorted(late))} may still write them: {_start(merged)}" if late else ""
    return f"no shard has {', '.join(sorted(merged.leaving))} any more: dropped next{waits}"


def _conflict(merged: MergedTable, waits: Mapping[ShardId, Wait]) -> tuple[str, tuple[str, ...]]:
    """Return the first shard whose statement conflicts, by DM's name for it, and DM's message for the first of them.

    In place of the shard: the source that changes the target, if one does.
    """
    found = {shard: wait for shard, wait in sorted(waits.items()) if wait.is_conflict}
    messages = []
    for shard, wait in list(found.items())[:_TOLD]:
        request = merged.shards[shard].request
        ddls = "; ".join(request.ddls) if request is not None else ""
        messages.append(f"there will be conflicts if DDLs {ddls} of {shard} are applied to the downstream: {wait.why}")
    owner = merged.runner.source if merged.runner is not None else next((_dm_name(shard) for shard in found), "")
    return owner, tuple(messages)


def _dm_name(shard: ShardId) -> str:
    return f"{shard.source}-{shard.table.quoted}"


def what_ends(task: str, merged: MergedTable, shard: ShardId, wait: Wait, files: str = "") -> str:
    """Return what ends the wait of a shard, with the command for a human to run. `files` is as in `what_helps`."""
    match wait.kind:
        case WaitKind.BUSY:
            return "nothing, while all sources run; where one has stopped, its error tells what to do"
        case WaitKind.UNKNOWN:
            return _start(merged)
        case WaitKind.SHARDS:
            skip = _skip(task, shard, merged, files)
            return f"run the statement on the shards that have not met it. If they never will: {skip}"
        case WaitKind.CANNOT | WaitKind.STATEMENTS:
            replaces = (
                f"unshard ctl binlog replace {files or shlex.quote(task)} -s {shlex.quote(shard.source)} -b FILE:POS"
            )
            return (
                f"{_skip(task, shard, merged, files)}; or `{replaces}` gives another statement in its place, where"
                " FILE:POS is the firstLocation of `unshard ctl query-status`"
            )
        case WaitKind.STRUCTURES:
            return (
                "alter the shards that differ into structures that have a common one; or"
                f" {_skip(task, shard, merged, files)}; without that column, if its type has no common one with theirs"
            )
        case WaitKind.VALUES:
            command = _unlock(task, shard, merged, "exec", files)
            return f"`{command}` lets the shard have it; then set the column in its old rows as the source has it"


def _start(merged: MergedTable) -> str:
    late = ", ".join(merged.awaited) or "these sources"
    return (
        f"start {late}; one that is to leave the task is taken out by `unshard ctl update-task` with a file without it"
    )


def _skip(task: str, shard: ShardId, merged: MergedTable, files: str) -> str:
    command = _unlock(task, shard, merged, "skip", files)
    return f"`{command}` leaves the statement out of the target, which takes the shard's rows as they are"


def _unlock(task: str, shard: ShardId, merged: MergedTable, action: str, files: str) -> str:
    words = ["unshard", "ctl", "-s", shard.source, "shard-ddl-lock", "unlock", lock_id(task, merged.target)]
    own = ["--action", action, "--database", shard.table.schema, "--table", shard.table.table]
    return " ".join(part for part in (shlex.join(words), files, shlex.join(own)) if part)


def waiting_shards(
    task: str, keeper: ShardingGroupKeeper, merged: Mapping[TableName, MergedTable]
) -> tuple[UnresolvedGroup, ...]:
    """Return the groups of one source that have a waiting table, the oldest first."""
    return tuple(_waiting(task, group, merged.get(group.target)) for group in keeper.unresolved)


def _waiting(task: str, group: ShardingGroup, merged: MergedTable | None) -> UnresolvedGroup:
    decided = waits_of(merged) if merged is not None else {}
    waits = {shard: decided.get(shard, _LOOKS) for shard in (ShardId(group.source, name) for name in group.synced)}
    reasons = [f"{shard.table}: {wait.why}" for shard, wait in waits.items()]
    if group.behind:
        reasons.insert(0, "what was held is read again")
    helps: list[str] = []
    owner, conflicts = "", tuple[str, ...]()
    if merged is not None:
        helps = [what_ends(task, merged, shard, wait) for shard, wait in waits.items() if wait is not _LOOKS]
        owner, conflicts = _conflict(merged, waits)
    items = [group.tables[name].sequence.items[0] for name in group.synced]
    first = group.first
    return UnresolvedGroup(
        target=group.target.quoted,
        DDLs=tuple(dict.fromkeys(ddl for item in items for ddl in item.ddls)),
        first_location=str(first) if first is not None else "",
        synced=tuple(name.quoted for name in group.synced),
        unsynced=tuple(name.quoted for name in group.unsynced) if items else (),
        since=min((item.time for item in items if item.time), default=""),
        waits_for=_listed(reasons),
        mismatch=conflicts,
        help=_listed(helps),
        owner=owner,
        mode="optimistic",
    )


def merged_locks(task: str, merged: MergedTable, files: str = "") -> list[dict[str, Any]]:
    """Return DM's form of a lock where something waits in the merged table, else nothing; `mode` is optimistic."""
    waits, leaving = waits_of(merged), leaves_of(merged)
    if not waits and not leaving and merged.runner is None:
        return []
    requests = {shard: state.request for shard, state in merged.shards.items() if state.request is not None}
    since = min((one.since for one in requests.values() if one.since), default="")
    parts = [f"{merged.runner.source or 'the next source'} changes the target"] if merged.runner is not None else []
    parts += [leaving] if leaving else []
    parts += [f"{shard}: {wait.why}" for shard, wait in sorted(waits.items())]
    helps = [what_ends(task, merged, shard, wait, files) for shard, wait in sorted(waits.items())]
    owner, conflicts = _conflict(merged, waits)
    return [
        {
            "ID": lock_id(task, merged.target),
            "task": task,
            "mode": "optimistic",
            "owner": owner,
            "DDLs": sorted({ddl for one in requests.values() for ddl in one.ddls}),
            "synced": sorted(map(_dm_name, requests)),
            "unsynced": sorted(map(_dm_name, merged.shards.keys() - requests.keys())),
            "since": since,
            "waitsFor": _listed(parts),
            "mismatch": list(conflicts),
            "help": _listed(helps),
        }
    ]


def _listed(parts: Iterable[str]) -> str:
    """Return the parts as one text, each once, and of many the first ones with the number of the others."""
    found = list(dict.fromkeys(parts))
    more = [f"and {len(found) - _TOLD} more"] if len(found) > _TOLD else []
    return "; ".join([*found[:_TOLD], *more])
