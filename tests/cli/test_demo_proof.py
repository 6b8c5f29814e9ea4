"""The demo's proof, on a server that is source and target: it sees a loss, a difference and a second application."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from unshard.cli.demo.proof import Proof, prove
from unshard.cli.demo.scene import Shard
from unshard.model.table import TableName
from unshard.mysql.connection import session
from unshard.target.meta import MetaTables
from unshard.testing.servers import MariadbServer

pytestmark = pytest.mark.server

BITS = (1 << 59) | (1 << 52) | (1 << 44)
TABLE = "(id BIGINT PRIMARY KEY, k INT, c CHAR(120), pad CHAR(60))"
CHUNK = "UPDATE dm_meta.demo_apply_partition SET batch_id = 1, chunk = {} WHERE source = 'source-1'"


@pytest.fixture
def server() -> Iterator[MariadbServer]:
    """Three upstream changes and one deleted row, applied rightly in two chunks."""
    with MariadbServer() as booted:
        booted.run("CREATE DATABASE shop_1", "CREATE DATABASE shop")
        booted.run(f"CREATE TABLE shop_1.orders_1 {TABLE}", f"CREATE TABLE shop.orders {TABLE}")
        with session(booted.endpoint, "target") as connection:
            MetaTables("dm_meta", "demo").create(connection)
        booted.run("INSERT INTO dm_meta.demo_apply_partition VALUES ('source-1', 0, 1, 1, 0, 0, 0, '')")
        booted.run(
            "INSERT INTO shop_1.orders_1 VALUES (1, 1, 'c', 'p'), (2, 2, 'c', 'p')",
            "UPDATE shop_1.orders_1 SET k = 3 WHERE id = 1",
            "DELETE FROM shop_1.orders_1 WHERE id = 2",
        )
        booted.run(
            f"INSERT INTO shop.orders VALUES (1 + {BITS}, 1, 'c', 'p'), (2 + {BITS}, 2, 'c', 'p')",
            CHUNK.format(1),
            f"UPDATE shop.orders SET k = 3 WHERE id = 1 + {BITS}",
            f"DELETE FROM shop.orders WHERE id = 2 + {BITS}",
            CHUNK.format(2),
        )
        yield booted


def proof(server: MariadbServer) -> Proof:
    return prove([Shard("source-1", server, TableName("shop_1", "orders_1"), BITS)], server)


def test_what_was_applied_once_is_equal_and_once(server: MariadbServer) -> None:
    found = proof(server)
    assert (found.equal, found.once) == (True, True)
    assert (found.chunks, found.versions, found.deletes) == (2, 3, 1)
    assert found.chunks_of == {("source-1", 1): 2}


def test_a_change_that_is_applied_again_and_mended_again_is_seen(server: MariadbServer) -> None:
    for k in (1, 3):
        server.run(f"UPDATE shop.orders SET k = {k} WHERE id = 1 + {BITS}")
    found = proof(server)
    assert found.equal
    assert found.versions_twice == 2
    assert not found.once


def test_a_delete_that_hits_twice_is_seen(server: MariadbServer) -> None:
    server.run(f"INSERT INTO shop.orders VALUES (2 + {BITS}, 9, 'c', 'p')", "DELETE FROM shop.orders WHERE k = 9")
    found = proof(server)
    assert found.equal
    assert (found.versions_twice, found.deletes_twice) == (1, 1)


def test_a_chunk_that_is_counted_twice_is_seen(server: MariadbServer) -> None:
    server.run(CHUNK.format(1), CHUNK.format(2))
    assert proof(server).chunks_twice == 1
    assert not proof(server).once


def test_a_lost_change_is_seen(server: MariadbServer) -> None:
    server.run("UPDATE shop_1.orders_1 SET pad = 'q' WHERE id = 1")
    assert not proof(server).equal
