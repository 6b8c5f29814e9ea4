"""Digits of a second that a narrower column has no room for: cut or rounded as on the source."""

from __future__ import annotations

import pytest

from support.narrowed_fractions import assert_narrowed
from unshard.ddl.context import ROUND, TRUNCATE
from unshard.testing.mariadb_server import MariadbServer
from unshard.testing.mysql_server import Mysql80Server, MysqlServer

pytestmark = pytest.mark.server


@pytest.mark.parametrize(("mode", "second"), [("", 0), (ROUND, 1), (f"{ROUND},ANSI_QUOTES", 1)])
def test_of_a_mariadb(
    mode: str, second: int, source_server: MariadbServer, mysql_target: MysqlServer, schema: str
) -> None:
    assert_narrowed(source_server, mysql_target, schema, mode, second)


@pytest.mark.parametrize(("mode", "second"), [("", 1), (TRUNCATE, 0)])
def test_of_a_mysql(mode: str, second: int, mysql_80: Mysql80Server, target_server: MariadbServer, schema: str) -> None:
    assert_narrowed(mysql_80, target_server, schema, mode, second)


def test_between_two_mysqls(mysql_80: Mysql80Server, mysql_target: MysqlServer, schema: str) -> None:
    assert_narrowed(mysql_80, mysql_target, schema, TRUNCATE, 0)
