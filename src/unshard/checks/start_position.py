"""Checks whether an incremental task can start at its `meta`. The server is asked, and no events are read."""

from __future__ import annotations

from typing import Any

import MySQLdb

from unshard.config.subtask import SubtaskConfig
from unshard.errors import UnshardError
from unshard.model.position import Position
from unshard.mysql.connection import rows
from unshard.mysql.flavour import Flavour, Server, binary_logs
from unshard.relay.start import file_with_gtids

_WRONG_OFFSET, _DENIED = 1220, 1227
_PURGED = "SELECT GTID_SUBSET(@@global.gtid_purged, %s)"


def start_fault(connection: Any, server: Server, config: SubtaskConfig) -> tuple[str, str] | None:
    """Return the fault of an incremental task's start and its remedy; None if there is none.

    If the account may not ask, `replication_privilege` reports that, and this function returns None.
    """
    start = config.start
    if config.mode != "incremental" or start is None:
        return None
    try:
        logs = binary_logs(connection)
        if not logs:
            return None  # binlog_enable reports it
        oldest = f"write `meta: {{binlog-name: {logs[0].name}, binlog-pos: 4}}`, the oldest that it has, or copy anew"
        if not start.binlog_name:
            return _gtid_fault(connection, server, start.binlog_gtid, config.source_id, oldest)
        size = {log.name: log.size for log in logs}.get(start.binlog_name)
        if size is None:
            return f"the source has no binlog file {start.binlog_name}", oldest
        place = str(Position(start.binlog_name, start.binlog_pos))
        if start.binlog_pos > size:
            end = f"write `binlog-pos: {size}`, its end now, or a place before it"
            return f"{place} is behind the end of that file, {size}", end
        if not _begins_an_event(connection, start.binlog_name, start.binlog_pos):
            ends = f"write an `End_log_pos` of SHOW BINLOG EVENTS IN '{start.binlog_name}' for `binlog-pos`"
            return f"no event begins at {place}", ends
    except MySQLdb.Error as error:
        if error.args[0] != _DENIED:
            raise
    return None


def _begins_an_event(connection: Any, file: str, offset: int) -> bool:
    """Return whether an event begins at the offset, or the file ends there.

    For any other offset MariaDB returns an error, and MySQL shows the next event.
    """
    try:
        found = rows(connection, "SHOW BINLOG EVENTS IN %s FROM %s LIMIT 1", (file, offset))
    except MySQLdb.Error as error:
        if error.args[0] != _WRONG_OFFSET:
            raise
        return False
    return not found or int(found[0][1]) == offset


def _gtid_fault(connection: Any, server: Server, gtid: str, source: str, oldest: str) -> tuple[str, str] | None:
    if server.flavour is Flavour.MYSQL:
        if rows(connection, _PURGED, (gtid,))[0][0]:
            return None
        ((purged,),) = rows(connection, "SELECT @@global.gtid_purged")
        return f"the source has purged transactions that {gtid} lacks", f"{oldest}; gtid_purged is {purged}"
    try:
        file_with_gtids(connection, server, gtid, source)
    except (UnshardError, ValueError) as error:
        return f"the source can't go on behind {gtid}: {error}", oldest
    return None
