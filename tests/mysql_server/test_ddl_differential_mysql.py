"""Random DDL on real servers of MySQL, and on older ones: after each statement both ends have what the source has."""

from __future__ import annotations

import pytest

from support.followed_ddl import Followed
from support.random_ddl import MARIADB, MYSQL, RandomDdl
from unshard.testing.mysql_server import Mysql56Server, Mysql80Server, MysqlServer, OldMariadbServer
from unshard.testing.throwaway_server import ThrowawayServer

pytestmark = pytest.mark.server


@pytest.mark.parametrize("seed", range(2))
def test_random_statements(mysql_source: MysqlServer, mysql_target: MysqlServer, schema: str, seed: int) -> None:
    followed = Followed(mysql_source, mysql_target, schema)
    try:
        assert followed.wander(RandomDdl(seed, MYSQL), 20) > 10
    finally:
        followed.close()


@pytest.mark.parametrize(
    ("kind", "own"), [(Mysql80Server, MYSQL), (Mysql56Server, {}), (OldMariadbServer, MARIADB)], ids=lambda one: ""
)
def test_random_statements_between_older_servers(
    kind: type[ThrowawayServer], own: dict[str, tuple[str, ...]], schema: str
) -> None:
    """Of one version, for each has words of its own for the same structure."""
    with kind() as source, kind() as target:
        followed = Followed(source, target, schema)
        try:
            assert followed.wander(RandomDdl(7, own), 20) > 10
        finally:
            followed.close()
