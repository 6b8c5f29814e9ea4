"""The dump of one schema, as the tests of dump and load run it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from support.threads import run_tasks, wait
from unshard.dump.metadata import Record
from unshard.dump.settings import DumpSettings
from unshard.dump.unit import DumpUnit
from unshard.testing.throwaway_server import ThrowawayServer
from unshard.transform.source_rules import TableSelection

MakeDump = Callable[..., DumpUnit]


CHILD = Path(__file__).parents[1] / "dump" / "child.py"


def dump_of(
    source: ThrowawayServer, folder: Path, schema: str, selection: TableSelection | None = None, **settings: Any
) -> DumpUnit:
    """A dump of the schema, or of what `selection` takes, in threads, into `folder`/dump."""
    selection = selection or TableSelection(databases=(schema,))
    chosen = DumpSettings(**{"directory": folder / "dump", "threads": 2, **settings})
    return DumpUnit(source.endpoint, "shard-1", chosen, selection, run_tasks, wait, slots=2)


def values_of(folder: Path, record: Record, column: str = "id") -> list[Any]:
    """The column's values in a table's Parquet files, in the order of the files."""
    return [value for file in record.files for value in pq.read_table(folder / file.name).column(column).to_pylist()]


def load(target: ThrowawayServer, schema: str, folder: Path, crash_at: str = "", **more: object) -> int:
    """Load a dump folder in a process of its own, which may die at a crash point. Returns its exit code."""
    order = {"target": target.port, "folder": str(folder), "schema": schema, **more}
    environment = {**os.environ, "UNSHARD_CRASH_AT": crash_at}
    return subprocess.run([sys.executable, CHILD, json.dumps(order)], env=environment, timeout=120).returncode
