"""Tells whether a part of a source's binlog has anything for a task: a statement, or rows of tables that it takes."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

from unshard.model.position import Position
from unshard.model.table import TableName
from unshard.mysql.connection import rows
from unshard.mysql.flavour import binary_logs

_AT_ONCE = 10_000
_MOST = 2_000_000
"""Events that are read at most, some ten seconds of work."""

_OF_A_FILE = frozenset(
    {
        *("Format_desc", "Rotate", "Stop", "Heartbeat", "Previous_gtids", "Gtid_list", "Binlog_checkpoint"),
        "Start_encryption",
    }
)
_OF_A_TRANSACTION = frozenset({"Gtid", "Anonymous_Gtid", "Gtid_tagged", "Xid", "Rows_query", "Annotate_rows"})
_OF_ROWS = ("Write_rows", "Update_rows", "Delete_rows")
"""Each follows the Table_map of its table."""

_AROUND_ROWS = frozenset({"BEGIN", "COMMIT", "ROLLBACK"})
_TABLE = re.compile(r"table_id: \d+ \((.*)\)", re.DOTALL)


def is_without_changes(connection: Any, before: Position, after: Position, takes: Callable[[TableName], bool]) -> bool:
    """Return whether the events from `before` to `after` are new files, and rows of tables that `takes` refuses.

    False too where they are very many, or the files are purged. Raises MySQLdb.Error.
    """
    if before == after:
        return True
    names = [log.name for log in binary_logs(connection)]
    if before.file not in names or after.file not in names:
        return False
    files = names[names.index(before.file) : names.index(after.file) + 1]
    count = 0
    for file in files:
        begin = Position(file, before.offset if file == before.file else Position(file).offset)
        for offset, kind, info in _events(connection, begin):
            if file == after.file and offset >= after.offset:
                return True
            count += 1
            if count > _MOST or not _is_other(kind, info, takes):
                return False
    return bool(files)


def _events(connection: Any, begin: Position) -> Iterator[tuple[int, str, str]]:
    """Yield offset, kind and description of each event of a file from there on."""
    offset = begin.offset
    while True:
        found = rows(connection, f"SHOW BINLOG EVENTS IN %s FROM {offset} LIMIT {_AT_ONCE}", (begin.file,))
        yield from ((int(row[1]), str(row[2]), str(row[5])) for row in found)
        if len(found) < _AT_ONCE:
            return
        offset = int(found[-1][4])


def _is_other(kind: str, info: str, takes: Callable[[TableName], bool]) -> bool:
    """Return whether an event changes nothing of the task's."""
    if kind == "Query":
        return info.upper() in _AROUND_ROWS
    if kind == "Table_map":
        found = _TABLE.match(info)
        return found is not None and not any(takes(name) for name in _names(found[1]))
    return kind in _OF_A_FILE or kind in _OF_A_TRANSACTION or kind.startswith(_OF_ROWS)


def _names(text: str) -> Iterator[TableName]:
    """Yield the tables that `schema.table` may stand for: either name may have dots."""
    parts = text.split(".")
    return (TableName(".".join(parts[:at]), ".".join(parts[at:])) for at in range(1, len(parts)))
