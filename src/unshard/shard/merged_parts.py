"""What a merged table is made of: its shards, their requests, changes of the target, and who makes them. Values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from unshard.model.table import TableName
from unshard.schema.definition import ColumnDefinition, TableDefinition
from unshard.shard.join import Fill, fill_of
from unshard.shard.sequence import Form


class ShardId(NamedTuple):
    source: str
    table: TableName

    def __str__(self) -> str:
        return f"{self.table} of {self.source}"


@dataclass(frozen=True, slots=True)
class StructureRequest:
    """A statement that a shard has met: the structure behind it, and why it needs a `barrier`, empty where it doesn't.

    `id` is a word of its own, `ddls` are the statements with the target's names, `since` is ISO 8601. `forced`: a human
    takes it on himself that old rows of the shard have other values in a new column.
    """

    id: str
    after: TableDefinition
    barrier: str = ""
    ddls: tuple[str, ...] = ()
    since: str = ""
    forced: bool = False


@dataclass(frozen=True, slots=True)
class MergedShard:
    """`dropped`: columns of the target, in lower case, that this shard had and has dropped. `done`: the id of the last
    request that came into force."""

    structure: TableDefinition
    dropped: frozenset[str] = frozenset()
    request: StructureRequest | None = None
    done: str = ""


@dataclass(frozen=True, slots=True)
class MergedChange:
    """What brings the target from one structure to the next: a shard's request, all shards' at a barrier, or the
    removal of columns that are leaving.

    `shards` are those whose requests come into force.
    """

    shards: tuple[ShardId, ...]
    after: TableDefinition
    rules: Mapping[str, str]
    barrier: bool = False
    dropped: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class MergedDecision:
    """`changes` may be made now, each by itself; `waits` tells of every other request why it waits."""

    changes: tuple[MergedChange, ...] = ()
    waits: Mapping[ShardId, str] = field(default_factory=dict)
    barrier: tuple[ShardId, ...] = ()
    """The shards whose requests may run as one statement: `MergedTable.at_barrier` takes its outcome."""


@dataclass(frozen=True, slots=True)
class Runner:
    """The source that makes a change just now. Empty `source`: it was taken out of the task in the middle of it.

    `begun`: the intent that it had open then, for the next one to finish; the caller's own, in JSON.
    """

    source: str
    change: MergedChange
    begun: Form | None = None


@dataclass(frozen=True, slots=True)
class MergedColumns:
    """The columns that a source writes rows by: the target structure of a version, its rules and leaving columns."""

    version: int
    after: TableDefinition
    rules: Mapping[str, str]
    leaving: frozenset[str]

    def fills(self, upstream: TableDefinition) -> dict[str, tuple[ColumnDefinition, Fill]]:
        """What rows of a shard of this structure get in columns that it lacks, by name in lower case."""
        own, found = names_of(upstream), {}
        for column in self.after.columns:
            name = column.name.lower()
            fill = fill_of(column) if name in self.rules and name not in own and name not in self.leaving else None
            if fill is not None:
                found[name] = column, fill
        return found


def names_of(table: TableDefinition) -> frozenset[str]:
    """The names of its columns in lower case."""
    return frozenset(column.name.lower() for column in table.columns)
