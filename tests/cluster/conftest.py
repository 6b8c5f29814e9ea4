"""Three sources and a target for each module: its tests kill and freeze what stands between them, in order."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from unshard.testing.mariadb_server import MariadbServer


@pytest.fixture(scope="module")
def sources() -> Iterator[dict[str, MariadbServer]]:
    with ExitStack() as stack:
        yield {
            f"s{number}": stack.enter_context(MariadbServer({"gtid_domain_id": str(number)})) for number in (1, 2, 3)
        }


@pytest.fixture(scope="module")
def target() -> Iterator[MariadbServer]:
    with MariadbServer({"gtid_domain_id": "9"}) as server:
        yield server


@pytest.fixture(scope="module")
def store(target: MariadbServer) -> str:
    """The masters' database: beside the target's, for a test has room for one server less."""
    target.query("CREATE DATABASE unshard")
    return f"mysql://root@127.0.0.1:{target.port}/unshard"
