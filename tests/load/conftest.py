"""A dump of one schema and its load, run in threads."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from support.dump_units import MakeDump, dump_of
from support.threads import run_tasks
from unshard.load.checkpoint import LoadTables
from unshard.load.unit import LoadSettings, LoadUnit
from unshard.testing.mariadb_server import MariadbServer

MakeLoad = Callable[..., LoadUnit]


@pytest.fixture
def make_dump(source_server: MariadbServer, tmp_path: Path) -> MakeDump:
    """`make_dump(schema, **settings)`: a DumpUnit for that schema into `tmp_path/dump`."""

    return partial(dump_of, source_server, tmp_path)


@pytest.fixture
def make_load(target_server: MariadbServer, tmp_path: Path) -> MakeLoad:
    """`make_load(meta, …)`: a LoadUnit from `tmp_path/dump` that keeps its names unless `route` says otherwise."""

    def make(meta: str, **settings: Any) -> LoadUnit:
        route = settings.pop("route", lambda name: name)
        mapping_for = settings.pop("mapping_for", lambda name: None)
        source = settings.pop("source", "shard-1")
        extracted = settings.pop("extracted", lambda name: ())
        allow = settings.pop("allow", None)
        target = settings.pop("target", target_server)
        chosen = LoadSettings(**{"directory": tmp_path / "dump", "pool_size": 2, "on_duplicate": "error", **settings})
        tables = LoadTables(f"{meta}_meta", "task", source)
        return LoadUnit(target.endpoint, tables, chosen, route, mapping_for, run_tasks, extracted, allow)

    return make
