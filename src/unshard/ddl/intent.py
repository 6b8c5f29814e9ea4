"""The intent of a statement, a record that is stored before it runs; and its remaining steps, each run once.

How the target's structure afterwards is judged by the record:

| found on the target | before = after | answer |
|---|---|---|
| equal to *after* | no | DONE |
| equal to *before* | no | RUN |
| equal to both | yes, and a second run changes nothing more | RUN |
| equal to both | yes, and nothing is to be done | DONE |
| equal to both | yes, and a second run would undo or double the first | RUN at first, UNCLEAR after a crash |
| anything else | either | CONFLICT |

| the process dies | what the next process finds |
|---|---|
| before the intent is stored | nothing happened; the statement is planned anew |
| before a statement is run | the structure from before it: the statement is run |
| after it ran, before the caller noted it | the structure from after it: the statement is done |

With TiDB the history of its DDL jobs shows which statements ran; the structure does not.

A statement is also done where the server returned OK in this very attempt and everything that the statement makes is
there, whatever somebody else has added to the table meanwhile. Any other structure stops the task: nobody can tell who
made it.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, Protocol

import MySQLdb

from unshard.ddl.evaluate import same_on_tidb
from unshard.ddl.sandbox import connection_cursor, server_text, show_create_database
from unshard.ddl.schema_equality import adds_only, alike, normal, same
from unshard.ddl.session import event_session, neutral_session
from unshard.ddl.statement import Context, Ddl, StatementKind
from unshard.errors import DdlError
from unshard.log import logger
from unshard.model.table import TableName
from unshard.mysql.failures import is_transient
from unshard.mysql.structure import find_create_statement
from unshard.schema.lex import tokens

Structures = Mapping[str, str | None]
"""SHOW CREATE by quoted name of a table or database on the target; None where it does not exist."""


class Again(StrEnum):
    """The effect of a second run on a target whose structure the statement leaves unchanged."""

    NOTHING = "nothing"
    HARMLESS = "harmless"
    HARMFUL = "harmful"


class Decision(StrEnum):
    """The answer of `decide` for a step: it has taken effect, is to run, is undecidable, or contradicts the target."""

    DONE = "done"
    RUN = "run"
    UNCLEAR = "unclear"
    CONFLICT = "conflict"


@dataclass(frozen=True, slots=True)
class Step:
    """One operation on the target.

    Args:
        statement: its text, already with the target's names.
        kind: the kind of the statement.
        again: what a second run does, where `before` equals `after`.
        before, after: the structures of the tables that it changes, before it and after it.
        context: the session that it runs in.
        word: a random word by which a TiDB target's history of DDL finds the statement (`target.fence`).
    """

    statement: str
    kind: StatementKind
    again: Again
    before: Structures
    after: Structures
    context: Context
    word: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form, which `from_dict` reads."""
        return {
            "statement": self.statement,
            "kind": self.kind.value,
            "again": self.again.value,
            "before": dict(self.before),
            "after": dict(self.after),
            "context": self.context.to_dict(),
            "word": self.word,
        }

    @classmethod
    def from_dict(cls, form: Mapping[str, Any], session: Context) -> Step:
        """Read the form of `to_dict`. `session` is the whole statement's, for early records whose steps have none."""
        return cls(
            form["statement"],
            StatementKind(form["kind"]),
            Again(form["again"]),
            form["before"],
            form["after"],
            Context.from_dict(form["context"]) if "context" in form else session,
            form.get("word", ""),
        )


