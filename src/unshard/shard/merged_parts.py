"""Dataclasses for a merged table: its shards, their requests, changes of the target, and the source that runs one."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import NamedTuple

from unshard.model.table import TableName
from unshard.schema.definition import ColumnDefinition, TableDefinition
from unshard.shard.join import Fill, default_of, fill_of
from unshard.shard.same_ddl import same_but_for_places
from unshard.shard.sequence import Form


class ShardId(NamedTuple):
    """The identity of a shard: the source, and the table in it."""

    source: str
    table: TableName

    def __str__(self) -> str:
        return f"{self.table} of {self.source}"


class OldRows(StrEnum):
    """The kind of values that rows already in the target have in the columns which a statement has added."""

    SAME = ""
    """Those of the source, or those that a human has accepted."""
    OF_ANOTHER_SESSION = "session"
    """Those of a run of the shard's own statement: others than the source's where only its session gives them."""
    OF_ONE_RUN = "run"
    """Those of one run for all shards: others than the source's where each run gives its own."""


@dataclass(frozen=True, slots=True)
class StructureRequest:
    """A shard's request for the structure change of a statement that it has met and the target does not have yet.

    Args:
        id: the unique id of the request.
        after: the shard's structure after the statement.
        barrier: why all shards must meet the statement before it runs; empty where it may run by itself.
        ddls: the statements with the target's names.
        since: when the shard met the statement, in ISO 8601.
        forced: a human accepts that old rows of the shard may have other values in columns that it adds or converts.
        fitted: `after` is not the shard's own structure, but one that the target can take (`shard.forced`).
        kept: columns, in lower case, that the shard lacks because a statement was left out, and the target keeps.
    """

    id: str
    after: TableDefinition
    barrier: str = ""
    ddls: tuple[str, ...] = ()
    since: str = ""
    forced: bool = False
    fitted: bool = False
    kept: frozenset[str] = frozenset()

    @property
    def names(self) -> frozenset[str]:
        """The columns, in lower case, that the shard has after the statement."""
        return names_of(self.after) - self.kept


@dataclass(frozen=True, slots=True)
class MergedShard:
    """The record of one shard of a merged table.

    Args:
        structure: the shard's structure that is in force.
        dropped: columns of the target, in lower case, that this shard had and has dropped.
        request: the request that waits; None if none does.
        done: the id of the last request that came into force.
        old_rows: the values that the last request left in older rows, until their source has written its own values.
        fitted: `structure` is not the shard's own structure, but one that the target can take.
        kept: columns, in lower case, that the shard lacks because a statement was left out, and the target keeps.
            `structure` may have them.
        copied: the statements that the shard's copy had already, each with the target's names; it never meets them.
    """

    structure: TableDefinition
    dropped: frozenset[str] = frozenset()
    request: StructureRequest | None = None
    done: str = ""
    old_rows: OldRows = OldRows.SAME
    fitted: bool = False
    kept: frozenset[str] = frozenset()
    copied: tuple[tuple[str, ...], ...] = ()

    @property
    def names(self) -> frozenset[str]:
        """The columns of `structure`, in lower case, that the shard has."""
        return names_of(self.structure) - self.kept

    def has_copied(self, ddls: Sequence[str]) -> bool:
        """Return whether the shard's copy had this DDL already."""
        return any(same_but_for_places(one, ddls) for one in self.copied)

    def without_copied(self, met: Collection[Sequence[str]]) -> MergedShard:
        """Return the shard without the record that its copy had these DDL."""
        left = tuple(one for one in self.copied if not any(same_but_for_places(one, ddls) for ddls in met))
        return replace(self, copied=left)


@dataclass(frozen=True, slots=True)
class MergedChange:
    """A change of the target table from one structure to the next.

    It is made for a shard's request, for the request of all shards at a `barrier`, or to remove leaving columns.
    `shards` are those whose requests come into force; `after` and `rules` are the merged table's afterwards; `dropped`
    are the columns removed; `old_rows` tells which values the statement of a barrier leaves in rows of the shards.
    """

    shards: tuple[ShardId, ...]
    after: TableDefinition
    rules: Mapping[str, str]
    barrier: bool = False
    dropped: tuple[str, ...] = ()
    old_rows: OldRows = OldRows.SAME


class WaitKind(StrEnum):
    """The kind of a wait, by the event that ends it."""

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
    """The reason why a request is not in force: its kind, and a text."""

    kind: WaitKind
    why: str

    @property
    def is_conflict(self) -> bool:
        """True if it ends only by what other shards do, or by a human's decision."""
        return self.kind not in (WaitKind.BUSY, WaitKind.UNKNOWN)


@dataclass(frozen=True, slots=True)
class MergedDecision:
    """The result of `MergedTable.evaluate`.

    `changes` may be made now, each by itself. `waits` has the reason why any other request waits.
    """

    changes: tuple[MergedChange, ...] = ()
    waits: Mapping[ShardId, Wait] = field(default_factory=dict)
    barrier: tuple[ShardId, ...] = ()
    """The shards whose requests may run as one statement: `MergedTable.at_barrier` takes its outcome."""


@dataclass(frozen=True, slots=True)
class Runner:
    """The source that makes a `change` of the target now.

    `source` is empty where the runner was taken out of the task in the middle of the change. `begun` is then the intent
    that it had open, in the caller's JSON form; the next runner finishes it.
    """

    source: str
    change: MergedChange
    begun: Form | None = None


@dataclass(frozen=True, slots=True)
class MergedColumns:
    """The columns that a source writes: the target structure of a version, with its rules and leaving columns."""

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

    def absent(self, names: Collection[str]) -> dict[str, tuple[ColumnDefinition, Fill | None]]:
        """Return each of these columns, in lower case, with the value that the target gives to rows without it.

        That is None where it differs by row. Generated columns are not among them, as no row is written with one.
        """
        columns = [column for name in names if (column := self.after.column(name)) is not None]
        return {one.name.lower(): (one, default_of(one)) for one in columns if one.generated is None}


def names_of(table: TableDefinition) -> frozenset[str]:
    """Return the names of the table's columns, in lower case."""
    return frozenset(column.name.lower() for column in table.columns)
