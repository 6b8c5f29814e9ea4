"""Servers that all tests share, and the order of the run: what needs no server first."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator

import pytest

from unshard.testing.servers import MariadbServer

_COSTLY = ("server", "spark", "recovery")
_numbers = itertools.count(1)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Unmarked tests run first, then those with servers, with Spark, with kills; the order is else kept."""
    items.sort(key=lambda item: sum(2**rank for rank, mark in enumerate(_COSTLY) if item.get_closest_marker(mark)))


@pytest.fixture(scope="session")
def source_server() -> Iterator[MariadbServer]:
    """The upstream of the run. Use a schema of your own (`schema`), and leave its variables as they are."""
    with MariadbServer() as server:
        yield server


@pytest.fixture(scope="session")
def second_source() -> Iterator[MariadbServer]:
    """Another upstream, with its own binlog and another GTID domain."""
    with MariadbServer({"gtid_domain_id": "2"}) as server:
        yield server


@pytest.fixture(scope="session")
def target_server() -> Iterator[MariadbServer]:
    """The downstream of the run. It keeps a row binlog too: the proof of what was applied, and how often."""
    with MariadbServer({"gtid_domain_id": "9"}) as server:
        yield server


@pytest.fixture
def schema() -> str:
    """A schema name that no other test uses; the test creates it where it wants it."""
    return f"t{os.getpid()}_{next(_numbers)}"
