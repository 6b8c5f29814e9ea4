"""Kills the product and its target many times while rows come, and proves that each change arrived once.

    tools/try-kills --source mysql-8.0 --target tidb --times 100 --seed 7

It is `tests/recovery/test_hard_life.py` with more deaths: of each five, three are the product's and two the target's.
The seed is printed at the beginning; the same one gives the same course, as far as two servers and their clocks allow.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Sequence

from support.source_servers import MARIADB, SOURCES
from support.target_servers import TARGETS

TEST = "tests/recovery/test_hard_life.py"


def environment(words: Sequence[str], seed: int) -> dict[str, str]:
    """Return the variables that the test reads. Raises SystemExit for words that are not understood."""
    parser = argparse.ArgumentParser("tools/try-kills", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--source", choices=list(SOURCES), default=MARIADB)
    parser.add_argument("--target", choices=list(TARGETS), default=MARIADB)
    parser.add_argument("--times", type=int, default=100, help="how many deaths; 100 if it is not said")
    parser.add_argument("--seed", type=int, default=seed, help="of the pauses between the deaths; a new one each time")
    given = parser.parse_args(words)
    if given.times < 1:
        parser.error("--times: at least one death")
    return {
        "UNSHARD_TEST_SOURCE": given.source,
        "UNSHARD_TEST_TARGET": given.target,
        "UNSHARD_KILLS": str(given.times),
        "UNSHARD_FUZZ_SEED": str(given.seed),
    }


def main(words: Sequence[str]) -> int:
    """Run it; pytest's exit code."""
    chosen = environment(words, int(time.time()))
    told = " ".join(f"{name}={value}" for name, value in chosen.items())
    print(f"== {told}", flush=True)
    command = [sys.executable, "-m", "pytest", "-q", "--no-header", "-o", "faulthandler_timeout=0", TEST]
    code = subprocess.run(command, env={**os.environ, **chosen}, check=False).returncode
    print(f"== {told}: {'FAILED' if code else 'each change arrived once'}")
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
