"""The GTID set of a relay log of MySQL: a transaction that is missing there would be a hole in it for good."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from support.waiting import PATIENCE_SECONDS, wait_until
from unshard.config.source import SourceConfig
from unshard.model.gtid import MysqlGtidSet
from unshard.model.position import Position
from unshard.relay.meta import read_meta
from unshard.relay.unit import RelayUnit
from unshard.testing.mysql_server import MysqlServer
from unshard.testing.proxy import FaultProxy

pytestmark = pytest.mark.server


def test_a_transaction_across_a_lost_connection_is_no_hole(
    mysql_source: MysqlServer, schema: str, tmp_path: Path
) -> None:
    mysql_source.run(f"CREATE DATABASE {schema}", f"CREATE TABLE {schema}.t (id INT PRIMARY KEY, b LONGTEXT)")
    mysql_source.run("SET SESSION gtid_next = 'AUTOMATIC:tag_one'", f"INSERT INTO {schema}.t VALUES (77, '')")
    proxy = FaultProxy("127.0.0.1", mysql_source.port)
    source = SourceConfig.model_validate(
        {"source-id": "s1", "from": {"host": "127.0.0.1", "port": proxy.port, "user": "root"}}
    )
    unit = RelayUnit(source, replace(mysql_source.endpoint, port=proxy.port), tmp_path, None)
    try:
        unit.start()
        wait_until(lambda: unit.status().location is not None, "it has begun")
        assert unit.wait_for(newest(mysql_source), PATIENCE_SECONDS)
        proxy.cut_after(100_000)
        rows = (f"INSERT INTO {schema}.t VALUES ({number}, REPEAT('x', 20000))" for number in range(10))
        mysql_source.run("BEGIN", *rows, "COMMIT", f"DELETE FROM {schema}.t")
        assert unit.wait_for(newest(mysql_source), PATIENCE_SECONDS)
    finally:
        unit.stop()
    assert unit.status().reconnects == 1
    ((executed,),) = mysql_source.query("SELECT @@gtid_executed")
    found = read_meta(unit.log.folder)
    assert found is not None
    assert found.position == newest(mysql_source)
    assert MysqlGtidSet.parse(found.gtid) == MysqlGtidSet.parse(executed)  # with tags the two are written differently


def newest(server: MysqlServer) -> Position:
    ((name, offset, *_),) = server.query(server.position_query)
    return Position(name, offset)
