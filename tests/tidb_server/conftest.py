"""The real TiDB server of this folder's tests; `make test-tidb` builds it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from unshard.testing.tidb_server import TidbServer


@pytest.fixture(scope="session")
def tidb() -> Iterator[TidbServer]:
    """A TiDB that the tests of a process share. Use a schema of your own (`schema`)."""
    with TidbServer() as server:
        yield server


@pytest.fixture(scope="session")
def target_server(tidb: TidbServer) -> TidbServer:
    """Under the name that the tests of other folders give their target."""
    return tidb
