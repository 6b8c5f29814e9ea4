"""The plan of a batch that is a statement: written before anything of it runs, in JSON, and read by a later process.

| key | there | what |
|---|---|---|
| `version` | from 2 on | the version of this form (`model.stored_form`) |
| `kind` | always | `ddl` |
| `intent` | always | what is run, and how much of it is done |
| `changes` | always | `changes` of the plan: schema, table and structure, null where it is gone |
| `end_gtid` | always | the set behind the statement |
| `online` | with a statement on a ghost table | ghosts and what is kept of each |
| `operator` | where one stands in its place | the operator's number |
| `passing` | with `shard-mode` | what it is to sharding groups |
| `group` | for a sharding DDL, run by the owner of its lock | schema and table of the target |
| `merged` | for a change of a merged table, in optimistic mode | schema and table of the target; `group` is the same |
| `handed_on` | where the owner was taken out of the task in the middle of it | true: the next one finishes it |
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from unshard.ddl.intent import Intent
from unshard.ddl.online import Kept, Records
from unshard.ddl.tracker import Changes
from unshard.errors import Where
from unshard.model.position import Location
from unshard.model.stored_form import stamped, version_of
from unshard.model.table import Table, TableName, name_form, name_of
from unshard.sync.statements.uncoordinated import Passing
from unshard.target.receipts import OpenBatch

KIND = "ddl"
"""Tells the plan of a statement from that of a batch of rows."""


@dataclass(frozen=True, slots=True)
class StatementPlan:
    """What is run, where the checkpoint goes then, and what the statement makes of structures, ghosts and groups."""

    intent: Intent
    end: Location
    changes: Changes = field(default_factory=dict)
    online: Records = field(default_factory=dict)
    operator: int | None = None
    passing: Passing | None = None
    group: TableName | None = None
    handed_on: bool = False
    merged: TableName | None = None

    def with_done(self, steps: int) -> StatementPlan:
        """The same with so many steps of its intent behind it."""
        return replace(self, intent=replace(self.intent, done=steps))

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready form, the module's table; `of` reads it back."""
        form = stamped(
            {
                "kind": KIND,
                "intent": self.intent.to_dict(),
                "changes": _changes_form(self.changes),
                "end_gtid": self.end.gtid,
            }
        )
        if self.online:
            form["online"] = [
                [*name_form(ghost), [one.to_dict() for one in kept]] for ghost, kept in self.online.items()
            ]
        if self.operator is not None:
            form["operator"] = self.operator
        if self.passing is not None:
            form["passing"] = self.passing.to_dict()
        if self.group is not None:
            form["group"] = name_form(self.group)
        if self.merged is not None:
            form["merged"] = form["group"] = name_form(self.merged)
        if self.handed_on:
            form["handed_on"] = True
        return form

    @classmethod
    def of(cls, batch: OpenBatch) -> StatementPlan:
        """The plan of an open batch; its `kind` is `KIND`. Raises SyncError SYNC-075 for one of a later version."""
        version_of(batch.plan, "the open batch", Where(position=f"{batch.begin} to {batch.end}"))
        form, end = batch.plan, Location(batch.end, batch.plan["end_gtid"])
        changes = _changes_of(form["changes"])
        online = form.get("online", [])
        return cls(
            Intent.from_dict(form["intent"]),
            end,
            changes,
            {TableName(schema, table): tuple(map(Kept.from_dict, kept)) for schema, table, kept in online},
            form.get("operator"),
            Passing.from_dict(form["passing"], changes, end) if "passing" in form else None,
            name_of(form["group"]) if "group" in form and "merged" not in form else None,
            "handed_on" in form,
            name_of(form["merged"]) if "merged" in form else None,
        )


def _changes_form(changes: Changes) -> list[list[Any]]:
    return [[*name_form(name), table.to_dict() if table else None] for name, table in changes.items()]


def _changes_of(form: list[list[Any]]) -> Changes:
    return {TableName(schema, table): Table.from_dict(info) if info else None for schema, table, info in form}
