"""Dataclasses of a merged table's stored state: shards, their requests, its changes, and the source that runs one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
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


class OldRows(StrEnum):
    """The values that rows which the target had already have in the columns that a statement has added."""

    SAME = ""
    """Those of the source, or those that a human has accepted."""
    OF_ANOTHER_SESSION = "session"
    """Those of a run of the shard's own statement: others than the source's where only its session gives them."""
    OF_ONE_RUN = "run"
    """Those of one run for all shards: others than the source's where each run gives its own."""


@dataclass(frozen=True, slots=True)
class StructureRequest:
    """A statement that a shard has met and that the target does not have yet.

    `id` is unique. `after`: the shard's structure after the statement. `barrier`: why all shards must meet the
    statement before it runs; empty where it may run by itself. `ddls`: the statements with the target's names. `since`:
    when it was met, in ISO 8601. `forced`: a human accepts that old rows of the shard may have other values in a new
    column. `fitted`: `after` is not the shard's own structure, but one that the target can take (`shard.forced`).
    """

    id: str
    after: TableDefinition
    barrier: str = ""
    ddls: tuple[str, ...] = ()
    since: str = ""
    forced: bool = False
    fitted: bool = False


@dataclass(frozen=True, slots=True)
class MergedShard:
    """The record of one shard.

    `structure`: the one in force. `dropped`: columns of the target, in lower case, that this shard had and has dropped.
    `request`: what it waits with. `done`: the id of the last request that came into force. `old_rows`: what that has
    left in the rows from before it, as long as its source has not brought the values. `fitted`: `structure` is not the
    shard's own, but one that the target can take.
    """

    structure: TableDefinition
    dropped: frozenset[str] = frozenset()
    request: StructureRequest | None = None
    done: str = ""
    old_rows: OldRows = OldRows.SAME
    fitted: bool = False


@dataclass(frozen=True, slots=True)
class MergedChange:
    """A step of the target from one structure to the next.

    It is a shard's request, the request of all shards at a `barrier`, or the removal of leaving columns. `shards` are
    those whose requests come into force; `after` and `rules` are the merged table's afterwards; `dropped` are the
    columns removed; `old_rows` is what the statement of a barrier leaves in rows of the shards.
    """

    shards: tuple[ShardId, ...]
    after: TableDefinition
    rules: Mapping[str, str]
    barrier: bool = False
    dropped: tuple[str, ...] = ()
    old_rows: OldRows = OldRows.SAME


class WaitKind(StrEnum):
    """The reason why a request is not in force, by what ends the wait."""

    BUSY = "busy"
    """The target is being changed, or is about to be: it ends by itself."""
    UNKNOWN = "unknown"
    """A source of the task has not registered its tables."""
    SHARDS = "shards"
    """Other shards have not met the statement of a barrier."""
    CANNOT = "cannot"
    """Another shard can't meet it: it has not the columns that the statement needs, or has those that it makes."""
    STATEMENTS = "statements"
    """Other shards have met another statement of a barrier."""
    STRUCTURES = "structures"
    """No structure takes the rows of all shards."""
    VALUES = "values"
    """Old rows of the shard would have other values in a column than the source's."""


@dataclass(frozen=True, slots=True)
class Wait:
    """The reason why a request is not in force."""

    kind: WaitKind
    why: str

    @property
    def is_conflict(self) -> bool:
        """True if it ends only by what other shards do, or by a human's decision."""
        return self.kind not in (WaitKind.BUSY, WaitKind.UNKNOWN)


@dataclass(frozen=True, slots=True)
class MergedDecision:
    """The decision of `MergedTable.evaluate`.

    `changes` may be made now, each by itself. `waits` has the reason why any other request waits.
    """

    changes: tuple[MergedChange, ...] = ()
    waits: Mapping[ShardId, Wait] = field(default_factory=dict)
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

    def fills(self, own: frozenset[str]) -> dict[str, tuple[ColumnDefinition, Fill]]:
        """Return each column that a shard lacks, with the value of its rows, by name in lower case.

        `own`: the names of the shard's columns, in lower case.
        """
        found = {}
        for column in self.after.columns:
            name = column.name.lower()
            fill = fill_of(column) if name in self.rules and name not in own and name not in self.leaving else None
            if fill is not None:
                found[name] = column, fill
        return found


def names_of(table: TableDefinition) -> frozenset[str]:
    """Return the names of the table's columns, in lower case."""
    return frozenset(column.name.lower() for column in table.columns)
