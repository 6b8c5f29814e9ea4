"""The intent of a statement, a record that is stored before it runs.

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

`execute.py` runs the steps.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from unshard.ddl.context import Context
from unshard.ddl.schema_equality import alike, normal
from unshard.ddl.statement import Ddl, StatementKind

Structures = Mapping[str, str | None]
"""SHOW CREATE by quoted name of a table or database on the target; None where it does not exist."""


class Again(StrEnum):
    """The effect of running a statement a second time, on a target whose structure the statement leaves unchanged."""

    NOTHING = "nothing"
    HARMLESS = "harmless"
    HARMFUL = "harmful"


class Decision(StrEnum):
    """The decision on a step: it has taken effect, it is to run, this can't be known, or the target contradicts it."""

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
        word: a random word by which a TiDB target's history of DDL finds the statement (`target.ddl_jobs`).
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
    """The plan of one upstream statement: all of its steps, which the caller stores before it runs any of them.

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
