"""The identity of a server and its binlog status queries, in which MySQL and MariaDB differ.

These take an open connection of either driver and let driver errors through; the caller's `session` translates them.
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
    """The product of a server."""

    MYSQL = "mysql"
    MARIADB = "mariadb"


@dataclass(frozen=True, slots=True)
class Server:
    """The identity of one server. `uuid` names it in the relay folder (see `identify`)."""

    flavour: Flavour
    version: tuple[int, int, int]
    version_text: str
    server_id: int
    uuid: str

    def gtid_set(self, text: str) -> GtidSet:
        """Parse a GTID set in this server's notation. Raises ValueError."""
        return (MariadbGtidSet if self.flavour is Flavour.MARIADB else MysqlGtidSet).parse(text)


@dataclass(frozen=True, slots=True)
class BinaryLog:
    """A binlog file, as one line of SHOW BINARY LOGS lists it."""

    name: str
    size: int


def flavour_of(version_text: str) -> Flavour:
    """Return the flavour that `@@version` names. TiDB and Percona call themselves MySQL and count as MySQL."""
    return Flavour.MARIADB if "mariadb" in version_text.lower() else Flavour.MYSQL


def version_of(version_text: str) -> tuple[int, int, int]:
    """Return the three numbers of `@@version`; MariaDB's old `5.5.5-` prefix is skipped. Raises ValueError."""
    text = version_text.removeprefix("5.5.5-") if flavour_of(version_text) is Flavour.MARIADB else version_text
    match = re.match(r"(\d+)\.(\d+)\.(\d+)", text)
    if match is None:
        raise ValueError(f"not a server version: {version_text!r}")
    return int(match[1]), int(match[2]), int(match[3])


def identify(connection: Any) -> Server:
    """Return the identity of the server on this connection.

    MySQL has `@@server_uuid`. MariaDB has none: as in DM, `<gtid_domain_id>-<server_id>` (`0-1`) takes its place. It
    does not change when the server restarts, but two servers that both kept the default ids have the same one.
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
    """Return the current end of the binlog, with the GTID set at exactly that position; None if the binlog is off."""
    found = rows(connection, status_statement(server))
    if not found:
        return None
    position = Position(str(found[0][0]), int(found[0][1]))
    if server.flavour is Flavour.MARIADB:
        return Location(position, gtid_at(connection, position))
    gtid = str(found[0][4]) if len(found[0]) > 4 and found[0][4] else ""
    return Location(position, "".join(gtid.split()))


def executed_gtids(connection: Any, server: Server) -> str:
    """Return the GTID set of everything that is in the binlog now. Cheap, but newer than any position read before."""
    variable = "@@global.gtid_binlog_pos" if server.flavour is Flavour.MARIADB else "@@global.gtid_executed"
    ((text,),) = rows(connection, f"SELECT {variable}")
    return "".join(str(text or "").split())


def binary_logs(connection: Any) -> tuple[BinaryLog, ...]:
    """Return the binlog files that the server still has, oldest first. The last file's size is its current one."""
    return tuple(BinaryLog(str(row[0]), int(row[1])) for row in rows(connection, "SHOW BINARY LOGS"))


def gtid_at(connection: Any, position: Position) -> str:
    """Return MariaDB's GTID set executed up to `position`; "" before the first transaction.

    The server reads the file up to there.
    """
    ((text,),) = rows(connection, "SELECT BINLOG_GTID_POS(%s, %s)", (position.file, position.offset))
    return str(text or "")


def gtid_before(connection: Any, server: Server, file: str) -> GtidSet:
    """Return the GTID set that was executed before binlog file `file` began."""
    if server.flavour is Flavour.MARIADB:
        return server.gtid_set(gtid_at(connection, Position(file)))
    for row in rows(connection, "SHOW BINLOG EVENTS IN %s LIMIT 3", (file,)):
        if row[2] == "Previous_gtids":
            return server.gtid_set(str(row[5]))
    return MysqlGtidSet()


def status_statement(server: Server) -> str:
    """Return the statement that shows the binlog's end. MySQL 8.2 introduced a new one, 8.4 removed the old one."""
    if server.flavour is Flavour.MYSQL and server.version >= (8, 2, 0):
        return "SHOW BINARY LOG STATUS"
    return "SHOW MASTER STATUS"
