"""The findings of an explanation, one for each kind of rule, with the rule that decided.

Also parses what the user enters: the name of a table, and SQL modes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from unshard.ddl.context import MODE_NAMES, Context
from unshard.ddl.cursor import Cursor, tokens_of
from unshard.ddl.names import read_table
from unshard.ddl.statement import TableRole
from unshard.errors import BinlogError, ConfigError, DdlError, SyncError, UnshardError
from unshard.model.table import TableName

TAKEN, LEFT_OUT, STOPS, NONE = "taken", "left out", "stops", "none"
"""The outcome of a finding: the name is let through, or not; the task stops there; no rule of that kind applies."""


@dataclass(frozen=True, slots=True)
class RuleFinding:
    """The outcome of one kind of rule.

    Args:
        kind: a stable name for the kind of rule.
        says: TAKEN, LEFT_OUT, STOPS or NONE, or a word of the kind's own.
        text: the outcome for people.
        rule: the rule as it is named in the task file.
        facts: further values, JSON-ready, under keys of the kind's own.
    """

    kind: str
    says: str
    text: str
    rule: str = ""
    facts: Mapping[str, Any] = field(default_factory=dict)

    def form(self) -> dict[str, Any]:
        """Return the finding in its JSON form."""
        return {"kind": self.kind, "says": self.says, "rule": self.rule, "text": self.text, **self.facts}


@dataclass(frozen=True, slots=True)
class OperationFindings:
    """The findings on one operation of a statement.

    `of` is the operation's text; it is empty for findings on a whole statement or table.
    """

    of: str
    findings: tuple[RuleFinding, ...]

    def form(self) -> dict[str, Any]:
        """Return the operation and its findings in their JSON form."""
        return {"of": self.of, "findings": [finding.form() for finding in self.findings]}


@dataclass(frozen=True, slots=True)
class TargetStatement:
    """A statement on the target.

    `mode` is `normal`, `safe`, or empty for DDL. `change` is the kind of row change that it applies.
    """

    sql: str
    change: str = ""
    mode: str = ""

    def form(self) -> dict[str, Any]:
        """Return the statement in its JSON form."""
        return {"change": self.change, "mode": self.mode, "sql": self.sql}


@dataclass(frozen=True, slots=True)
class Explained:
    """The explanation for one source: the outcome in one word and in one line, and the findings that lead to it.

    `written` are the statements on the target. `by_hand` means that the task does not run them: a user has to.
    """

    source: str
    says: str
    outcome: str
    groups: tuple[OperationFindings, ...]
    written: tuple[TargetStatement, ...] = ()
    by_hand: bool = False
    error: UnshardError | None = None

    def form(self) -> dict[str, Any]:
        """Return the explanation in its JSON form."""
        return {
            "source": self.source,
            "says": self.says,
            "outcome": self.outcome,
            "groups": [group.form() for group in self.groups],
            "statements": [one.form() for one in self.written],
            "byHand": self.by_hand,
            "error": None if self.error is None else error_form(self.error),
        }


def error_form(error: UnshardError) -> dict[str, Any]:
    """Return an error in its JSON form: `code`, `message`, `cause`, `hint`."""
    return {"code": error.code, "message": error.message, "cause": error.cause, "hint": error.hint}


def stopped(kind: str, error: UnshardError) -> RuleFinding:
    """Return the finding for a rule that stops the task."""
    return RuleFinding(kind, STOPS, f"{error.code}: {error.message}", facts={"error": error_form(error)})


STOPPING = (ConfigError, DdlError, SyncError, BinlogError)
"""Errors by which the rules stop a task. Any other error is a failure of the explanation itself."""


def asked(kind: str, ask: Callable[[], Sequence[RuleFinding]]) -> tuple[list[RuleFinding], UnshardError | None]:
    """Return the findings of `ask`, and the error if a rule stops the task."""
    try:
        return list(ask()), None
    except STOPPING as error:
        return [stopped(kind, error)], error


def table_name(text: str) -> TableName:
    """Parse `schema.table`, each in backticks if it needs them. Raises ConfigError CONFIG-025."""
    context = Context()
    try:
        at = Cursor(text, tokens_of(text, context), context)
        found = read_table(at, TableRole.OBJECT)
        at.expect_end()
    except DdlError:
        raise ConfigError("CONFIG-025", values={"text": text}) from None
    return found.name


def check_modes(text: str) -> None:
    """Check names of SQL modes, separated by commas. Raises ConfigError CONFIG-027 for an unknown one."""
    unknown = [name for name in Context(sql_mode=text).modes if name not in MODE_NAMES]
    if unknown:
        raise ConfigError("CONFIG-027", values={"mode": unknown[0]})
