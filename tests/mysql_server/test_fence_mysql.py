"""The fence of DDL on MySQL: what is sent late meets a dead connection."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace

import pytest

from support.stopped_threads import frozen_before
from unshard.errors import SyncError
from unshard.mysql.connection import rows
from unshard.sync.checkpoint.store import CheckpointStore
from unshard.target.meta import MetaTables
from unshard.testing.mysql_server import MysqlServer

pytestmark = pytest.mark.server


def test_what_is_sent_late_meets_a_dead_connection(mysql_target: MysqlServer, schema: str) -> None:
    store = CheckpointStore(mysql_target.endpoint, MetaTables(schema, "task"), "s1")
    heir = replace(store)
    with closing(mysql_target.connection()) as looks:
        store.claim()
        late = frozen_before(store, f"CREATE TABLE {schema}.late (id INT)")
        heir.claim()
        late.goes_on.set()
        error = late.join()
        assert isinstance(error, SyncError), error
        assert error.code == "SYNC-001", error
        assert not rows(looks, f"SHOW TABLES FROM {schema} LIKE 'late'")
        heir.change(lambda c: rows(c, f"CREATE TABLE {schema}.own (id INT)"))
        assert rows(looks, f"SHOW TABLES FROM {schema} LIKE 'own'")
    for one in (store, heir):
        one.drop()
