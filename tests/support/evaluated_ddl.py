"""Statements of a real source, and the structures that `ddl.evaluate` computes behind each, beside the source's."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from typing import Any

import MySQLdb

from support.random_ddl import RandomDdl
from unshard.binlog.headers import read_format
from unshard.binlog.index import walk
from unshard.binlog.transaction_range import PlainStatement
from unshard.ddl.evaluate import evaluate, evaluated_schema
from unshard.ddl.parse import classify
from unshard.ddl.sandbox import show_create_database
from unshard.ddl.statement import Ddl, StatementKind
from unshard.errors import Where
from unshard.model.position import FIRST_OFFSET
from unshard.model.table import Table, TableName
from unshard.mysql.connection import rows
from unshard.mysql.structure import read_table
from unshard.schema.words import NotUnderstoodError
from unshard.sync.statements.reader import logged_context
from unshard.testing.throwaway_server import ThrowawayServer
from unshard.worker.source_traits import read_traits

WHERE = Where(source="source-1")


def assert_evaluated(source: ThrowawayServer, schema: str, statements: Sequence[str], options: str = "") -> None:
    """Follow statements, all of which the source takes and the evaluation understands."""
    with closing(Evaluated(source, schema, options)) as followed:
        for sql in statements:
            followed.follow(sql)
        assert followed.refused == []


class Evaluated:
    """One schema of a source. Each statement that it runs is read back from its log and evaluated.

    `refused` are the statements that the evaluation does not understand, with why.
    """

    def __init__(self, source: ThrowawayServer, schema: str, options: str = "") -> None:
        self.server, self.schema = source, schema
        self.connection = source.connection()
        self.traits = replace(read_traits(source.endpoint), lower_case_names=False, time_zone="+00:00")
        self.tables: dict[TableName, Table] = {}
        self.schemas: dict[str, str] = {}
        self.refused: list[tuple[str, str]] = []
        self.run("FLUSH BINARY LOGS")
        self._file, self._offset = source.binlog_files()[-1], FIRST_OFFSET
        self.follow(f"CREATE DATABASE {schema} {options}")
        self.run(f"USE {schema}")

    def close(self) -> None:
        self.run(f"DROP DATABASE IF EXISTS {self.schema}")
        self.connection.close()

    def run(self, sql: str) -> None:
        with self.connection.cursor() as cursor:
            cursor.execute(sql)

    def follow(self, sql: str) -> None:
        """Run a statement and hold what is evaluated of it against the source. Raises what the source refuses."""
        self.run(sql)
        for statement in self._logged():
            context = logged_context(statement, self.traits, WHERE)
            ddl = classify(statement.sql, context)
            if isinstance(ddl, Ddl):
                self._evaluate(ddl)
        self._compare(sql)

    def wander(self, statements: RandomDdl, wanted: int) -> int:
        """Follow random statements until the source took so many, or refused many; how many it took."""
        taken = 0
        for _ in range(wanted * 8):
            try:
                self.follow(statements.statement(list(self.tables.values())))
                taken += 1
            except MySQLdb.Error:
                continue
            if taken == wanted:
                break
        return taken

    def _names(self) -> Sequence[TableName]:
        asked = "SELECT TABLE_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA = %s"
        return sorted(TableName(self.schema, name) for (name,) in rows(self.connection, asked, (self.schema,)))

    def _evaluate(self, ddl: Ddl) -> None:
        if ddl.kind.on_schema:
            before = self.schemas.get(ddl.schema) if ddl.kind is StatementKind.ALTER_DATABASE else None
            self.schemas[ddl.schema] = evaluated_schema(ddl, before)
            real = show_create_database(self.connection, ddl.schema)
            assert real is not None
            head = self.schemas[ddl.schema].split(" */")[0].replace(" COLLATE binary", "")
            assert real.startswith(head) or head.startswith(real.split(" */")[0]), (ddl.text, real, head)
            return
        if ddl.kind is StatementKind.CREATE_TABLE and ddl.if_not_exists and ddl.tables[0] in self.tables:
            return
        if ddl.kind is StatementKind.DROP_TABLE:
            changes: dict[TableName, Table | None] = dict.fromkeys(ddl.tables)
        elif ddl.kind is StatementKind.TRUNCATE_TABLE:
            return
        else:
            try:
                changes = evaluate(ddl, self.tables.get, lambda schema: self.schemas.get(schema))
            except NotUnderstoodError as error:
                self.refused.append((ddl.text, str(error)))
                self._read_anew()
                return
        for name, table in changes.items():
            if table is None:
                self.tables.pop(name, None)
            else:
                self.tables[name] = table

    def _read_anew(self) -> None:
        found = {name: read_table(self.connection, name) for name in self._names()}
        self.tables = {name: table for name, table in found.items() if table is not None}

    def _compare(self, sql: str) -> None:
        self.run("SET NAMES utf8mb4")
        assert sorted(self.tables) == self._names(), sql
        for name in self._names():
            real = read_table(self.connection, name)
            assert real is not None
            assert _bare(self.tables[name]) == _bare(real), sql

    def _logged(self) -> list[PlainStatement]:
        data = self._file.read_bytes()
        checksum = read_format(data).checksum
        found: list[PlainStatement] = []
        while True:
            log_range = walk(data, self._offset, size=len(data), budget=1 << 20, checksum=checksum, where=WHERE)
            if isinstance(log_range.stop, PlainStatement):
                found.append(log_range.stop)
                self._offset = log_range.stop.end
            elif log_range.end == self._offset:
                return found
            else:
                self._offset = log_range.end


def _bare(table: Table) -> Any:
    """The structure without its text, in which servers write expressions in words of their own."""
    return replace(table, create_sql="")