@dataclass(frozen=True, slots=True)
class Intent:
    """All steps of one upstream statement, which the caller stores before it runs any of them.

    The first `done` steps have run. In the log the statement is between `position_begin` and `position_end`; `context`
    is its session.
    """

    position_begin: str
    position_end: str
    context: Context
    steps: tuple[Step, ...]
    done: int = 0

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form, which `from_dict` reads."""
        return {
            "position_begin": self.position_begin,
            "position_end": self.position_end,
            "context": self.context.to_dict(),
            "steps": [step.to_dict() for step in self.steps],
            "done": self.done,
        }

    @classmethod
    def from_dict(cls, form: Mapping[str, Any]) -> Intent:
        """Read the form of `to_dict`."""
        context = Context.from_dict(form["context"])
        steps = tuple(Step.from_dict(step, context) for step in form["steps"])
        return cls(form["position_begin"], form["position_end"], context, steps, form["done"])


def decide(step: Step, actual: Structures, *, resumed: bool) -> Decision:
    """Decide whether a step has to be run, by the module's table. Pure.

    `actual` are the target's structures now; `resumed` is whether an earlier attempt may have run the step.
    """
    before, after, found = (
        {name: normal(text) for name, text in structures.items()} for structures in (step.before, step.after, actual)
    )
    if before != after:
        if found == after:
            return Decision.DONE
        if found == before:
            return Decision.RUN
        done = all(alike(actual[name], text) for name, text in step.after.items())
        return Decision.DONE if done else Decision.CONFLICT
    if found != before:
        return Decision.CONFLICT
    match step.again:
        case Again.NOTHING:
            return Decision.DONE
        case Again.HARMLESS:
            return Decision.RUN
        case Again.HARMFUL:
            return Decision.UNCLEAR if resumed else Decision.RUN


def again(ddl: Ddl, before: Structures, after: Structures) -> Again:
    """Return the effect of a second run of a statement where the structures before and after it are equal.

    The rows that follow the statement in the log are not applied yet, so emptying or rebuilding a table twice has the
    same result as once. Moving rows between tables or values between columns has not.
    """
    if ddl.kind in (StatementKind.DROP_TABLE, StatementKind.DROP_DATABASE) and all(
        text is None for text in before.values()
    ):
        return Again.NOTHING
    if ddl.kind in (StatementKind.CREATE_DATABASE, StatementKind.ALTER_DATABASE):
        return Again.HARMLESS if ddl.or_replace else Again.NOTHING
    swaps = any(action in ("EXCHANGE", "CHANGE") or action.startswith("RENAME") for action in ddl.actions)
    if ddl.kind is StatementKind.RENAME_TABLE or swaps:
        return (
            Again.NOTHING
            if ddl.table_may_be_missing and all(text is None for text in before.values())
            else Again.HARMFUL
        )
    return Again.HARMLESS


# Run the remaining steps of an intent on the target, each statement once.


NOT_IN_TIDB = frozenset({1064, 1101, 1115, 1215, 1235, 1273, 3106, 3733, 3770, 3780, 3855, 8200})
"""Error numbers with which TiDB refuses a statement, or a part of one, that it does not support."""


class Jobs(Protocol):
    """The DDL jobs of a TiDB target (`target.fence`), which outlive the session that began them."""

    def run(self, word: str, statement: str) -> None:
        """Run a statement that can later be found by the word."""

    def was_done(self, word: str) -> bool:
        """Return whether an earlier attempt's statement has taken effect; waits while its job is running."""


def carry_out(
    connection: Any,
    intent: Intent,
    reach: Callable[[str], None],
    note_done: Callable[[int], None],
    *,
    resumed: bool,
    jobs: Jobs | None = None,
    begin: Callable[[Step], None] = lambda step: None,
) -> None:
    """Run every step that is not done, in order, on a connection without an open transaction.

    Args: connection: to the target. intent: the statement that is carried out.
        reach: crash points `ddl-execute-before`, `ddl-execute-after`, `ddl-noted`.
        note_done: stores durably how many steps are done; called after each step.
        resumed: whether an earlier attempt (of this or another process) had this intent. False only at the first.
        jobs: the DDL jobs of a TiDB target, whose history shows what an earlier attempt has done; None for others.
        begin: called before each step.

    Raises DdlError DDL-006 for a structure that is neither the one before the statement nor the one after it, DDL-007
    where only a human can decide, DDL-008 where the server refuses; MySQLdb.Error for a lost connection or a busy
    server, after which it may be called again with `resumed=True`. Idempotent by that.
    """
    for number in range(intent.done, len(intent.steps)):
        step = intent.steps[number]
        begin(step)
        if jobs is not None:
            _run_as_job(connection, intent, step, jobs, reach, resumed=resumed and number == intent.done)
            note_done(number + 1)
            reach("ddl-noted")
            continue
        actual = structures(connection, step)
        match decide(step, actual, resumed=resumed and number == intent.done):
            case Decision.RUN:
                reach("ddl-execute-before")
                _execute(connection, intent, step)
                reach("ddl-execute-after")
            case Decision.CONFLICT:
                raise _conflict(intent, step, actual)
            case Decision.UNCLEAR:
                raise DdlError("DDL-007", intent.context.where, values={"statement": step.statement})
            case Decision.DONE:
                pass
        note_done(number + 1)
        reach("ddl-noted")


