"""Which server this is, and what its binlog status queries are called: MySQL and MariaDB differ here.

Every function takes an open connection of either driver and lets driver errors through; the caller's `session`
translates them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from unshard.model.gtid import GtidSet, MariadbGtidSet, MysqlGtidSet
from unshard.model.position import Location, Position
from unshard.mysql.connection import rows


class Flavour(StrEnum):
    MYSQL = "mysql"
    MARIADB = "mariadb"


@dataclass(frozen=True, slots=True)
class Server:
    """One server's identity. `uuid` names it in the relay folder (see `identify`)."""

    flavour: Flavour
    version: tuple[int, int, int]
    version_text: str
    server_id: int
    uuid: str

    def gtid_set(self, text: str) -> GtidSet:
        """Read a GTID set in this server's notation. Raises ValueError."""
        return (MariadbGtidSet if self.flavour is Flavour.MARIADB else MysqlGtidSet).parse(text)


@dataclass(frozen=True, slots=True)
class BinaryLog:
    """One line of SHOW BINARY LOGS."""

    name: str
    size: int


def flavour_of(version_text: str) -> Flavour:
    """The flavour that `@@version` tells; TiDB and Percona call themselves MySQL and count as that."""
    return Flavour.MARIADB if "mariadb" in version_text.lower() else Flavour.MYSQL


def version_of(version_text: str) -> tuple[int, int, int]:
    """The three numbers of `@@version`; MariaDB's old `5.5.5-` prefix is skipped. Raises ValueError."""
    text = version_text.removeprefix("5.5.5-") if flavour_of(version_text) is Flavour.MARIADB else version_text
    match = re.match(r"(\d+)\.(\d+)\.(\d+)", text)
    if match is None:
        raise ValueError(f"not a server version: {version_text!r}")
    return int(match[1]), int(match[2]), int(match[3])


def identify(connection: Any) -> Server:
    """Who answers on this connection.

    MySQL has `@@server_uuid`. MariaDB has none: as DM does, `<gtid_domain_id>-<server_id>` (`0-1`) stands for it.
    It is stable over restarts, but two servers that both kept the default ids look the same.
    """
    ((version_text, server_id),) = rows(connection, "SELECT @@global.version, @@global.server_id")
    flavour = flavour_of(version_text)
    if flavour is Flavour.MARIADB:
        ((domain,),) = rows(connection, "SELECT @@global.gtid_domain_id")
        uuid = f"{domain}-{server_id}"
    else:
        ((uuid,),) = rows(connection, "SELECT @@global.server_uuid")
    return Server(flavour, version_of(version_text), version_text, int(server_id), str(uuid))


def current_location(connection: Any, server: Server) -> Location | None:
    """Where the server writes now, with the GTID set at just that place; None where the binlog is off."""
    found = rows(connection, status_statement(server))
    if not found:
        return None
    position = Position(str(found[0][0]), int(found[0][1]))
    if server.flavour is Flavour.MARIADB:
        return Location(position, gtid_at(connection, position))
    gtid = str(found[0][4]) if len(found[0]) > 4 and found[0][4] else ""
    return Location(position, "".join(gtid.split()))


def executed_gtids(connection: Any, server: Server) -> str:
    """The GTID set of all that is in the binlog by now; cheap, but newer than any position read before."""
    variable = "@@global.gtid_binlog_pos" if server.flavour is Flavour.MARIADB else "@@global.gtid_executed"
    ((text,),) = rows(connection, f"SELECT {variable}")
    return "".join(str(text or "").split())


def binary_logs(connection: Any) -> tuple[BinaryLog, ...]:
    """The binlog files that the server still has, oldest first; the last one's size is that of this moment."""
    return tuple(BinaryLog(str(row[0]), int(row[1])) for row in rows(connection, "SHOW BINARY LOGS"))


def gtid_at(connection: Any, position: Position) -> str:
    """MariaDB: the GTID set executed up to `position`, "" before the first. The server reads the file up to there."""
    ((text,),) = rows(connection, "SELECT BINLOG_GTID_POS(%s, %s)", (position.file, position.offset))
    return str(text or "")


def gtid_before(connection: Any, server: Server, file: str) -> GtidSet:
    """The GTID set that was executed before binlog `file` began."""
    if server.flavour is Flavour.MARIADB:
        return server.gtid_set(gtid_at(connection, Position(file)))
    for row in rows(connection, "SHOW BINLOG EVENTS IN %s LIMIT 3", (file,)):
        if row[2] == "Previous_gtids":
            return server.gtid_set(str(row[5]))
    return MysqlGtidSet()


def status_statement(server: Server) -> str:
    """The statement that tells where the binlog ends: MySQL 8.2 brought a new one, 8.4 took the old one away."""
    if server.flavour is Flavour.MYSQL and server.version >= (8, 2, 0):
        return "SHOW BINARY LOG STATUS"
    return "SHOW MASTER STATUS"
