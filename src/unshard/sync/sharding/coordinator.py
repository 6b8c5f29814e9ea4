"""One source's side of sharding DDL: the tables whose changes wait, the lock's outcome, the re-sync.

The protocol itself is in `shard`, without I/O; here each of its steps is stored in the transaction that moves the
checkpoint. `shard/DESIGN.md` describes the protocol.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from enum import Enum, auto
from threading import Event
from typing import Any

from unshard.api.status import UnresolvedGroup
from unshard.crash_point import reach
from unshard.ddl.pieces import StatementRules
from unshard.errors import ShardError, SyncError, Where
from unshard.log import logger
from unshard.model.position import Location, Position
from unshard.model.table import Table, TableName
from unshard.shard.group import Resync, ShardingGroup, TableState
from unshard.shard.group_keeper import ShardingGroupKeeper
from unshard.shard.lock_keeper import LockKeeper, Outcome
from unshard.shard.show import overdue, unresolved_groups
from unshard.sync.checkpoint.store import Also, CheckpointStore
from unshard.sync.planning.table_plans import TableRules
from unshard.sync.source_log.reader import TransactionRows
from unshard.sync.status import Unsynced
from unshard.target.checkpoint import load_checkpoint
from unshard.target.sharding import (
    copy_has,
    done,
    join,
    leave,
    load_keeper,
    load_keepers,
    load_merged,
    look,
    own,
    take_out_of_merged,
)
from unshard.target.sharding_groups import load_groups, save_group

LOOK_SECONDS = 0.2
"""Seconds between two reads of the locks while this source has a reported DDL; one query covers the whole source."""
IDLE_LOOK_SECONDS = 2.0
"""The same while this source has reported no DDL: the answer is only shown in the status."""


class Next(Enum):
    """The next step of the sync unit for a group: run its DDL, skip it, or re-sync its tables."""

    EXECUTE = auto()
    SKIP = auto()
    RESYNC = auto()


@dataclass(slots=True)
class ShardingGroups:
    """The sharding groups of one source. Used by the sync unit's thread.

    `structure` returns the current structure of an upstream table. A DDL that waits for longer than `alert_seconds` is
    logged; 0: never. `peers` are all sources of the task's file.

    `put` replaces groups in memory at once. They are durable when the `Also` that it returns has run in the transaction
    that moves the checkpoint. If that transaction fails the source stops, and `restore` loads the stored groups.
    """

    store: CheckpointStore
    rules: StatementRules
    tables: TableRules
    structure: Callable[[TableName], Table | None]
    alert_seconds: float = 0.0
    peers: tuple[str, ...] = ()
    keeper: ShardingGroupKeeper = field(init=False)
    _saved: dict[TableName, ShardingGroup] = field(default_factory=dict)
    _looked: float = 0.0
    _told: dict[TableName, str] = field(default_factory=dict)
    _seen: dict[str, LockKeeper] = field(default_factory=dict)
    _alerted: set[tuple[str, str]] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.keeper = ShardingGroupKeeper(self.store.source)

    def restore(self, names: Iterable[TableName], ahead: Iterable[TableName] = ()) -> None:
        """Load the groups from the target.

        `names` are the source's tables at the checkpoint. `ahead` are those that an earlier process declared, and whose
        CREATE or RENAME comes later in the log: while a DDL waits, they join its group when that is read again. Raises
        ShardError SHARD-027 where a table of an unresolved group is no longer routed to that target, SHARD-037 where a
        table is routed to it now that is not in the group, SHARD-038 as `refuse_connected`.
        """
        source = self.store.source
        keeper = stored_groups(self.store)
        for group in keeper.unresolved:
            for name in group.tables:
                if not self.rules.allows(name) or self.rules.route(name) != group.target:
                    raise ShardError("SHARD-027", Where(source, str(name)), values={"target": str(group.target)})
            assert group.first is not None, "an unresolved group holds tables"
            self.refuse_connected(group.target, group.first.position)
        self._saved, self._looked = dict(keeper.groups), 0.0
        members: dict[TableName, dict[TableName, TableState]] = {}
        for name in sorted({*names, *ahead}):
            if name.table and self.rules.allows(name):
                members.setdefault(self.rules.route(name), {})[name] = TableState()
        for target, states in members.items():
            group = keeper.group(target)
            if not group.unresolved:
                keeper = keeper.with_group(ShardingGroup(source, target, states))
            elif more := sorted(states.keys() - group.tables.keys() - set(ahead)):
                raise ShardError("SHARD-037", Where(source, str(more[0])), values={"target": str(target)})
        self._take(keeper)

    def put(self, *groups: ShardingGroup, left: TableName | None = None) -> Also:
        """Replace the in-memory groups. Returns a function that writes them in the caller's transaction.

        `left`: a table of the source that nobody waits for.
        """
        meta, source = self.store.meta, self.store.source
        before = {group.target: self._saved.get(group.target) for group in groups}
        keeper = self.keeper
        moved = [group for group in groups if group.tables.keys() != keeper.group(group.target).tables.keys()]
        for group in groups:
            keeper = keeper.with_group(group)
            self._saved[group.target] = group
        self._take(keeper)

        def save(cursor: Any) -> None:
            for group in moved:
                own(cursor, meta, source, group.target, group.tables.keys())
            if left is not None:
                leave(cursor, meta, source, self.rules.route(left), left)
            for group in groups:
                save_group(cursor, meta, before[group.target], group)

        return save

    def refuse_connected(self, target: TableName, begin: Position) -> None:
        """Raise ShardError SHARD-038 if waiting changes would reach tables connected by foreign keys out of order.

        A DDL of a target's only shard waits for no other shard and is never refused.
        """
        others = self.tables.targets.connected(target)
        keeper = self.store.on_target(lambda c: load_keeper(c, self.store.meta, target)) if others else None
        if keeper is not None and (keeper.several or keeper.silent):
            values = {"target": str(target), "others": ", ".join(map(str, others))}
            raise ShardError("SHARD-038", Where(self.store.source, str(target), str(begin)), values=values)

    def come_to(self, group: ShardingGroup) -> None:
        """Replace a group in memory only: the progress is not worth a write, and is made again after a crash."""
        self.keeper = self.keeper.with_group(group)
        self.tables.held = self.keeper.held

    @property
    def names(self) -> frozenset[TableName]:
        """All tables of all groups."""
        return frozenset(name for group in self.keeper.groups.values() for name in group.tables)

    @property
    def shown(self) -> tuple[UnresolvedGroup, ...]:
        """The unresolved groups as `query-status` shows them, as of the last look at the locks."""
        found = unresolved_groups(self.keeper, self._seen, self.peers)
        if not self.alert_seconds:
            return found
        return tuple(overdue(one, self.alert_seconds, datetime.now(UTC)) for one in found)

    def alert(self) -> None:
        """Log each DDL that waits for longer than `alert_seconds`, once in a process."""
        for one in self.shown if self.alert_seconds else ():
            if one.overdue and (one.target, one.since) not in self._alerted:
                self._alerted.add((one.target, one.since))
                words = {"target": one.target, "since": one.since, "waits_for": one.waits_for, "help": one.help}
                logger("sync", source=self.store.source).error("a sharding DDL waits for too long", **words)

    @property
    def unresolved(self) -> bool:
        """True if a table of any group has changes that wait."""
        return self.keeper.first is not None

    def waiting(self) -> dict[str, Unsynced]:
        """Return, by target table whose DDL waits, the source's tables that have not met it and when it was first met.

        The time is a Unix timestamp, 0 where no item has one.
        """
        late = {one.target for one in self.shown if one.overdue}
        unresolved = self.keeper.unresolved
        return {str(group.target): _unsynced(group, overdue=group.target.quoted in late) for group in unresolved}

    def next(self, at: Location) -> tuple[Next, ShardingGroup] | None:
        """Return the next step before the main stream goes on after `at`; None: there is none.

        Reports each group that is ready to its lock on the way.
        """
        self.alert()
        for group in self.keeper.unresolved:
            if group.ready is not None and not group.reported:
                self._report(group)
        reported = [group for group in self.keeper.unresolved if group.reported]
        pause = LOOK_SECONDS if reported else IDLE_LOOK_SECONDS
        if self.keeper.unresolved and time.monotonic() - self._looked >= pause:
            found = self._look(reported)
            if found is not None:
                return found
        target = self.keeper.next_resync(at)
        return (Next.RESYNC, self.keeper.group(target[0])) if target is not None else None

    def outcome(self, group: ShardingGroup) -> Outcome | None:
        """Return the lock's outcome for the DDL that the group has reported.

        Where that report is no longer on record, the DDL is reported again first.
        """
        found = self.locks(group).outcome(self.store.source)
        if found is None:
            self._report(group)
            found = self.locks(group).outcome(self.store.source)
        return found

    def locks(self, group: ShardingGroup) -> LockKeeper:
        """Load the target's locks and members as they are now."""
        return self.store.on_target(lambda c: load_keeper(c, self.store.meta, group.target))

    def copies(self, counts: Mapping[TableName, int]) -> frozenset[TableName]:
        """Record how many DDL the furthest copy of each target has. Called before anything of the copy is loaded.

        Returns the targets for which any source has recorded DDL that are not executed yet. May be repeated.
        """
        meta, source = self.store.meta, self.store.source

        def attempt(connection: Any) -> None:
            with connection.cursor() as cursor:
                cursor.execute("BEGIN")
                for target, met in counts.items():
                    copy_has(cursor, meta, source, target, met)
                cursor.execute("COMMIT")

        if counts:
            self.store.on_target(attempt)
        keepers = self.store.on_target(lambda c: load_keepers(c, meta))
        return frozenset(keeper.target for keeper in keepers if keeper.ahead)

    def join_copies(self, copies: Mapping[TableName, Table], stop: Event) -> dict[TableName, Table] | None:
        """Return, by merged table, the structure that takes the rows of differing copies. Empty in pessimistic mode."""
        return {}

    def end_join(self, targets: Iterable[TableName]) -> None:
        """Do nothing in pessimistic mode, where `join_copies` returns no structures."""

    def resolve(self, group: ShardingGroup, at: Location) -> Also:
        """Mark the group's DDL as passed by this source, executed or skipped. Returns what writes it."""
        meta, source = self.store.meta, self.store.source
        save = self.put(group.resolve(at))
        self._looked = 0.0
        self._told.pop(group.target, None)

        def write(cursor: Any) -> None:
            done(cursor, meta, source, group.target)
            save(cursor)

        return write

    def again(self, resync: Resync, group: ShardingGroup, rows: TransactionRows) -> dict[TableName, Table]:
        """Return the tables whose changes a range of the re-sync applies, with the structure that those changes have.

        Raises ShardError SHARD-020 where a table's structure is not known.
        """
        found = {}
        begin, end = rows.begin, rows.end.position
        for name, (first, last) in resync.windows.items():
            if name in rows.log_range.tables and first.position <= begin and end <= last.position:
                state = group.tables[name]
                item = state.next_behind(end)
                form = item.payload["before"] if item is not None else state.last
                found[name] = replace(Table.from_dict(form) if form else self._known(name, begin), name=name)
        return found

    def _known(self, name: TableName, at: Position) -> Table:
        found = self.structure(name)
        if found is None:
            raise ShardError("SHARD-020", Where(self.store.source, str(name), str(at)))
        return found

    def _report(self, group: ShardingGroup) -> None:
        ready = group.ready
        assert ready is not None
        meta, source = self.store.meta, self.store.source
        save = self.put(group.report())

        def write(cursor: Any) -> None:
            join(cursor, meta, source, group.target, ready.ddls)
            save(cursor)

        reach("shard-report-before")
        self.store.in_one(write)
        reach("shard-report-after")
        self._looked = 0.0
        words = {"target": str(group.target), "ddl": "; ".join(ready.ddls)}
        logger("sync", source=source).info("all tables of this source have the sharding DDL", **words)

    def _look(self, reported: Iterable[ShardingGroup]) -> tuple[Next, ShardingGroup] | None:
        meta, source = self.store.meta, self.store.source
        answers = self.store.on_target(lambda c: look(c, meta, source))
        self._looked = time.monotonic()
        self._seen = {target.quoted: answer.keeper for target, answer in answers.items()}
        for group in reported:
            answer = answers.get(group.target)
            if answer is None or answer.outcome is None:  # the source was taken out of the task, and has come back
                self._report(group)
                continue
            match answer.outcome:
                case Outcome.EXECUTE:
                    return Next.EXECUTE, group
                case Outcome.SKIP:
                    return Next.SKIP, group
                case Outcome.MISMATCH:
                    if self._told.get(group.target) != answer.mismatch:
                        self._told[group.target] = answer.mismatch
                        words = {"target": str(group.target), "lists": answer.mismatch}
                        logger("sync", source=source).warning("another source has another sharding DDL", **words)
                case _:
                    pass
        return None

    def _take(self, keeper: ShardingGroupKeeper) -> None:
        self.keeper = keeper
        self.store.held = keeper.first
        self.tables.held = keeper.held


