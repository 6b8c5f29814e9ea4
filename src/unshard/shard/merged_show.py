"""What waits in optimistic mode, why, and what helps: for `query-status` of a source and `shard-ddl-lock` of a task."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from unshard.api.status import UnresolvedGroup
from unshard.model.table import TableName
from unshard.shard.group_keeper import ShardingGroupKeeper
from unshard.shard.lock_keeper import lock_id
from unshard.shard.merged_parts import ShardId
from unshard.shard.merged_table import MergedTable

RUN_ON_OTHERS = "run the statement on the shards that have not met it, and start the sources that are not started"
OTHER_STATEMENT = (
    "where the statement can't be the one that the others have, leave it out with `unshard ctl binlog skip`, or give"
    " another one with `unshard ctl binlog replace`, before the shard meets it"
)


def waits_of(merged: MergedTable, silent: Collection[str]) -> dict[ShardId, str]:
    """Why each request of the merged table is not in force; a request that may run waits for its source."""
    decision = merged.evaluate(silent)
    found = dict(decision.waits)
    for change in decision.changes:
        found |= dict.fromkeys(change.shards, f"{', '.join({one.source for one in change.shards})} runs it next")
    return found | dict.fromkeys(decision.barrier, "all shards have met it; the next source that looks runs it")


def leaves_of(merged: MergedTable) -> str:
    """Which columns are about to be dropped, and for which sources that waits; empty where none is."""
    if not merged.leaving:
        return ""
    since = max(merged.leaving.values())
    late = sorted(one for one in merged.sources if one not in merged.seen or merged.seen[one].version < since)
    waits = f"; {', '.join(late)} may still write them: start these sources" if late else ""
    return f"no shard has {', '.join(sorted(merged.leaving))} any more: dropped next{waits}"


def waiting_shards(
    keeper: ShardingGroupKeeper, merged: Mapping[TableName, MergedTable], silent: Collection[str]
) -> tuple[UnresolvedGroup, ...]:
    """Of one source: each group with a table that waits, the oldest first."""
    found = []
    for group in keeper.unresolved:
        table = merged.get(group.target)
        waits = waits_of(table, silent) if table is not None else {}
        reasons = []
        for name in group.synced:
            why = waits.get(ShardId(group.source, name), "the next look at the target")
            reasons.append(f"{name}: {why}")
        if group.behind:
            reasons.append("what was held is read again")
        items = [group.tables[name].sequence.items[0] for name in group.synced]
        first = group.first
        found.append(
            UnresolvedGroup(
                target=group.target.quoted,
                DDLs=tuple(dict.fromkeys(ddl for item in items for ddl in item.ddls)),
                first_location=str(first) if first is not None else "",
                synced=tuple(name.quoted for name in group.synced),
                unsynced=tuple(name.quoted for name in group.unsynced) if items else (),
                since=min((item.time for item in items if item.time), default=""),
                waits_for="; ".join(reasons),
                help=f"{RUN_ON_OTHERS}; {OTHER_STATEMENT}" if items else "",
                owner=table.runner.source if table is not None and table.runner is not None else "",
            )
        )
    return tuple(found)


def merged_locks(task: str, merged: MergedTable, silent: Collection[str]) -> list[dict[str, Any]]:
    """DM's form of a lock, where something waits in the merged table; `mode` is optimistic."""
    waits, leaving = waits_of(merged, silent), leaves_of(merged)
    if not waits and not leaving and merged.runner is None:
        return []
    requests = {shard: state.request for shard, state in merged.shards.items() if state.request is not None}
    since = min((one.since for one in requests.values() if one.since), default="")
    parts = [f"{shard}: {why}" for shard, why in sorted(waits.items())] + ([leaving] if leaving else [])
    if merged.runner is not None:
        parts.append(f"{merged.runner.source or 'the next source'} changes the target")
    return [
        {
            "ID": lock_id(task, merged.target),
            "task": task,
            "mode": "optimistic",
            "owner": merged.runner.source if merged.runner is not None else "",
            "DDLs": sorted({ddl for one in requests.values() for ddl in one.ddls}),
            "synced": sorted({f"{shard.source}-{shard.table.quoted}" for shard in requests}),
            "unsynced": sorted({f"{one.source}-{one.table.quoted}" for one in merged.shards.keys() - requests.keys()}),
            "since": since,
            "waitsFor": "; ".join(parts),
            "mismatch": [],
            "help": f"{RUN_ON_OTHERS}; {OTHER_STATEMENT}" if requests else "",
        }
    ]
