"""Runs a suite many times beside busy processes, and tells which tests failed how often: `tools/try-suite`.

    python -m suites.trial [TIMES] [SUITE]       3 times `test`, if nothing else is said; SUITE may be `all`

A test that passes on a quiet machine and fails here waits for a time, not for an event.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from suites.catalogue import GATE
from suites.run import Result, named, ran, summary

BUSY = 4
"""So many processes do nothing but compute meanwhile."""


@contextmanager
def busy() -> Iterator[None]:
    """The processes that compute. They end with this block, and with this process at the latest."""
    word = "import os, sys\nwhile os.getppid() == int(sys.argv[1]):\n    sum(range(1_000_000))"
    processes = [subprocess.Popen([sys.executable, "-c", word, _pid()]) for _ in range(BUSY)]
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()


def _pid() -> str:
    return str(os.getpid())


def main(words: Sequence[str]) -> int:
    """Run it; 1 where one run failed."""
    times = int(words[0]) if words else 3
    suites = named(words[1:] or [GATE.name])
    good = 0
    failed: Counter[str] = Counter()
    for number in range(1, times + 1):
        print(f"== run {number} of {times}, beside {BUSY} busy processes", flush=True)
        begun = time.monotonic()
        with busy():
            results: list[Result] = list(ran(suites))
        print(summary(results))
        good += all(one.good for one in results)
        failed.update(test for one in results for test in one.record.failed)
        failed.update(f"{one.suite}, {one.step}" for one in results if not one.good and not one.record.failed)
        print(f"== run {number} of {times}: {time.monotonic() - begun:.0f} s, {good} of {number} passed", flush=True)
    for test, count in failed.most_common():
        print(f"failed {count} of {times} times: {test}")
    print(f"{good} of {times} runs passed")
    return int(good < times)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
