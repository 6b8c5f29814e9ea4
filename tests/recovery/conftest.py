"""Servers of this folder's own: they are killed, and their whole binlogs are read."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from unshard.testing.servers import MariadbServer


@pytest.fixture(scope="module")
def source() -> Iterator[MariadbServer]:
    with MariadbServer() as server:
        yield server


@pytest.fixture(scope="module")
def target() -> Iterator[MariadbServer]:
    with MariadbServer({"gtid_domain_id": "9"}) as server:
        yield server
