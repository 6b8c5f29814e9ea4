"""Secondary keys of large tables, left out while rows are loaded and built afterwards.

A server builds a key from all rows much faster than it inserts into it row by row. A table that the load has created is
altered before it gets a row: its keys that are neither primary nor unique are recorded in `T_load_key` and dropped. At
the end of a source's load, they are added to every table that it has loaded into, to several tables at a time. MySQL
and MariaDB only.

| the process dies | then |
|---|---|
| before the keys are recorded | the table keeps them |
| before they are dropped | the end of the load finds them all, and deletes the record |
| before they are added, or meanwhile | the next attempt adds those that are missing |
| before the record is deleted | the same: none is missing |

The record outlives `--remove-meta`, as long as the table is there (`target.forget`). It is deleted when the load
creates a table of that name.

Tables that foreign keys connect keep their keys. So does a table with a key of an AUTO_INCREMENT column, which the
server refuses to drop.
"""

from __future__ import annotations

import re
import time
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from threading import Lock
from typing import Any

import MySQLdb

from unshard.crash_point import reach
from unshard.errors import LoadError, Where
from unshard.load.creation import OpenSession, each, named_lock
from unshard.log import logger
from unshard.model.table import TableName, quote_name
from unshard.mysql.connection import rows
from unshard.mysql.failures import is_transient
from unshard.target.meta import MetaTables

DEFERRED_BYTES = 4 << 20
"""Bytes of a table's dump files from which on its keys are deferred: for less, two ALTERs cost more than they save.

A file of Parquet has a fifth to a half of the bytes that its rows have in SQL.
"""
_CREATE = """
CREATE TABLE IF NOT EXISTS {name} (
    target_schema VARCHAR(64) NOT NULL,
    target_table VARCHAR(64) NOT NULL,
    key_name VARCHAR(64) NOT NULL,
    number INT NOT NULL,
    definition TEXT NOT NULL,
    create_time TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP,
    PRIMARY KEY (target_schema, target_table, key_name)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin
"""
_NAMED = "target_schema = %s AND target_table = %s"
_KEY = re.compile(r"^  (KEY `((?:[^`]|``)+)` .*?),?$", re.MULTILINE)
_REFERENCED = re.compile(r" REFERENCES (?:`(?:[^`]|``)+`\.)?`((?:[^`]|``)+)` ")
_INNODB = re.compile(r"^\) ENGINE=InnoDB\b", re.MULTILINE)
_PRESENT = "SELECT DISTINCT INDEX_NAME FROM information_schema.STATISTICS WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s"
_NEEDED = frozenset({1075, 1553})
"""Refusals to drop a key: of an AUTO_INCREMENT column, of a foreign key."""
_THERE, _LOG_FULL = 1061, 1799
"""A key of that name exists; so many rows were written during the ALTER that InnoDB's log of them is full."""
_ATTEMPTS = 10
_LONGEST_LOCK = 64


