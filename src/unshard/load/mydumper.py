"""The contents of a dump folder of mydumper or dumpling.

They are read from `metadata`, the schema files and the file names.
"""

from __future__ import annotations

import re
from hashlib import blake2s
from pathlib import Path

from unshard.dump.files import unescape_name
from unshard.dump.metadata import DumpResult
from unshard.errors import LoadError, Where
from unshard.load.contents import Contents, DataFile, SourceTable
from unshard.load.create_statements import created_name, without_counter
from unshard.load.file_settings import is_setting
from unshard.load.file_text import open_text
from unshard.load.sql_dump import statements
from unshard.model.position import Location, Position
from unshard.model.table import TableName
from unshard.source.snapshot import counter_of

_SQL = (".sql", ".sql.gz")
_DATABASE = "-schema-create"
_TABLE = "-schema"
_VIEW = "-schema-view"
_OTHER = ("-schema-triggers", "-schema-post", "-schema-sequence")
_UNREAD = re.compile(r"\.(?:csv|tsv|dat|parquet|sql)(?:\.(?!gz$)\w+)?$|\.(?:csv|tsv|dat)\.gz$", re.IGNORECASE)
"""Data files that the load can't read, once those of SQL are taken out."""
_SECTION = re.compile(r"^\[\w+\]\s*$", re.MULTILINE)
_LOCATION = re.compile(r"Log:\s*(?P<file>\S+)\s+Pos:\s*(?P<pos>\d+)(?:\s+GTID:[ \t]*(?P<gtid>[^\n]*(?:,\n[^\n]+)*))?")


def read_foreign(directory: Path) -> Contents:
    """Read the contents of a mydumper or dumpling folder.

    Views, triggers and routines are not loaded. Raises LoadError LOAD-001 when the dump is not finished or a file
    belongs to no table.
    """
    result = _locations(directory)
    _refuse_unread(directory)
    stems = {_stem(path.name): path for path in sorted(directory.iterdir()) if path.name.endswith(_SQL)}
    databases = _databases(stems)
    views = {stem.removesuffix(_VIEW) for stem in stems if stem.endswith(_VIEW)}
    tables: dict[str, tuple[TableName, str]] = {}
    for stem, path in stems.items():
        table_stem = stem.removesuffix(_TABLE)
        if stem.endswith(_TABLE) and table_stem not in views:
            sql = _create_statement(path)
            tables[table_stem] = (_table_name(table_stem, created_name(sql)[1], path), sql)
    files: dict[str, list[DataFile]] = {stem: [] for stem in tables}
    for stem, path in stems.items():
        if not stem.endswith((_DATABASE, _TABLE, _VIEW, *_OTHER)):
            files[_owner(stem, files, path)].append(DataFile(path.name, path.stat().st_size))
    return Contents(
        directory,
        blake2s((directory / "metadata").read_bytes(), digest_size=16).hexdigest(),
        DumpResult(result.begin, {name: result.begin for name, _ in tables.values()}, result.end),
        databases,
        tuple(
            SourceTable(name, without_counter(sql), None, counter_of(sql), tuple(files[stem]))
            for stem, (name, sql) in sorted(tables.items())
        ),
        foreign=True,
    )


def _refuse_unread(directory: Path) -> None:
    """Raise LoadError LOAD-001 for a data file in a format or a compression that is not read."""
    for path in sorted(directory.iterdir()):
        if not path.name.endswith(_SQL) and _UNREAD.search(path.name):
            fault = f"{path.name} is no file of SQL, plain or compressed by gzip; dump anew with that"
            raise LoadError("LOAD-001", Where(file=str(path)), values={"fault": fault})


def _stem(name: str) -> str:
    return name.removesuffix(".gz").removesuffix(".sql")


def _locations(directory: Path) -> DumpResult:
    path = directory / "metadata"
    if not path.exists():
        raise LoadError("LOAD-001", Where(file=str(directory)), values={"fault": "it has no `metadata` file"})
    text = path.read_text(encoding="utf-8")
    found = [
        Location(Position(match["file"], int(match["pos"])), "".join((match["gtid"] or "").split()))
        for match in _LOCATION.finditer(text)
    ]
    if _SECTION.search(text):
        fault = "its `metadata` is in the form of a mydumper later than 0.10; dump anew with dumpling or mydumper 0.10"
        raise LoadError("LOAD-001", Where(file=str(path)), values={"fault": fault})
    if not found or "Finished dump at" not in text:
        fault = "its `metadata` has no position" if not found else "its `metadata` says that it was not finished"
        raise LoadError("LOAD-001", Where(file=str(path)), values={"fault": fault})
    # dumpling writes a second position for a dump without a lock: events up to it may or may not be in the dump
    return DumpResult(found[0], {}, found[1] if len(found) > 1 and "AFTER CONNECTION POOL" in text else None)


def _databases(stems: dict[str, Path]) -> dict[str, str]:
    found = {}
    for stem, path in stems.items():
        if stem.endswith(_DATABASE):
            sql = _create_statement(path)
            found[created_name(sql)[1]] = sql
    return found


def _create_statement(path: Path) -> str:
    """Return the CREATE statement of a schema file."""
    where = Where(file=str(path))
    found = [text.sql for text in statements(open_text(path), 0, where) if not is_setting(text.sql)]
    creates = [sql for sql in found if re.match(rb"\s*CREATE\s", sql, re.IGNORECASE)]
    if len(creates) != 1:
        raise LoadError("LOAD-001", where, values={"fault": f"{path.name} has {len(creates)} CREATE statements"})
    return creates[0].decode().rstrip().rstrip(";")


def _table_name(stem: str, table: str, path: Path) -> TableName:
    """Return the full name: the table's from the statement, the schema's from the file name before it."""
    for written in (f".{table}", stem[stem.find(".") :]):
        if stem.endswith(written) and unescape_name(written[1:]) in (table, unescape_name(table)):
            return TableName(unescape_name(stem.removesuffix(written)), table)
    raise LoadError("LOAD-001", Where(file=str(path)), values={"fault": f"{path.name} creates table {table}"})


def _owner(stem: str, tables: dict[str, list[DataFile]], path: Path) -> str:
    candidate = stem
    while candidate:
        if candidate in tables:
            return candidate
        candidate, _, number = candidate.rpartition(".")
        if not number.isdigit():
            break
    raise LoadError("LOAD-001", Where(file=str(path)), values={"fault": f"{path.name} belongs to no table"})
