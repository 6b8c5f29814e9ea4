"""The validator's record of a source: whether it validates, how far it is, and which tables it can't validate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import MySQLdb

from unshard.model.position import Location, Position
from unshard.model.table import TableName
from unshard.mysql.connection import rows
from unshard.target.meta import MetaTables

Key = tuple[str, ...]
ABSENT = frozenset({1049, 1054, 1146})
"""No such schema, table, or column of ours in a table that DM has left."""

RUNNING, STOPPED = "Running", "Stopped"
_FAULT_CHARACTERS = 4000
_MESSAGE_CHARACTERS = 512


@dataclass(frozen=True, slots=True)
class ValidationState:
    """The stored state of one source's validation.

    All changes before `location` have been compared once; while rows wait for a sharding DDL it does not pass the place
    where that began. `processed` counts row changes by kind. `mode` is `fast`,
    `full`, or "" where DM has written the row; `fault` is why the validation has stopped by itself. `listed`: the
    tables whose loaded rows are to be compared are on record.
    """

    mode: str
    stage: str
    location: Location | None = None
    processed: tuple[int, int, int] = (0, 0, 0)
    fault: str = ""
    cutover: Location | None = None
    listed: bool = False


def load_state(connection: Any, meta: MetaTables, source: str) -> ValidationState | None:
    """Return the source's row; None where the source has never been validated."""
    try:
        found = rows(
            connection,
            "SELECT mode, stage, binlog_name, binlog_pos, binlog_gtid, procd_ins, procd_upd, procd_del, fault,"
            " full_load_listed, cutover_name, cutover_pos, cutover_gtid"
            f" FROM {meta.named('validator_checkpoint')} WHERE source = %s",
            (source,),
        )
    except MySQLdb.Error as error:
        if error.args[0] in ABSENT:
            return None
        raise
    if not found:
        return None
    mode, stage, name, offset, gtid, inserted, updated, deleted, fault, listed, *cutover = found[0]
    processed, place = (int(inserted), int(updated), int(deleted)), _location(name, offset, gtid)
    return ValidationState(mode, stage, place, processed, fault or "", _location(*cutover), bool(listed))


def is_recorded(connection: Any, meta: MetaTables, source: str) -> bool:
    """Return whether the record says that the source is validated; also one that an earlier version has written."""
    try:
        found = rows(connection, f"SELECT stage FROM {meta.named('validator_checkpoint')} WHERE source = %s", (source,))
    except MySQLdb.Error as error:
        if error.args[0] in ABSENT:
            return False
        raise
    return found == [(RUNNING,)]


def set_stage(connection: Any, meta: MetaTables, source: str, stage: str, mode: str = "", fault: str = "") -> None:
    """Set whether the source is validated. An empty `mode` keeps the present one.

    After a start the loaded rows are compared anew.
    """
    cutover = "cutover_name = '', cutover_pos = 0, cutover_gtid = NULL"
    listed = f"full_load_listed = IF(VALUES(stage) = '{RUNNING}', 0, full_load_listed)"
    rows(
        connection,
        f"INSERT INTO {meta.named('validator_checkpoint')} (source, mode, stage, fault) VALUES (%s, %s, %s, %s)"
        " ON DUPLICATE KEY UPDATE mode = IF(VALUES(mode) = '', mode, VALUES(mode)), stage = VALUES(stage),"
        f" fault = VALUES(fault), {listed}, {cutover}",
        (source, mode, stage, fault[:_FAULT_CHARACTERS]),
    )
    rows(connection, "COMMIT")


def set_cutover(connection: Any, meta: MetaTables, source: str, place: Location) -> None:
    """Record the location at which the source is to be cut over."""
    rows(
        connection,
        f"UPDATE {meta.named('validator_checkpoint')} SET cutover_name = %s, cutover_pos = %s, cutover_gtid = %s"
        " WHERE source = %s",
        (place.position.file, place.position.offset, place.gtid, source),
    )
    rows(connection, "COMMIT")


def move_location(cursor: Any, meta: MetaTables, source: str, location: Location, more: Sequence[int]) -> None:
    """Move the location, and add `more` to the counts of changes by kind. In the caller's transaction."""
    cursor.execute(
        f"UPDATE {meta.named('validator_checkpoint')} SET binlog_name = %s, binlog_pos = %s, binlog_gtid = %s,"
        " procd_ins = procd_ins + %s, procd_upd = procd_upd + %s, procd_del = procd_del + %s,"
        " revision = revision + 1 WHERE source = %s",
        (location.position.file, location.position.offset, location.gtid, *more, source),
    )


@dataclass(frozen=True, slots=True)
class PendingSize:
    """The amount of work that waits: `unseen` keys with their bytes, and by kind the keys that are not settled."""

    unseen: int
    unseen_bytes: int
    kinds: tuple[int, int, int]

    @property
    def rows(self) -> int:
        """Count of all rows that wait, whatever their kind."""
        return self.unseen + sum(self.kinds)


def pending_size(connection: Any, meta: MetaTables, source: str) -> PendingSize:
    """Return how many of the source's changes wait for validation, and the bytes of the unseen ones."""
    ((unseen, size),) = rows(
        connection,
        "SELECT COALESCE(SUM(keys_count), 0), COALESCE(SUM(size), 0) FROM"
        f" {meta.named('validator_changed_key')} WHERE source = %s",
        (source,),
    )
    kinds = [0, 0, 0]
    for kind, count in rows(
        connection,
        f"SELECT revision, COUNT(*) FROM {meta.named('validator_pending_change')} WHERE source = %s GROUP BY revision",
        (source,),
    ):
        kinds[min(max(int(kind), 0), 2)] += int(count)
    return PendingSize(int(unseen), int(size), (kinds[0], kinds[1], kinds[2]))


def set_table_status(
    cursor: Any, meta: MetaTables, source: str, table: TableName, target: TableName, stage: str, message: str
) -> None:
    """Set how a table is validated. In the caller's transaction."""
    cursor.execute(
        f"INSERT INTO {meta.named('validator_table_status')} (source, src_schema_name, src_table_name,"
        " dst_schema_name, dst_table_name, stage, message) VALUES (%s, %s, %s, %s, %s, %s, %s)"
        " ON DUPLICATE KEY UPDATE dst_schema_name = VALUES(dst_schema_name), dst_table_name = VALUES(dst_table_name),"
        " stage = VALUES(stage), message = VALUES(message)",
        (source, table.schema, table.table, target.schema, target.table, stage, message[:_MESSAGE_CHARACTERS]),
    )


def load_table_statuses(connection: Any, meta: MetaTables, source: str) -> list[tuple[TableName, TableName, str, str]]:
    """Return source table, target table, stage and message of each table."""
    found = rows(
        connection,
        "SELECT src_schema_name, src_table_name, dst_schema_name, dst_table_name, stage, message FROM"
        f" {meta.named('validator_table_status')} WHERE source = %s ORDER BY src_schema_name, src_table_name",
        (source,),
    )
    return [(TableName(*one[:2]), TableName(*one[2:4]), str(one[4]), str(one[5])) for one in found]


def _location(name: str | None, offset: Any, gtid: str | None) -> Location | None:
    return Location(Position(name or "", int(offset or 0)), gtid or "") if name or gtid else None
