"""`python -m bench NAME --json [--plot FILE]`: run one bench and print one JSON object; `all` runs each in turn.

A bench is a module of this package with a function `run() -> dict`, listed in `BENCHES`.
"""

from __future__ import annotations

import argparse
import json
import sys
from importlib import import_module

from bench.plot import bars

BENCHES = ("decode", "load", "sync", "latency", "scale", "backlog")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench", description="Measure Unshard beside the usual tools.")
    parser.add_argument("name", choices=(*BENCHES, "all"))
    parser.add_argument("--json", action="store_true", help="one JSON object on one line, for programs")
    parser.add_argument("--plot", metavar="FILE", help="draw the ratios as an SVG file")
    arguments = parser.parse_args()
    for name in BENCHES if arguments.name == "all" else (arguments.name,):
        result = import_module(f"bench.{name}").run()
        shown = {name: result} if arguments.name == "all" else result
        sys.stdout.write(json.dumps(shown, indent=None if arguments.json else 2) + "\n")
        sys.stdout.flush()
        if arguments.plot and arguments.name != "all":
            bars(name, result, arguments.plot)


if __name__ == "__main__":
    main()
