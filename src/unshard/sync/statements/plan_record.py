"""The plan of a statement's batch: stored as JSON before anything of it runs, and read by a later process.

| key | there | what |
|---|---|---|
| `version` | from 2 on | the version of this form (`model.stored_form`) |
| `kind` | always | `ddl` |
| `intent` | always | what is run, and how much of it is done |
| `changes` | always | `changes` of the plan: schema, table and structure, null where the table is dropped |
| `end_gtid` | always | the GTID set after the statement |
| `online` | with a statement on a ghost table | ghost tables and the recorded statements of each |
| `operator` | where one replaces it | the operator's number |
| `passing` | with `shard-mode` | what it means for sharding groups |
| `group` | for a sharding DDL, run by the owner of its lock | schema and table of the target |
| `merged` | for a change of a merged table, in optimistic mode | schema and table of the target; `group` is the same |
| `released` | for a shard that goes on after such a change | schema and table of the target, then of the shard |
| `backfills` | where rows get values of the source after it | of each source table its name and columns, until done |
| `handed_on` | where the owner was taken out of the task in the middle of it | true: the next owner finishes it |
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from unshard.ddl.intent import Intent
from unshard.ddl.online import Kept, Records
from unshard.ddl.tracker import Changes
from unshard.errors import Where
from unshard.model.position import Location
from unshard.model.stored_form import stamped, version_of
from unshard.model.table import Table, TableName, name_form, name_of
from unshard.sync.checkpoint.store import CheckpointStore
from unshard.sync.statements.uncoordinated import Passing
from unshard.target.receipts import OpenBatch

KIND = "ddl"
"""Tells the plan of a statement from that of a batch of rows."""


@dataclass(frozen=True, slots=True)
class ColumnBackfill:
    """Columns of one source table, by their source names, whose values are to be copied from the table."""

    table: TableName
    columns: tuple[str, ...]

    def to_dict(self) -> list[Any]:
        """Return the JSON form, which `of` reads."""
        return [*name_form(self.table), *self.columns]

    @classmethod
    def of(cls, form: Sequence[str]) -> ColumnBackfill:
        """Read the form of `to_dict`."""
        return cls(name_of(form[:2]), tuple(form[2:]))


@dataclass(frozen=True, slots=True)
class StatementPlan:
    """The plan of a statement's batch.

    Args:
        intent: the steps to run.
        end: the checkpoint after it.
        changes: the structures that it makes.
        online: the records of ghost tables that it changes.
        operator: the number of the operator that is applied.
        passing: the statement's effect on groups, if it need not wait.
        group: the target table of a sharding DDL.
        handed_on: another source finishes the batch.
        merged: the merged table of a change in optimistic mode.
        backfills: the values to copy afterwards.
        released: the merged table, and the shard that is released.
    """

    intent: Intent
    end: Location
    changes: Changes = field(default_factory=dict)
    online: Records = field(default_factory=dict)
    operator: int | None = None
    passing: Passing | None = None
    group: TableName | None = None
    handed_on: bool = False
    merged: TableName | None = None
    backfills: tuple[ColumnBackfill, ...] = ()
    released: tuple[TableName, TableName] | None = None

    @property
    def is_of_log(self) -> bool:
        """True if the plan is for a statement of the log; a change of a merged table may be for none."""
        return self.merged is None or self.intent.position_begin != self.intent.position_end

    def with_done(self, steps: int) -> StatementPlan:
        """Return the plan with the first `done` steps of its intent done."""
        return replace(self, intent=replace(self.intent, done=steps))

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form, as in the module's table; `of` reads it."""
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
        if self.released is not None:
            form["released"] = [part for name in self.released for part in name_form(name)]
        if self.handed_on:
            form["handed_on"] = True
        if self.backfills:
            form["backfills"] = [one.to_dict() for one in self.backfills]
        return form

    @classmethod
    def of(cls, batch: OpenBatch) -> StatementPlan:
        """Return the plan of an open batch whose `kind` is `KIND`. Raises SyncError SYNC-075 for a later version's."""
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
            tuple(map(ColumnBackfill.of, form.get("backfills", ()))),
            (name_of(form["released"][:2]), name_of(form["released"][2:])) if "released" in form else None,
        )


def write_down(plan: StatementPlan, at: Location, store: CheckpointStore, again: OpenBatch | None) -> None:
    """Store the plan before anything of it runs: in a new batch that begins `at`, or in the open batch `again`."""
    if again is None:
        store.open(at, plan.end, plan.to_dict(), partitions=0)
    else:
        store.note(plan.to_dict())


def _changes_form(changes: Changes) -> list[list[Any]]:
    return [[*name_form(name), table.to_dict() if table else None] for name, table in changes.items()]


def _changes_of(form: list[list[Any]]) -> Changes:
    return {TableName(schema, table): Table.from_dict(info) if info else None for schema, table, info in form}
