"""The identity of a server and its binlog status queries, in which MySQL and MariaDB differ.

These take an open connection of either driver and let driver errors through; the caller's `session` translates them.
`of_one_server` opens connections itself to find out which sources are one server, whatever their addresses are.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from enum import StrEnum
from secrets import token_hex
from typing import Any

import MySQLdb

from unshard.errors import UnshardError
from unshard.model.gtid import GtidSet, MariadbGtidSet, MysqlGtidSet
from unshard.model.position import Location, Position
from unshard.mysql.connection import Endpoint, rows, session


class Flavour(StrEnum):
    """The product of a server."""

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
        """Parse a GTID set in this server's notation. Raises ValueError."""
        return (MariadbGtidSet if self.flavour is Flavour.MARIADB else MysqlGtidSet).parse(text)


@dataclass(frozen=True, slots=True)
class BinaryLog:
    """One line of SHOW BINARY LOGS."""

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


AT_ONCE = 8
"""The most servers that are asked at a time for their identity."""


def of_one_server(sources: Mapping[str, tuple[Endpoint, Server]]) -> tuple[tuple[str, ...], ...]:
    """Return groups of names of sources that are one server. Only servers with equal ids are asked.

    Equal ids prove nothing: they may be a copy (a cloned disk) or a default (MariaDB). Two connections reach one server
    if the one sees a lock that the other holds. A server without such locks (old TiDB) is in no group.
    """
    alike: dict[object, list[str]] = defaultdict(list)
    for name, (_, server) in sources.items():
        alike[server.flavour, server.uuid, server.server_id].append(name)
    found = []
    for group in alike.values():
        seen = _locks_seen({name: sources[name][0] for name in group}) if len(group) > 1 else {}
        left = group
        while len(left) > 1:
            first, *others = left
            same = [name for name in others if first in seen.get(name, ())]
            if same:
                found.append((first, *same))
            left = [name for name in others if name not in same]
    return tuple(found)


def one_server_among(endpoints: Mapping[str, Endpoint]) -> tuple[tuple[str, ...], ...]:
    """Return the same as `of_one_server` for addresses. Servers that do not answer are left out."""
    with ThreadPoolExecutor(AT_ONCE, "one server") as pool:
        servers = list(pool.map(_identified, endpoints.values()))
    found = zip(endpoints, endpoints.values(), servers, strict=True)
    return of_one_server({name: (endpoint, server) for name, endpoint, server in found if server is not None})


def _identified(endpoint: Endpoint) -> Server | None:
    with suppress(UnshardError), session(endpoint, "source") as connection:
        return identify(connection)
    return None


def _locks_seen(endpoints: Mapping[str, Endpoint]) -> dict[str, frozenset[str]]:
    """Return, by name, the sources whose locks it sees while each holds one.

    Opens one connection to each, however many there are.
    """
    locks = {name: f"unshard-{token_hex(16)}" for name in endpoints}
    asked = "SELECT " + ", ".join(["IS_USED_LOCK(%s) IS NOT NULL"] * len(locks))
    held: dict[str, Any] = {}
    seen: dict[str, frozenset[str]] = {}
    with ExitStack() as connections, ThreadPoolExecutor(AT_ONCE, "one server") as threads:

        def hold(name: str) -> None:
            with suppress(UnshardError, MySQLdb.Error):
                connection = connections.enter_context(session(endpoints[name], "source"))
                rows(connection, "SELECT GET_LOCK(%s, 0)", (locks[name],))
                held[name] = connection

        def look(name: str) -> None:
            with suppress(MySQLdb.Error):
                (answers,) = rows(held[name], asked, tuple(locks.values()))
                seen[name] = frozenset(other for other, there in zip(locks, answers, strict=True) if there)

        list(threads.map(hold, endpoints))
        list(threads.map(look, held))
    return seen
