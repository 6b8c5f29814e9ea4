"""The demo's proof sees a loss, a difference, a second application and a change without its receipt."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from support.target_servers import new_target
from unshard.cli.demo.proof import Proof, prove
from unshard.cli.demo.scene import Shard
from unshard.model.table import TableName
from unshard.mysql.connection import session
from unshard.target.meta import MetaTables
from unshard.testing.mariadb_server import MariadbServer
from unshard.testing.throwaway_server import ThrowawayServer
from unshard.testing.tidb_server import TidbServer

pytestmark = pytest.mark.server

BITS = (1 << 59) | (1 << 52) | (1 << 44)
TABLE = "(id BIGINT PRIMARY KEY, k INT, c CHAR(120), pad CHAR(60))"


class Migration:
    """A source and a target with three upstream changes and one deleted row, applied rightly in two chunks."""

    def __init__(self, source: MariadbServer, target: ThrowawayServer) -> None:
        self.source, self.target = source, target
        source.run("CREATE DATABASE shop_1", f"CREATE TABLE shop_1.orders_1 {TABLE}")
        target.run("CREATE DATABASE shop", f"CREATE TABLE shop.orders {TABLE}")
        with session(target.endpoint, "target") as connection:
            MetaTables("dm_meta", "demo").create(connection)
        target.run("INSERT INTO dm_meta.demo_apply_partition VALUES ('source-1', 0, 1, 1, 0, 0, 0, '')")
        source.run(
            "INSERT INTO shop_1.orders_1 VALUES (1, 1, 'c', 'p'), (2, 2, 'c', 'p')",
            "UPDATE shop_1.orders_1 SET k = 3 WHERE id = 1",
            "DELETE FROM shop_1.orders_1 WHERE id = 2",
        )
        self.chunk(1, f"INSERT INTO shop.orders VALUES (1 + {BITS}, 1, 'c', 'p'), (2 + {BITS}, 2, 'c', 'p')")
        self.chunk(
            2,
            f"UPDATE shop.orders SET k = 3 WHERE id = 1 + {BITS}",
            f"DELETE FROM shop.orders WHERE id = 2 + {BITS}",
        )

    def chunk(self, number: int, *statements: str) -> None:
        receipt = f"UPDATE dm_meta.demo_apply_partition SET batch_id = 1, chunk = {number} WHERE source = 'source-1'"
        self.target.run("BEGIN", receipt, *statements, "COMMIT")

    def proof(self) -> Proof:
        return prove([Shard("source-1", self.source, TableName("shop_1", "orders_1"), BITS)], self.target)


@pytest.fixture
def migration() -> Iterator[Migration]:
    with ExitStack() as servers:
        yield Migration(servers.enter_context(MariadbServer()), servers.enter_context(new_target()))


def test_what_was_applied_once_is_equal_and_once(migration: Migration) -> None:
    found = migration.proof()
    assert (found.equal, found.once) == (True, True)
    assert (found.applied.chunks, found.applied.versions, found.applied.deletes) == (2, 3, 1)
    assert found.applied.chunks_of == {("source-1", 1): 2}


def test_a_change_that_is_applied_again_and_mended_again_is_seen(migration: Migration) -> None:
    for chunk, k in ((3, 1), (4, 3)):
        migration.chunk(chunk, f"UPDATE shop.orders SET k = {k} WHERE id = 1 + {BITS}")
    found = migration.proof()
    assert found.equal
    assert found.applied.versions_twice == 2
    assert not found.once


def test_a_delete_that_hits_twice_is_seen(migration: Migration) -> None:
    migration.chunk(3, f"INSERT INTO shop.orders VALUES (2 + {BITS}, 9, 'c', 'p')")
    migration.chunk(4, "DELETE FROM shop.orders WHERE k = 9")
    found = migration.proof()
    assert found.equal
    assert (found.applied.versions_twice, found.applied.deletes_twice) == (1, 1)


def test_a_chunk_that_is_counted_twice_is_seen(migration: Migration) -> None:
    for chunk in (0, 1):
        migration.chunk(chunk)
    assert migration.proof().applied.chunks_twice == 1
    assert not migration.proof().once


def test_a_change_without_its_receipt_is_seen_where_transactions_are_known(migration: Migration) -> None:
    migration.source.run("UPDATE shop_1.orders_1 SET k = 4 WHERE id = 1")
    migration.target.run(f"UPDATE shop.orders SET k = 4 WHERE id = 1 + {BITS}")
    found = migration.proof()
    assert found.equal
    assert found.applied.without_receipt == isinstance(migration.target, TidbServer)


def test_a_lost_change_is_seen(migration: Migration) -> None:
    migration.source.run("UPDATE shop_1.orders_1 SET pad = 'q' WHERE id = 1")
    assert not migration.proof().equal
