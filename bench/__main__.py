"""`python -m bench NAME --json`: runs one bench and prints one JSON object; `all` runs each in turn.

`python -m bench plot RESULTS.json …` draws saved results, as PNG and SVG beside the first file. A bench is a module of
this package with a function `run() -> dict`, listed in `bench.BENCHES`.
"""

from __future__ import annotations

import argparse
import json
import sys
from importlib import import_module
from pathlib import Path

from bench import BENCHES, INTO_TIDB, SHARED
from bench.ends import MARIADB, Target
from bench.plot import draw


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench", description="Measure Unshard beside the usual tools.")
    parser.add_argument("name", choices=(*BENCHES, "all", "plot"))
    parser.add_argument("results", nargs="*", type=Path, help="what `plot` draws: files of printed results")
    parser.add_argument("--json", action="store_true", help="one JSON object on one line, for programs")
    parser.add_argument("--target", choices=("mariadb", "tidb"), default="mariadb", help="the product of the target")
    parser.add_argument("--round-trip-ms", type=float, default=0.0, help="what a proxy adds to each way to the target")
    parser.add_argument("--mode", choices=("pessimistic", "optimistic"), help="of shard_ddl: `shard-mode`")
    parser.add_argument("--shards", type=int, help="of shard_ddl: how many tables merge")
    parser.add_argument("--share", type=float, help="of the default size; with `backlog` 10 means 20 GB")
    arguments = parser.parse_args()
    given = {name: value for name in ("mode", "shards") if (value := getattr(arguments, name)) is not None}
    if given and arguments.name != "shard_ddl":
        parser.error("--mode and --shards are for shard_ddl")
    if arguments.share is not None:
        if arguments.name not in SHARED:
            parser.error(f"--share is for {', '.join(SHARED)}")
        given = {name: max(1, round(count * arguments.share)) for name, count in SHARED[arguments.name].items()}
    target = Target(arguments.target, arguments.round_trip_ms)
    if target != MARIADB and arguments.name not in INTO_TIDB:
        parser.error(f"--target and --round-trip-ms are for {', '.join(sorted(INTO_TIDB))}")
    if (arguments.name == "plot") != bool(arguments.results):
        parser.error("`plot` takes files of results, and nothing else does")
    if arguments.name == "plot":
        print(*draw(arguments.results, arguments.results[0]), sep="\n")
        return
    for name in BENCHES if arguments.name == "all" else (arguments.name,):
        bench = import_module(f"bench.{name}")
        result = bench.run(target, **given) if name in INTO_TIDB else bench.run(**given)
        shown = {name: result} if arguments.name == "all" else result
        sys.stdout.write(json.dumps(shown, indent=None if arguments.json else 2) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
