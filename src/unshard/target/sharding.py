"""The state that all sources of a task share about a merged target table: its owners and its DDL.

| table | holds |
|---|---|
| `<task>_shard_source` | the sources of the task, and whether each has declared which tables it owns |
| `<task>_shard_lock` | a row for each target table: the pure `LockKeeper` in JSON, with the locks of its DDL |
| `<task>_shard_merged` | a row for each target table in optimistic mode: the pure `MergedTable` in JSON |

A writer first locks all rows of `shard_source`, so that writers come one after the other; their changes commit with the
checkpoint of the caller's transaction.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

from unshard.model.table import TableName, name_of
from unshard.shard.lock_keeper import LockKeeper, Outcome
from unshard.shard.merged_form import from_form, to_form
from unshard.shard.merged_parts import ShardId
from unshard.shard.merged_table import MergedTable
from unshard.shard.sequence import Form
from unshard.target.meta import MetaTables
from unshard.target.receipts import hand_on
from unshard.target.transactions import upsert

Change = Callable[[LockKeeper], LockKeeper]


@dataclass(frozen=True, slots=True)
class LockAnswer:
    """The action of a source for a DDL that it has reported, and the locks that decide it.

    Args:
        outcome: None where the source has not reported the DDL.
        keeper: the target's locks.
        mismatch: the source's statements and the lock's, one under the other, where they differ; else "".
    """

    outcome: Outcome | None
    keeper: LockKeeper
    mismatch: str = ""


def announce(
    cursor: Any, meta: MetaTables, source: str, owned: Mapping[TableName, Collection[TableName]], task: Collection[str]
) -> frozenset[TableName]:
    """Declare at the start which tables the source owns, by target; `task` are all sources of the task.

    Returns the targets of which a first table can't be declared while a DDL is being run there; all others are written.
    Runs in the caller's transaction, and may run again.
    """
    named = ", ".join(["(%s, FALSE)"] * len(task))
    upsert(
        cursor,
        f"INSERT INTO {meta.shard_source} (source, declared) VALUES {named} ON DUPLICATE KEY UPDATE source = source",
        sorted(task),
    )
    silent = _hold(cursor, meta)
    busy, changed = set(), []
    found = {keeper.target: keeper for keeper in _load(cursor, meta, silent, " FOR UPDATE")}
    for target in sorted(found.keys() | owned.keys()):
        keeper = found.get(target) or LockKeeper(meta.task, target, silent)
        tables = owned.get(target, ())
        if tables and not _may_own(keeper, source):
            busy.add(target)
            continue
        after = keeper.declare(source, tables)
        if after.to_dict() != keeper.to_dict():
            changed.append(after)
    _save(cursor, meta, changed)
    cursor.execute(f"UPDATE {meta.shard_source} SET declared = TRUE WHERE source = %s", (source,))
    return frozenset(busy)


def own(cursor: Any, meta: MetaTables, source: str, target: TableName, tables: Collection[TableName]) -> bool:
    """Declare that these are now the source's tables of that target; a table has come or gone.

    False, with nothing written, where the source's first table has to wait because a DDL is being run on the target
    now. Otherwise, once the caller's transaction has ended, no DDL is run there without this source.
    """
    keeper = _one(cursor, meta, target)
    if tables and not _may_own(keeper, source):
        return False
    _save(cursor, meta, [keeper.declare(source, tables)])
    return True


def leave(cursor: Any, meta: MetaTables, source: str, target: TableName, table: TableName) -> None:
    """Record that the source has that table and nobody waits for it: its CREATE was left out.

    Runs in the transaction that leaves the CREATE out.
    """
    change(cursor, meta, target, lambda keeper: keeper.leave(source, table))


def join(cursor: Any, meta: MetaTables, source: str, target: TableName, ddls: tuple[str, ...]) -> None:
    """Record that all tables of the source have met `ddls`, and the target has all changes before. May run again."""
    time = datetime.now(UTC).isoformat(timespec="seconds")
    change(cursor, meta, target, lambda keeper: keeper.join(source, ddls, time))


def look(connection: Any, meta: MetaTables, source: str) -> dict[TableName, LockAnswer]:
    """Return the source's action for each DDL that it has still to pass, by target."""
    with connection.cursor() as cursor:
        found = _load(cursor, meta, _hold(cursor, meta, ""), " WHERE locks > 0")
    answers = {}
    for keeper in found:
        lock = keeper.ahead_of(source)
        if lock is not None:
            outcome = keeper.outcome(source)
            mismatch = lock.mismatch(source) if outcome is Outcome.MISMATCH else ""
            answers[keeper.target] = LockAnswer(outcome, keeper, mismatch)
    return answers


