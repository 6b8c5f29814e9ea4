"""A schema whose task is validated, gone from both ends after the test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from support.source_servers import utf8mb4_schema
from support.validated_tasks import ValidatedShop
from unshard.testing.mariadb_server import MariadbServer
from unshard.testing.throwaway_server import ThrowawayServer


@pytest.fixture
def database(source_server: MariadbServer, target_server: ThrowawayServer, schema: str) -> Iterator[str]:
    """An empty schema of the source."""
    source_server.run(utf8mb4_schema(schema))
    yield schema
    for server in (source_server, target_server):
        server.run(f"DROP DATABASE IF EXISTS {schema}")


@pytest.fixture
def shop(database: str, source_server: MariadbServer, target_server: ThrowawayServer, tmp_path: Path) -> ValidatedShop:
    """The same with its servers and files."""
    return ValidatedShop(database, source_server, target_server, tmp_path)
