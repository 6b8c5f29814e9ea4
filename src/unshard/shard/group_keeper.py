"""ShardingGroupKeeper: all sharding groups of one subtask."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from unshard.model.position import Location
from unshard.model.table import TableName
from unshard.shard.group import Resync, ShardingGroup


@dataclass(frozen=True, slots=True)
class ShardingGroupKeeper:
    """The sharding groups of the source, by target table."""

    source: str
    groups: Mapping[TableName, ShardingGroup] = field(default_factory=dict)

    def group(self, target: TableName) -> ShardingGroup:
        """Return the group of that target, or one without tables if there is none."""
        return self.groups.get(target) or ShardingGroup(self.source, target)

    def with_group(self, group: ShardingGroup) -> ShardingGroupKeeper:
        """Return the keeper with this group in place of its target's group."""
        return replace(self, groups={**self.groups, group.target: group})

    @property
    def unresolved(self) -> tuple[ShardingGroup, ...]:
        """The groups that have a held table, in the order of their first DDL."""
        waiting = [(first.position, group) for group in self.groups.values() if (first := group.first) is not None]
        return tuple(group for _, group in sorted(waiting, key=lambda pair: pair[0]))

    @property
    def held(self) -> dict[TableName, Location]:
        """The tables whose changes wait for the re-sync, each with the location from which they wait."""
        return {name: place for group in self.groups.values() for name, place in group.held.items()}

    @property
    def first(self) -> Location | None:
        """The location from which the log is needed; None where no group is unresolved."""
        return next((group.first for group in self.unresolved), None)

    def next_resync(self, at: Location) -> tuple[TableName, Resync] | None:
        """Return the next re-sync, of the oldest group first, while the main stream is `at`."""
        for group in self.unresolved:
            if (resync := group.resync(at)) is not None:
                return group.target, resync
        return None
