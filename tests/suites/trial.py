"""Runs a suite many times beside busy processes, and tells which tests failed how often: `tools/try-suite`.

    python -m suites.trial [TIMES] [SUITE] [BUSY]    3 times `test` beside 4 busy processes, if nothing else is said

SUITE may be `all`; BUSY is the number of processes. A test that passes on a quiet machine and fails here waits for
a time, not for an event.

A trial takes hours. One that was broken off goes on behind its last finished step, on the same commit.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from suites.catalogue import GATE, Suite
from suites.run import RECORDS, Result, named, ran, summary

BUSY = 4
"""So many processes do nothing but compute meanwhile."""


@dataclass(frozen=True, slots=True)
class Done:
    """A step that a run of the trial has finished, in `seconds`; `failed` names its tests that did not pass."""

    run: int
    suite: str
    step: str
    good: bool
    seconds: float
    failed: tuple[str, ...] = ()


class Finished:
    """The finished steps of a trial, in a file: a line with the commit that is tried, then one for each step.

    Steps of another commit are forgotten.
    """

    def __init__(self, path: Path, tried: str) -> None:
        self._path = path
        lines = path.read_text().splitlines() if path.exists() else []
        self.steps: list[Done] = []
        if lines[:1] == [tried]:
            forms = map(json.loads, lines[1:])
            self.steps += [Done(**{**form, "failed": tuple(form["failed"])}) for form in forms]
        else:
            path.parent.mkdir(exist_ok=True)
            path.write_text(f"{tried}\n")

    def add(self, run: int, result: Result) -> None:
        """Record a step, so that a later call of the same trial finds it."""
        done = Done(run, result.suite, result.step, result.good, result.seconds, tuple(result.record.failed))
        self.steps.append(done)
        with self._path.open("a") as file:
            file.write(f"{json.dumps(asdict(done))}\n")

    def of(self, run: int) -> list[Done]:
        """Return the steps that this run has finished."""
        return [done for done in self.steps if done.run == run]

    def forget(self) -> None:
        """Remove the file: the trial is over, and the next one begins anew."""
        self._path.unlink()


def left(suites: Sequence[Suite], done: Iterable[Done]) -> tuple[Suite, ...]:
    """Return the suites with the steps that a run has not finished. A suite with a failed step is over."""
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
    """Return the commit that is tried; where files differ from it, a text that no other call returns."""
    words = ["git", "-C", str(RECORDS.parent)]
    changed = subprocess.run([*words, "status", "--porcelain"], capture_output=True, text=True, check=False)
    if changed.returncode or changed.stdout:
        return f"changed files, {uuid.uuid4()}"
    return subprocess.run([*words, "rev-parse", "HEAD"], capture_output=True, text=True, check=True).stdout.strip()


def main(words: Sequence[str]) -> int:
    """Run it; 1 where one run failed, 2 where the words are wrong."""
    asked = _parser().parse_args(words)
    times: int = asked.times
    suites = named([asked.suite])
    finished = Finished(RECORDS / f"trial-{asked.suite}-{times}-{asked.busy}", commit())
    if finished.steps:
        print(f"== {len(finished.steps)} steps of this trial are finished: it goes on behind them", flush=True)
    good = 0
    for run in range(1, times + 1):
        if rest := left(suites, finished.of(run)):
            print(f"== run {run} of {times}, beside {asked.busy} busy processes", flush=True)
            print(summary(_run(run, rest, finished, asked.busy)))
        done = finished.of(run)
        good += all(one.good for one in done)
        seconds = sum(one.seconds for one in done)
        print(f"== run {run} of {times}: {seconds:.0f} s, {good} of {run} passed", flush=True)
    failed = Counter(test for done in finished.steps for test in _failures(done))
    for test, count in failed.most_common():
        print(f"failed {count} of {times} times: {test}")
    print(f"{good} of {times} runs passed")
    finished.forget()
    return int(good < times)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="tools/try-suite", description="Run a suite many times.")
    parser.add_argument("times", nargs="?", type=_counted(1), default=3, metavar="TIMES")
    parser.add_argument("suite", nargs="?", default=GATE.name, metavar="SUITE")
    parser.add_argument("busy", nargs="?", type=_counted(0), default=BUSY, metavar="BUSY")
    return parser


def _counted(least: int) -> Callable[[str], int]:
    """Return the function that reads a number which is `least` or more."""

    def read(word: str) -> int:
        if not word.isdecimal() or int(word) < least:
            raise argparse.ArgumentTypeError(f"{word!r} is no number from {least} on")
        return int(word)

    return read


def _run(run: int, rest: Sequence[Suite], finished: Finished, beside: int) -> list[Result]:
    results: list[Result] = []
    with busy(beside):
        for result in ran(rest):
            finished.add(run, result)
            results.append(result)
    return results


def _failures(done: Done) -> tuple[str, ...]:
    """Return the names under which a failed step is counted."""
    return done.failed or (() if done.good else (f"{done.suite}, {done.step}",))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
