"""`shard-ddl-lock`: lists the locks of a task's sharding DDL, and writes a user's unlock request to the target."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import closing
from typing import Any

from unshard.api.verbs import ShardDdlLock, ShardDdlLockUnlock
from unshard.errors import ShardError, Where
from unshard.model.table import TableName
from unshard.mysql.connection import session
from unshard.mysql.endpoint import to_endpoint
from unshard.operate.subject import Subject, wrong_use
from unshard.shard.lock_keeper import LockKeeper, lock_id
from unshard.shard.merged_parts import ShardId
from unshard.shard.merged_table import MergedTable
from unshard.shard.show import waiting_locks
from unshard.shard.show_merged import merged_locks
from unshard.target.meta import MetaTables
from unshard.target.sharding import Change, change, load_keeper, load_keepers, load_merged, move_merged
from unshard.target.sharding_groups import load_groups

PATIENCE_SECONDS = 10.0
"""How long an unlock waits for the owner to run the DDL, as in DM."""
_POLL_SECONDS = 0.2


def task_of(lock_id: str) -> str:
    """Return the task's name in a lock's ID. Raises ClusterError CLUSTER-047."""
    task, sign, _ = lock_id.partition("-`")
    if not sign or not lock_id.endswith("`"):
        raise wrong_use(f"a lock's ID is TASK-`DB`.`TABLE` as `shard-ddl-lock` shows it, not {lock_id}")
    return task


def answer_locks(subjects: Sequence[Subject], request: ShardDdlLock, *, files: str = "") -> dict[str, Any]:
    """Return dmctl's answer for the given tasks: the locks that some source waits for. Raises TargetError.

    `files` are the options that the suggested commands need on the command line to find the task.
    """
    locks = [lock for subject in subjects for lock in _of_task(subject, files)]
    if request.sources:
        asked = set(request.sources)
        locks = [lock for lock in locks if asked.intersection((*lock["synced"], *lock["unsynced"]))]
    return {"result": True, "msg": "" if locks else "no DDL lock exists", "locks": locks}


def answer_unlock(
    subject: Subject, request: ShardDdlLockUnlock, who: str, *, patience_seconds: float = PATIENCE_SECONDS
) -> dict[str, Any]:
    """Resolve a lock without the sources that are missing, and wait until its DDL has run.

    If the owner does not run the DDL in that time, `force_remove` removes the lock, and the DDL is run by nobody.
    Raises ShardError SHARD-003 to SHARD-006, SHARD-050 and SHARD-052 for a merged table of optimistic mode;
    ClusterError CLUSTER-047; TargetError.
    """
    meta = MetaTables(subject.meta_schema, subject.task)
    with session(to_endpoint(subject.target), "target") as connection:
        meta.create(connection)
        merged = load_merged(connection, meta)
        waiting = [one for one in merged.values() if lock_id(subject.task, one.target) == request.id]
        if waiting:
            return _force(connection, meta, waiting[0].target, request, patience_seconds)
        if request.action != "skip" or request.database or request.table:
            raise wrong_use("--action, --database and --table are of optimistic mode; this lock is pessimistic")
        keeper = _named(connection, meta, request.id)
        number = keeper.to_settle().number

        def unlock(now: LockKeeper) -> LockKeeper:
            if now.to_settle().number != number:  # somebody else has unlocked it, and the next lock is open by now
                raise ShardError("SHARD-003", Where(), values={"id": request.id})
            return now.unlock(request.owner, who)

        _decide(connection, meta, keeper, unlock)
        until = time.monotonic() + patience_seconds
        while _is_open(load_keeper(connection, meta, keeper.target), number):
            if time.monotonic() > until:
                if not request.force_remove:
                    raise ShardError("SHARD-006", Where(), values={"id": request.id, "seconds": patience_seconds})
                _decide(connection, meta, keeper, lambda now: now.remove(who) if _is_open(now, number) else now)
                return {"result": True, "msg": "removed: its DDL is run by nobody"}
            time.sleep(_POLL_SECONDS)
    return {"result": True, "msg": ""}


def _force(
    connection: Any, meta: MetaTables, target: TableName, request: ShardDdlLockUnlock, patience_seconds: float
) -> dict[str, Any]:
    """Let one shard's statement take effect although the shard's existing rows have other values than the target's.

    With `skip` the statement is not run on the target, which only takes the rows that the shard has after it. The
    answer has the statement. Raises ShardError SHARD-003 where the shard no longer waits with the one that it waited
    with at first, SHARD-050, SHARD-052, ClusterError CLUSTER-047.
    """
    if len(request.sources) != 1 or not (request.database and request.table):
        raise wrong_use(
            f"{target} is in optimistic mode: name the one that waits, `unshard ctl -s SOURCE shard-ddl-lock unlock ID"
            " --action exec|skip --database DB --table TABLE`"
        )
    shard = ShardId(request.sources[0], TableName(request.database, request.table))
    resolved = ShardError("SHARD-003", Where(shard.source, str(shard.table)), values={"id": request.id})
    seen, until = _waits_with(connection, meta, target, shard), time.monotonic() + patience_seconds
    while _is_about_to_ask(connection, meta, target, shard):
        if not seen or seen != _waits_with(connection, meta, target, shard):
            raise resolved
        if time.monotonic() > until:
            values = {"target": str(target), "seconds": patience_seconds}
            raise ShardError("SHARD-052", Where(shard.source, str(shard.table)), values=values)
        time.sleep(_POLL_SECONDS)
    told: list[str] = []

    def force(merged: MergedTable) -> MergedTable:
        state = merged.shards.get(shard)
        now = state.request if state is not None else None
        if now is not None and now.id != seen:
            raise resolved
        told[:] = now.ddls if now is not None else ()
        return merged.force(shard, skip=request.action == "skip")

    with closing(connection.cursor()) as cursor:
        cursor.execute("BEGIN")
        try:
            move_merged(cursor, meta, target, force)
        except ShardError:
            cursor.execute("ROLLBACK")
            raise
        cursor.execute("COMMIT")
    words = "left out" if request.action == "skip" else "takes effect"
    return {"result": True, "msg": f"{words}: {'; '.join(told)}"}


def _waits_with(connection: Any, meta: MetaTables, target: TableName, shard: ShardId) -> str:
    """Return the id of the request of the statement that the shard waits with; "" if none, or it is in force by now."""
    table = load_groups(connection, meta, shard.source).group(target).tables.get(shard.table)
    if table is None or not table.sequence.items:
        return ""
    met = table.sequence.items[0].payload.get("request", {}).get("id", "")
    merged = load_merged(connection, meta).get(target)
    state = merged.shards.get(shard) if merged is not None else None
    return "" if state is not None and state.done == met else str(met)


def _is_about_to_ask(connection: Any, meta: MetaTables, target: TableName, shard: ShardId) -> bool:
    """Return whether the shard has met a statement that its source has not yet requested from the merged table.

    The source writes the two in two transactions, the second when it next looks at the target.
    """
    table = load_groups(connection, meta, shard.source).group(target).tables.get(shard.table)
    if table is None or not table.sequence.items:
        return False
    merged = load_merged(connection, meta)
    state = merged[target].shards.get(shard) if target in merged else None
    met = table.sequence.items[0].payload.get("request")
    return met is not None and state is not None and (state.request is None or state.request.id != met["id"])


def _of_task(subject: Subject, files: str) -> list[dict[str, Any]]:
    meta = MetaTables(subject.meta_schema, subject.task)
    with session(to_endpoint(subject.target), "target") as connection:
        meta.create(connection)
        keepers = [keeper for keeper in load_keepers(connection, meta) if keeper.locks]
        sources = sorted({source for keeper in keepers for source in keeper.members})
        groups = {source: load_groups(connection, meta, source).groups for source in sources}
        merged = load_merged(connection, meta)
    listed = next((config.peers for config in subject.configs.values()), subject.sources)
    found = []
    for keeper in keepers:
        own = {source: groups_of[keeper.target] for source, groups_of in groups.items() if keeper.target in groups_of}
        found += waiting_locks(keeper, own, files, listed)
    for _, one in sorted(merged.items()):
        found += merged_locks(subject.task, one, files)
    return found


def _named(connection: Any, meta: MetaTables, lock_id: str) -> LockKeeper:
    for keeper in load_keepers(connection, meta):
        if keeper.id == lock_id:
            return keeper
    raise ShardError("SHARD-003", Where(), values={"id": lock_id})


def _decide(connection: Any, meta: MetaTables, keeper: LockKeeper, decision: Change) -> None:
    with closing(connection.cursor()) as cursor:
        cursor.execute("BEGIN")
        try:
            change(cursor, meta, keeper.target, decision)
        except ShardError:
            cursor.execute("ROLLBACK")
            raise
        cursor.execute("COMMIT")


def _is_open(now: LockKeeper, number: int) -> bool:
    return now.open is not None and now.open.number == number
