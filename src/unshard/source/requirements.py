"""What a source must offer before it can be followed, checked at the start with an error for each lack.

A password that is refused and a server that is down are found by `mysql.connection`.
"""

from __future__ import annotations

import re
from typing import Any

from unshard.errors import RelayError, SourceError, Where
from unshard.model.gtid import MariadbGtidSet, MysqlGtidSet
from unshard.model.position import Position
from unshard.mysql.connection import rows
from unshard.mysql.flavour import Flavour, Server, binary_logs, executed_gtids

_GRANT = re.compile(r"^GRANT (?P<what>.+?) ON (?P<on>.+?) TO ", re.IGNORECASE)
_ROLE = re.compile(r"^GRANT [`'\"]", re.IGNORECASE)

# each line: any of these names will do, over everything (`*.*`)
_MYSQL_GLOBAL = (("REPLICATION SLAVE",), ("REPLICATION CLIENT",))
_MARIADB_GLOBAL = (("REPLICATION SLAVE",), ("BINLOG MONITOR", "REPLICATION CLIENT"))


def check_requirements(connection: Any, server: Server, source: str) -> None:
    """Raise the first lack of this source: binlog off, its format, a missing privilege.

    `connection` is one that `mysql.connection.session` watches over. Reads only, so it may be called at any time.
    """
    where = Where(source=source)
    settings = {
        str(name).lower(): str(value).upper()
        for name, value in rows(
            connection,
            "SHOW GLOBAL VARIABLES WHERE Variable_name IN ('log_bin', 'binlog_format')",
        )
    }
    if settings.get("log_bin") not in ("ON", "1"):
        raise SourceError("SOURCE-030", where)
    form = settings.get("binlog_format", "ROW")  # MySQL 9 may have no such variable any more: ROW is all it has
    if form != "ROW":
        raise SourceError("SOURCE-031", where, values={"format": form})
    missing = missing_privileges([str(row[0]) for row in rows(connection, "SHOW GRANTS")], server.flavour)
    if missing:
        user = rows(connection, "SELECT CURRENT_USER()")[0][0]
        raise SourceError("SOURCE-033", where, values={"user": user, "missing": ", ".join(missing)})


def missing_privileges(grants: list[str], flavour: Flavour) -> tuple[str, ...]:
    """The privileges that SHOW GRANTS does not list, by the flavour's name for them.

    REPLICATION SLAVE and the binlog's status must be granted on `*.*`, SELECT on anything at all: which tables are
    needed only the task knows. What roles bring can't be read from here, so a user that has one misses nothing.
    """
    if any(_ROLE.match(grant) for grant in grants):
        return ()
    everywhere: set[str] = set()
    somewhere: set[str] = set()
    for grant in grants:
        match = _GRANT.match(grant)
        if match is None:
            continue
        names = {name.strip().upper() for name in re.sub(r"\(.*?\)", "", match["what"]).split(",")}
        somewhere |= names
        if match["on"].replace("`", "") == "*.*":
            everywhere |= names
    missing = []
    if "ALL PRIVILEGES" not in everywhere:
        wanted = _MARIADB_GLOBAL if flavour is Flavour.MARIADB else _MYSQL_GLOBAL
        missing += [names[0] for names in wanted if not everywhere.intersection(names)]
    if not somewhere & {"SELECT", "ALL PRIVILEGES", "ALL"}:
        missing.append("SELECT")
    return tuple(missing)


def check_holds(connection: Any, server: Server, gtid: str, source: str) -> None:
    """Raise RelayError 030 when the server's binlog never had all of `gtid`, naming what it lacks.

    For a server that the source has failed over to: what the target holds beyond it was lost upstream.
    """
    if server.flavour is Flavour.MARIADB:
        ((state,),) = rows(connection, "SELECT @@global.gtid_binlog_state")
        logged = [one for part in str(state or "").split(",") for one in MariadbGtidSet.parse(part).last]
        lacking = [
            f"{domain}-{number}-{count}"
            for domain, number, count in MariadbGtidSet.parse(gtid).last
            if not any((domain, number) == (d, s) and count <= n for d, s, n in logged)
        ]
    else:
        executed = MysqlGtidSet.parse(executed_gtids(connection, server))
        lacking = list(filter(None, [str(MysqlGtidSet.parse(gtid).without(executed))]))
    if lacking:
        raise RelayError("RELAY-030", Where(source=source), values={"uuid": server.uuid, "gtid": ",".join(lacking)})


def check_available(connection: Any, position: Position, source: str) -> None:
    """Raise RelayError 010 when the source no longer has the file of `position`, naming the oldest that it has."""
    names = [log.name for log in binary_logs(connection)]
    if position.file not in names:
        oldest = names[0] if names else "none"
        raise RelayError(
            "RELAY-010", Where(source=source, position=str(position)), f"the oldest binlog there is {oldest}"
        )
