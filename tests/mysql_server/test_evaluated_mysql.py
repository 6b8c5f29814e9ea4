"""Structures that are computed from statements are those that a real MySQL has behind them."""

from __future__ import annotations

import pytest

from support.charset_statements import CONVERSIONS
from support.evaluated_ddl import Evaluated, assert_evaluated
from support.random_ddl import MYSQL, RandomDdl
from unshard.testing.mysql_server import MysqlServer

pytestmark = pytest.mark.server


def test_conversions_with_a_default(mysql_source: MysqlServer, schema: str) -> None:
    assert_evaluated(mysql_source, schema, CONVERSIONS)


@pytest.mark.parametrize("seed", range(100, 104))
def test_random_statements(mysql_source: MysqlServer, schema: str, seed: int) -> None:
    followed = Evaluated(mysql_source, schema, "CHARACTER SET latin1" if seed % 2 else "")
    try:
        assert followed.wander(RandomDdl(seed, MYSQL), 20) > 10
        assert followed.refused == []
    finally:
        followed.close()
