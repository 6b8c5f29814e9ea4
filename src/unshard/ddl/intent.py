"""What is written down before a statement is run, and what the target's real structure says about it afterwards.

| found on the target | before = after | answer |
|---|---|---|
| equal to *after* | no | DONE |
| equal to *before* | no | RUN |
| equal to both | yes, and a second run changes nothing more | RUN |
| equal to both | yes, and nothing is to be done | DONE |
| equal to both | yes, and a second run would undo or double the first | RUN at first, UNCLEAR after a crash |
| anything else | either | CONFLICT |
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
"""SHOW CREATE by quoted name of a table or database on the target; None where there is none."""


class Again(StrEnum):
    """What a second run does to a target whose structure the statement leaves as it was."""

    NOTHING = "nothing"
    HARMLESS = "harmless"
    HARMFUL = "harmful"


class Decision(StrEnum):
    DONE = "done"
    RUN = "run"
    UNCLEAR = "unclear"
    CONFLICT = "conflict"


@dataclass(frozen=True, slots=True)
class Step:
    """One operation: its text, already with the target's names, its session, and the structures around it.

    `word` is a random one that a TiDB target finds the statement by in its history of DDL (`target.tidb_ddl`).
    """

    statement: str
    kind: StatementKind
    again: Again
    before: Structures
    after: Structures
    context: Context
    word: str = ""

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready form, read back by `from_dict`."""
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
        """`session` is that of the whole statement, which early records of a step leave to it."""
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
    """All of one upstream statement, stored by the caller before any of it is run. `done` steps are through."""

    position_begin: str
    position_end: str
    context: Context
    steps: tuple[Step, ...]
    done: int = 0

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready form, read back by `from_dict`."""
        return {
            "position_begin": self.position_begin,
            "position_end": self.position_end,
            "context": self.context.to_dict(),
            "steps": [step.to_dict() for step in self.steps],
            "done": self.done,
        }

    @classmethod
    def from_dict(cls, form: Mapping[str, Any]) -> Intent:
        context = Context.from_dict(form["context"])
        steps = tuple(Step.from_dict(step, context) for step in form["steps"])
        return cls(form["position_begin"], form["position_end"], context, steps, form["done"])


def decide(step: Step, actual: Structures, *, resumed: bool) -> Decision:
    """What is left to do of a step. `resumed`: an earlier attempt may have run it. Pure; the module's table."""
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
    """What a second run of a statement does where the structures around it are equal.

    Rows behind the statement are not applied yet, so emptying or rebuilding a table twice is as good as once.
    Moving rows between tables or values between columns is not.
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
