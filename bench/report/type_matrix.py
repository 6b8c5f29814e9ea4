"""The matrix of column types and character sets by `binlog_row_image` and `binlog_row_metadata`.

For each pair of the two settings all columns are migrated from one server to another: some rows by the copy, others by
the binlog, where they are inserted, updated in each column, moved to another key and deleted.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from bench.report.size import Size
from bench.stage import Run, end_of, engine, subtask
from unshard.errors import UnshardError
from unshard.model.table import TableName
from unshard.testing.compare import compare
from unshard.testing.mariadb_server import MariadbServer
from unshard.testing.type_cases import COMMON, MARIADB

IMAGES = ("FULL", "NOBLOB", "MINIMAL")
METADATA = ("NO_LOG", "MINIMAL", "FULL")
_SCHEMA = "types"
_COLUMNS = 10
_COPIED, _MOVED = 1_000, 2_000
_LONGEST = 60
"""Of an expression that is used as a value."""
_LETTERS = ("'abc 123'", "'é'", "'ж'", "'字'", "'あ'", "'한'", "'א'", "'ไ'", "'😀'", "''", "NULL")
"""What a character set lacks of these, the server replaces when the row is written."""


@dataclass(frozen=True, slots=True)
class _TypesTable:
    """A table of `id`, `mark`, and a column `v…` for each definition with its values."""

    name: TableName
    cases: Mapping[str, Sequence[str]]

    @property
    def columns(self) -> list[str]:
        return [f"v{place}" for place in range(len(self.cases))]

    def create(self) -> str:
        listed = ", ".join(f"{name} {definition}" for name, definition in zip(self.columns, self.cases, strict=True))
        return f"CREATE TABLE {self.name.quoted} (id INT PRIMARY KEY, mark INT, {listed})"

    def insert(self) -> list[str]:
        rows = zip_longest(*self.cases.values(), fillvalue="NULL")
        return [
            f"INSERT INTO {self.name.quoted} VALUES ({number}, 0, {', '.join(values)})"
            for number, values in enumerate(rows, 1)
        ]

    def changes(self) -> list[str]:
        """Return the statements that come by the binlog."""
        table, listed = self.name.quoted, ", ".join(self.columns)
        each = [f"a.{name} = b.{name}" for name in self.columns]
        next_row = f"{table} AS a JOIN {table} AS b ON b.id = a.id - {_COPIED} + 1"
        return [
            f"INSERT INTO {table} SELECT id + {_COPIED}, 1, {listed} FROM {table}",
            f"UPDATE {table} SET mark = 2 WHERE id % 2 = 0",
            *(f"UPDATE {next_row} SET {one} WHERE a.id > {_COPIED}" for one in each),
            f"UPDATE {table} SET id = id + {_MOVED} WHERE id % 3 = 0",
            f"DELETE FROM {table} WHERE id % 5 = 0",
        ]


def run(size: Size) -> dict[str, Any]:
    """Return `{"types", "charsets", "cells", "wrong"}`.

    A cell has `row_image`, `row_metadata`, `columns`, `rows`, the `differing` columns, and the `reason` if the task
    failed. A small matrix has one cell.
    """
    pairs = [(image, told) for image in IMAGES for told in METADATA]
    with (
        tempfile.TemporaryDirectory(prefix="unshard-report-") as name,
        MariadbServer({"max_allowed_packet": "256M"}) as source,
        engine(Path(name)) as spark,
    ):
        charsets = _charsets(source)
        tables = list(_tables(charsets))
        cells = []
        for image, told in pairs if size.whole else [("MINIMAL", "NO_LOG")]:
            cells.append(_cell(spark, Path(name) / f"{image}-{told}", source, tables, image, told))
            print(f"  {image}, {told}: {_verdict(cells[-1])}", file=sys.stderr, flush=True)
    wrong = [f"{cell['row_image']}, {cell['row_metadata']}" for cell in cells if cell["differing"] or cell["reason"]]
    types = [definition for table in tables for definition in table.cases if "character set" not in definition]
    return {"types": types, "charsets": charsets, "cells": cells, "wrong": wrong}


def _cell(
    spark: SparkSession, folder: Path, source: MariadbServer, tables: Sequence[_TypesTable], image: str, told: str
) -> dict[str, Any]:
    _fill(source, tables, image, told)
    differing, reason, rows = [], "", 0
    with MariadbServer({"max_allowed_packet": "256M"}) as target:
        work = Run(subtask(spark, source, target, folder, mode="all"))
        try:
            work.start()
            work.until(end_of(source))
            _execute(source, (statement for table in tables for statement in table.changes()))
            work.until(end_of(source))
            work.stop()
        except UnshardError as error:
            reason = str(error)
        if not reason:
            differing = [one for table in tables for one in _differing(source, target, table)]
            rows = sum(int(target.query(f"SELECT COUNT(*) FROM {table.name.quoted}")[0][0]) for table in tables)
    columns = sum(len(table.cases) for table in tables)
    marks = {"row_image": image, "row_metadata": told, "columns": columns, "rows": rows}
    return {**marks, "differing": differing, "reason": reason}


def _differing(source: MariadbServer, target: MariadbServer, table: _TypesTable) -> Iterator[str]:
    """Yield the definitions of a table's columns that differ: all rows are compared, then each column."""
    if compare([(source, table.name)], (target, table.name)).equal:
        return
    found = False
    for name, definition in zip(table.columns, table.cases, strict=True):
        if not compare([(source, table.name)], (target, table.name), columns=["id", name]).equal:
            found = True
            yield definition
    if not found:
        yield f"{table.name}: rows"


def _fill(source: MariadbServer, tables: Sequence[_TypesTable], image: str, told: str) -> None:
    source.run(f"SET GLOBAL binlog_row_image = {image}", f"SET GLOBAL binlog_row_metadata = {told}")
    source.run(f"DROP DATABASE IF EXISTS {_SCHEMA}", f"CREATE DATABASE {_SCHEMA}")
    _execute(source, (statement for table in tables for statement in (table.create(), *table.insert())))


def _execute(server: MariadbServer, statements: Iterator[str]) -> None:
    """Run statements in a session without sql_mode, which accepts zero dates and replaces letters."""
    with closing(server.connection()) as connection, connection.cursor() as cursor:
        cursor.execute("SET sql_mode = ''")
        for statement in statements:
            cursor.execute(statement)


def _tables(charsets: Sequence[str]) -> Iterator[_TypesTable]:
    """Yield the tables of all types and of all character sets."""
    found: dict[str, Sequence[str]] = {
        definition: [value for value in values if len(value) <= _LONGEST and "repeat" not in value]
        for definition, values in {**COMMON, **MARIADB}.items()
    }
    for charset in charsets:
        for kind in ("varchar(20)", "char(20)", "text", "enum('a','é')"):
            values = ("'a'", "'é'", "NULL") if kind.startswith("enum") else _LETTERS
            found[f"{kind} character set {charset}"] = values
    cases = list(found.items())
    for number, at in enumerate(range(0, len(cases), _COLUMNS)):
        yield _TypesTable(TableName(_SCHEMA, f"t{number}"), dict(cases[at : at + _COLUMNS]))


def _charsets(source: MariadbServer) -> list[str]:
    return [str(name) for (name, *_) in source.query("SHOW CHARACTER SET") if name != "binary"]


def _verdict(cell: Mapping[str, Any]) -> str:
    if cell["reason"]:
        return str(cell["reason"])
    return f"{len(cell['differing'])} of {cell['columns']} columns differ" if cell["differing"] else "all equal"
