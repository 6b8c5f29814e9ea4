"""Which of a source's tables land in which target table, said to all sources of the task by rows in the target."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from unshard.ddl.pieces import StatementRules
from unshard.errors import ShardError, UnshardError, Where
from unshard.model.table import TableName
from unshard.shard.lock_keeper import lock_id
from unshard.sync.batch.plan import BatchPlan
from unshard.sync.checkpoint.store import Also, CheckpointStore
from unshard.target.receipts import hold
from unshard.target.sharding import announce, held_tables, load_keeper, load_keepers, own

Owned = dict[TableName, tuple[TableName, ...]]
BUSY_SECONDS = 0.2
PATIENCE_SECONDS = 60.0
"""How long a sharding DDL that is being run may hold up a source that gets its first table there."""


@dataclass(slots=True)
class Ownership:
    """Used by the sync unit's thread. `peers` are all sources of the task, this one too.

    A source that is alone, without `shard-mode`, tells nobody: `told` is False.
    """

    store: CheckpointStore
    rules: StatementRules
    peers: tuple[str, ...] = ()
    told: bool = False
    _last: Owned = field(default_factory=dict)

    def announce(self, names: Iterable[TableName]) -> None:
        """Say at a start what the source owns; waits while a DDL is being run where it gets its first table.

        Raises ShardError SHARD-025 where that takes too long, SyncError SYNC-001 where another process has taken the
        source over since its claim.
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
        """Tables of the source that nobody waits for: a human has left their CREATE out."""
        store = self.store
        keepers = store.on_target(lambda c: load_keepers(c, store.meta)) if self.told else ()
        return frozenset(name for keeper in keepers for source, name in keeper.left if source == store.source)

    def declared(self) -> frozenset[TableName]:
        """What the source has said that it owns, in this process or an earlier one."""
        store = self.store
        keepers = store.on_target(lambda c: load_keepers(c, store.meta)) if self.told else ()
        return frozenset(name for keeper in keepers if (own := keeper.members.get(store.source)) for name in own.tables)

    def others(self, target: TableName) -> int:
        """How many tables of other sources land there, as they have said."""
        if not self.told:
            return 0
        keeper = self.store.on_target(lambda c: load_keeper(c, self.store.meta, target))
        return sum(len(member.tables) for name, member in keeper.members.items() if name != self.store.source)

    def changed(self, names: Iterable[TableName], changes: Mapping[TableName, object]) -> Also | None:
        """What says that tables have come and gone, where `changes` (None: gone) made `names` of now; else None."""
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


# A duplicate key in a merged table: whether it may be that of a row whose changes wait for a sharding DDL.
#
# A row that leaves a held shard and comes to one that is free under the same key is deleted later than it is
# inserted. Neither can be put right here: the new row is of the old structure, which the target loses before the old
# row may go.


DUPLICATE = "SYNC-003"


def held_clash(error: UnshardError, plan: BatchPlan, store: CheckpointStore) -> ShardError | None:
    """SHARD-035 in the place of the error that stopped the batch, where changes of its target table are held."""
    if error.code != DUPLICATE:
        return None
    target = next(one.name for one in plan.targets().values() if str(one.name) == error.where.table)
    held = store.on_target(lambda c: held_tables(c, store.meta, target))
    if not held:
        return None
    names = ", ".join(f"{table} of {source}" for source, table in held)
    values = {**error.values, "id": lock_id(store.meta.task, target), "held": names}
    return ShardError("SHARD-035", error.where, error.cause, values)
