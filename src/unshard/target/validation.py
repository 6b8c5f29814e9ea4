"""The target's records of continuous validation: DM's four tables, and two of ours.

| table | one row for each | deleted |
|---|---|---|
| `validator_checkpoint` | source: whether it validates, how far it is | with the task's records |
| `validator_changed_key` | part of a batch: keys that it changed, not looked at yet | once they have been looked at |
| `validator_full_load` | target table with loaded rows: how far they are compared | with these |
| `validator_pending_change` | key that differed at a look, and is not judged yet | once it is judged |
| `validator_error_change` | key that differs | by `clear-error` |
| `validator_question` | row, and a source that is asked for it (`validation_errors.py`) | once it is judged |
| `validator_table_status` | source table that can't be validated as a whole, and why | once it can be |

The changed keys of a batch commit with its checkpoint. A later step commits together with the removal of what it came
from, so that no key is lost at any crash; one may be looked at twice.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import MySQLdb

from unshard.model.position import Location, Position
from unshard.model.table import TableName
from unshard.mysql.connection import rows
from unshard.target.meta import DUPLICATE_COLUMN, MetaTables

Key = tuple[str, ...]
ABSENT = frozenset({1049, 1054, 1146})
"""No such schema, table, or column of ours in a table that DM has left."""

RUNNING, STOPPED = "Running", "Stopped"
LONGEST_NAME = 64
_FAULT_CHARACTERS = 4000
_MESSAGE_CHARACTERS = 512

_TIMES = """
    create_time TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP,
    update_time TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP"""
_END = ") ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin"
_CREATE = {
    "validator_changed_key": """
    source VARCHAR(32) NOT NULL,
    binlog_name VARCHAR(128) NOT NULL,
    binlog_pos BIGINT UNSIGNED NOT NULL,
    binlog_gtid LONGTEXT NOT NULL,
    described LONGTEXT NOT NULL,
    keys_count INT NOT NULL,
    size INT NOT NULL,
    data LONGBLOB NOT NULL,
    KEY idx_source (source)""",
    "validator_pending_change": """
    source VARCHAR(32) NOT NULL,
    schema_name VARCHAR(128) NOT NULL,
    table_name VARCHAR(128) NOT NULL,
    row_pk VARCHAR(64) NOT NULL,
    data JSON NOT NULL,
    revision BIGINT NOT NULL DEFAULT 0,
    KEY idx_source_schema_table_key (source, schema_name, table_name, row_pk)""",
    "validator_error_change": """
    source VARCHAR(32) NOT NULL,
    src_schema_name VARCHAR(128) NOT NULL,
    src_table_name VARCHAR(128) NOT NULL,
    row_pk VARCHAR(64) NOT NULL,
    dst_schema_name VARCHAR(128) NOT NULL,
    dst_table_name VARCHAR(128) NOT NULL,
    data JSON NOT NULL,
    dst_data JSON NOT NULL,
    error_type INT NOT NULL,
    status INT NOT NULL,
    times INT NOT NULL DEFAULT 1,
    place VARCHAR(160) NOT NULL DEFAULT '',
    settled_by VARCHAR(255) NOT NULL DEFAULT '',
    UNIQUE KEY uk_source_schema_table_key (source, src_schema_name, src_table_name, row_pk),
    KEY idx_status (status)""",
    "validator_table_status": """
    source VARCHAR(32) NOT NULL,
    src_schema_name VARCHAR(128) NOT NULL,
    src_table_name VARCHAR(128) NOT NULL,
    dst_schema_name VARCHAR(128) NOT NULL,
    dst_table_name VARCHAR(128) NOT NULL,
    stage VARCHAR(32) NOT NULL,
    message VARCHAR(512) NOT NULL,
    UNIQUE KEY uk_source_schema_table (source, src_schema_name, src_table_name),
    KEY idx_stage (stage)""",
    "validator_question": """
    source VARCHAR(32) NOT NULL,
    asked VARCHAR(32) NOT NULL,
    dst_schema_name VARCHAR(64) NOT NULL,
    dst_table_name VARCHAR(64) NOT NULL,
    row_pk VARCHAR(64) NOT NULL,
    row_key LONGTEXT NOT NULL,
    answer INT NOT NULL DEFAULT 0,
    UNIQUE KEY uk_question (source, asked, dst_schema_name, dst_table_name, row_pk),
    KEY idx_asked (asked, answer)""",
    "validator_full_load": """
    source VARCHAR(32) NOT NULL,
    dst_schema_name VARCHAR(64) NOT NULL,
    dst_table_name VARCHAR(64) NOT NULL,
    origins LONGTEXT NOT NULL,
    range_key LONGTEXT NOT NULL,
    bound LONGTEXT,
    done INT NOT NULL DEFAULT 0,
    rows_done BIGINT NOT NULL DEFAULT 0,
    rows_about BIGINT NOT NULL DEFAULT 0,
    UNIQUE KEY uk_source_table (source, dst_schema_name, dst_table_name)""",
    "validator_checkpoint": """
    source VARCHAR(32) NOT NULL,
    binlog_name VARCHAR(128) DEFAULT '',
    binlog_pos INT UNSIGNED DEFAULT 0,
    binlog_gtid LONGTEXT,
    procd_ins BIGINT UNSIGNED NOT NULL DEFAULT 0,
    procd_upd BIGINT UNSIGNED NOT NULL DEFAULT 0,
    procd_del BIGINT UNSIGNED NOT NULL DEFAULT 0,
    revision BIGINT NOT NULL DEFAULT 0,
    mode VARCHAR(8) NOT NULL DEFAULT '',
    stage VARCHAR(8) NOT NULL DEFAULT '',
    fault LONGTEXT,
    cutover_name VARCHAR(128) NOT NULL DEFAULT '',
    cutover_pos BIGINT UNSIGNED NOT NULL DEFAULT 0,
    cutover_gtid LONGTEXT,
    full_load_listed INT NOT NULL DEFAULT 0,
    UNIQUE KEY uk_source (source)""",
}
"""The one whose rows tell that there is a validation comes last."""

_LATER = {
    "validator_checkpoint": (
        ("mode", "VARCHAR(8) NOT NULL DEFAULT ''"),
        ("stage", "VARCHAR(8) NOT NULL DEFAULT ''"),
        ("fault", "LONGTEXT"),
        ("cutover_name", "VARCHAR(128) NOT NULL DEFAULT ''"),
        ("cutover_pos", "BIGINT UNSIGNED NOT NULL DEFAULT 0"),
        ("cutover_gtid", "LONGTEXT"),
        ("full_load_listed", "INT NOT NULL DEFAULT 0"),
    ),
    "validator_error_change": (
        ("times", "INT NOT NULL DEFAULT 1"),
        ("place", "VARCHAR(160) NOT NULL DEFAULT ''"),
        ("settled_by", "VARCHAR(255) NOT NULL DEFAULT ''"),
    ),
}
"""Columns that DM's own tables lack."""


