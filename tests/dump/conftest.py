"""A dump of one schema, run in threads."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from support.dump_units import MakeDump, dump_of
from unshard.testing.mariadb_server import MariadbServer


@pytest.fixture
def make_dump(source_server: MariadbServer, tmp_path: Path) -> MakeDump:
    """`make_dump(schema, **settings)`: a DumpUnit for that schema into `tmp_path/dump`."""
    return partial(dump_of, source_server, tmp_path)
