"""The results of checks, in DM's form (reference of DM, section 7.1)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
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
