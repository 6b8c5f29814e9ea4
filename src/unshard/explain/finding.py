"""What an explanation is made of: findings, one for each kind of rule, with what decided."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from unshard.errors import BinlogError, ConfigError, DdlError, SyncError, UnshardError

TAKEN, LEFT_OUT, STOPS, NONE = "taken", "left out", "stops", "none"
"""What a finding says: the name is let through, or not; the task ends there; no rule of that kind is for it."""


@dataclass(frozen=True, slots=True)
class RuleFinding:
    """What one kind of rule says.

    `kind` is stable, `says` one of the words above or the kind's own; `rule` as it stands in the task file; `facts` are
    the kind's own keys, JSON-ready.
    """

    kind: str
    says: str
    text: str
    rule: str = ""
    facts: Mapping[str, Any] = field(default_factory=dict)

    def form(self) -> dict[str, Any]:
        """JSON-ready."""
        return {"kind": self.kind, "says": self.says, "rule": self.rule, "text": self.text, **self.facts}


@dataclass(frozen=True, slots=True)
class OperationFindings:
    """Findings on one operation of a statement; on all of a table `of` is empty."""

    of: str
    findings: tuple[RuleFinding, ...]

    def form(self) -> dict[str, Any]:
        return {"of": self.of, "findings": [finding.form() for finding in self.findings]}


@dataclass(frozen=True, slots=True)
class TargetStatement:
    """A statement on the target. `mode` is `normal`, `safe`, or empty for DDL; `change` what it is for."""

    sql: str
    change: str = ""
    mode: str = ""

    def form(self) -> dict[str, Any]:
        return {"change": self.change, "mode": self.mode, "sql": self.sql}


@dataclass(frozen=True, slots=True)
class Explained:
    """One source's explanation: the outcome in a word and in a line, then how it comes to it.

    `by_hand` tells that the statements are not run by the task: they are what is to be run by hand.
    """

    source: str
    says: str
    outcome: str
    groups: tuple[OperationFindings, ...]
    written: tuple[TargetStatement, ...] = ()
    by_hand: bool = False
    error: UnshardError | None = None

    def form(self) -> dict[str, Any]:
        """JSON-ready."""
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
    return {"code": error.code, "message": error.message, "cause": error.cause, "hint": error.hint}


def stopped(kind: str, error: UnshardError) -> RuleFinding:
    """A rule that stops the task."""
    return RuleFinding(kind, STOPS, f"{error.code}: {error.message}", facts={"error": error_form(error)})


STOPPING = (ConfigError, DdlError, SyncError, BinlogError)
"""Errors that a task would stop with, by its rules; others are of the look itself."""


def asked(kind: str, ask: Callable[[], Sequence[RuleFinding]]) -> tuple[list[RuleFinding], UnshardError | None]:
    """What it finds, and the error where a rule stops the task."""
    try:
        return list(ask()), None
    except STOPPING as error:
        return [stopped(kind, error)], error
