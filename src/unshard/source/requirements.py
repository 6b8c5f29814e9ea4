"""The requirements that a source must meet before its binlog can be followed, each with an error of its own.

A refused password and an unreachable server are found by `mysql.connection`.
"""

from __future__ import annotations

from typing import Any

from unshard.errors import RelayError, SourceError, Where
from unshard.model.gtid import MariadbGtidSet, MysqlGtidSet
from unshard.model.position import Position
from unshard.mysql.connection import rows
from unshard.mysql.flavour import Flavour, Server, binary_logs, executed_gtids
from unshard.mysql.grants import Grants


def status_name(server: Server) -> str:
    """Return the name of the privilege to ask for the binlog's position, as the server grants it."""
    renamed = server.flavour is Flavour.MARIADB and server.version >= (10, 5, 2)
    return "BINLOG MONITOR" if renamed else "REPLICATION CLIENT"


def check_requirements(connection: Any, server: Server, source: str) -> None:
    """Raise an error for the first requirement that the source does not meet: the binlog, its format, a privilege.

    `connection` comes from `mysql.connection.session`. Only reads, so it may be called at any time.
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
    missing = missing_privileges(Grants.read(str(row[0]) for row in rows(connection, "SHOW GRANTS")), server)
    if missing:
        user = rows(connection, "SELECT CURRENT_USER()")[0][0]
        raise SourceError("SOURCE-033", where, values={"user": user, "missing": ", ".join(missing)})


def missing_privileges(grants: Grants, server: Server) -> tuple[str, ...]:
    """Return the privileges that following the binlog needs and the session lacks, by the server's names for them.

    REPLICATION SLAVE and the privilege for the binlog's status must be granted on `*.*`. SELECT suffices on anything at
    all, because only the task knows which tables it needs.
    """
    missing = replication_privileges(grants, server)
    return missing if grants.anywhere("SELECT") else (*missing, "SELECT")


def replication_privileges(grants: Grants, server: Server) -> tuple[str, ...]:
    """Return those of REPLICATION SLAVE and the privilege for the binlog's status that are missing.

    SUPER includes the latter.
    """
    slave = () if grants.everywhere("REPLICATION SLAVE") else ("REPLICATION SLAVE",)
    return (*slave, *status_privilege(grants, server))


def status_privilege(grants: Grants, server: Server) -> tuple[str, ...]:
    """Return the privilege to ask for the binlog's end if it is missing. A dump needs it too."""
    client = status_name(server)
    return () if grants.everywhere(client) or grants.everywhere("SUPER") else (client,)


def check_holds(connection: Any, server: Server, gtid: str, source: str) -> None:
    """Raise RelayError 030 if the server's binlog never contained all of `gtid`; the error names the missing GTIDs.

    Called for the server that a source has failed over to: changes in the target that this server never had were lost
    upstream.
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
    """Raise RelayError 010 if the source no longer has the file of `position`; the error names its oldest file.

    Where it has the file: as `check_reached`.
    """
    names = [log.name for log in binary_logs(connection)]
    if position.file not in names:
        oldest = names[0] if names else "none"
        raise RelayError(
            "RELAY-010", Where(source=source, position=str(position)), f"the oldest binlog there is {oldest}"
        )
    check_reached(connection, position, source)


def check_reached(connection: Any, position: Position, source: str) -> None:
    """Raise RelayError 009 if the source has the file of `position`, and the file ends before it."""
    sizes = {log.name: log.size for log in binary_logs(connection)}
    if position.file in sizes and sizes[position.file] < position.offset:
        cause = f"the file ends at byte {sizes[position.file]}"
        raise RelayError("RELAY-009", Where(source=source, position=str(position)), cause)
