"""A source schema and its copy on a target, and statements that are carried out there with deaths on the way."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from unshard.ddl.context import Context
from unshard.ddl.execute import carry_out
from unshard.ddl.intent import Intent
from unshard.ddl.parse import classify_ddl
from unshard.ddl.pieces import StatementRules, pieces
from unshard.ddl.prepare import PreparedDdl, prepare
from unshard.ddl.sandbox import ScratchPlace, show_create_database
from unshard.ddl.statement import Ddl
from unshard.ddl.tracker import SchemaTracker
from unshard.errors import Where
from unshard.model.position import Position
from unshard.model.table import TableName
from unshard.mysql.structure import read_table
from unshard.testing.mariadb_server import MariadbServer

PLACE = ScratchPlace("dm_meta", "task", "source-1")
BEGIN, END = Position("bin.000001", 100), Position("bin.000001", 200)
SETUP = (
    "create table t (id int auto_increment primary key, v varchar(9))",
    "insert into t (v) values ('t1'), ('t2')",
    "create table u (id int auto_increment primary key, v varchar(9))",
    "insert into u (v) values ('u1')",
    "create table p (id int) partition by range (id) "
    "(partition p0 values less than (5), partition p1 values less than (9))",
    "insert into p values (1), (7)",
    "create table k (id int, key i (id))",
    "create table x (id int)",
    "insert into x values (2)",
)


class Death(Exception):
    """The process ends here."""


@dataclass
class Deaths:
    """Dies at one place, at most three times."""

    place: str
    count: int = 0

    def __call__(self, name: str) -> None:
        if name == self.place and self.count < 3:
            self.count += 1
            raise Death(name)


@dataclass
class Bench:
    """A source schema `<s>` and its copy `<s>_t` on the target, the tracker between them, and a stored intent."""

    schema: str
    source: Any
    target: Any
    tracker: SchemaTracker
    stored: str = ""
    executed: list[str] = field(default_factory=list)

    @property
    def rules(self) -> StatementRules:
        return StatementRules(
            allows=lambda name: not name.table.startswith("shut"),
            allows_schema=lambda schema: True,
            route=lambda name: TableName(f"{name.schema}_t", name.table),
            route_schema=lambda schema: f"{schema}_t",
        )

    def prepare(self, sql: str, schema: str | None = None) -> PreparedDdl:
        where = Where(source="source-1", position=str(BEGIN))
        ddl = classify_ddl(sql, Context(self.schema if schema is None else schema, collation_server=45, where=where))
        return self.prepared(ddl)

    def prepared(self, ddl: Ddl) -> PreparedDdl:
        if self.tracker.without_effect(ddl):
            return PreparedDdl({}, None)
        found = pieces(ddl, self.rules, self.tracker.get)
        return prepare(self.target, found, self.tracker, self.rules, BEGIN, END)

    def intent(self, sql: str) -> Intent:
        """What is to be carried out for a statement that has an effect."""
        prepared = self.prepare(sql)
        assert prepared.intent is not None
        return prepared.intent

    def run(self, side: Any, *statements: str) -> None:
        with side.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)

    def go(self, intent: Intent, reach: Callable[[str], None] = lambda name: None, *, resumed: bool) -> None:
        """Carry out with the intent stored as JSON, as the caller does it."""
        self.stored = json.dumps(intent.to_dict())

        def note_done(count: int) -> None:
            self.stored = json.dumps({**json.loads(self.stored), "done": count})

        carry_out(self.target, Intent.from_dict(json.loads(self.stored)), reach, note_done, resumed=resumed)

    def resume(self) -> None:
        self.go(Intent.from_dict(json.loads(self.stored)), resumed=True)

    def contents(self, side: Any, suffix: str) -> dict[str, Any]:
        """Structure and rows of every table of the schema and of its neighbour."""
        found: dict[str, Any] = {}
        with side.cursor() as cursor:
            for schema in (self.schema, f"{self.schema}_b"):
                real = f"{schema}{suffix}"
                found[schema] = (show_create_database(side, real) or "").replace(real, schema)
                cursor.execute("SELECT TABLE_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA = %s", (real,))
                for (table,) in sorted(cursor.fetchall()):
                    name = TableName(real, table)
                    structure = read_table(side, name)
                    assert structure is not None
                    cursor.execute(f"SELECT * FROM {name.quoted}")
                    found[f"{schema}.{table}"] = (structure.create_sql.replace(real, schema), sorted(cursor.fetchall()))
        return found

    def equal(self) -> bool:
        return self.contents(self.source, "") == self.contents(self.target, "_t")


@contextmanager
def bench_of(source_server: MariadbServer, target_server: MariadbServer, schema: str) -> Iterator[Bench]:
    """A bench whose two sides are equal; its schemas are dropped at the end."""
    source, target = source_server.connection(), target_server.connection()
    tracker = SchemaTracker(
        PLACE,
        unknown=lambda name: read_table(source, name),
        schema_default=lambda name: show_create_database(source, name),
    )
    found = Bench(schema, source, target, tracker)
    for side, suffix in ((source, ""), (target, "_t")):
        found.run(side, f"create database {schema}{suffix}", f"use {schema}{suffix}", *SETUP)
    for table in ("t", "u", "p", "k", "x"):
        tracker.get(TableName(schema, table))
    yield found
    found.run(source, *(f"drop database if exists {schema}{end}" for end in ("", "_b")))
    found.run(found.target, *(f"drop database if exists {schema}{end}_t" for end in ("", "_b")))
    source.close()
    found.target.close()
