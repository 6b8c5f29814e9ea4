"""Where and why a source stopped is put on record, however long what stopped it is: `binlog` goes by the place."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from unshard.errors import LONGEST_TEXT, DdlError, SyncError, Where
from unshard.model.position import Position
from unshard.sync.checkpoint.store import CheckpointStore
from unshard.sync.operate import record_stop
from unshard.target.meta import MetaTables
from unshard.target.recorded import load_stopped
from unshard.testing.mariadb_server import MariadbServer

pytestmark = pytest.mark.server


LARGEST = 1 << 20


@pytest.fixture
def small(target_server: MariadbServer) -> Iterator[MariadbServer]:
    """It takes packets of a megabyte."""
    ((before,),) = target_server.query("SELECT @@global.max_allowed_packet")
    target_server.run(f"SET GLOBAL max_allowed_packet = {LARGEST}")
    yield target_server
    target_server.run(f"SET GLOBAL max_allowed_packet = {before}")


def test_of_a_statement_that_no_packet_of_the_target_has_room_for(small: MariadbServer, schema: str) -> None:
    statement = f"INSERT INTO t VALUES {'(1), ' * LARGEST}(2) -- end"
    error = DdlError("DDL-002", Where("s1", "a.t", "bin.000001:194"), "not ROW", {"statement": statement})
    store = CheckpointStore(small.endpoint, MetaTables(schema, "task"), "s1")
    store.claim()
    record_stop(store, error, Position("bin.000001", 4), sure=False)
    found = store.on_target(lambda connection: load_stopped(connection, store.meta, "s1"))
    store.drop()
    assert found is not None
    assert (found.position, found.sure, found.code) == (Position("bin.000001", 194), True, "DDL-002")
    assert found.error.startswith("DDL-002 [source s1, table a.t, binlog bin.000001:194]: ")
    assert f"{len(str(error)) - LONGEST_TEXT} characters more" in found.error
    assert "what to do: " in found.error


def test_of_a_process_whose_source_another_one_has_taken_over(target_server: MariadbServer, schema: str) -> None:
    """What it met may be the other's work: the column that it would add is there. So it is not told as a failure."""
    old, new = (CheckpointStore(target_server.endpoint, MetaTables(schema, "task"), "s1") for _ in range(2))
    old.claim()
    new.claim()
    error = DdlError("DDL-003", Where("s1", "a.t", "bin.000001:194"), "1060: Duplicate column name", {"statement": "A"})
    with pytest.raises(SyncError) as caught:
        record_stop(old, error, Position("bin.000001", 4), sure=True)
    assert caught.value.code == "SYNC-001"
    assert caught.value.__cause__ is error
    assert new.on_target(lambda connection: load_stopped(connection, new.meta, "s1")) is None
    old.drop()
    new.drop()
