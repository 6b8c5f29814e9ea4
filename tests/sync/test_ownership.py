"""What a source says that it owns, on a real server: by one process at a time."""

from __future__ import annotations

import pytest

from unshard.ddl.pieces import StatementRules
from unshard.errors import SyncError
from unshard.model.table import TableName
from unshard.sync.checkpoint.store import CheckpointStore
from unshard.sync.sharding.table_owners import Ownership
from unshard.target.meta import MetaTables
from unshard.testing.mariadb_server import MariadbServer

pytestmark = pytest.mark.server
OLD, NEW = TableName("up", "t_1"), TableName("up", "t_2")
RULES = StatementRules(lambda name: True, lambda schema: True, lambda name: TableName("db", "t"), lambda schema: schema)


def test_a_process_whose_source_was_taken_over_has_no_say(target_server: MariadbServer, schema: str) -> None:
    journals = [CheckpointStore(target_server.endpoint, MetaTables(schema, "task"), "s1") for _ in range(2)]
    zombie, heir = (Ownership(store, RULES, ("s1", "s2"), told=True) for store in journals)
    for store in journals:
        store.claim()
    heir.announce((NEW,))
    with pytest.raises(SyncError, match="SYNC-001"):
        zombie.announce((OLD,))
    assert heir.declared() == {NEW}
    for store in journals:
        store.drop()
