"""The end of a dump: finished tables' files get their final names, beside the CREATE statements."""

from __future__ import annotations

import shutil
from pathlib import Path

from unshard.crash_point import reach
from unshard.dump.files import database_schema_name, disk, sync_folder, table_schema_name, write_whole
from unshard.dump.metadata import STATE, DumpHeader, Record, parts_folder, read_header, read_records
from unshard.dump.sql_file import PROLOGUE
from unshard.errors import DumpError, Where


def intact(directory: Path, header: DumpHeader, record: Record) -> bool:
    """Whether all files of a finished table are there with their size, under either name."""
    parts = parts_folder(directory, header.run)
    return all(file.size in (_size(parts / file.part), _size(directory / file.name)) for file in record.files)


def publish(directory: Path, header: DumpHeader) -> None:
    """Rename all files of all tables and write the schema files. Safe to run again.

    Raises DumpError DUMP-006 when a file of a finished table is not there, DUMP-009 when the disk refuses.
    """
    with disk(directory):
        _publish(directory, header)


def _publish(directory: Path, header: DumpHeader) -> None:
    parts = parts_folder(directory, header.run)
    for record in read_records(directory, header).values():
        if not intact(directory, header, record):
            raise DumpError("DUMP-006", Where(table=str(record.table.name)))
        for file in record.files:
            if (parts / file.part).exists():
                reach("dump-rename-before")
                (parts / file.part).replace(directory / file.name)
                reach("dump-rename-after")
        if not record.table.is_absent:
            write_whole(directory / table_schema_name(record.table.name), _create_table(record))
    for schema, statement in header.databases.items():
        write_whole(directory / database_schema_name(schema), f"{statement};\n")
    for left_over in parts.iterdir():
        left_over.unlink()
    for folder in (parts, parts.parent, directory):
        sync_folder(folder)


def wipe(directory: Path) -> None:
    """Remove what a dump of ours has left in the folder, and nothing else. Idempotent."""
    header = read_header(directory)
    if header is not None:
        names = [file.name for record in read_records(directory, header).values() for file in record.files]
        names += [table_schema_name(table) for table in header.tables]
        names += [database_schema_name(schema) for schema in header.databases]
        for name in (*names, "metadata"):
            (directory / name).unlink(missing_ok=True)
    shutil.rmtree(directory / STATE, ignore_errors=True)


def _create_table(record: Record) -> str:
    head, close, options = record.table.create_sql.rpartition("\n)")
    counter = f" AUTO_INCREMENT={record.counter}" if record.counter else ""
    engine, space, rest = options.strip().partition(" ")
    statement = f"{head}{close} {engine}{counter}{space}{rest}" if close else record.table.create_sql
    return f"{PROLOGUE}{statement};\n"


def _size(path: Path) -> int | None:
    return path.stat().st_size if path.exists() else None