@dataclass(frozen=True, slots=True)
class DeferredKeys:
    """The access to one task's records of deferred keys.

    Statements run on the given connection; other driver errors are raised unchanged.
    """

    schema: str
    task: str
    source: str

    @property
    def name(self) -> str:
        """Qualified and quoted name of the table of records."""
        return MetaTables(self.schema, self.task).named("load_key")

    def create(self, connection: Any) -> None:
        """Create the table of records. Idempotent."""
        rows(connection, _CREATE.format(name=self.name))

    def recorded(self, connection: Any) -> frozenset[TableName]:
        """Return the tables of which keys are on record."""
        found = rows(connection, f"SELECT DISTINCT target_schema, target_table FROM {self.name}")
        return frozenset(TableName(str(schema), str(name)) for schema, name in found)

    def forget(self, connection: Any, table: TableName) -> None:
        """Delete what is on record of an earlier table of this name. Idempotent."""
        with self._alone(connection, table):
            self._forget(connection, table)

    def defer(self, connection: Any, table: TableName, size: int) -> None:
        """Drop the secondary keys of an empty table that the task has just created, once they are recorded.

        `size`: the bytes of the files that are loaded into it. A small table keeps its keys. A table that has a row by
        now keeps them too: another source may have loaded all of its rows into it, and would not add them. So does one
        of a server without named locks.
        """
        if size < DEFERRED_BYTES:
            return
        with self._alone(connection, table) as alone:
            if not alone:
                return
            keys = keys_of(rows(connection, f"SHOW CREATE TABLE {table.quoted}")[0][1])
            if not keys or rows(connection, f"SELECT 1 FROM {table.quoted} LIMIT 1"):
                return
            self._forget(connection, table)
            with connection.cursor() as cursor:
                cursor.executemany(
                    f"INSERT INTO {self.name} (target_schema, target_table, key_name, number, definition)"
                    " VALUES (%s, %s, %s, %s, %s)",
                    [(table.schema, table.table, key, number, text) for number, (key, text) in enumerate(keys.items())],
                )
            reach("load-keys-recorded")
            drops = ", ".join(f"DROP KEY {quote_name(key)}" for key in keys)
            try:
                rows(connection, f"ALTER TABLE {table.quoted} {drops}")
            except MySQLdb.Error as error:
                if error.args[0] not in _NEEDED:
                    raise
                self._forget(connection, table)

    def add(
        self,
        open_session: OpenSession,
        tables: Iterable[TableName],
        told: Callable[[Sequence[TableName]], None] = lambda tables: None,
        at_once: int = 1,
    ) -> None:
        """Add the keys on record that these tables lack, to `at_once` tables at a time, each over its own session.

        Idempotent; several sources may call it at the same time. `told` is called with the tables whose keys are being
        built, whenever they change. Raises LoadError LOAD-027 where the server can't build them; the first error ends
        the others once their tables are done.
        """
        with open_session() as connection:
            waiting = sorted(self.recorded(connection).intersection(tables))
        now: list[TableName] = []
        changing = Lock()

        def build(connection: Any, table: TableName) -> None:
            with changing:
                now.append(table)
                told(tuple(now))
            try:
                self._build(connection, table)
            finally:
                with changing:
                    now.remove(table)
                    told(tuple(now))

        each(open_session, build, waiting, at_once)

    def _build(self, connection: Any, table: TableName) -> None:
        with self._alone(connection, table):
            # once another source has added them, statements of its log may have dropped them since
            asked = f"SELECT key_name, definition FROM {self.name} WHERE {_NAMED} ORDER BY number"
            keys = {str(key): str(text) for key, text in rows(connection, asked, (table.schema, table.table))}
            if not keys:
                return
            begun, log = time.monotonic(), logger("load", source=self.source)
            log.info("builds the keys of a loaded table", table=str(table), keys=", ".join(keys))
            self._add(connection, table, keys)
            reach("load-keys-added")
            self._forget(connection, table)
            log.info("built the keys", table=str(table), seconds=round(time.monotonic() - begun, 1))

    def _add(self, connection: Any, table: TableName, keys: dict[str, str]) -> None:
        shared = ""
        for attempt in range(1, _ATTEMPTS + 1):
            there = {str(name).lower() for (name,) in rows(connection, _PRESENT, (table.schema, table.table))}
            missing = [text for key, text in keys.items() if key.lower() not in there]
            if not missing:
                return
            try:
                rows(connection, f"ALTER TABLE {table.quoted} " + ", ".join(f"ADD {text}" for text in missing) + shared)
            except MySQLdb.Error as error:
                if error.args[0] not in (_THERE, _LOG_FULL) or attempt == _ATTEMPTS:
                    if is_transient(error):
                        raise
                    cause = f"{error.args[0]}: {error.args[1]}"
                    names = ", ".join(key for key in keys if key.lower() not in there)
                    raise LoadError("LOAD-027", Where(self.source, str(table)), cause, {"keys": names}) from error
                shared = ", LOCK=SHARED" if error.args[0] == _LOG_FULL else shared

    def _alone(self, connection: Any, table: TableName) -> AbstractContextManager[bool]:
        """Hold the table's lock: its keys are recorded and dropped, or added, by one session at a time."""
        name = f"unshard:keys:{table}"
        mark = f":{zlib.crc32(name.encode('utf-8', 'surrogatepass')):08x}"
        return named_lock(connection, name if len(name) <= _LONGEST_LOCK else name[: _LONGEST_LOCK - len(mark)] + mark)

    def _forget(self, connection: Any, table: TableName) -> None:
        rows(connection, f"DELETE FROM {self.name} WHERE {_NAMED}", (table.schema, table.table))


def in_foreign_keys(create_sqls: Mapping[TableName, str]) -> frozenset[TableName]:
    """Return the tables that have a foreign key or may be referenced by one; the texts are of SHOW CREATE TABLE. Pure.

    A server may lose track of a foreign key whose columns have no key for a while. Every table of a referenced name is
    among them, whatever its schema is.
    """
    found = {name: _REFERENCED.findall(text) for name, text in create_sqls.items() if " FOREIGN KEY " in text}
    referenced = {parent.replace("``", "`").lower() for parents in found.values() for parent in parents}
    return frozenset(name for name in create_sqls if name in found or name.table.lower() in referenced)


def keys_of(create_sql: str) -> dict[str, str]:
    """Return, by name, the definition of each key of SHOW CREATE TABLE that is neither primary nor unique. Pure.

    None for a table of another engine than InnoDB. FULLTEXT and SPATIAL keys are not among them: a server builds them
    in another way.
    """
    if not _INNODB.search(create_sql):
        return {}
    return {name.replace("``", "`"): text for text, name in _KEY.findall(create_sql)}
