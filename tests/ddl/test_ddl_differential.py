"""Random DDL on a real MariaDB: after each statement tracker and target have what the source has."""

from __future__ import annotations

import pytest

from support.followed_ddl import Followed
from support.random_ddl import MARIADB, RandomDdl
from unshard.testing.mariadb_server import MariadbServer

pytestmark = pytest.mark.server


@pytest.mark.parametrize("seed", range(2))
def test_random_statements(source_server: MariadbServer, target_server: MariadbServer, schema: str, seed: int) -> None:
    followed = Followed(source_server, target_server, schema)
    try:
        assert followed.wander(RandomDdl(seed, MARIADB), 15) > 10
    finally:
        followed.close()
