"""Every character of every charset as MySQL and a newer MariaDB convert it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from support.conversions import Conversions, differences
from unshard.mysql import charsets
from unshard.testing.mysql_server import MysqlServer, OtherMariadbServer

pytestmark = pytest.mark.server

TABLES = sorted({*charsets.SINGLE_BYTE, *charsets.MULTI_BYTE})
CODE_POINTS = sorted(charsets.UNICODE.keys() | charsets.PLAIN - {"utf8"})


@pytest.fixture(scope="module")
def mysql(mysql_source: MysqlServer) -> Iterator[Conversions]:
    connection = mysql_source.connection()
    yield Conversions(connection, "charset_conversions")
    connection.close()


@pytest.fixture(scope="module")
def mariadb(other_mariadb: OtherMariadbServer) -> Iterator[Conversions]:
    connection = other_mariadb.connection()
    yield Conversions(connection, "charset_conversions")
    connection.close()


def test_every_charset_is_known(mysql: Conversions, mariadb: Conversions) -> None:
    assert mysql.charsets() == {*TABLES, *CODE_POINTS}
    assert mariadb.charsets() == {*TABLES, *CODE_POINTS} - {"gb18030"}


@pytest.mark.parametrize("charset", [*TABLES, *CODE_POINTS])
def test_characters_are_those_of_mysql(mysql: Conversions, charset: str) -> None:
    assert differences(mysql, charset) == []


@pytest.mark.parametrize("charset", sorted({*TABLES, *CODE_POINTS} - {"gb18030"}))
def test_characters_are_those_of_a_newer_mariadb(mariadb: Conversions, charset: str) -> None:
    assert differences(mariadb, charset) == []
