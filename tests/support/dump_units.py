"""The dump of one schema, as the tests of dump and load run it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from support.threads import run_tasks, wait
from unshard.dump.settings import DumpSettings
from unshard.dump.unit import DumpUnit
from unshard.testing.throwaway_server import ThrowawayServer

MakeDump = Callable[..., DumpUnit]


def dump_of(source: ThrowawayServer, folder: Path, schema: str, **settings: Any) -> DumpUnit:
    """A dump in threads, into `folder`/dump."""
    chosen = DumpSettings(**{"directory": folder / "dump", "threads": 2, **settings})
    return DumpUnit(source.endpoint, "shard-1", chosen, lambda name: name.schema == schema, run_tasks, wait, slots=2)
