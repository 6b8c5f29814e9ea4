"""Random DDL on a real MySQL: after each statement tracker and target have what the source has."""

from __future__ import annotations

import pytest

from ddl_followed import Followed
from random_ddl import MYSQL, RandomDdl
from unshard.testing.mysql_server import MysqlServer

pytestmark = pytest.mark.server


@pytest.mark.parametrize("seed", range(2))
def test_random_statements(mysql_source: MysqlServer, mysql_target: MysqlServer, schema: str, seed: int) -> None:
    followed = Followed(mysql_source, mysql_target, schema)
    try:
        assert followed.wander(RandomDdl(seed, MYSQL), 20) > 10
    finally:
        followed.close()
