"""The results of checks, in DM's form (reference of DM, section 7.1).

For a user, findings with the same remedy become one, with their tables listed below it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

State = Literal["success", "warn", "fail"]
Severity = Literal["warn", "fail"]

PASSED = "pre-check is passed. "
FAILED = "fail to check synchronization configuration with type: {kind}"
DEFAULT_LIMIT = 10
_RANK = {"success": 0, "warn": 1, "fail": 2}


@dataclass(frozen=True, slots=True)
class Finding:
    """One problem that a check found.

    `instruction` begins with the command that fixes it, if there is one. `self` and `other` are the two things
    concerned, as in DM.
    """

    severity: Severity
    short_error: str
    instruction: str = ""
    self: str = ""
    other: str = ""

    def to_dict(self) -> dict[str, str]:
        """Return DM's JSON form."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Result:
    """The outcome of one check for one source, target or merged table.

    `extra` names what was checked: the source, `target` or the merged table. `id` counts from 0 over a report.
    """

    name: str
    desc: str
    errors: tuple[Finding, ...] = ()
    extra: str = ""
    id: int = 0

    @property
    def state(self) -> State:
        """The worst severity among the findings; `success` without findings."""
        states: list[State] = [finding.severity for finding in self.errors]
        return max(states, key=_RANK.__getitem__, default="success")

    def to_dict(self) -> dict[str, Any]:
        """Return DM's JSON form."""
        return {
            "id": self.id,
            "name": self.name,
            "desc": self.desc,
            "state": self.state,
            "errors": [finding.to_dict() for finding in self.errors],
            "instruction": self.errors[0].instruction if len(self.errors) == 1 else "",
            "extra": self.extra,
        }


@dataclass(frozen=True, slots=True)
class CheckReport:
    """All results of a task. The start is refused if one of them failed."""

    results: tuple[Result, ...]

    @classmethod
    def of(cls, results: Sequence[Result]) -> CheckReport:
        """Return a report of the results, numbered from 0."""
        return cls(tuple(replace(result, id=number) for number, result in enumerate(results)))

    @property
    def passed(self) -> bool:
        """True if no check failed."""
        return not any(result.state == "fail" for result in self.results)

    def findings(self, severity: Severity) -> Iterator[tuple[Result, Finding]]:
        """Yield the findings of that severity, each with its result."""
        return ((result, one) for result in self.results for one in result.errors if one.severity == severity)

    def summary(self) -> dict[str, Any]:
        """Return DM's counts of results by state."""
        counts = Counter(result.state for result in self.results)
        return {
            "passed": self.passed,
            "total": len(self.results),
            "successful": counts["success"],
            "failed": counts["fail"],
            "warning": counts["warn"],
        }

    def cut(self, errors: int = DEFAULT_LIMIT, warnings: int = DEFAULT_LIMIT) -> CheckReport:
        """Return the report without successes, and with at most so many errors and warnings.

        The limits count over all results, as in DM.
        """
        left: dict[str, int] = {"fail": errors, "warn": warnings}
        shown = []
        for result in self.results:
            kept = []
            for finding in result.errors:
                if left[finding.severity] > 0:
                    left[finding.severity] -= 1
                    kept.append(finding)
            if kept:
                shown.append(replace(result, errors=tuple(kept)))
        return CheckReport(tuple(shown))

    def to_dict(self, errors: int = DEFAULT_LIMIT, warnings: int = DEFAULT_LIMIT) -> dict[str, Any]:
        """Return dmctl's answer: `result` and `msg`, and as separate values the details that DM writes into `msg`."""
        message = PASSED
        if not self.passed:
            message = FAILED.format(kind="some checks failed")
        elif any(result.state == "warn" for result in self.results):
            message = FAILED.format(kind="no errors but some warnings")
        shown = [result.to_dict() for result in self.cut(errors, warnings).results]
        return {"result": self.passed, "msg": message, "results": shown, "summary": self.summary()}


_TABLE = "\0"


@dataclass(frozen=True, slots=True)
class LocatedFinding:
    """One finding with the check that found it.

    `place` is a source or `target`. `table` is the table that the texts name, "" for none. `mend` is the remedy.
    """

    severity: str
    check: str
    place: str
    text: str
    mend: str
    table: str = ""

    @property
    def head(self) -> str:
        """The check, the place and the problem."""
        return f"{self.check}{f' ({self.place})' if self.place else ''}: {self.text}"


@dataclass(frozen=True, slots=True)
class FindingGroup:
    """A problem and its remedy, worded for the first table. `others` are the tables with the same problem."""

    severity: str
    head: str
    mend: str
    others: tuple[str, ...] = ()

    @property
    def also(self) -> str:
        """A sentence that names the other tables; empty if there are none."""
        if not self.others:
            return ""
        count = "one more table" if len(self.others) == 1 else f"{len(self.others)} more tables"
        return f"The same holds for {count}: {', '.join(self.others)}"

    @property
    def line(self) -> str:
        """The whole group in one line."""
        parts = (self.head, f"What to do: {self.mend}" if self.mend else "", self.also)
        return " ".join(part if part.endswith((".", ";")) else f"{part}." for part in parts if part).rstrip(".")


def grouped(found: Iterable[LocatedFinding]) -> list[FindingGroup]:
    """Return the groups in the order of their first findings.

    The findings of a group differ only in the table's name.
    """
    alike: dict[tuple[str, ...], list[LocatedFinding]] = {}
    for one in found:
        texts = (_without(one.text, one.table), _without(one.mend, one.table))
        alike.setdefault((one.severity, one.check, one.place, *texts), []).append(one)
    return [_group(among) for among in alike.values()]


def _group(among: list[LocatedFinding]) -> FindingGroup:
    first = among[0]
    _, *others = dict.fromkeys(one.table for one in among)
    return FindingGroup(first.severity, first.head, first.mend, tuple(others))


def _without(text: str, table: str) -> str:
    """Return a text with the table's name, plain or quoted for SQL, replaced by a placeholder that is no name."""
    if not table:
        return text
    schema, _, name = table.partition(".")
    return text.replace(f"`{schema}`.`{name}`", _TABLE).replace(table, _TABLE)
