"""The values that a merged table is made of: its shards, their requests, changes of the target, and the runner."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from unshard.model.table import TableName
from unshard.schema.definition import ColumnDefinition, TableDefinition
from unshard.shard.join import Fill, fill_of
from unshard.shard.sequence import Form


class ShardId(NamedTuple):
    """One table of one source."""

    source: str
    table: TableName

    def __str__(self) -> str:
        return f"{self.table} of {self.source}"


@dataclass(frozen=True, slots=True)
class StructureRequest:
    """A statement that a shard has met and that the target does not have yet.

    `id` is unique. `after`: the shard's structure after the statement. `barrier`: why all shards must meet the
    statement before it runs; empty where it may run by itself. `ddls`: the statements with the target's names. `since`:
    when it was met, in ISO 8601. `forced`: a human accepts that old rows of the shard may have other values in a new
    column.
    """

    id: str
    after: TableDefinition
    barrier: str = ""
    ddls: tuple[str, ...] = ()
    since: str = ""
    forced: bool = False


@dataclass(frozen=True, slots=True)
class MergedShard:
    """The record of one shard.

    `structure`: the one in force. `dropped`: columns of the target, in lower case, that this shard had and has dropped.
    `request`: what it waits with. `done`: the id of the last request that came into force.
    """

    structure: TableDefinition
    dropped: frozenset[str] = frozenset()
    request: StructureRequest | None = None
    done: str = ""


@dataclass(frozen=True, slots=True)
class MergedChange:
    """A step of the target from one structure to the next.

    It is a shard's request, the request of all shards at a `barrier`, or the removal of leaving columns. `shards` are
    those whose requests come into force; `after` and `rules` are the merged table's afterwards; `dropped` are the
    columns removed.
    """

    shards: tuple[ShardId, ...]
    after: TableDefinition
    rules: Mapping[str, str]
    barrier: bool = False
    dropped: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class MergedDecision:
    """The decision of `MergedTable.evaluate`.

    `changes` may be made now, each by itself. `waits` has the reason why any other request waits.
    """

    changes: tuple[MergedChange, ...] = ()
    waits: Mapping[ShardId, str] = field(default_factory=dict)
    barrier: tuple[ShardId, ...] = ()
    """The shards whose requests may run as one statement: `MergedTable.at_barrier` takes its outcome."""


@dataclass(frozen=True, slots=True)
class Runner:
    """The source that makes a `change` of the target now.

    `source` is empty where it was taken out of the task in the middle of the change. `begun` is the intent that it had
    open then, for the next runner to finish; the caller's own form, in JSON.
    """

    source: str
    change: MergedChange
    begun: Form | None = None


@dataclass(frozen=True, slots=True)
class MergedColumns:
    """The columns by which a source writes rows: the target structure of a version, its rules and leaving columns."""

    version: int
    after: TableDefinition
    rules: Mapping[str, str]
    leaving: frozenset[str]

    def fills(self, upstream: TableDefinition) -> dict[str, tuple[ColumnDefinition, Fill]]:
        """Return each column that such a shard lacks, with the value of its rows, by name in lower case."""
        own, found = names_of(upstream), {}
        for column in self.after.columns:
            name = column.name.lower()
            fill = fill_of(column) if name in self.rules and name not in own and name not in self.leaving else None
            if fill is not None:
                found[name] = column, fill
        return found


def names_of(table: TableDefinition) -> frozenset[str]:
    """Return the names of the table's columns, in lower case."""
    return frozenset(column.name.lower() for column in table.columns)
