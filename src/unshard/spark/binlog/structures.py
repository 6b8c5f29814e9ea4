"""The structures by which rows are read: the server's, or those that the binlog describes.

Without a server the binlog must contain signs and character sets (MySQL's default `binlog_row_metadata=MINIMAL` does;
MariaDB's default NO_LOG doesn't), because a number's sign is never guessed. Names and ENUM members need FULL; otherwise
columns are named `@1`, `@2` … and members are numbers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from unshard.binlog.described import describe_table, undescribed
from unshard.binlog.headers import mapped, read_format
from unshard.binlog.rows import RoutedStatement, decode_range
from unshard.binlog.table_map import TableMap
from unshard.errors import BinlogError, Where
from unshard.model.position import Position
from unshard.model.table import Table, TableName
from unshard.mysql.connection import session
from unshard.mysql.structure import read_table, table_names
from unshard.spark.binlog.files import FileLog, stretches
from unshard.spark.binlog.options import Options
from unshard.sync.source_log.reader import TransactionRows

_NEEDED = frozenset({"signs", "charsets"})


@dataclass(frozen=True)
class Structures:
    """The table structures by which one reader decodes rows.

    `known` are the server's structures, None without a server. `only` is the one table to read, None for all.
    """

    only: TableName | None
    known: Mapping[TableName, Table] | None = field(default=None, repr=False)

    def of_server(self, name: TableName | None) -> Table:
        """Return the server's structure of a table. Raises BinlogError 057 if the server has no such table."""
        if name is None or self.known is None or name not in self.known:
            raise BinlogError("BINLOG-057", Where(table=str(name)), "the server has no such table")
        return self.known[name]

    def wanted(self, file: str) -> RoutedStatement:
        """Return the choice of tables for `decode_range` over `file`.

        It raises BinlogError 057 for a table that nothing describes.
        """
        described: dict[TableMap, Table] = {}

        def choose(table_map: TableMap, offset: int) -> Table | None:
            if self.only is not None and table_map.name != self.only:
                return None
            if self.known is not None:
                return self.of_server(table_map.name)
            if table_map not in described:
                described[table_map] = described_table(table_map, f"{file}:{offset}")
            return described[table_map]

        return choose


def described_table(table_map: TableMap, position: str) -> Table:
    """Return the structure that a TABLE_MAP event describes.

    Raises BinlogError 057 if it lacks signs or character sets.
    """
    missing = undescribed(table_map) & _NEEDED
    where = Where(table=str(table_map.name), position=position)
    if missing:
        raise BinlogError("BINLOG-057", where, f"the binlog doesn't tell {' and '.join(sorted(missing))}")
    return describe_table(table_map, where)


def server_structures(options: Options) -> Structures:
    """Return the structures that the server has now, of one table or of all."""
    assert options.server is not None
    with session(options.server, "source") as connection:
        names = (options.table,) if options.table is not None else table_names(connection)
        found = {name: read_table(connection, name) for name in names}
    known = {name: replace(table, create_sql="") for name, table in found.items() if table is not None}
    return Structures(options.table, known)


def newest_structure(options: Options, log: FileLog) -> Table:
    """Return the table's structure at its last rows in the log. Raises BinlogError 057 if the log has no rows of it."""
    for file in reversed(log.files()):
        start = options.start if options.start is not None and options.start.file == file else None
        single = FileLog(log.folder, file)
        last: TableMap | None = None
        at = ""
        for rows in stretches(single, start or Position(file), single.end(), options.range_bytes):
            if options.table in rows.log_range.tables:
                last, at = _last_map(rows, options.table)
        if last is not None:
            return described_table(last, at)
        if start is not None:
            break
    raise BinlogError("BINLOG-057", Where(table=str(options.table), file=str(options.path)), "it has no rows there")


def _last_map(rows: TransactionRows, name: TableName | None) -> tuple[TableMap | None, str]:
    """Return the last TABLE_MAP of that table in a range, and its position. No row is decoded."""
    found: tuple[TableMap | None, str] = None, ""

    def note(table_map: TableMap, offset: int) -> None:
        nonlocal found
        if table_map.name == name:
            found = table_map, f"{rows.path.name}:{offset}"

    log_range = rows.log_range
    data, where = mapped(rows.path, log_range.end), Where(file=str(rows.path))
    mariadb = read_format(data, where).mariadb
    decode_range(
        data, log_range.start, log_range.end, checksum=rows.checksum, wanted=note, mariadb=mariadb, where=where
    )
    return found
