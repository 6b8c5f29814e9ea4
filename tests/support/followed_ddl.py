"""Statements of a real source followed by its log: the tracker and a real target, each beside the source."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import MySQLdb

from support.random_ddl import RandomDdl
from unshard.binlog.headers import read_format
from unshard.binlog.index import walk
from unshard.binlog.transaction_range import PlainStatement
from unshard.ddl.execute import carry_out
from unshard.ddl.parse import classify
from unshard.ddl.pieces import StatementRules, pieces
from unshard.ddl.prepare import PreparedDdl, prepare
from unshard.ddl.sandbox import ScratchPlace, show_create_database
from unshard.ddl.schema_equality import same
from unshard.ddl.statement import Ddl, StatementKind
from unshard.ddl.tracker import SchemaTracker
from unshard.errors import Where
from unshard.model.position import FIRST_OFFSET, Position
from unshard.model.shape import WITHOUT
from unshard.model.table import TableName
from unshard.mysql.connection import rows
from unshard.mysql.structure import read_table
from unshard.mysql.tidb import is_tidb
from unshard.sync.statements.backfill import unlike_conversions, unlike_fills
from unshard.sync.statements.reader import logged_context
from unshard.target.ddl_jobs import TidbDdl
from unshard.target.meta import MetaTables
from unshard.target.receipts import claim
from unshard.testing.throwaway_server import ThrowawayServer
from unshard.worker.source_traits import read_traits

PLACE = ScratchPlace("dm_meta", "followed", "source-1")


class Followed:
    """One schema of the source, under the same name on the target. Everything it runs on the source it follows.

    `zone` is the time zone that SYSTEM stands for. `unlike` are the columns whose old rows get other values on the
    target than on the source, by what `sync.statements.backfill` said before.
    """

    def __init__(
        self, source: ThrowawayServer, target: ThrowawayServer, schema: str, options: str = "", zone: str = "+00:00"
    ) -> None:
        self.server, self.schema = source, schema
        self.source, self.target = source.connection(), target.connection()
        self.traits = replace(read_traits(source.endpoint), lower_case_names=False, time_zone=zone)
        self.tracker = SchemaTracker(PLACE, schema_default=lambda name: show_create_database(self.source, name))
        self.ran: list[str] = []
        self._ddl: TidbDdl | None = None
        self.unlike: tuple[str, ...] = ()
        self._run("FLUSH BINARY LOGS")
        self._file = source.binlog_files()[-1]
        self._offset = FIRST_OFFSET
        self.run(f"CREATE DATABASE {schema} {options}")
        self._run(f"USE {schema}")

    def close(self) -> None:
        for connection in (self.source, self.target):
            rows(connection, f"DROP DATABASE IF EXISTS {self.schema}")
            connection.close()

    def run(self, *statements: str | bytes) -> None:
        """Run them on the source, then carry out what its log has of each. Raises what either end refuses."""
        for sql in statements:
            self._run(sql)
            self.follow()

    def taken(self, sql: str) -> bool:
        """Whether the source takes the statement, which is followed then."""
        try:
            self._run(sql)
        except MySQLdb.Error:
            return False
        finally:
            self.follow()
        return True

    def wander(self, statements: RandomDdl, wanted: int) -> int:
        """Random statements until the source took `wanted` of them, or refused many; how many it took.

        Both ends are compared after each.
        """
        taken = 0
        for _ in range(wanted * 8):
            tables = [table for name in self.names() if (table := self.tracker.get(name))]
            if self.taken(statements.statement(tables)):
                taken += 1
            self.assert_equal()
            if taken == wanted:
                break
        return taken

    def follow(self) -> None:
        for statement in self._logged():
            context = logged_context(statement, self.traits, Where(source="source-1"))
            ddl = classify(statement.sql, context)
            if isinstance(ddl, Ddl) and not self.tracker.without_effect(ddl):
                self._carry_out(ddl)

    def names(self) -> Sequence[TableName]:
        found = rows(
            self.source, "SELECT TABLE_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA = %s", (self.schema,)
        )
        return sorted(TableName(self.schema, name) for (name,) in found)

    def assert_equal(self) -> None:
        """The tracker and the target have the source's tables, each with the source's structure. Ends both sessions."""
        for connection in (self.source, self.target):
            for setting in ("NAMES utf8mb4", "sql_mode = ''", "time_zone = '+00:00'"):
                rows(connection, f"SET {setting}")
        sql = "; ".join(self.ran[-3:])
        assert sorted(name for name in self.tracker.names if name.table) == self.names(), sql
        for name in self.names():
            upstream = read_table(self.source, name)
            tracked, written = self.tracker.get(name), read_table(self.target, name)
            assert tracked is not None, sql
            assert written is not None, sql
            assert upstream is not None, sql
            assert WITHOUT.search(written.create_sql) is None, sql
            with_transactions = WITHOUT.search(upstream.create_sql) is None
            for found in (tracked, written):
                assert replace(found, create_sql="") == replace(upstream, create_sql=""), sql
                # a foreign key's text names its parent, which may have got another name since
                as_it_is = not upstream.foreign_keys and (found is tracked or with_transactions)
                assert not as_it_is or same(found.create_sql, upstream.create_sql), sql

    def _run(self, sql: str | bytes) -> None:
        self.ran.append(str(sql))
        with self.source.cursor() as cursor:
            cursor.execute(sql)

    def _logged(self) -> list[PlainStatement]:
        data = self._file.read_bytes()
        checksum = read_format(data).checksum
        found = []
        while True:
            log_range = walk(
                data, self._offset, size=len(data), budget=1 << 20, checksum=checksum, where=Where(source="source-1")
            )
            if isinstance(log_range.stop, PlainStatement):
                found.append(log_range.stop)
                self._offset = log_range.stop.end
            elif log_range.end == self._offset:
                return found
            else:
                self._offset = log_range.end

    def _carry_out(self, ddl: Ddl) -> None:
        rules = StatementRules(lambda name: True, lambda name: True, lambda name: name, lambda name: name)
        found = pieces(ddl, rules, self.tracker.get)
        begin, end = Position("bin.000001", 4), Position("bin.000001", 5)
        prepared = prepare(self.target, found, self.tracker, rules, begin, end)
        if prepared.intent is not None:
            for step in prepared.intent.steps:
                table = ddl.tables[0] if ddl.tables else TableName(self.schema, "")
                computed, counted = unlike_fills(self.target, step, table, self.tracker.get(table))
                self.unlike += (*computed, *counted)
            self.unlike += self._converted(prepared, ddl)
            jobs = self._jobs()
            carry_out(self.target, prepared.intent, lambda place: None, lambda count: None, resumed=False, jobs=jobs)
        self.tracker.apply(prepared.changes)

    def _converted(self, prepared: PreparedDdl, ddl: Ddl) -> tuple[str, ...]:
        """The columns whose old values TiDB converts otherwise."""
        assert prepared.intent is not None
        steps = [step for step in prepared.intent.steps if step.kind is StatementKind.ALTER_TABLE]
        if not steps:
            return ()
        name = ddl.tables[0]
        return unlike_conversions(self.target, steps, name, self.tracker.get(name), prepared.changes.get(name))

    def _jobs(self) -> TidbDdl | None:
        """A TiDB target's DDL jobs, of a source that is claimed once."""
        if not is_tidb(self.target):
            return None
        if self._ddl is None:
            meta = MetaTables("dm_meta", "followed")
            meta.create(self.target)
            self._ddl = TidbDdl(self.target, meta, PLACE.source, claim(self.target, meta, PLACE.source).epoch)
        return self._ddl

    def begin_anew(self) -> None:
        """Drop the schema on both sides and go on with an empty one, behind a statement that can't be followed."""
        for connection in (self.source, self.target):
            rows(connection, f"DROP DATABASE {self.schema}")
        self._logged()
        self.tracker.begin({})
        self.run(f"CREATE DATABASE {self.schema}")
        self._run(f"USE {self.schema}")


def unlike(connection: Any, wanted: dict[str, Any]) -> None:
    """Give a session other values than the source's, so that only the event's make the same table."""
    for name, value in wanted.items():
        rows(connection, f"SET SESSION {name} = {value}")
