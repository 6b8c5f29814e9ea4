"""The error value of an ENUM from MariaDB to MySQL, and from MySQL."""

from __future__ import annotations

import pytest

from support.error_values import carry_error_values
from support.log_to_target import Way
from unshard.testing.mariadb_server import MariadbServer
from unshard.testing.mysql_server import MysqlServer

pytestmark = pytest.mark.server
WAYS = (Way(), Way(multiple_rows=False, compact=False))


def test_into_mysql(source_server: MariadbServer, mysql_target: MysqlServer, schema: str) -> None:
    carry_error_values(source_server, mysql_target, schema, WAYS).close()


def test_out_of_mysql(mysql_source: MysqlServer, mysql_target: MysqlServer, schema: str) -> None:
    carry_error_values(mysql_source, mysql_target, schema, WAYS).close()
