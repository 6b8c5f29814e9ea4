"""What a dump folder holds, whoever wrote it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from unshard.dump.metadata import Dump, DumpResult
from unshard.model.table import Table, TableName


@dataclass(frozen=True, slots=True)
class DataFile:
    """One data file: its size in bytes, and its CRC-32 where the dump recorded one."""

    name: str
    size: int
    crc32: int | None = None

    @property
    def parquet(self) -> bool:
        return self.name.endswith(".parquet")


@dataclass(frozen=True, slots=True)
class SourceTable:
    """One table of a dump. `structure` is None where only the CREATE TABLE text is known."""

    name: TableName
    create_sql: str
    structure: Table | None
    counter: int | None
    files: tuple[DataFile, ...]


@dataclass(frozen=True, slots=True)
class Contents:
    """A whole dump: where it stands in the binlog, CREATE DATABASE by schema, tables by name.

    `identity` tells it from every other dump, also from a later one into the same folder; at most 32 characters.
    """

    directory: Path
    identity: str
    result: DumpResult
    databases: dict[str, str]
    tables: tuple[SourceTable, ...]


def contents_of(dump: Dump) -> Contents:
    """Those of a dump of ours."""
    tables = tuple(
        SourceTable(
            name,
            record.table.create_sql,
            record.table,
            record.counter,
            tuple(DataFile(file.name, file.size, file.crc32) for file in record.files),
        )
        for name, record in sorted(dump.records.items())
    )
    return Contents(dump.directory, dump.header.run, dump.result, dict(dump.header.databases), tables)
