"""Who owns which tables of a merged target, and the locks of its DDL: rows in the target that all sources share.

`<task>_shard_source` has the sources of the task and whether each has said which tables it owns; `<task>_shard_lock`
one row a target table, the pure `LockKeeper` in JSON. Whoever writes first locks all rows of `shard_source`, so that
writers come one after the other; what they write commits with the checkpoint of the caller's transaction.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from unshard.errors import Where
from unshard.model.stored_form import stamped, version_of
from unshard.model.table import TableName, name_form, name_of
from unshard.shard.group import ShardingGroup, TableState
from unshard.shard.group_keeper import ShardingGroupKeeper
from unshard.shard.lock import Outcome
from unshard.shard.lock_keeper import LockKeeper
from unshard.shard.sequence import Gone
from unshard.target.merged_tables import take_out_of_merged
from unshard.target.meta import MetaTables
from unshard.target.receipts import hand_on
from unshard.target.transactions import upsert

Change = Callable[[LockKeeper], LockKeeper]


@dataclass(frozen=True, slots=True)
class LockAnswer:
    """What a source does about the DDL that it has reported, and the locks that tell so; None: it has reported none.

    `mismatch`: both lists under each other, else empty.
    """

    outcome: Outcome | None
    keeper: LockKeeper
    mismatch: str = ""


def announce(
    cursor: Any, meta: MetaTables, source: str, owned: Mapping[TableName, Collection[TableName]], task: Collection[str]
) -> frozenset[TableName]:
    """Say at the start which tables the source owns, by target; `task` are all sources of the task.

    Gives the targets of which a first table can't be declared while a DDL is being run there; all others are written.
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
    """Say that these are the source's tables of that target now; a table has come or gone.

    False, with nothing written, where its first table has to wait because a DDL is being run on the target just now.
    Else no DDL is run there without this source from the end of the caller's transaction on.
    """
    keeper = _one(cursor, meta, target)
    if tables and not _may_own(keeper, source):
        return False
    _save(cursor, meta, [keeper.declare(source, tables)])
    return True


def leave(cursor: Any, meta: MetaTables, source: str, target: TableName, table: TableName) -> None:
    """The source has that table, and nobody waits for it: its CREATE was left out. In the transaction that says so."""
    change(cursor, meta, target, lambda keeper: keeper.leave(source, table))


def join(cursor: Any, meta: MetaTables, source: str, target: TableName, ddls: tuple[str, ...]) -> None:
    """All tables of the source have met `ddls`, and all changes before it are in the target. May be said again."""
    time = datetime.now(UTC).isoformat(timespec="seconds")
    change(cursor, meta, target, lambda keeper: keeper.join(source, ddls, time))


def look(connection: Any, meta: MetaTables, source: str) -> dict[TableName, LockAnswer]:
    """What the source does about each DDL that is ahead of it, by target."""
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
    """The source goes on behind the DDL: its owner has run it, or it skips it. In the transaction that says so."""
    change(cursor, meta, target, lambda keeper: keeper.done(source))


def change(cursor: Any, meta: MetaTables, target: TableName, make: Change) -> LockKeeper:
    """Move a target's locks by a method of the keeper, in the caller's transaction."""
    before = _one(cursor, meta, target)
    after = make(before)
    if after.to_dict() != before.to_dict():
        _save(cursor, meta, [after])
    return after


def copy_has(cursor: Any, meta: MetaTables, source: str, target: TableName, met: int) -> None:
    """A table of the source that lands there is copied behind the first `met` DDL that the source will report."""
    change(cursor, meta, target, lambda keeper: keeper.copy_has(source, met))


def forget_source(cursor: Any, meta: MetaTables, source: str) -> None:
    """The source is no part of the task any more: nothing waits for it. Where it comes back it goes on counting.

    A DDL that it has begun is for the next owner to finish, in `Lock.begun`.
    """
    plan = hand_on(cursor, meta, source)
    begun = {TableName(*plan["group"]): plan["intent"]} if plan is not None else {}
    silent = _hold(cursor, meta)
    found = _load(cursor, meta, silent, " FOR UPDATE")
    _save(cursor, meta, [keeper.take_out(source, begun.get(keeper.target)) for keeper in found])
    take_out_of_merged(cursor, meta, source, next(iter(begun.items()), None))
    cursor.execute(f"DELETE FROM {meta.shard_source} WHERE source = %s", (source,))


def load_keeper(connection: Any, meta: MetaTables, target: TableName) -> LockKeeper:
    """One target as it is now; nothing is locked."""
    with connection.cursor() as cursor:
        return _one(cursor, meta, target, "")


