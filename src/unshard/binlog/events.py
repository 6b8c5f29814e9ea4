"""The events of MariaDB's and MySQL's binlogs: their codes, their names, and how each is handled.

An event is *handled*, *ignorable* (it changes no row and no structure) or *refused*: then the walk stops with an
error that has the reason and the remedy of this table. A code without a row is refused too.
"""

from __future__ import annotations

from dataclasses import dataclass

REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class EventType:
    """The type of an event. `kind` is a key of `kernels.scan.KINDS`; a refused type has a `reason` and a `remedy`."""

    code: int
    name: str
    kind: str = REFUSED
    reason: str = ""
    remedy: str = ""


_ROW_FORMAT = "set binlog_format=ROW on the source; write again what was written as a statement, or dump again"
_STATEMENT = "rows were changed by a statement, and only row images can be followed"
_PLAIN = "set {} on the source, and start from a position after that"
_OLD = "only servers before MySQL 5.1 and MariaDB 5.1 write it"
_UPGRADE = "follow a server of a later version"
_NOT_IN_FILES = "a server sends it to a replica but never writes it"
_DAMAGED = (
    "the file isn't what the server wrote: stop the task, remove this relay file and all later ones, "
    "start the task: they are fetched from the source again"
)
_INCIDENT = "the server says that changes are missing from its binlog here"

EVENTS: tuple[EventType, ...] = (
    EventType(1, "START_V3", reason=_OLD, remedy=_UPGRADE),
    EventType(2, "QUERY", "query"),
    EventType(3, "STOP", "stop"),
    EventType(4, "ROTATE", "rotate"),
    EventType(5, "INTVAR", "context"),
    EventType(6, "LOAD", reason=_STATEMENT, remedy=_ROW_FORMAT),
    EventType(7, "SLAVE", reason=_OLD, remedy=_UPGRADE),
    EventType(8, "CREATE_FILE", reason=_STATEMENT, remedy=_ROW_FORMAT),
    EventType(9, "APPEND_BLOCK", reason=_STATEMENT, remedy=_ROW_FORMAT),
    EventType(10, "EXEC_LOAD", reason=_STATEMENT, remedy=_ROW_FORMAT),
    EventType(11, "DELETE_FILE", reason=_STATEMENT, remedy=_ROW_FORMAT),
    EventType(12, "NEW_LOAD", reason=_STATEMENT, remedy=_ROW_FORMAT),
    EventType(13, "RAND", "context"),
    EventType(14, "USER_VAR", "context"),
    EventType(15, "FORMAT_DESCRIPTION", "between_groups"),
    EventType(16, "XID", "xid"),
    EventType(17, "BEGIN_LOAD_QUERY", reason=_STATEMENT, remedy=_ROW_FORMAT),
    EventType(18, "EXECUTE_LOAD_QUERY", reason=_STATEMENT, remedy=_ROW_FORMAT),
    EventType(19, "TABLE_MAP", "table_map"),
    EventType(20, "WRITE_ROWS_V0", reason=_OLD, remedy=_UPGRADE),
    EventType(21, "UPDATE_ROWS_V0", reason=_OLD, remedy=_UPGRADE),
    EventType(22, "DELETE_ROWS_V0", reason=_OLD, remedy=_UPGRADE),
    EventType(23, "WRITE_ROWS_V1", "rows"),
    EventType(24, "UPDATE_ROWS_V1", "rows"),
    EventType(25, "DELETE_ROWS_V1", "rows"),
    EventType(26, "INCIDENT", reason=_INCIDENT, remedy="find the cause in the source's error log, then dump again"),
    EventType(27, "HEARTBEAT", reason=_NOT_IN_FILES, remedy=_DAMAGED),
    EventType(28, "IGNORABLE", "ignorable"),
    EventType(29, "ROWS_QUERY", "note"),
    EventType(30, "WRITE_ROWS_V2", "rows"),
    EventType(31, "UPDATE_ROWS_V2", "rows"),
    EventType(32, "DELETE_ROWS_V2", "rows"),
    EventType(33, "GTID", "mysql_gtid"),
    EventType(34, "ANONYMOUS_GTID", "anonymous_gtid"),
    EventType(35, "PREVIOUS_GTIDS", "between_groups"),
    EventType(36, "TRANSACTION_CONTEXT", reason=_NOT_IN_FILES, remedy=_DAMAGED),
    EventType(37, "VIEW_CHANGE", "note"),
    EventType(38, "XA_PREPARE", "xa_prepare"),
    EventType(39, "PARTIAL_UPDATE_ROWS", "rows"),
    EventType(40, "TRANSACTION_PAYLOAD", "payload"),
    EventType(41, "HEARTBEAT_V2", reason=_NOT_IN_FILES, remedy=_DAMAGED),
    EventType(42, "GTID_TAGGED", "tagged_gtid"),
    EventType(160, "ANNOTATE_ROWS", "note"),
    EventType(161, "BINLOG_CHECKPOINT", "between_groups"),
    EventType(162, "MARIADB_GTID", "mariadb_gtid"),
    EventType(163, "GTID_LIST", "between_groups"),
    EventType(164, "START_ENCRYPTION", reason="the rest of the file is encrypted",
          remedy="set encrypt_binlog=OFF on the source, and start from the binlog file after that"),
    EventType(165, "QUERY_COMPRESSED", "query"),
    EventType(166, "WRITE_ROWS_COMPRESSED_V1", "rows"),
    EventType(167, "UPDATE_ROWS_COMPRESSED_V1", "rows"),
    EventType(168, "DELETE_ROWS_COMPRESSED_V1", "rows"),
    EventType(169, "WRITE_ROWS_COMPRESSED", "rows"),
    EventType(170, "UPDATE_ROWS_COMPRESSED", "rows"),
    EventType(171, "DELETE_ROWS_COMPRESSED", "rows"),
)  # fmt: skip

BY_CODE: dict[int, EventType] = {event.code: event for event in EVENTS}


def event_of(code: int) -> EventType:
    """Return the entry of an event code; for an unknown code, an entry that says so."""
    return BY_CODE.get(code) or EventType(
        code,
        f"event of unknown code {code}",
        reason="no event of this code is known, so what it changes can't be told",
        remedy="report the server's version; apply what the event does by hand and start after it",
    )
