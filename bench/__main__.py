"""`python -m bench NAME --json [--plot FILE]`: run one bench and print one JSON object.

A bench is a module of this package with a function `run() -> dict`, listed in `BENCHES`.
"""

from __future__ import annotations

import argparse
import json
import sys
from importlib import import_module

from bench.plot import bars

BENCHES = ("decode", "load", "sync", "latency", "backlog")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench", description="Measure Unshard beside the usual tools.")
    parser.add_argument("name", choices=BENCHES)
    parser.add_argument("--json", action="store_true", help="one JSON object on one line, for programs")
    parser.add_argument("--plot", metavar="FILE", help="draw the ratios as an SVG file")
    arguments = parser.parse_args()
    result = import_module(f"bench.{arguments.name}").run()
    sys.stdout.write(json.dumps(result, indent=None if arguments.json else 2) + "\n")
    if arguments.plot:
        bars(arguments.name, result, arguments.plot)


if __name__ == "__main__":
    main()
