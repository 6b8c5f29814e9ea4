"""The contents of a dump folder, whichever tool wrote it: ours, mydumper, dumpling."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from unshard.dump.metadata import Dump, DumpResult
from unshard.model.table import Table, TableName
from unshard.transform.block_allow import BlockAllowList


@dataclass(frozen=True, slots=True)
class DataFile:
    """One data file of a dump: its size in bytes, and its CRC-32 and rows where the dump recorded them."""

    name: str
    size: int
    crc32: int | None = None
    rows: int | None = None

    @property
    def parquet(self) -> bool:
        """True if it is a Parquet file; else it is SQL."""
        return self.name.endswith(".parquet")


@dataclass(frozen=True, slots=True)
class SourceTable:
    """One source table of a dump. `structure` is None where only the CREATE TABLE text is known.

    `counter` is its next AUTO_INCREMENT value, where the dump recorded one.
    """

    name: TableName
    create_sql: str
    structure: Table | None
    counter: int | None
    files: tuple[DataFile, ...]


@dataclass(frozen=True, slots=True)
class Contents:
    """A whole dump: its location in the binlog, CREATE DATABASE by schema, tables by name.

    `identity` differs from that of every other dump, also of a later one in the same folder; at most 32 characters.
    `foreign`: another tool wrote it.
    """

    directory: Path
    identity: str
    result: DumpResult
    databases: dict[str, str]
    tables: tuple[SourceTable, ...]
    foreign: bool = False


def contents_of(dump: Dump) -> Contents:
    """Return the contents of a dump that Unshard wrote."""
    tables = tuple(
        SourceTable(
            name,
            record.table.create_sql,
            record.table,
            record.counter,
            tuple(DataFile(file.name, file.size, file.crc32, file.rows) for file in record.files),
        )
        for name, record in sorted(dump.records.items())
        if not record.table.is_absent
    )
    return Contents(dump.directory, dump.header.run, dump.result, dict(dump.header.databases), tables)


def allowed(contents: Contents, allow: BlockAllowList) -> Contents:
    """Return the contents that the list allows.

    A schema is kept if one of its tables is; one without tables is judged by itself.
    """
    tables = tuple(table for table in contents.tables if allow.allows(table.name))
    shut = {table.name.schema for table in contents.tables} - {table.name.schema for table in tables}
    databases = {
        name: sql for name, sql in contents.databases.items() if name not in shut and allow.allows_schema(name)
    }
    return replace(contents, databases=databases, tables=tables)