def load_keepers(connection: Any, meta: MetaTables) -> tuple[LockKeeper, ...]:
    """All targets of the task, for whoever shows them."""
    with connection.cursor() as cursor:
        return _load(cursor, meta, _hold(cursor, meta, ""), " ORDER BY target_schema, target_table")


def _may_own(keeper: LockKeeper, source: str) -> bool:
    return source in keeper.members or source in keeper.silent or not keeper.busy


def _hold(cursor: Any, meta: MetaTables, lock: str = " FOR UPDATE") -> frozenset[str]:
    """The sources that have not said anything yet; whoever asks with a lock is the only writer until it ends."""
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
    """Write them anew; a target that nobody has a table of, or had when it left, loses its row."""
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


# Unresolved sharding groups of a source: DM's table `<task>_syncer_sharding_meta`, with data of our own form.
#
# One row a source table and one, `is_global`, for the group; none for a group that holds no table. They move in the
# transaction that moves the checkpoint, so they always tell what is held at that place of the log.


_COLUMNS = "source_id, target_table_id, source_table_id, active_index, is_global, data"


def load_groups(connection: Any, meta: MetaTables, source: str) -> ShardingGroupKeeper:
    """The groups of a source that hold tables."""
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT target_table_id, active_index, is_global, data FROM {meta.sharding_meta} WHERE source_id = %s",
            (source,),
        )
        found = cursor.fetchall()
    tables: dict[TableName, dict[TableName, TableState]] = {}
    heads: dict[TableName, tuple[int, bool, tuple[Gone, ...]]] = {}
    for _, index, is_global, data in found:
        form = json.loads(data)
        version_of(form, "the record of a sharding group", Where(source))
        target = name_of(form["target"])
        if is_global:
            heads[target] = int(index), form["reported"], tuple(map(Gone.from_dict, form.get("gone", ())))
        else:
            tables.setdefault(target, {})[name_of(form["table"])] = TableState.from_dict(form["state"])
    groups = {target: ShardingGroup(source, target, tables.get(target, {}), *head) for target, head in heads.items()}
    return ShardingGroupKeeper(source, groups)


def held_tables(connection: Any, meta: MetaTables, target: TableName) -> tuple[tuple[str, TableName], ...]:
    """The tables of all sources whose changes wait for a DDL of the target, each behind its source."""
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT source_id, data FROM {meta.sharding_meta} WHERE target_table_id = %s AND NOT is_global"
            " ORDER BY source_id, source_table_id",
            (_id(target),),
        )
        rows = [(source, json.loads(data)) for source, data in cursor.fetchall()]
    held = ((source, form) for source, form in rows if not TableState.from_dict(form["state"]).idle)
    return tuple((source, name_of(form["table"])) for source, form in held)


def save_group(cursor: Any, meta: MetaTables, before: ShardingGroup | None, after: ShardingGroup) -> None:
    """Write what has changed since `before`, what was loaded or saved last; runs in the caller's transaction."""
    key = (after.source, _id(after.target))
    if not after.unresolved:
        cursor.execute(f"DELETE FROM {meta.sharding_meta} WHERE source_id = %s AND target_table_id = %s", key)
        return
    known = before.tables if before is not None and before.unresolved else {}
    target = name_form(after.target)
    head = {"target": target, "reported": after.reported, "gone": [one.to_dict() for one in after.gone]}

    def rows() -> Iterator[tuple[Any, ...]]:
        """Made as they are sent: a transaction must not be silent for long."""
        yield (*key, "", after.resolved, True, json.dumps(stamped(head)))
        for table, state in after.tables.items():
            if known.get(table) != state:
                form = {"target": target, "table": name_form(table), "state": state.to_dict()}
                yield (*key, _id(table), after.resolved, False, json.dumps(stamped(form)))

    cursor.executemany(
        f"INSERT INTO {meta.sharding_meta} ({_COLUMNS}) VALUES (%s, %s, %s, %s, %s, %s)"
        " ON DUPLICATE KEY UPDATE active_index = VALUES(active_index), data = VALUES(data)",
        rows(),
    )
    for table in known.keys() - after.tables.keys():
        cursor.execute(
            f"DELETE FROM {meta.sharding_meta} WHERE source_id = %s AND target_table_id = %s AND source_table_id = %s",
            (*key, _id(table)),
        )


def _id(name: TableName) -> str:
    """DM's name of a table in these rows."""
    return name.quoted