def done(cursor: Any, meta: MetaTables, source: str, target: TableName) -> None:
    """Record that the source goes on after the DDL: the owner has run it, or the source skips it.

    Runs in the transaction that stores this.
    """
    change(cursor, meta, target, lambda keeper: keeper.done(source))


def change(cursor: Any, meta: MetaTables, target: TableName, make: Change) -> LockKeeper:
    """Replace a target's locks by the result of a method of the keeper, in the caller's transaction."""
    before = _one(cursor, meta, target)
    after = make(before)
    if after.to_dict() != before.to_dict():
        _save(cursor, meta, [after])
    return after


def copy_has(cursor: Any, meta: MetaTables, source: str, target: TableName, met: int) -> None:
    """Record that the copy of a table of the source contains the first `met` DDL that the source will report."""
    change(cursor, meta, target, lambda keeper: keeper.copy_has(source, met))


def forget_source(cursor: Any, meta: MetaTables, source: str) -> None:
    """Remove a source that is no longer part of the task: nothing waits for it. If it comes back, it goes on counting.

    The next owner finishes a DDL that the source has begun, in `Lock.begun`.
    """
    plan = hand_on(cursor, meta, source)
    begun = {TableName(*plan["group"]): plan["intent"]} if plan is not None else {}
    silent = _hold(cursor, meta)
    found = _load(cursor, meta, silent, " FOR UPDATE")
    _save(cursor, meta, [keeper.take_out(source, begun.get(keeper.target)) for keeper in found])
    take_out_of_merged(cursor, meta, source, next(iter(begun.items()), None))
    cursor.execute(f"DELETE FROM {meta.shard_source} WHERE source = %s", (source,))


def load_keeper(connection: Any, meta: MetaTables, target: TableName) -> LockKeeper:
    """Return the locks of one target as they are now; locks no row."""
    with connection.cursor() as cursor:
        return _one(cursor, meta, target, "")


def load_keepers(connection: Any, meta: MetaTables) -> tuple[LockKeeper, ...]:
    """Return the locks of all targets of the task, for display."""
    with connection.cursor() as cursor:
        return _load(cursor, meta, _hold(cursor, meta, ""), " ORDER BY target_schema, target_table")


def load_like(
    connection: Any, meta: MetaTables, targets: Collection[TableName]
) -> tuple[tuple[TableName, LockKeeper], ...]:
    """Return pairs of one of these targets and the locks of one whose name differs in case only; locks no row."""
    asked, names = f"SELECT target_schema, target_table FROM {meta.shard_lock}", tuple(targets)
    only = " WHERE LOWER(target_schema) = LOWER(%s) AND LOWER(target_table) = LOWER(%s)"
    with connection.cursor() as cursor:
        if len(names) == 1:
            cursor.execute(asked + only, (names[0].schema, names[0].table))
        else:
            cursor.execute(asked)
        there: dict[str, list[TableName]] = {}
        for found in cursor.fetchall():
            there.setdefault("\0".join(found).lower(), []).append(TableName(*found))
        return tuple(
            (name, _one(cursor, meta, other, ""))
            for name in names
            for other in sorted(there.get(f"{name.schema}\0{name.table}".lower(), ()))
            if other != name
        )


def _may_own(keeper: LockKeeper, source: str) -> bool:
    return source in keeper.members or source in keeper.silent or not keeper.busy


def _hold(cursor: Any, meta: MetaTables, lock: str = " FOR UPDATE") -> frozenset[str]:
    """Return the sources that have not declared yet. With a lock, the caller is the only writer until it ends."""
    cursor.execute(f"SELECT source, declared FROM {meta.shard_source} ORDER BY source{lock}")
    return frozenset(source for source, declared in cursor.fetchall() if not declared)


def _one(cursor: Any, meta: MetaTables, target: TableName, lock: str = " FOR UPDATE") -> LockKeeper:
    silent = _hold(cursor, meta, lock)
    cursor.execute(
        f"SELECT state FROM {meta.shard_lock} WHERE target_schema = %s AND target_table = %s{lock}",
        (target.schema, target.table),
    )
    found = cursor.fetchone()
    if found is None:
        return LockKeeper(meta.task, target, silent)
    return LockKeeper.from_dict(meta.task, target, silent, json.loads(found[0]))


def _load(cursor: Any, meta: MetaTables, silent: frozenset[str], which: str) -> tuple[LockKeeper, ...]:
    cursor.execute(f"SELECT target_schema, target_table, state FROM {meta.shard_lock}{which}")
    return tuple(
        LockKeeper.from_dict(meta.task, TableName(schema, table), silent, json.loads(state))
        for schema, table, state in cursor.fetchall()
    )


