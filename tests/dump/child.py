"""A process that dumps, loads, or both, to be killed by a crash point: `python child.py '<json>'`."""

from __future__ import annotations

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))  # for `support`: a program has only its own folder there

from support.threads import run_tasks, wait
from unshard.dump.settings import DumpSettings
from unshard.dump.unit import DumpUnit
from unshard.load import deferred_keys
from unshard.load.checkpoint import LoadTables
from unshard.load.unit import LoadSettings, LoadUnit
from unshard.mysql.connection import Endpoint
from unshard.transform.source_rules import TableSelection


def main(order: dict[str, str]) -> None:
    folder, schema = Path(order["folder"]), order["schema"]
    if "source" in order:
        settings = DumpSettings(folder, threads=2, rows=700, consistency=order["consistency"])  # type: ignore[arg-type]
        source = Endpoint("127.0.0.1", int(order["source"]), "root")
        DumpUnit(source, "shard-1", settings, TableSelection(databases=(schema,)), run_tasks, wait, slots=2).run()
    if "target" in order:
        target = Endpoint("127.0.0.1", int(order["target"]), "root")
        deferred_keys.DEFERRED_BYTES = int(order.get("deferred", deferred_keys.DEFERRED_BYTES))
        tables = LoadTables(f"{schema}_meta", "task", "shard-1")
        LoadUnit(
            target, tables, LoadSettings(folder, 2, "error"), lambda name: name, lambda name: None, run_tasks
        ).run()


main(json.loads(sys.argv[1]))
