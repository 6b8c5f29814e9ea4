"""The progress of the load, stored in the target: one row a data file, updated in the transaction that loads its rows.

A piece is committed together with `piece = k … WHERE piece = k-1 AND step = 0 AND epoch = e`. When that finds no row,
either the piece was loaded by an earlier attempt, or a newer process has claimed the load and this one must stop.
`step` counts the rows of the next piece that are in the target: a piece that is too large is committed in parts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import MySQLdb

from unshard.errors import LoadError, Where
from unshard.model.table import quote_name
from unshard.mysql.connection import rows
from unshard.target.filled import FilledTables
from unshard.target.meta import DUPLICATE_COLUMN, MetaTables
from unshard.target.receipts import FIRST_EPOCH
from unshard.target.silent_sessions import claiming

_CHUNK = """
CREATE TABLE IF NOT EXISTS {name} (
    source VARCHAR(32) NOT NULL,
    file VARCHAR(255) NOT NULL,
    dump VARCHAR(32) NOT NULL,
    rules VARCHAR(32) NOT NULL DEFAULT '',
    epoch BIGINT NOT NULL,
    piece BIGINT NOT NULL,
    step BIGINT NOT NULL DEFAULT 0,
    done_bytes BIGINT NOT NULL,
    done_rows BIGINT NOT NULL,
    size BIGINT NOT NULL,
    finished BOOLEAN NOT NULL,
    update_time TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP,
    PRIMARY KEY (source, file)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin
"""
_STATUS = """
CREATE TABLE IF NOT EXISTS {name} (
    task_name VARCHAR(255) NOT NULL,
    source_name VARCHAR(255) NOT NULL,
    status VARCHAR(10) NOT NULL DEFAULT 'init',
    PRIMARY KEY (task_name, source_name)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin
"""
_LATER = (
    ("step", "BIGINT NOT NULL DEFAULT 0 AFTER piece"),
    ("rules", "VARCHAR(32) NOT NULL DEFAULT '' AFTER dump"),
)
"""Columns that a table of an earlier version lacks. Empty `rules`: it isn't known with which rules a file was begun."""
INIT, RUNNING, FINISHED = "init", "running", "finished"


@dataclass(frozen=True, slots=True)
class FileState:
    """The progress of loading one file.

    Args:
        epoch: the attempt that may load it.
        piece: pieces done.
        step: rows of the next piece done.
        offset: bytes of an SQL file done.
        done_rows: rows done.
        size: the file's size in bytes, as the first attempt found it.
    """

    epoch: int
    piece: int
    step: int
    offset: int
    done_rows: int
    size: int
    finished: bool


@dataclass(frozen=True, slots=True)
class LoadTables:
    """The load's meta tables for one task and source, in the meta schema `schema`.

    Statements run on the given connection; driver errors are raised unchanged.
    """

    schema: str
    task: str
    source: str

    @property
    def meta(self) -> MetaTables:
        """The task's tables in the target."""
        return MetaTables(self.schema, self.task)

    @property
    def chunk(self) -> str:
        """Quoted name of the table with the progress of each file."""
        return f"{quote_name(self.schema)}.{quote_name(f'{self.task}_load_chunk')}"

    @property
    def status(self) -> str:
        """DM's own table, which DM's users know."""
        return f"{quote_name(self.schema)}.{quote_name(f'{self.task}_lightning_checkpoint_list')}"

    def create(self, connection: Any) -> None:
        """Create the missing tables and columns. Idempotent."""
        rows(connection, f"CREATE DATABASE IF NOT EXISTS {quote_name(self.schema)}")
        rows(connection, _CHUNK.format(name=self.chunk))
        self._bring_up_to_date(connection)
        rows(connection, _STATUS.format(name=self.status))
        FilledTables(self.schema, self.task).create(connection)
        rows(connection, f"INSERT IGNORE INTO {self.status} VALUES (%s, %s, %s)", (self.task, self.source, INIT))

    def _bring_up_to_date(self, connection: Any) -> None:
        """Add the columns that a table of an earlier version lacks."""
        asked = "SELECT COLUMN_NAME FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s"
        there = {name for (name,) in rows(connection, asked, (self.schema, f"{self.task}_load_chunk"))}
        for column, definition in _LATER:
            if column in there:
                continue
            try:
                rows(connection, f"ALTER TABLE {self.chunk} ADD COLUMN {column} {definition}")
            except MySQLdb.Error as error:
                if error.args[0] != DUPLICATE_COLUMN:  # another source's start was quicker
                    raise

    def exist(self, connection: Any) -> bool:
        """Return whether `create` has made the tables."""
        found = rows(
            connection,
            "SELECT 1 FROM information_schema.TABLES WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s",
            (self.schema, f"{self.task}_load_chunk"),
        )
        return bool(found)

    def read_status(self, connection: Any) -> str:
        """Return `init`, `running` or `finished`."""
        found = rows(
            connection,
            f"SELECT status FROM {self.status} WHERE task_name = %s AND source_name = %s",
            (self.task, self.source),
        )
        return str(found[0][0]) if found else INIT

    def any_finished(self, connection: Any) -> bool:
        """Return whether the load of any source of the task is finished: the log may have altered its tables since."""
        asked = f"SELECT 1 FROM {self.status} WHERE task_name = %s AND status = %s LIMIT 1"
        return self.exist(connection) and bool(rows(connection, asked, (self.task, FINISHED)))

    def write_status(self, connection: Any, status: str) -> None:
        """Store the stage of the load: INIT, RUNNING or FINISHED."""
        rows(
            connection,
            f"UPDATE {self.status} SET status = %s WHERE task_name = %s AND source_name = %s",
            (status, self.task, self.source),
        )

    def take_over(self, connection: Any, dump: str, files: Sequence[tuple[str, int, str]]) -> int:
        """Register the files (name, bytes, rules) and raise the epoch, which stops older attempts; return the epoch.

        Waits for transactions of older attempts. Sizes of known files stay. Other files, of `dump` or of another one,
        are forgotten where they were not begun; those of `dump` that were begun stay on record, as their tables may be
        taken again. Raises LoadError LOAD-008 when files of another dump were begun: the two are of
        different moments; LOAD-019 when a file was begun with other rules (`Way.fingerprint`): half of its rows would
        be other ones.
        """
        with claiming(connection, self.schema):
            return self._take_over(connection, dump, files)

    def _take_over(self, connection: Any, dump: str, files: Sequence[tuple[str, int, str]]) -> int:
        rows(connection, "BEGIN")
        ((last,),) = rows(
            connection,
            f"SELECT COALESCE(MAX(epoch), {FIRST_EPOCH}) FROM {self.chunk} WHERE source = %s FOR UPDATE",
            (self.source,),
        )
        rows(  # nothing of these is in the target
            connection,
            f"DELETE FROM {self.chunk} WHERE source = %s AND dump <> %s AND piece = 0 AND step = 0",
            (self.source, dump),
        )
        others = rows(
            connection, f"SELECT file FROM {self.chunk} WHERE source = %s AND dump <> %s LIMIT 1", (self.source, dump)
        )
        if others:
            rows(connection, "ROLLBACK")
            fault = f"{others[0][0]} of it was begun, and rows of two moments can't be mixed"
            raise LoadError("LOAD-008", Where(self.source), values={"fault": fault})
        begun = rows(
            connection,
            f"SELECT file, rules FROM {self.chunk} WHERE source = %s AND rules <> '' AND (piece > 0 OR step > 0)",
            (self.source,),
        )
        wanted = {name: rules for name, _, rules in files}
        if unlike := sorted(name for name, rules in begun if wanted.get(name, rules) != rules):
            rows(connection, "ROLLBACK")
            raise LoadError("LOAD-019", Where(self.source, file=unlike[0]), values={"count": len(unlike)})
        epoch = int(last) + 1
        rows(connection, f"UPDATE {self.chunk} SET epoch = %s WHERE source = %s", (epoch, self.source))
        unbegun = f"SELECT file FROM {self.chunk} WHERE source = %s AND piece = 0 AND step = 0"
        left_out = {str(name) for (name,) in rows(connection, unbegun, (self.source,))} - wanted.keys()
        values = [(self.source, name, dump, rules, epoch, size) for name, size, rules in files]
        with connection.cursor() as cursor:
            cursor.executemany(
                f"DELETE FROM {self.chunk} WHERE source = %s AND file = %s AND piece = 0 AND step = 0",
                [(self.source, name) for name in sorted(left_out)],
            )
            cursor.executemany(
                f"INSERT INTO {self.chunk}"
                " (source, file, dump, rules, epoch, piece, done_bytes, done_rows, size, finished)"
                " VALUES (%s, %s, %s, %s, %s, 0, 0, 0, %s, FALSE)"
                " ON DUPLICATE KEY UPDATE rules = IF(piece = 0 AND step = 0, VALUES(rules), rules)",
                values,
            )
        rows(connection, "COMMIT")
        return epoch

    def begun(self, connection: Any, *, any_source: bool = False) -> str:
        """Return a file, of the source or of any, of which rows are in the target; "" where there is none."""
        asked = f"SELECT file FROM {self.chunk} WHERE (source = %s OR %s) AND (piece > 0 OR step > 0) LIMIT 1"
        found = rows(connection, asked, (self.source, any_source)) if self.exist(connection) else []
        return str(found[0][0]) if found else ""

    def attempt(self, connection: Any) -> tuple[str, ...]:
        """Return what tells this copy of the source from another one: the dump, the epoch, when rows came last."""
        asked = "SELECT MAX(dump), MAX(epoch), UNIX_TIMESTAMP(MAX(update_time))"
        (found,) = rows(connection, f"{asked} FROM {self.chunk} WHERE source = %s", (self.source,))
        return tuple(map(str, found))

    def states(self, connection: Any) -> dict[str, FileState]:
        """Return the state of every file of the source, by name."""
        found = rows(
            connection,
            "SELECT file, epoch, piece, step, done_bytes, done_rows, size, finished"
            f" FROM {self.chunk} WHERE source = %s",
            (self.source,),
        )
        return {str(name): _state(numbers) for name, *numbers in found}

    def state(self, connection: Any, file: str) -> FileState | None:
        """Return how far the file is loaded; None where the source has no such file on record."""
        found = rows(
            connection,
            "SELECT epoch, piece, step, done_bytes, done_rows, size, finished"
            f" FROM {self.chunk} WHERE source = %s AND file = %s",
            (self.source, file),
        )
        return _state(found[0]) if found else None

    def advance(
        self,
        connection: Any,
        file: str,
        epoch: int,
        before: tuple[int, int],
        after: tuple[int, int, int | None],
        *,
        done: bool,
    ) -> bool:
        """Move the file on inside the open transaction; False where it was not at `before` (piece, step).

        `after` is (piece, step, offset); the offset is None within a piece. `done`: the file has nothing after it.
        """
        with connection.cursor() as cursor:
            found = cursor.execute(
                f"UPDATE {self.chunk} SET piece = %s, step = %s, done_bytes = COALESCE(%s, done_bytes), finished = %s"
                " WHERE source = %s AND file = %s AND epoch = %s AND piece = %s AND step = %s",
                (*after, done, self.source, file, epoch, *before),
            )
        return bool(found == 1)

    def count_rows(self, connection: Any, file: str, count: int) -> None:
        """Add to the file's number of rows inside the open transaction."""
        rows(
            connection,
            f"UPDATE {self.chunk} SET done_rows = done_rows + %s WHERE source = %s AND file = %s",
            (count, self.source, file),
        )


def _state(row: Sequence[Any]) -> FileState:
    epoch, piece, step, offset, done_rows, size, finished = row
    return FileState(int(epoch), int(piece), int(step), int(offset), int(done_rows), int(size), bool(finished))
