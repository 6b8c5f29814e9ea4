"""The start and the end of a dump in its folder: resume the dump that is there, or begin a new one.

At the end the files of finished tables get their final names, beside the CREATE statements.
"""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

from unshard.crash_point import reach
from unshard.dump.durable import disk, sync_folder, write_whole
from unshard.dump.files import database_schema_name, stem, table_schema_name
from unshard.dump.metadata import (
    STATE,
    DumpHeader,
    Record,
    drop_record,
    header_of_attempt,
    new_run,
    now_text,
    parts_folder,
    read_header,
    read_records,
)
from unshard.dump.metadata import write_header as save
from unshard.dump.plan import Listed, list_tables, resolve
from unshard.dump.settings import DumpSettings
from unshard.dump.sql_file import PROLOGUE
from unshard.errors import DumpError, Where, some_of
from unshard.log import logger
from unshard.model.table import TableName
from unshard.mysql.connection import rows
from unshard.mysql.grants import Grants
from unshard.source.exact_positions import await_commits
from unshard.source.snapshot import create_database_statement, locate, tells_positions
from unshard.transform.source_rules import TableSelection

_NAMED = 5
_CHANGED = "the rules that select tables were changed after the dump"
_UNKNOWN = (
    "the dump is of an earlier version of Unshard, which did not record the rules: either they were changed after the"
    " dump, or the tables were made after it"
)


def intact(directory: Path, header: DumpHeader, record: Record) -> bool:
    """Return whether all files of a finished table exist with their size, under the final or the temporary name."""
    parts = parts_folder(directory, header.run)
    return all(file.size in (_size(parts / file.part), _size(directory / file.name)) for file in record.files)


def publish(directory: Path, header: DumpHeader) -> None:
    """Rename all files of all tables and write the schema files. Safe to run again.

    Raises DumpError DUMP-006 when a file of a finished table is missing, DUMP-009 when the disk refuses.
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
    """Remove the files that a dump of ours has left in the folder, and no others. Idempotent."""
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


def header_to_resume(settings: DumpSettings, source: str) -> DumpHeader | None:
    """Return the header of the folder's dump if it is finished or can be resumed; else empty the folder for a new one.

    Raises DumpError DUMP-002 when the folder holds something else than a dump of this source with these settings.
    """
    directory = settings.directory
    header = read_header(directory)
    if header is None:
        with disk(directory):
            directory.mkdir(parents=True, exist_ok=True)
        foreign = sorted(path.name for path in directory.iterdir() if not path.name.startswith(".unshard"))
        if foreign:
            raise DumpError("DUMP-002", Where(source, file=str(directory)), values={"found": foreign[0]})
        wipe(directory)
        return None
    if header.source == source and header_of_attempt(directory, settings.attempt) is None:
        wipe(directory)
        return None
    if header.source != source or header.settings != settings.fixed():
        found = f"a dump of {header.source} with {header.settings}"
        raise DumpError("DUMP-002", Where(source, file=str(directory)), values={"found": found})
    if header.finished or header.consistency == "lock-free":
        return header
    wipe(directory)
    return None


def refuse_lacking(connection: Any, directory: Path, header: DumpHeader, selection: TableSelection) -> None:
    """Raise DumpError DUMP-014 where a finished dump lacks tables that were selected only after it.

    A table that the dump's own rules select was made after the dump. Where the rules were not recorded, the two can't
    be told apart, and each table that the dump lacks counts as selected later.
    """
    recorded = header.selection
    before = frozenset[TableName]().__contains__ if recorded is None else TableSelection.from_dict(recorded).takes()
    there = frozenset(header.tables)
    listed = (table.name for table in list_tables(connection, selection.takes()))
    lacking = [name for name in listed if name not in there and not before(name)]
    if lacking:
        where, values = Where(header.source, file=str(directory)), {"tables": some_of(lacking, _NAMED)}
        raise DumpError("DUMP-014", where, _UNKNOWN if recorded is None else _CHANGED, values)


def begin(
    connection: Any, settings: DumpSettings, source: str, selection: TableSelection
) -> tuple[DumpHeader, tuple[Listed, ...]]:
    """Write the header of a new dump. The location is read before the tables are listed, so that no table is missed.

    The location is the end of what is written; rows become visible later. A snapshot without a lock is taken again
    until it has them, and a lock waits for them. For `none` they are awaited here: raises DumpError DUMP-015 if they
    don't come.
    """
    location = locate(connection)
    tables = list_tables(connection, selection.takes())
    tells = tells_positions(connection)
    flushes = tells and Grants.read(line for (line,) in rows(connection, "SHOW GRANTS")).everywhere("RELOAD")
    consistency = resolve(
        settings.consistency, tables, tells_positions=tells, follows=settings.follows, flushes=flushes
    )
    if consistency == "none":
        await_commits(connection)
        if not settings.follows:
            why = "no binlog is followed after the copy: a row that moves between two tables may be in both, or in none"
            logger("dump", source=source).warning("the tables are of different moments", consistency="none", why=why)
    schemas = sorted({table.name.schema for table in tables})
    databases = {schema: create_database_statement(connection, schema) for schema in schemas}
    header = DumpHeader(
        run=new_run(),
        source=source,
        consistency=consistency,
        settings=settings.fixed(),
        begin=location,
        tables=tuple(table.name for table in tables),
        databases={schema: statement for schema, statement in databases.items() if statement is not None},
        rows_estimate=sum(table.rows for table in tables),
        started=now_text(),
        attempt=settings.attempt,
        estimates={stem(table.name): table.rows for table in tables},
        selection=selection.to_dict(),
    )
    parts = parts_folder(settings.directory, header.run)
    with disk(parts):
        parts.mkdir(parents=True)
    save(settings.directory, header)
    return header, tables


def go_on(
    connection: Any, settings: DumpSettings, header: DumpHeader, selection: TableSelection
) -> tuple[DumpHeader, tuple[Listed, ...]]:
    """Return the header of a resumed dump, which has the present rules, and those of its tables that still exist.

    Tables that the rules newly select are not among them: the dump lists the tables once more before it is finished.
    Records whose files are damaged are dropped.
    """
    wanted = set(header.tables)
    listed = tuple(table for table in list_tables(connection, selection.takes()) if table.name in wanted)
    for name, record in read_records(settings.directory, header).items():
        if not intact(settings.directory, header, record):
            drop_record(settings.directory, header.run, name)
    header = replace(header, selection=selection.to_dict())
    save(settings.directory, header)
    return header, listed
