"""Statements that wait for no other table, and what sharding groups need to know of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from unshard.ddl.pieces import AlterOperation
from unshard.ddl.rewrite import renames
from unshard.ddl.statement import Ddl, StatementKind
from unshard.ddl.tracker import Changes
from unshard.model.position import Location
from unshard.model.table import TableName, name_form, name_of
from unshard.shard.sequence import place_form, place_of
from unshard.sync.source_log.reader import LoggedDdl


@dataclass(frozen=True, slots=True)
class Passing:
    """A statement that waits for no other table, with its effects on sharding groups.

    Args:
        begin, end: its locations in the log.
        changes: the structures that it makes; None for a dropped table.
        renamed: the new names of renamed tables, by the old ones.
        made: the tables that it creates.
        left: a table whose CREATE a human has excluded.
        models: by created table, the table named in its CREATE TABLE … LIKE.
        skipped: a human has left the statement out by an operator.
    """

    begin: Location
    end: Location
    changes: Changes
    renamed: Mapping[TableName, TableName] = field(default_factory=dict)
    made: frozenset[TableName] = frozenset()
    left: TableName | None = None
    models: Mapping[TableName, TableName] = field(default_factory=dict)
    skipped: bool = False

    @classmethod
    def of(
        cls,
        pieces: Sequence[AlterOperation],
        changes: Changes,
        work: LoggedDdl,
        at: Location,
        left: TableName | None = None,
    ) -> Passing:
        """Build it from a statement's operations; `at` is the location before the statement."""
        own = [piece.ddl for piece in pieces if piece.tracked]
        creates = [ddl for ddl in own if ddl.kind is StatementKind.CREATE_TABLE]
        made = frozenset(ddl.tables[0] for ddl in creates)
        models = {ddl.tables[0]: ddl.like for ddl in creates if ddl.like is not None}
        return cls(Location(work.begin, at.gtid), work.end, changes, _goes_on_as(own), made, left, models)

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form without `changes` and `end`, which the plan of the statement has."""
        return {
            "begin": place_form(self.begin),
            "renamed": _pairs(self.renamed),
            "made": [name_form(name) for name in sorted(self.made)],
            "models": _pairs(self.models),
        }

    @classmethod
    def from_dict(cls, form: Mapping[str, Any], changes: Changes, end: Location) -> Passing:
        """Read the form of `to_dict`; the plan of the statement has `changes` and `end`."""
        made = frozenset(map(name_of, form["made"]))
        models = _names(form.get("models", ()))
        return cls(place_of(form["begin"]), end, changes, _names(form["renamed"]), made, models=models)


def _pairs(names: Mapping[TableName, TableName]) -> list[list[str]]:
    return [[*name_form(one), *name_form(other)] for one, other in names.items()]


def _names(pairs: Iterable[Sequence[str]]) -> dict[TableName, TableName]:
    return {name_of(pair[:2]): name_of(pair[2:]) for pair in pairs}


def _goes_on_as(statements: Iterable[Ddl]) -> dict[TableName, TableName]:
    """Return the new name of each renamed table, by its old name; names in between don't count."""
    now: dict[TableName, TableName] = {}
    for old, new in (pair for ddl in statements for pair in renames(ddl)):
        now[next((first for first, name in now.items() if name == old), old)] = new
    return {first: name for first, name in now.items() if first != name}
