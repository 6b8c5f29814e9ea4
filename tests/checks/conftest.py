"""A source of this folder's own, whose variables may be changed, and a task over it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from support.target_servers import BUILT_IN_COLLATIONS
from support.task_runs import TaskFiles
from unshard.testing.mariadb_server import MariadbServer


@pytest.fixture(scope="session")
def changed_source() -> Iterator[MariadbServer]:
    with MariadbServer(BUILT_IN_COLLATIONS) as server:
        yield server


@pytest.fixture
def files(changed_source: MariadbServer, target_server: MariadbServer, schema: str, tmp_path: Path) -> TaskFiles:
    """A task over one schema with one sound table."""
    changed_source.run(f"CREATE DATABASE {schema}", f"CREATE TABLE {schema}.t (id INT PRIMARY KEY, v VARCHAR(20))")
    return TaskFiles(tmp_path, schema, {"s1": changed_source}, target_server, (schema,))
