"""A dump of one schema, run in threads."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from unshard.dump.start import DumpSettings
from unshard.dump.unit import DumpUnit
from unshard.testing.servers import MariadbServer
from unshard.testing.threads import run_tasks, wait

MakeDump = Callable[..., DumpUnit]


@pytest.fixture
def make_dump(source_server: MariadbServer, tmp_path: Path) -> MakeDump:
    """`make_dump(schema, **settings)`: a DumpUnit for that schema into `tmp_path/dump`."""

    def make(schema: str, **settings: Any) -> DumpUnit:
        chosen = DumpSettings(**{"directory": tmp_path / "dump", "threads": 2, **settings})
        return DumpUnit(
            source_server.endpoint, "shard-1", chosen, lambda name: name.schema == schema, run_tasks, wait, slots=2
        )

    return make