def _run_as_job(
    connection: Any, intent: Intent, step: Step, jobs: Jobs, reach: Callable[[str], None], *, resumed: bool
) -> None:
    if resumed:
        if jobs.was_done(step.word):
            return
        actual = structures(connection, step)
        if decide(step, actual, resumed=False) is Decision.CONFLICT:
            raise _conflict(intent, step, actual)
    if step.kind is StatementKind.CREATE_TABLE and _is_there(connection, step):
        return
    reach("ddl-execute-before")
    try:
        with event_session(connection, step.context, step.kind, step.statement):
            jobs.run(step.word, step.statement)
    except MySQLdb.Error as error:
        if is_transient(error):
            raise
        where = replace(intent.context.where, table=", ".join(step.before))
        code = "DDL-038" if error.args[0] in NOT_IN_TIDB else "DDL-008"
        raise DdlError(code, where, server_text(error), {"statement": step.statement}) from error
    reach("ddl-execute-after")


def _is_there(connection: Any, step: Step) -> bool:
    """Return whether TiDB already has the table that a step makes, as it has for a further shard of a merged table."""
    for name, text in structures(connection, step).items():
        wanted = step.after[name]
        if text is None or wanted is None or step.before[name] is not None:
            return False
        if not same_on_tidb(text, wanted, unquoted(name)):
            return False
    return True


def structures(connection: Any, step: Step) -> Structures:
    """Return the target's present SHOW CREATE of every table or schema that the step names."""
    with neutral_session(connection):
        return {name: _structure(connection, step, name) for name in step.before}


def _structure(connection: Any, step: Step, name: str) -> str | None:
    if step.kind.on_schema:
        return show_create_database(connection, tokens(name)[0].value)
    return find_create_statement(connection, unquoted(name))


def unquoted(name: str) -> TableName:
    """Return the table of a key of `Structures`."""
    schema, _, table = tokens(name)
    return TableName(schema.value, table.value)


def _execute(connection: Any, intent: Intent, step: Step) -> None:
    """Run a step and compare the target's structures with the expected ones.

    A statement that the server refuses although its effect is there was the success of an earlier attempt.
    """
    context = intent.context
    try:
        with (
            event_session(connection, step.context, step.kind, step.statement),
            connection_cursor(connection) as cursor,
        ):
            cursor.execute(step.statement)
    except MySQLdb.Error as error:
        if is_transient(error):
            raise
        if decide(step, structures(connection, step), resumed=True) is not Decision.DONE:
            where = replace(context.where, table=", ".join(step.before))
            raise DdlError("DDL-008", where, server_text(error), {"statement": step.statement}) from error
    actual = structures(connection, step)
    others = [name for name, text in step.after.items() if not alike(actual[name], text)]
    if any(step.before[name] is None or not adds_only(actual[name], step.after[name]) for name in others):
        raise _conflict(intent, step, actual)
    for name in others:
        words = {"table": name, "statement": step.statement, "more": _differences(step.after[name], actual[name])}
        log = logger("sync", source=context.where.source or "")
        log.warning("a table was altered by hand while a statement ran on it; the statement is done", **words)


def _conflict(intent: Intent, step: Step, actual: Structures) -> DdlError:
    names = [
        name
        for name, text in actual.items()
        if not same(text, step.after[name]) and (not same(text, step.before[name]) or len(actual) == 1)
    ] or list(actual)
    cause = "\n".join(_side_by_side(name, step.before[name], step.after[name], actual[name]) for name in names)
    table = ", ".join(names)
    return DdlError(
        "DDL-006", replace(intent.context.where, table=table), cause, {"table": table, "statement": step.statement}
    )


def _side_by_side(name: str, before: str | None, after: str | None, found: str | None) -> str:
    """Return three texts, and the lines in which the found text differs from the expected one."""
    texts = {"before": before, "expected after": after, "found": found}
    blocks = [f"--- {name}, {title}:\n{text or '(is not there)'}" for title, text in texts.items()]
    return "\n".join([*blocks, "--- expected (-) and found (+) differ in:", *_differences(after, found)])


def _differences(after: str | None, found: str | None) -> list[str]:
    lines = difflib.ndiff((after or "").splitlines(), (found or "").splitlines())
    return [line for line in lines if line[:1] in "+-"]
