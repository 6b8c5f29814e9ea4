"""Which of a source's tables land in which target table, said to all sources of the task by rows in the target."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from unshard.ddl.pieces import StatementRules
from unshard.errors import ShardError, Where
from unshard.model.table import TableName
from unshard.sync.journal import Also, Journal
from unshard.target.receipts import hold
from unshard.target.shard_locks import announce, load_keeper, load_keepers, own

Owned = dict[TableName, tuple[TableName, ...]]
BUSY_SECONDS = 0.2
PATIENCE_SECONDS = 60.0
"""How long a sharding DDL that is being run may hold up a source that gets its first table there."""


@dataclass(slots=True)
class Ownership:
    """Used by the sync unit's thread. `peers` are all sources of the task, this one too.

    A source that is alone, without `shard-mode`, tells nobody: `told` is False.
    """

    journal: Journal
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
        journal, owned = self.journal, self._by_target(names)
        busy: list[frozenset[TableName]] = []

        def attempt(connection: Any) -> None:
            with connection.cursor() as cursor:
                cursor.execute("BEGIN")
                if journal.epoch:
                    hold(cursor, journal.meta, journal.source, journal.epoch)
                busy.append(announce(cursor, journal.meta, journal.source, owned, self.peers))
                cursor.execute("COMMIT")

        journal.on_target(attempt)
        ended = time.monotonic() + PATIENCE_SECONDS
        while busy[-1]:
            if time.monotonic() > ended:
                target = ", ".join(map(str, sorted(busy[-1])))
                raise ShardError("SHARD-025", Where(journal.source, target), values={"target": target})
            time.sleep(BUSY_SECONDS)
            journal.on_target(attempt)
        self._last = owned

    def left(self) -> frozenset[TableName]:
        """Tables of the source that nobody waits for: a human has left their CREATE out."""
        journal = self.journal
        keepers = journal.on_target(lambda c: load_keepers(c, journal.meta)) if self.told else ()
        return frozenset(name for keeper in keepers for source, name in keeper.left if source == journal.source)

    def declared(self) -> frozenset[TableName]:
        """What the source has said that it owns, in this process or an earlier one."""
        journal = self.journal
        keepers = journal.on_target(lambda c: load_keepers(c, journal.meta)) if self.told else ()
        return frozenset(
            name for keeper in keepers if (own := keeper.members.get(journal.source)) for name in own.tables
        )

    def others(self, target: TableName) -> int:
        """How many tables of other sources land there, as they have said."""
        if not self.told:
            return 0
        keeper = self.journal.on_target(lambda c: load_keeper(c, self.journal.meta, target))
        return sum(len(member.tables) for name, member in keeper.members.items() if name != self.journal.source)

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
        meta, source = self.journal.meta, self.journal.source

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
