"""UPDATEs of tables with several unique keys as upserts: on a real server, and which tables get them."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from support import locked_upserts
from support.row_batches import Target
from unshard.errors import Where
from unshard.model.table import TableName
from unshard.mysql.structure import read_table
from unshard.sync.planning.target_plan import plan_target
from unshard.testing.mariadb_server import MariadbServer
from unshard.testing.mysql_server import MysqlServer
from unshard.testing.throwaway_server import ThrowawayServer
from unshard.testing.tidb_server import TidbServer


@pytest.fixture(scope="module")
def target(target_server: ThrowawayServer) -> Iterator[Target]:
    found = locked_upserts.place(target_server)
    yield found
    found.connection.close()


@pytest.mark.server
@pytest.mark.parametrize("walk", locked_upserts.WALKS)
def test_no_other_row_is_hit(target: Target, walk: Callable[[Target], None]) -> None:
    walk(target)


KEYS = {
    "id INT PRIMARY KEY, v INT UNIQUE": True,
    "id INT PRIMARY KEY, v INT": False,
    "id INT NOT NULL UNIQUE, v INT NOT NULL UNIQUE": False,
    "id INT PRIMARY KEY, v ENUM('', 'a'), w INT UNIQUE": True,
    "b VARCHAR(20) NOT NULL, c INT NOT NULL, PRIMARY KEY (b(10)), UNIQUE KEY (c)": False,
    "b VARCHAR(20) NOT NULL, c INT, PRIMARY KEY (b(10)), UNIQUE KEY (b)": False,
}
OF_MARIADB = {"id INT PRIMARY KEY, v TEXT COLLATE utf8mb4_bin, UNIQUE KEY (v)": False}
OF_MYSQL = {"id INT PRIMARY KEY, v TEXT COLLATE utf8mb4_bin, UNIQUE KEY (v(9))": True}
OF_TIDB = {
    "id VARCHAR(9) COLLATE utf8mb4_bin PRIMARY KEY NONCLUSTERED, v INT UNIQUE": False,
    "id VARCHAR(9) COLLATE utf8mb4_bin PRIMARY KEY CLUSTERED, v INT UNIQUE": True,
}


OF: dict[type, dict[str, bool]] = {MariadbServer: OF_MARIADB, MysqlServer: OF_MYSQL, TidbServer: OF_TIDB}


@pytest.mark.server
def test_which_tables_have_them(target_server: ThrowawayServer, schema: str) -> None:
    """Those whose rows a server meets by the primary key before any other unique key."""
    (own,) = (keys for kind, keys in OF.items() if isinstance(target_server, kind))
    target_server.run(f"CREATE DATABASE IF NOT EXISTS {schema}")
    connection = target_server.connection()
    for number, (columns, expected) in enumerate({**KEYS, **own}.items()):
        target_server.run(f"CREATE TABLE {schema}.t{number} ({columns})")
        table = read_table(connection, TableName(schema, f"t{number}"))
        assert table is not None
        assert plan_target(table, table, Where()).locked_upserts is expected, columns
    connection.close()
