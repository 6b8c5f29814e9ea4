"""What a run of pytest says while it goes on and leaves behind: failures at once, and a record for the summary.

A plugin of `tests/conftest.py`. Only the process that was started reports, not the ones that share its tests.
"""

from __future__ import annotations

import json
import os
import re
from collections import defaultdict
from dataclasses import asdict, dataclass, field
from pathlib import Path

import pytest

RECORD = "UNSHARD_TEST_RECORD"
"""The variable that names the file for the record (`Record` as JSON)."""

_EXPIRED = re.compile(r"(\w+\.)*ExpiredWait\b")
"""How the first line of the error begins that `support.waiting` raises."""


@dataclass(slots=True)
class Record:
    """What one run of pytest did.

    Attributes:
        seconds: by test, the time of its set-up, its call and its teardown.
        failed: by test, the line that says why.
        expired: tests of `failed` that only waited too long for an event.
        left_out: why tests were left out, a sentence each.
    """

    seconds: dict[str, float] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)
    expired: list[str] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)

    @property
    def passed(self) -> int:
        return len(self.seconds) - len(self.failed)


class Reporter:
    """Collects the record, and prints a failure with its error as soon as it is known."""

    def __init__(self, terminal: pytest.TerminalReporter, left_out: list[str]) -> None:
        self._terminal = terminal
        self._seconds: defaultdict[str, float] = defaultdict(float)
        self._record = Record(left_out=left_out)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._seconds[report.nodeid] += report.duration
        if report.failed:
            why = _why(report)
            self._record.failed.setdefault(report.nodeid, why)
            if report.when == "call" and _EXPIRED.match(why):
                self._record.expired.append(report.nodeid)
            self._say(f"FAILED {report.nodeid} after {report.duration:.1f} s, in its {report.when}: {why}")

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self._record.failed[report.nodeid] = str(report.longrepr)
            self._seconds[report.nodeid] += 0
            self._say(f"ERROR {report.nodeid} can't be read: {str(report.longrepr).strip().splitlines()[-1]}")

    def pytest_sessionfinish(self) -> None:
        self._record.seconds = dict(self._seconds)
        if path := os.environ.get(RECORD):
            Path(path).write_text(json.dumps(asdict(self._record)))

    def _say(self, line: str) -> None:
        self._terminal.ensure_newline()
        self._terminal.write_line(line, red=True)
        self._terminal.flush()


def _why(report: pytest.TestReport) -> str:
    """The error's first line."""
    crash = getattr(report.longrepr, "reprcrash", None)
    text = str(crash.message if crash is not None else report.longrepr).strip()
    return text.splitlines()[0] if text else "no error was told"


def read(path: Path) -> Record:
    """The record that a run left in that file; an empty one where it was ended before."""
    return Record(**json.loads(path.read_text())) if path.exists() and path.stat().st_size else Record()