def create_validation(connection: Any, meta: MetaTables) -> None:
    """Create what is missing. Tables that DM has left get our columns; its pending rows, in its own form, go."""
    found = rows(
        connection,
        "SELECT TABLE_NAME, COLUMN_NAME FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = %s AND TABLE_NAME LIKE %s",
        (meta.schema, f"{meta.task}\\_validator\\_%"),
    )
    known = {(str(table).lower(), str(column)) for table, column in found}
    there = {table for table, _ in known}
    for suffix, columns in _CREATE.items():
        name = f"{meta.task}_{suffix}".lower()
        if name not in there:
            head = "id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY,"
            rows(connection, f"CREATE TABLE IF NOT EXISTS {meta.named(suffix)} ({head}{columns},{_TIMES}\n{_END}")
            continue
        lacking = [one for one in _LATER.get(suffix, ()) if (name, one[0]) not in known]
        for column, definition in lacking:
            try:
                rows(connection, f"ALTER TABLE {meta.named(suffix)} ADD COLUMN {column} {definition}")
            except MySQLdb.Error as error:
                if error.args[0] != DUPLICATE_COLUMN:  # another source's start was quicker
                    raise
        if suffix == "validator_checkpoint" and (name, "mode") not in known:
            rows(connection, f"DELETE FROM {meta.named('validator_pending_change')}")
            rows(connection, "COMMIT")


@dataclass(frozen=True, slots=True)
class ValidationState:
    """One source's row. All changes before `location` have been looked at. `processed` counts row changes by kind.

    `mode` is `fast`, `full`, or "" where DM has written the row; `fault` is why it has stopped by itself. `listed`:
    the tables whose loaded rows are to be compared are on record.
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
    """The work that waits: `unseen` keys and their bytes, and keys that are not settled, by kind."""

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


@dataclass(frozen=True, slots=True)
class PendingKey:
    """A key that differed. `kind`: 0 the target lacks the row, 1 both sides have one, 2 the source lacks it.

    `origin` is the source table whose change led to the look; `since` is when, unix seconds. `number` 0: not stored.
    """

    origin: TableName
    target: TableName
    key: Key
    kind: int
    since: float
    number: int = 0


def row_pk(key: Key) -> str:
    """Return DM's name of a row: the values of its key with tabs between, or the SHA-256 of a long name."""
    values = [value[1:-1] if value[:1] == "'" else value for value in key]
    text = "\t".join(values)
    if any("\t" in value for value in values):
        text = repr(values)
    whole = len(text) <= LONGEST_NAME and values == text.split("\t")
    return text if whole else hashlib.sha256(text.encode()).hexdigest()


def add_pending(cursor: Any, meta: MetaTables, source: str, found: Iterable[PendingKey]) -> None:
    """Add keys that differed. In the caller's transaction."""
    values = [
        (source, one.origin.schema, one.origin.table, row_pk(one.key), _pending_data(one), one.kind) for one in found
    ]
    statement = (
        f"INSERT INTO {meta.named('validator_pending_change')}"
        " (source, schema_name, table_name, row_pk, data, revision) VALUES (%s, %s, %s, %s, %s, %s)"
    )
    if values:
        cursor.executemany(statement, values)


def _pending_data(one: PendingKey) -> str:
    target = [one.target.schema, one.target.table]
    return json.dumps({"key": list(one.key), "tp": one.kind, "target": target, "since": one.since})


def load_pending(connection: Any, meta: MetaTables, source: str, after: int, limit: int) -> list[PendingKey]:
    """Return the oldest pending keys with a number greater than `after`."""
    found = rows(
        connection,
        f"SELECT id, schema_name, table_name, data FROM {meta.named('validator_pending_change')}"
        " WHERE source = %s AND id > %s ORDER BY id LIMIT %s",
        (source, after, limit),
    )
    pending = []
    for number, schema, table, data in found:
        form = json.loads(data)
        target, origin = TableName(*form["target"]), TableName(schema, table)
        pending.append(PendingKey(origin, target, tuple(form["key"]), form["tp"], form["since"], int(number)))
    return pending


def drop_pending(cursor: Any, meta: MetaTables, source: str, settled: Iterable[PendingKey]) -> None:
    """Delete settled keys. In the caller's transaction."""
    statement = (
        f"DELETE FROM {meta.named('validator_pending_change')}"
        " WHERE source = %s AND schema_name = %s AND table_name = %s AND row_pk = %s"
    )
    for one in settled:
        cursor.execute(statement, (source, one.origin.schema, one.origin.table, row_pk(one.key)))


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
