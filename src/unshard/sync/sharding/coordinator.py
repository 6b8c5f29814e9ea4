"""One source's side of sharding DDL: which tables are held, what the lock says, what is to be read again.

The machines are `shard`'s; here each of their steps becomes durable in the transaction that moves the checkpoint.
`shard/DESIGN.md` has the protocol.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from enum import Enum, auto
from typing import Any

from unshard.api.status import UnresolvedGroup
from unshard.crash_point import reach
from unshard.ddl.pieces import StatementRules
from unshard.errors import ShardError, Where
from unshard.log import logger
from unshard.model.position import Location, Position
from unshard.model.table import Table, TableName
from unshard.shard.group import Resync, ShardingGroup, TableState
from unshard.shard.group_keeper import ShardingGroupKeeper
from unshard.shard.lock import Outcome
from unshard.shard.lock_keeper import LockKeeper
from unshard.shard.show import overdue, unresolved_groups
from unshard.sync.checkpoint.store import Also, CheckpointStore
from unshard.sync.planning.table_plans import TableRules
from unshard.sync.source_log.reader import TransactionRows
from unshard.sync.status import Unsynced
from unshard.target.merged_tables import load_merged, take_out_of_merged
from unshard.target.sharding import (
    copy_has,
    done,
    join,
    leave,
    load_groups,
    load_keeper,
    load_keepers,
    look,
    own,
    save_group,
)

LOOK_SECONDS = 0.2
"""How often a lock that waits is looked at; one question for all of a source."""
IDLE_LOOK_SECONDS = 2.0
"""The same while no lock waits for what this source does: the answer is only shown."""


class Next(Enum):
    """What is to be done with a group."""

    EXECUTE = auto()
    SKIP = auto()
    RESYNC = auto()


@dataclass(slots=True)
class ShardingGroups:
    """Used by the sync unit's thread. `structure` gives an upstream table's structure of now.

    A DDL that waits for longer than `alert_seconds` is told; 0: never. `peers` are all sources of the task's file.

    What `put` takes over is durable when the `Also` that it gives has run in a transaction that moves the checkpoint;
    a failure in between stops the source, and `restore` begins with what is on record.
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

    def restore(self, names: Iterable[TableName]) -> None:
        """Be where the target's rows say; `names` are the source's tables there, without those ahead in the log.

        Raises ShardError SHARD-027 where a table of an unresolved group is not for its target any more, SHARD-037
        where one that is not of the group is for it now, SHARD-038 as `refuse_connected`.
        """
        meta, source = self.store.meta, self.store.source
        keeper = self.store.on_target(lambda c: load_groups(c, meta, source))
        for group in keeper.unresolved:
            for name in group.tables:
                if not self.rules.allows(name) or self.rules.route(name) != group.target:
                    raise ShardError("SHARD-027", Where(source, str(name)), values={"target": str(group.target)})
            assert group.first is not None, "an unresolved group holds tables"
            self.refuse_connected(group.target, group.first.position)
        self._saved, self._looked = dict(keeper.groups), 0.0
        members: dict[TableName, dict[TableName, TableState]] = {}
        for name in sorted(names):
            if name.table and self.rules.allows(name):
                members.setdefault(self.rules.route(name), {})[name] = TableState()
        for target, states in members.items():
            group = keeper.group(target)
            if not group.unresolved:
                keeper = keeper.with_group(ShardingGroup(source, target, states))
            elif more := sorted(states.keys() - group.tables.keys()):
                raise ShardError("SHARD-037", Where(source, str(more[0])), values={"target": str(target)})
        self._take(keeper)

    def put(self, *groups: ShardingGroup, left: TableName | None = None) -> Also:
        """Take over groups; what writes them. `left`: a table that nobody waits for."""
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
        """Raises ShardError SHARD-038 where what is held would come to connected tables in another order.

        A DDL of a target's only table waits for nobody.
        """
        others = self.tables.targets.connected(target)
        keeper = self.store.on_target(lambda c: load_keeper(c, self.store.meta, target)) if others else None
        if keeper is not None and (keeper.several or keeper.silent):
            values = {"target": str(target), "others": ", ".join(map(str, others))}
            raise ShardError("SHARD-038", Where(self.store.source, str(target), str(begin)), values=values)

    def come_to(self, group: ShardingGroup) -> None:
        """Take over progress that is not worth a write: after a crash it is made again."""
        self.keeper = self.keeper.with_group(group)
        self.tables.held = self.keeper.held

    @property
    def names(self) -> frozenset[TableName]:
        """All tables of all groups."""
        return frozenset(name for group in self.keeper.groups.values() for name in group.tables)

    @property
    def shown(self) -> tuple[UnresolvedGroup, ...]:
        """What `query-status` shows of them, as of the last look at the locks."""
        found = unresolved_groups(self.keeper, self._seen, self.peers)
        if not self.alert_seconds:
            return found
        return tuple(overdue(one, self.alert_seconds, datetime.now(UTC)) for one in found)

    def alert(self) -> None:
        """Tell of each DDL that waits for too long, once in a process."""
        for one in self.shown if self.alert_seconds else ():
            if one.overdue and (one.target, one.since) not in self._alerted:
                self._alerted.add((one.target, one.since))
                words = {"target": one.target, "since": one.since, "waits_for": one.waits_for, "help": one.help}
                logger("sync", source=self.store.source).error("a sharding DDL waits for too long", **words)

    @property
    def unresolved(self) -> bool:
        return self.keeper.first is not None

    def waiting(self) -> dict[str, Unsynced]:
        """By target table whose DDL waits: the source's tables that have not met it, and since when it is met."""
        late = {one.target for one in self.shown if one.overdue}
        unresolved = self.keeper.unresolved
        return {str(group.target): _unsynced(group, overdue=group.target.quoted in late) for group in unresolved}

    def next(self, at: Location) -> tuple[Next, ShardingGroup] | None:
        """What there is to do before the main stream goes on behind `at`."""
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
        """What the source does about the DDL that the group has reported; said again where that is not on record."""
        found = self.locks(group).outcome(self.store.source)
        if found is None:
            self._report(group)
            found = self.locks(group).outcome(self.store.source)
        return found

    def locks(self, group: ShardingGroup) -> LockKeeper:
        """The target's locks and members as they are now."""
        return self.store.on_target(lambda c: load_keeper(c, self.store.meta, group.target))

    def copies(self, counts: Mapping[TableName, int]) -> frozenset[TableName]:
        """Say how many DDL the copy of each target's furthest table has; the targets of which any source has said so.

        Before anything of the copy is loaded.
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

    def resolve(self, group: ShardingGroup, at: Location) -> Also:
        """The target has the group's DDL, or goes without it: this source is behind it."""
        meta, source = self.store.meta, self.store.source
        save = self.put(group.resolve(at))
        self._looked = 0.0
        self._told.pop(group.target, None)

        def write(cursor: Any) -> None:
            done(cursor, meta, source, group.target)
            save(cursor)

        return write

    def again(self, resync: Resync, group: ShardingGroup, rows: TransactionRows) -> dict[TableName, Table]:
        """The tables whose changes in a stretch of the re-sync are let through, with their structure there."""
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
    """For a task in another mode: what is on record of merged tables does not hold any more.

    Raises ShardError SHARD-051 where shards of a merged table have different structures, or one waits.
    """
    meta, source = store.meta, store.source
    merged, _ = store.on_target(lambda c: load_merged(c, meta))
    own = [one for _, one in sorted(merged.items()) if source in one.sources]
    if open_ones := [str(one.target) for one in own if not one.is_settled]:
        raise ShardError("SHARD-051", Where(source), values={"targets": ", ".join(open_ones)})
    if own:
        store.in_one(lambda cursor: take_out_of_merged(cursor, meta, source, None))


def refuse_held(store: CheckpointStore) -> None:
    """For a task without `shard-mode`. Raises ShardError SHARD-028 where changes are held all the same."""
    held = store.on_target(lambda c: load_groups(c, store.meta, store.source)).unresolved
    if held:
        raise ShardError("SHARD-028", Where(store.source), values={"targets": ", ".join(str(g.target) for g in held)})
