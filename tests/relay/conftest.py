"""A server, a proxy before it, and a rig of relays."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))  # for rig.py

from rig import Rig

from unshard.testing.mariadb_server import MariadbServer
from unshard.testing.proxy import FaultProxy


@pytest.fixture(scope="module")
def upstream() -> Iterator[MariadbServer]:
    with MariadbServer() as server:
        server.run("CREATE DATABASE d", "CREATE TABLE d.t (id INT PRIMARY KEY AUTO_INCREMENT, b LONGBLOB)")
        yield server


@pytest.fixture
def proxy(upstream: MariadbServer) -> Iterator[FaultProxy]:
    with FaultProxy("127.0.0.1", upstream.port) as running:
        yield running


@pytest.fixture
def rig(upstream: MariadbServer, tmp_path: Path) -> Iterator[Rig]:
    made = Rig(upstream, tmp_path / "relay")
    yield made
    for unit in made.units:
        unit.stop()
