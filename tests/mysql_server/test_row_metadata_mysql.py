"""Text columns keep their character sets beside columns of every type, as `binlog_row_metadata` tells them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from support.row_metadata import TOLD, between_texts, read_by_metadata
from unshard.testing.mysql_server import MysqlServer, OtherMariadbServer
from unshard.testing.type_cases import COMMON, MARIADB

OWN = {"json": ("""'{"a": 1}'""", "NULL"), "vector(3)": ("x'0000803F0000004000004040'", "NULL")}

pytestmark = pytest.mark.server


@pytest.fixture
def as_it_was(mysql_source: MysqlServer) -> Iterator[None]:
    yield
    mysql_source.run("SET GLOBAL binlog_row_metadata = MINIMAL")


@pytest.mark.usefixtures("as_it_was")
@pytest.mark.parametrize("setting", ["MINIMAL", "FULL"])
def test_mysql(mysql_source: MysqlServer, schema: str, setting: str) -> None:
    read_by_metadata(mysql_source, schema, between_texts({**COMMON, **OWN}), setting)


@pytest.fixture
def other_as_it_was(other_mariadb: OtherMariadbServer) -> Iterator[None]:
    yield
    other_mariadb.run("SET GLOBAL binlog_row_metadata = NO_LOG")


@pytest.mark.usefixtures("other_as_it_was")
@pytest.mark.parametrize("setting", TOLD)
def test_a_newer_mariadb(other_mariadb: OtherMariadbServer, schema: str, setting: str) -> None:
    own = {**MARIADB, "vector(3)": OWN["vector(3)"]}
    read_by_metadata(other_mariadb, schema, between_texts({**COMMON, **own}), setting)
