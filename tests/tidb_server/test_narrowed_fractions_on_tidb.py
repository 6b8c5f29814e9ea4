"""TiDB rounds digits of a second that a narrower column has no room for; it has no mode in which it cuts them."""

from __future__ import annotations

from contextlib import closing

import pytest

from support.followed_on_tidb import OnTidb
from support.narrowed_fractions import NARROWED, filled
from unshard.ddl.context import ROUND
from unshard.errors import DdlError
from unshard.testing.mariadb_server import MariadbServer
from unshard.testing.tidb_server import TidbServer

pytestmark = pytest.mark.server


def test_a_source_that_cuts_them_stops_the_task(source_server: MariadbServer, tidb: TidbServer, schema: str) -> None:
    """A wider column, or one of another type, does not."""
    with closing(filled(OnTidb(source_server, tidb, schema))) as followed:
        followed.run("ALTER TABLE t MODIFY c TIME(6), ADD d DATETIME, MODIFY v VARCHAR(40)")
        for narrowed in ("MODIFY c TIME(3)", "CHANGE a aa DATETIME(5)", "MODIFY v TIMESTAMP(6)", "MODIFY b DATE"):
            with pytest.raises(DdlError, match="DDL-044") as raised:
                followed.run(f"ALTER TABLE t {narrowed}")
            assert raised.value.values["did"] == "cut"


def test_a_source_that_rounds_them(source_server: MariadbServer, tidb: TidbServer, schema: str) -> None:
    with closing(filled(OnTidb(source_server, tidb, schema), ROUND)) as followed:
        followed.run(NARROWED)
        sql = f"SELECT a, bb, c FROM {schema}.t ORDER BY id"
        assert source_server.query(sql) == tidb.query(sql)
