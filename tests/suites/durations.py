"""Prints what was slow in the last runs of the suites: `tools/durations`.

python -m suites.durations [COUNT]           the COUNT slowest test files of each step, 20 if nothing is said
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence

from suites.report import read
from suites.run import RECORDS


def main(words: Sequence[str]) -> int:
    """Print them; 1 where no suite has run yet."""
    count = int(words[0]) if words else 20
    records = sorted(RECORDS.glob("*.json"), key=lambda path: path.stat().st_mtime)
    for path in records:
        seconds = read(path).seconds
        files: Counter[str] = Counter()
        tests: Counter[str] = Counter()
        for test, spent in seconds.items():
            files[test.split("::")[0]] += spent  # type: ignore[assignment]  # seconds are no whole numbers
            tests[test.split("::")[0]] += 1
        print(f"{path.stem}: {len(seconds)} tests, {sum(seconds.values()):.0f} s of all processes together")
        for name, spent in files.most_common(count):
            print(f"{spent:>8.1f} s {tests[name]:>5} tests  {name}")
    if not records:
        print("no suite has been run in this checkout yet: `make test`")
    return int(not records)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
