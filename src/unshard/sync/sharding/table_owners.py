"""Declares in the target, for the other sources of the task, which tables of a source belong to each target table.

A duplicate key in a merged table may be caused by changes that wait for a sharding DDL (`held_clash`). This happens
when a row moves, with its key, from a shard whose changes wait to a shard that is free: the target gets the INSERT
before the DELETE. The order can't be put right here: the new row has the old structure, which the target loses before
the old row may be deleted.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from unshard.ddl.pieces import StatementRules
from unshard.errors import ShardError, UnshardError, Where
from unshard.model.table import TableName
from unshard.shard.lock_keeper import lock_id
from unshard.sync.batch.plan import BatchPlan
from unshard.sync.checkpoint.store import Also, CheckpointStore
from unshard.target.receipts import hold
from unshard.target.sharding import announce, load_keeper, load_keepers, load_like, own
from unshard.target.sharding_groups import held_tables

Owned = dict[TableName, tuple[TableName, ...]]
BUSY_SECONDS = 0.2
PATIENCE_SECONDS = 60.0
"""How long a source waits for a sharding DDL that is being run on a target where the source gets its first table."""


@dataclass(slots=True)
class Ownership:
    """The declaration of which tables a source owns, for the task's other sources. Used by the sync unit's thread.

    `peers` are all sources of the task, this one too. `told` is False for the only source of a task without
    `shard-mode`: such a source declares nothing.
    """

    store: CheckpointStore
    rules: StatementRules
    peers: tuple[str, ...] = ()
    told: bool = False
    _last: Owned = field(default_factory=dict)

    def announce(self, names: Iterable[TableName]) -> None:
        """Declare at a start which tables the source owns. Waits while a DDL is run where it gets its first table.

        May be repeated. Raises ShardError SHARD-025 where the wait takes too long, SyncError SYNC-001 where another
        process has claimed the source since.
        """
        if not self.told:
            return
        store, owned = self.store, self._by_target(names)
        busy: list[frozenset[TableName]] = []

        def attempt(connection: Any) -> None:
            with connection.cursor() as cursor:
                cursor.execute("BEGIN")
                if store.epoch:
                    hold(cursor, store.meta, store.source, store.epoch)
                busy.append(announce(cursor, store.meta, store.source, owned, self.peers))
                cursor.execute("COMMIT")

        store.on_target(attempt)
        ended = time.monotonic() + PATIENCE_SECONDS
        while busy[-1]:
            if time.monotonic() > ended:
                target = ", ".join(map(str, sorted(busy[-1])))
                raise ShardError("SHARD-025", Where(store.source, target), values={"target": target})
            time.sleep(BUSY_SECONDS)
            store.on_target(attempt)
        self._last = owned

    def left(self) -> frozenset[TableName]:
        """Return the source's tables that nobody waits for, because a human has left their CREATE out."""
        store = self.store
        keepers = store.on_target(lambda c: load_keepers(c, store.meta)) if self.told else ()
        return frozenset(name for keeper in keepers for source, name in keeper.left if source == store.source)

    def declared(self) -> frozenset[TableName]:
        """Return the tables that the source has declared, in this process or an earlier one."""
        store = self.store
        keepers = store.on_target(lambda c: load_keepers(c, store.meta)) if self.told else ()
        return frozenset(name for keeper in keepers if (own := keeper.members.get(store.source)) for name in own.tables)

    def others(self, target: TableName) -> int:
        """Return how many tables other sources have declared for this target."""
        if not self.told:
            return 0
        keeper = self.store.on_target(lambda c: load_keeper(c, self.store.meta, target))
        return sum(len(member.tables) for name, member in keeper.members.items() if name != self.store.source)

    def like(self, targets: Collection[TableName]) -> dict[TableName, tuple[str, TableName]]:
        """Return a table of another source, and its target, for each of these that differs from that in case only."""
        if not self.told or not targets:
            return {}
        store = self.store
        keepers = store.on_target(lambda c: load_like(c, store.meta, targets))
        return {
            target: (f"{member.tables[0]} of {source}", keeper.target)
            for target, keeper in keepers
            for source, member in keeper.members.items()
            if source != store.source and member.tables
        }

    def changed(self, names: Iterable[TableName], changes: Mapping[TableName, object]) -> Also | None:
        """Return the write that declares the tables anew in the caller's transaction; None where nothing changes.

        `names` are the source's tables after `changes`, in which None is a table that is dropped.
        """
        targets = {self.rules.route(name) for name in changes if name.table and self.rules.allows(name)}
        if not self.told or not targets:
            return None
        now = self._by_target(names)
        differing = {target for target in targets if now.get(target, ()) != self._last.get(target, ())}
        if not differing:
            return None
        self._last = now
        meta, source = self.store.meta, self.store.source

        def write(cursor: Any) -> None:
            for target in differing:
                own(cursor, meta, source, target, now.get(target, ()))

        return write

    def _by_target(self, names: Iterable[TableName]) -> Owned:
        found: dict[TableName, list[TableName]] = {}
        for name in sorted(names):
            if name.table and self.rules.allows(name):
                found.setdefault(self.rules.route(name), []).append(name)
        return {target: tuple(tables) for target, tables in found.items()}


DUPLICATE = "SYNC-003"


def held_clash(error: UnshardError, plan: BatchPlan, store: CheckpointStore) -> ShardError | None:
    """Return SHARD-035 in place of a duplicate key error, if changes of its target table wait for a DDL; else None."""
    if error.code != DUPLICATE:
        return None
    target = next(one.name for one in plan.targets().values() if str(one.name) == error.where.table)
    held = store.on_target(lambda c: held_tables(c, store.meta, target))
    if not held:
        return None
    names = ", ".join(f"{table} of {source}" for source, table in held)
    values = {**error.values, "id": lock_id(store.meta.task, target), "held": names}
    return ShardError("SHARD-035", error.where, error.cause, values)
