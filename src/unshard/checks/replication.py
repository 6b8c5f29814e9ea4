"""Reads whether a source replicates from another server without writing to its binlog what it applies."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import MySQLdb

from unshard.mysql.connection import rows
from unshard.mysql.flavour import Flavour, Server


@dataclass(frozen=True, slots=True)
class UnloggedReplication:
    """The replication of a source that does not log what it applies.

    Args:
        setting: the name of the setting that is OFF, "" if the source logs what it applies.
        primary: host and port of the server that it replicates from, running or not; "" for none.
        fault: the error if the server could not be asked for it.
    """

    setting: str = ""
    primary: str = ""
    fault: str = ""


def unlogged_replication(connection: Any, server: Server, settings: Mapping[str, str]) -> UnloggedReplication:
    """Return the replication of this server, whose global settings these are."""
    names = ("log_replica_updates", "log_slave_updates")  # MySQL has the first from 8.0.26 on, and for a time both
    setting = next((name for name in names if name in settings), "")
    if settings.get(setting) not in ("OFF", "0"):
        return UnloggedReplication()
    mariadb = server.flavour is Flavour.MARIADB
    if mariadb:
        statement = "SHOW ALL SLAVES STATUS"
    else:
        statement = "SHOW REPLICA STATUS" if server.version >= (8, 0, 22) else "SHOW SLAVE STATUS"
    try:
        found = rows(connection, statement)
    except MySQLdb.Error as error:
        return UnloggedReplication(setting, fault=str(error.args[-1]))
    if not found:
        return UnloggedReplication(setting)
    host, _, port = found[0][3:6] if mariadb else found[0][1:4]  # two columns more: the connection's name and state
    return UnloggedReplication(setting, f"{host}:{port}")
