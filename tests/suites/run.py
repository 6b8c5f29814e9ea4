"""Runs suites, one step after the other, and ends with a table: suite, tests, seconds, what was left out and why.

    python -m suites.run test                 what every change must pass
    python -m suites.run all                  every suite; one that fails does not keep the next one from running
    python -m suites.run faults page          these

`make test`, `make test-all` and `make test-faults` and so on call it, from the top folder with `tests` on the path.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from suites.catalogue import GATE, NAMED, OWN_FOLDERS, SUITES, Step, Suite
from suites.memory import MEMORY, NEEDED, free, memory_folder, remove_left
from suites.report import RECORD, Record, read

MOST_FAILURES = 5
"""A step ends behind so many: the others mostly tell the same."""

RECORDS = Path(__file__).parents[2] / ".test-records"
"""What the last run of each step did (`Record`), a file each."""

NO_TESTS = 5
"""pytest's exit code where no test was found."""


@dataclass(frozen=True, slots=True)
class Result:
    """How one step ended, or why its suite could not begin (`refused`).

    `second_tries` are tests that have waited too long for an event and have passed when they were run again, alone.
    """

    suite: str
    step: str
    record: Record
    seconds: float
    code: int
    refused: str = ""
    second_tries: tuple[str, ...] = ()

    @property
    def good(self) -> bool:
        return self.code == 0


def named(words: Sequence[str]) -> tuple[Suite, ...]:
    """The suites of these names. Raises SystemExit for a name that none has."""
    known = {suite.name: suite for suite in SUITES}
    if list(words) == ["all"]:
        return SUITES
    unknown = [word for word in words if word not in known]
    if unknown or not words:
        sys.exit(f"suites.run: no suite is called {', '.join(unknown) or 'nothing'}; there are all, {', '.join(known)}")
    return tuple(known[word] for word in words)


def ran(suites: Sequence[Suite]) -> Iterator[Result]:
    """Run them. What a suite needs is installed first; where that fails, the suite counts as failed."""
    for suite in suites:
        for need in suite.needs:
            installed = subprocess.run(need, check=False).returncode
            if installed:
                yield Result(suite.name, "set-up", Record(), 0, installed, f"`{' '.join(need)}` failed, see above")
                break
        else:
            for number, step in enumerate(suite.steps, 1):
                print(f"== {suite.name}: {step.name} ({number} of {len(suite.steps)})", flush=True)
                result = _again(suite, step, _step(suite, step))
                told = f"{result.record.passed} passed, {len(result.record.failed)} failed, {result.seconds:.0f} s"
                print(f"== {suite.name}: {step.name}: {told}", flush=True)
                yield result
                if not result.good:
                    break


def _again(suite: Suite, step: Step, first: Result) -> Result:
    """Run the tests once more that failed, if each of them only waited too long and the suite allows it."""
    expired = first.record.expired
    if not suite.second_try or not expired or set(expired) != first.record.failed.keys():
        return first
    if len(expired) >= MOST_FAILURES:  # the step has ended early: some tests have not run at all
        return first
    print(f"== {suite.name}: {step.name}: once more, alone: {', '.join(expired)}", flush=True)
    alone = replace(step, name=f"{step.name}-again", marks="", paths=tuple(expired), ignored=(), jobs=0)
    second = _step(suite, alone, "-rA")
    if not second.good:
        return first
    record = replace(first.record, failed={}, expired=[])
    return replace(first, record=record, code=0, second_tries=tuple(expired))


def _step(suite: Suite, step: Step, *more: str) -> Result:
    jobs = int(os.environ.get("JOBS") or step.jobs)
    RECORDS.mkdir(exist_ok=True)
    path = RECORDS / f"{suite.name}-{step.name}.json"
    path.unlink(missing_ok=True)
    words = [sys.executable, "-m", "pytest", "-q", "-rfE", "--tb=short", "--no-header", f"--maxfail={MOST_FAILURES}"]
    words += ["--durations=15", "--durations-min=5"]
    if jobs:
        words += [f"--numprocesses={jobs}", "--dist=loadfile", "--no-loadscope-reorder", "--max-worker-restart=0"]
    words += ["-m", step.marks] if step.marks else []
    words += [f"--ignore={ignored}" for ignored in step.ignored]
    words += [f"--deselect={test}" for test in step.without]
    begun = time.monotonic()
    environment = {**os.environ, **dict(step.environment), RECORD: str(path)}
    code = _run([*words, *more, *paths_of(step)], environment, in_memory=suite.in_memory)
    record = read(path)
    if code == NO_TESTS:
        print(f"{step.name}: no test was found", flush=True)
    return Result(suite.name, step.name, record, time.monotonic() - begun, code)


def _run(words: Sequence[str], environment: Mapping[str, str], *, in_memory: bool) -> int:
    """Run pytest, with its temporary files in memory where the suite allows it and enough is free. Return its code."""
    if in_memory:
        remove_left(MEMORY)
    if not in_memory or "TMPDIR" in environment or free(MEMORY) < NEEDED:
        return subprocess.run(words, env=environment, check=False).returncode
    with memory_folder(MEMORY) as folder:
        code = subprocess.run(words, env={**environment, "TMPDIR": str(folder)}, check=False).returncode
        if code:
            print(f"what the tests have written is in {folder} until the next `make test`", flush=True)
        else:
            shutil.rmtree(folder, ignore_errors=True)
    return code


def paths_of(step: Step) -> tuple[str, ...]:
    """The paths that pytest is given: of all tests only the files that name the marks of the step.

    To collect all files takes longer than the tests of some steps.
    """
    wanted = [f"mark.{mark}" for mark in NAMED if mark in step.marks.split(" and ")]
    if not wanted or step.paths != ("tests",):
        return step.paths
    files = (path for path in sorted(Path("tests").rglob("test_*.py")) if not path.as_posix().startswith(OWN_FOLDERS))
    return tuple(map(str, filter(lambda path: all(word in path.read_text() for word in wanted), files)))


def summary(results: Sequence[Result]) -> str:
    """The table, and `N passed, N failed` as its last line."""
    lines = [f"{'suite':<10} {'step':<16} {'tests':>6} {'failed':>6} {'seconds':>8}"]
    for one in results:
        count = len(one.record.seconds)
        state = "" if one.good else "  FAILED"
        failed = len(one.record.failed)
        lines.append(f"{one.suite:<10} {one.step:<16} {count:>6} {failed:>6} {one.seconds:>8.0f}{state}")
    for one in results:
        lines += [f"FAILED {test}: {why}" for test, why in one.record.failed.items()]
        if one.refused:
            lines.append(f"NOT TESTED: {one.suite}: {one.refused}")
        elif not one.good and not one.record.failed:
            lines.append(f"FAILED {one.suite}, {one.step}: pytest ended with {one.code} and names no test")
    lines += [f"PASSED AT ITS SECOND TRY, a defect: {test}" for one in results for test in one.second_tries]
    lines += sorted({f"NOT TESTED: {why}" for one in results for why in one.record.left_out})
    passed = sum(one.record.passed for one in results)
    failed = sum(max(len(one.record.failed), not one.good) for one in results)
    return "\n".join([*lines, f"{passed} passed, {failed} failed"])


def main(words: Sequence[str]) -> int:
    """Run the suites of these names; the exit code, 1 where something failed."""
    begun = time.monotonic()
    results = list(ran(named(words)))
    print(f"\n{'== ' + ' '.join(words) + ' ':=<60} {time.monotonic() - begun:.0f} s")
    print(summary(results), flush=True)
    return int(not all(one.good for one in results))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:] or [GATE.name]))
