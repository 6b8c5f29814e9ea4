"""Runs the steps of a DDL statement on the target one after the other, and records each step that is done.

It also keeps the list of the task's target tables (`target.filled`), by which a reset drops or empties them, true for
tables that statements of the log create, rename and drop. Without it, a copy that starts again after a reset would find
rows in tables that such a statement had created, and stop.

A CREATE TABLE adds its table to the list before it runs. When a step is done, one transaction records that and changes
the list.

| the process dies | then |
|---|---|
| before the table of a CREATE TABLE is on the list | nothing was done |
| after that, before the step is recorded | the list has the table as not created by the task: a reset only empties it |
| after a RENAME or DROP, before the step is recorded | the next process records it |
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import Any

from unshard.crash_point import reach
from unshard.ddl.execute import carry_out, unquoted
from unshard.ddl.intent import Step
from unshard.ddl.statement import StatementKind
from unshard.model.table import TableName
from unshard.mysql.connection import rows
from unshard.schema.lex import tokens
from unshard.sync.checkpoint.store import CheckpointStore
from unshard.sync.statements.plan_record import StatementPlan
from unshard.target.filled import FilledTables


@dataclass(slots=True)
class StepsRun:
    """The run of one plan's remaining steps by this process. Used by the sync unit's thread.

    `resumed`: an earlier attempt may have run the first of these steps.
    """

    plan: StatementPlan
    store: CheckpointStore
    made: MadeTables
    resumed: bool
    _done: int = field(init=False)
    _unnoted: list[Step] = field(init=False, default_factory=list)

    def __post_init__(self) -> None:
        self._done = self.plan.intent.done

    def attempt(self, connection: Any) -> None:
        """Run the steps that are not done; called again after a lost connection. Raises as `ddl.execute.carry_out`."""
        if self._unnoted:
            self._write(connection)
        resumed, self.resumed = self.resumed, True
        intent, jobs = self.plan.with_done(self._done).intent, self.store.jobs(connection)
        note, begin = partial(self._note, connection), partial(self.made.begin, connection)
        carry_out(connection, intent, reach, note, resumed=resumed, jobs=jobs, begin=begin)

    def _note(self, connection: Any, count: int) -> None:
        self._done = count
        self._unnoted.append(self.plan.intent.steps[count - 1])
        self._write(connection)

    def _write(self, connection: Any) -> None:
        """Note the steps that are done, and their tables, in one transaction."""
        rows(connection, "BEGIN")
        for step in self._unnoted:
            self.made.end(connection, step)
        self.store.note(self.plan.with_done(self._done).to_dict(), connection)
        rows(connection, "COMMIT")
        self._unnoted.clear()


@dataclass(slots=True)
class MadeTables:
    """The recorder of the tables that the steps of statements make, rename and drop. Used by the sync unit's thread.

    A task that has copied nothing has no record of filled tables, and gets none.
    """

    records: FilledTables
    source: str
    _made: set[TableName] = field(default_factory=set)

    def begin(self, connection: Any, step: Step) -> None:
        """Record the table that the step will create. Called before each attempt of the step."""
        if step.kind is not StatementKind.CREATE_TABLE or not self.records.there(connection):
            return
        for name in map(unquoted, step.before):
            if self.records.expect(connection, self.source, name):
                self._made.add(name)

    def end(self, connection: Any, step: Step) -> None:
        """Record the effect of a step. Runs in the transaction that notes the step; once more has no further effect."""
        if step.kind not in _ON_NAMES or not self.records.there(connection):
            return
        if step.kind is StatementKind.DROP_DATABASE:
            for schema in step.before:
                self.records.note_schema_gone(connection, tokens(schema)[0].value)
            return
        gone = [unquoted(name) for name, text in step.after.items() if text is None and step.before[name] is not None]
        new = [unquoted(name) for name, text in step.before.items() if text is None and step.after[name] is not None]
        if step.kind is StatementKind.CREATE_TABLE:
            for name in self._made.intersection(map(unquoted, step.before)):
                self.records.note_made(connection, name)
        elif gone and new:
            self.records.note_renamed(connection, gone[0], new[0])
        else:
            for name in gone:
                self.records.note_gone(connection, name)


_ON_NAMES = frozenset(
    {
        StatementKind.CREATE_TABLE,
        StatementKind.RENAME_TABLE,
        StatementKind.ALTER_TABLE,
        StatementKind.DROP_TABLE,
        StatementKind.DROP_DATABASE,
    }
)
"""The kinds of statements after which a table may have another name or none."""
