"""An ALTER of a strict session of MySQL on a MariaDB, which converts some old values otherwise."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from support.followed_ddl import Followed
from unshard.errors import DdlError
from unshard.mysql.connection import rows
from unshard.testing.mariadb_server import MariadbServer
from unshard.testing.mysql_server import Mysql80Server

pytestmark = pytest.mark.server
ZONED = "2024-05-01 10:00:00+05:00"


@pytest.fixture
def followed(mysql_80: Mysql80Server, target_server: MariadbServer, schema: str) -> Iterator[Followed]:
    found = Followed(mysql_80, target_server, schema, "CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci")
    yield found
    found.close()


def stocked(followed: Followed, value: str) -> None:
    followed.run("CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(40))")
    for connection in (followed.source, followed.target):
        rows(connection, f"INSERT INTO {followed.schema}.t VALUES (1, '{value}')")


def test_a_value_that_would_be_cut_is_refused(followed: Followed) -> None:
    stocked(followed, ZONED)
    with pytest.raises(DdlError, match="Incorrect datetime value") as caught:
        followed.run("ALTER TABLE t MODIFY v DATETIME")
    assert caught.value.code == "DDL-008"
    assert rows(followed.target, f"SELECT v FROM {followed.schema}.t") == [(ZONED,)]


@pytest.mark.parametrize(("mode", "value"), [("STRICT_TRANS_TABLES", ZONED[:19]), ("", ZONED)])
def test_what_is_run(mode: str, value: str, followed: Followed) -> None:
    """A value that both convert; and one of a session that was not strict, which MySQL itself may have cut."""
    stocked(followed, value)
    rows(followed.source, f"SET sql_mode = '{mode}'")
    followed.run("ALTER TABLE t MODIFY v DATETIME")
    assert [str(v) for (v,) in rows(followed.target, f"SELECT v FROM {followed.schema}.t")] == [ZONED[:19]]
