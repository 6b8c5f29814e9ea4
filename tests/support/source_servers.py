"""The servers that tests copy from: MariaDBs, or MySQLs of the release that UNSHARD_TEST_SOURCE names."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Final

from support.target_servers import BUILT_IN_COLLATIONS, target_name
from unshard.testing.mariadb_server import MariadbServer
from unshard.testing.mysql_server import Mysql56Server, Mysql80Server, MysqlServer
from unshard.testing.throwaway_server import ThrowawayServer

MARIADB: Final = "mariadb"
_GENERAL = {"character_set_server": "utf8mb4", "collation_server": "utf8mb4_general_ci"}
"""For MySQL 8.0 and newer: schemas have a collation that all servers have."""

SOURCES: dict[str, Callable[[int], ThrowawayServer]] = {
    MARIADB: lambda number: MariadbServer(
        {"gtid_domain_id": str(number), "log_slave_updates": "ON", **BUILT_IN_COLLATIONS}
    ),
    "mysql-5.6": lambda _: Mysql56Server(),
    "mysql-8.0": lambda _: Mysql80Server(_GENERAL),
    "mysql-9.7": lambda _: MysqlServer(_GENERAL),
}
"""By name. A replica of any of them logs what it applies."""


def source_name() -> str:
    """The product and release of the sources of this run, a key of `SOURCES`."""
    return os.environ.get("UNSHARD_TEST_SOURCE", MARIADB)


def utf8mb4_schema(name: str) -> str:
    """Return the statement that makes a schema of utf8mb4 with a collation that the target of this run has.

    The default of MySQL 8.0 and newer, which TiDB has, is unknown to MariaDB.
    """
    return f"CREATE DATABASE {name} CHARACTER SET utf8mb4" + (
        " COLLATE utf8mb4_general_ci" if target_name() == MARIADB else ""
    )


def new_source(number: int = 0) -> ThrowawayServer:
    """Start a new one. `number`: another one for each source of a task; it is the GTID domain of a MariaDB."""
    return SOURCES[source_name()](number)