def _unsynced(group: ShardingGroup, *, overdue: bool) -> Unsynced:
    items = group.sequence.items
    names = tuple(map(str, group.unsynced)) if items else ()
    since = min((datetime.fromisoformat(item.time).timestamp() for item in items if item.time), default=0.0)
    return Unsynced(names, since, overdue)


def leave_optimistic_mode(store: CheckpointStore) -> None:
    """Take the source out of all merged tables, for a task that is not in optimistic mode any more.

    Raises ShardError SHARD-051 where shards of a merged table have different structures, or one waits.
    """
    meta, source = store.meta, store.source
    merged = store.on_target(lambda c: load_merged(c, meta))
    own = [one for _, one in sorted(merged.items()) if source in one.sources]
    if open_ones := [str(one.target) for one in own if not one.is_settled]:
        raise ShardError("SHARD-051", Where(source), values={"targets": ", ".join(open_ones)})
    if own:
        store.in_one(lambda cursor: take_out_of_merged(cursor, meta, source, forget=True))


def stored_groups(store: CheckpointStore) -> ShardingGroupKeeper:
    """Load the groups of the source. Raises SyncError SYNC-086 where the checkpoint tells of one that is not there."""
    keeper = store.on_target(lambda c: load_groups(c, store.meta, store.source))
    if not keeper.unresolved:
        found = store.on_target(lambda c: load_checkpoint(c, store.meta, store.source, tables_too=False))
        if found is not None and found.held is not None:
            raise SyncError("SYNC-086", Where(store.source, position=str(found.held.position)))
    return keeper


def refuse_held(store: CheckpointStore) -> None:
    """Raise ShardError SHARD-028 if changes wait for a sharding DDL although the task has no `shard-mode`."""
    held = stored_groups(store).unresolved
    if held:
        raise ShardError("SHARD-028", Where(store.source), values={"targets": ", ".join(str(g.target) for g in held)})