def _kept(keeper: LockKeeper) -> bool:
    return bool(keeper.members or keeper.left or keeper.away)


def _save(cursor: Any, meta: MetaTables, keepers: Collection[LockKeeper]) -> None:
    """Write the locks anew; a target without tables, of present or former sources, loses its row."""
    rows = [
        (keeper.target.schema, keeper.target.table, len(keeper.locks), json.dumps(keeper.to_dict()))
        for keeper in keepers
        if _kept(keeper)
    ]
    if rows:
        cursor.executemany(
            f"REPLACE INTO {meta.shard_lock} (target_schema, target_table, locks, state) VALUES (%s, %s, %s, %s)", rows
        )
    for keeper in keepers:
        if not _kept(keeper):
            cursor.execute(
                f"DELETE FROM {meta.shard_lock} WHERE target_schema = %s AND target_table = %s",
                (keeper.target.schema, keeper.target.table),
            )


Step = Callable[[MergedTable], MergedTable]
"""Maps a merged table to its next state."""


def load_merged(connection: Any, meta: MetaTables) -> dict[TableName, MergedTable]:
    """Return all merged tables of the task, each with the sources that it may still get shards of."""
    with connection.cursor() as cursor:
        silent = _hold(cursor, meta, "")
        cursor.execute(f"SELECT target_schema, target_table, state FROM {meta.shard_lock}")
        declared = {TableName(schema, table): _declared(state) for schema, table, state in cursor.fetchall()}
        cursor.execute(f"SELECT target_schema, target_table, state FROM {meta.shard_merged}")
        found = {(name := TableName(schema, table)): _read(name, state) for schema, table, state in cursor.fetchall()}
    none = frozenset[ShardId]()
    return {name: replace(one, silent=silent, declared=declared.get(name, none)) for name, one in found.items()}


def move_merged(cursor: Any, meta: MetaTables, target: TableName, step: Step) -> MergedTable:
    """Apply one step to a merged table as it is now, in the caller's transaction; return the new state."""
    silent, key = _hold(cursor, meta), (target.schema, target.table)
    of_target = "WHERE target_schema = %s AND target_table = %s FOR UPDATE"
    cursor.execute(f"SELECT state FROM {meta.shard_lock} {of_target}", key)
    locks = cursor.fetchone()
    cursor.execute(f"SELECT state FROM {meta.shard_merged} {of_target}", key)
    found = cursor.fetchone()
    before = _read(target, found[0]) if found is not None else MergedTable(target)
    before = replace(before, silent=silent, declared=_declared(locks[0]) if locks is not None else frozenset())
    after = step(before)
    if after != before:
        _save_merged(cursor, meta, after)
    return after


def take_out_of_merged(
    cursor: Any, meta: MetaTables, source: str, begun: tuple[TableName, Form] | None = None, *, forget: bool = False
) -> None:
    """Remove a source that is no longer part of the task; it goes on where it was if it comes back.

    `begun`: the target of a change that the source has open, and the change's intent. `forget`: the task has left
    optimistic mode, so nothing of the source is kept.
    """
    _hold(cursor, meta)
    cursor.execute(f"SELECT target_schema, target_table, state FROM {meta.shard_merged} FOR UPDATE")
    for schema, table, state in cursor.fetchall():
        target = TableName(schema, table)
        before = _read(target, state)
        open_change = begun[1] if begun is not None and begun[0] == target else None
        after = before.take_out(source, open_change, forget=forget)
        if after != before:
            _save_merged(cursor, meta, after)


@lru_cache(maxsize=16)
def _read(target: TableName, state: str) -> MergedTable:
    """Return the value of a stored state. Of 512 shards it takes some milliseconds, and a statement reads it often."""
    return from_form(target, json.loads(state))


@lru_cache(maxsize=16)
def _declared(state: str) -> frozenset[ShardId]:
    """Return the tables that sources have declared for the target of a stored lock."""
    members = json.loads(state)["members"]
    return frozenset(ShardId(source, name_of(name)) for source, one in members.items() for name in one["tables"])


def _save_merged(cursor: Any, meta: MetaTables, merged: MergedTable) -> None:
    """Write the row of a merged table; one without shards, present or absent, loses it unless a change is open."""
    key = (merged.target.schema, merged.target.table)
    if not merged.shards and not merged.absent and merged.runner is None:
        cursor.execute(f"DELETE FROM {meta.shard_merged} WHERE target_schema = %s AND target_table = %s", key)
        return
    cursor.execute(
        f"REPLACE INTO {meta.shard_merged} (target_schema, target_table, state) VALUES (%s, %s, %s)",
        (*key, json.dumps(to_form(merged))),
    )
