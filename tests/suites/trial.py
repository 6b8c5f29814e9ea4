"""Runs a suite many times beside busy processes, and tells which tests failed how often: `tools/try-suite`.

    python -m suites.trial [TIMES] [SUITE] [BUSY]    3 times `test` beside 4 busy processes, if nothing else is said

SUITE may be `all`. A test that passes on a quiet machine and fails here waits for a time, not for an event.

A trial takes hours. One that was broken off goes on behind its last finished step, on the same commit.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from suites.catalogue import GATE, Suite
from suites.run import RECORDS, Result, named, ran, summary

BUSY = 4
"""So many processes do nothing but compute meanwhile."""


@dataclass(frozen=True, slots=True)
class Done:
    """A step that a run of the trial has finished; `failed` names its tests that did not pass."""

    run: int
    suite: str
    step: str
    good: bool
    failed: tuple[str, ...] = ()


class Finished:
    """The finished steps of a trial, in a file: a line that says which trial it is, then one for each step."""

    def __init__(self, path: Path, trial: str) -> None:
        self._path = path
        lines = path.read_text().splitlines() if path.exists() else []
        self.steps: list[Done] = []
        if lines[:1] == [trial]:
            forms = map(json.loads, lines[1:])
            self.steps += [Done(**{**form, "failed": tuple(form["failed"])}) for form in forms]
        else:
            path.parent.mkdir(exist_ok=True)
            path.write_text(f"{trial}\n")

    def add(self, run: int, result: Result) -> None:
        """Note a step."""
        done = Done(run, result.suite, result.step, result.good, tuple(result.record.failed))
        self.steps.append(done)
        with self._path.open("a") as file:
            file.write(f"{json.dumps(asdict(done))}\n")

    def of(self, run: int) -> list[Done]:
        """The steps that this run has finished."""
        return [done for done in self.steps if done.run == run]

    def forget(self) -> None:
        """The trial is over: the next one begins anew."""
        self._path.unlink()


def left(suites: Sequence[Suite], done: Iterable[Done]) -> tuple[Suite, ...]:
    """What a run still has to do: the suites with their unfinished steps. One with a failed step is over."""
    steps = {(one.suite, one.step) for one in done}
    over = {one.suite for one in done if not one.good}
    rest = [
        replace(suite, steps=tuple(step for step in suite.steps if (suite.name, step.name) not in steps))
        for suite in suites
        if suite.name not in over
    ]
    return tuple(suite for suite in rest if suite.steps)


@contextmanager
def busy(count: int) -> Iterator[None]:
    """The processes that compute. They end with this block, and with this process at the latest."""
    word = "import os, sys\nwhile os.getppid() == int(sys.argv[1]):\n    sum(range(1_000_000))"
    processes = [subprocess.Popen([sys.executable, "-c", word, str(os.getpid())]) for _ in range(count)]
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()


def commit() -> str:
    """The commit that is tried; another text each time where files differ from it."""
    words = ["git", "-C", str(RECORDS.parent)]
    changed = subprocess.run([*words, "status", "--porcelain"], capture_output=True, text=True, check=False)
    if changed.returncode or changed.stdout:
        return f"changed files, {time.time_ns()}"
    return subprocess.run([*words, "rev-parse", "HEAD"], capture_output=True, text=True, check=True).stdout.strip()


def main(words: Sequence[str]) -> int:
    """Run it; 1 where one run failed."""
    times = int(words[0]) if words else 3
    suites = named(words[1:2] or [GATE.name])
    beside = int(words[2]) if words[2:] else BUSY
    name = words[1] if words[1:] else GATE.name
    finished = Finished(RECORDS / f"trial-{name}", f"{commit()} {times} {name} {beside}")
    if finished.steps:
        print(f"== {len(finished.steps)} steps of this trial are finished: it goes on behind them", flush=True)
    for run in range(1, times + 1):
        if rest := left(suites, finished.of(run)):
            print(f"== run {run} of {times}, beside {beside} busy processes", flush=True)
            _run(run, rest, finished, beside)
        good = sum(_passed(finished.of(number)) for number in range(1, run + 1))
        print(f"== run {run} of {times}: {good} of {run} passed", flush=True)
    failed = Counter(test for done in finished.steps for test in _failures(done))
    for test, count in failed.most_common():
        print(f"failed {count} of {times} times: {test}")
    print(f"{good} of {times} runs passed")
    finished.forget()
    return int(good < times)


def _run(run: int, rest: Sequence[Suite], finished: Finished, beside: int) -> None:
    begun = time.monotonic()
    results: list[Result] = []
    with busy(beside):
        for result in ran(rest):
            finished.add(run, result)
            results.append(result)
    print(f"{summary(results)}, {time.monotonic() - begun:.0f} s")


def _passed(done: Sequence[Done]) -> bool:
    return all(one.good for one in done)


def _failures(done: Done) -> tuple[str, ...]:
    """The names under which a failed step is counted."""
    return done.failed or (() if done.good else (f"{done.suite}, {done.step}",))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
