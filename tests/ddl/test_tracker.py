"""The tracker against a real server: what it foretells is what the server then has."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from typing import Any

import MySQLdb
import pytest

from support.refusals import refusal
from unshard.binlog.query import QueryEvent, read_query
from unshard.ddl.context import Context, mariadb_flags
from unshard.ddl.parse import classify_ddl
from unshard.ddl.sandbox import ScratchPlace, drop_leftovers, open_scratch, show_create_database
from unshard.ddl.tracker import SchemaTracker, schema_row
from unshard.errors import DdlError
from unshard.model.table import Table, TableName
from unshard.mysql.structure import read_table
from unshard.testing.mariadb_server import MariadbServer

pytestmark = pytest.mark.server
PLACE = ScratchPlace("dm_meta", "task", "source-1")


@pytest.fixture
def target(target_server: MariadbServer) -> Iterator[Any]:
    connection = target_server.connection()
    yield connection
    connection.close()


@pytest.fixture
def source(source_server: MariadbServer, schema: str) -> Iterator[Any]:
    """A connection in a schema of its own, in latin1: not the target's default."""
    source_server.run(f"CREATE DATABASE {schema} CHARACTER SET latin1 COLLATE latin1_german1_ci")
    connection = source_server.connection(schema)
    yield connection
    connection.close()
    source_server.run(f"DROP DATABASE IF EXISTS {schema}", f"DROP DATABASE IF EXISTS {schema}_b")


def run(connection: Any, sql: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(sql)


def tracker_of(source: Any) -> SchemaTracker:
    return SchemaTracker(PLACE, schema_default=lambda schema: show_create_database(source, schema))


def follow(
    tracker: SchemaTracker, target: Any, source: Any, sql: str, context: Context
) -> dict[TableName, Table | None]:
    """Run upstream and track; every table that it touches must then be equal on both sides."""
    ddl = classify_ddl(sql, context)
    foretold = tracker.after(target, ddl)
    run(source, sql)
    tracker.apply(foretold)
    for name in (*ddl.tables, *foretold):
        if name.table:
            assert tracker.get(name) == read_table(source, name), sql
    return foretold


STATEMENTS = [
    "create table p (id int primary key, v varchar(30), w varchar(9) charset utf8mb4, x text)",
    "create table c (id int auto_increment primary key, p int, foreign key (p) references p (id)) auto_increment = 70",
    "alter table c add q int, add foreign key (q) references p (id), add check (q > 3)",
    "alter table c drop foreign key c_ibfk_1, rename to c2",
    "alter table c2 modify p bigint unsigned not null default 7 comment 'references `x`.`y`' first",
    "create table l like c2",
    "create or replace table l (a enum('x','y''z') , b set('1','2'), c bit(9), d decimal(9,3) unsigned zerofill, "
    "e datetime(3) default now(3) on update now(3), f timestamp null, g year, h double(9,2), i json, j geometry)",
    "create unique index i1 on l (a, d)",
    "create index i2 on l (i(20))",
    "drop index i1 on l",
    "alter table l add v int as (d + 1) stored, add w int as (d + 2) virtual, add z int invisible, add index (v)",
    "alter table l convert to character set utf8mb4 collate utf8mb4_bin, engine = aria",
    "alter table l rename column z to y, change c c2 binary(4), drop h, alter g set default 2001",
    "rename table l to tmp, p to l, tmp to p",
    "create table part (a int, b date) partition by range (a) (partition p0 values less than (5), "
    "partition p1 values less than (9))",
    "alter table part add partition (partition p2 values less than maxvalue)",
    "alter table part convert partition p0 to table p0_out",
    "alter table part drop partition p1",
    "create table x1 (a int, b date)",
    "alter table part exchange partition p2 with table x1",
    "alter table part remove partitioning",
    "create table v (a int, s timestamp(6) generated always as row start, e timestamp(6) generated always as row end, "
    "period for system_time (s, e)) with system versioning",
    "truncate table p0_out",
    "create table `a``b 表` (`c``d` int key, `ü` char(3) default 'ä''\\\\')",
    "alter table `a``b 表` rename `e.f`",
    "drop table if exists `e.f`, x1",
]


def test_after_every_statement_of_a_list(target: Any, source: Any, schema: str) -> None:
    tracker = tracker_of(source)
    context = Context(schema, collation_connection=45)
    for sql in STATEMENTS:
        follow(tracker, target, source, sql, context)
    assert {name.table for name in tracker.names} == {"", "c2", "l", "p", "part", "p0_out", "v"}


def test_schemas(target: Any, source: Any, schema: str) -> None:
    tracker = tracker_of(source)
    other = f"{schema}_b"
    context = Context(schema, collation_server=31)
    run(source, "set collation_server = 31")
    for sql in (f"create database {other}", f"alter database {other} character set utf8mb3 comment 'x'"):
        changes = follow(tracker, target, source, sql, context)
        row = changes[schema_row(other)]
        assert row is not None
        assert row.create_sql == show_create_database(source, other)
    follow(tracker, target, source, f"create table {other}.t (a varchar(3))", context)
    follow(tracker, target, source, "create table u (a varchar(3))", context)
    follow(tracker, target, source, f"rename table u to {other}.u", context)
    noop = classify_ddl(f"create database if not exists {other}", context)
    assert tracker.after(target, noop) == {}
    changes = follow(tracker, target, source, f"drop database {other}", context)
    assert sorted(str(name) for name in changes) == [f"{other}.", f"{other}.t", f"{other}.u"]
    assert [str(name) for name in tracker.names] == [f"{schema}."]


def test_the_events_session_decides(target: Any, source: Any, schema: str) -> None:
    tracker = tracker_of(source)
    run(source, "set sql_mode = 'ANSI_QUOTES,REAL_AS_FLOAT,NO_BACKSLASH_ESCAPES', time_zone = '+05:00'")
    context = Context(schema, sql_mode=1 | 4 | 1 << 20, time_zone="+05:00", explicit_defaults_for_timestamp=False)
    run(source, "set explicit_defaults_for_timestamp = 0")
    sql = (
        """create table "t" ("count" real, b char(9) default '\\', c timestamp,"""
        """ d timestamp default '2020-01-01 05:00:00')"""
    )
    ddl = classify_ddl(sql, context)
    tracker.apply(tracker.after(target, ddl))
    run(source, sql)
    run(source, "set sql_mode = '', time_zone = '+00:00'")
    assert tracker.get(TableName(schema, "t")) == read_table(source, TableName(schema, "t"))
    follow(tracker, target, source, "create table u (`count` real)", Context(schema))


def test_flags_of_the_log_decide(target: Any, source_server: MariadbServer, source: Any, schema: str) -> None:
    """Statements as their own events have them: flags from the file, run twice by the same session."""
    tracker = tracker_of(source)
    statements = (
        "create table t (a timestamp, b timestamp)",
        "alter table t add c int",
        "rename table nothing to something, t to v",
        "create table u (a timestamp)",
    )
    run(source, "flush binary logs")
    run(source, "set explicit_defaults_for_timestamp = 0")
    run(source, statements[0])
    run(source, "set sql_if_exists = 1, explicit_defaults_for_timestamp = 1")
    for sql in statements[1:]:
        run(source, sql)
    logged = queries(source_server.binlog_files()[-1].read_bytes())
    assert [query.sql for query in logged] == list(statements)
    for query in logged:
        context = Context(query.schema, query.sql_mode, **mariadb_flags(query, logs_defaults=True))
        tracker.apply(tracker.after(target, classify_ddl(query.sql, context)))
    for table in ("t", "u", "v"):
        assert tracker.get(TableName(schema, table)) == read_table(source, TableName(schema, table))


def queries(log: bytes) -> list[QueryEvent]:
    """Bodies of the QUERY events of a whole binlog file."""
    found, at = [], 4
    while at < len(log):
        size = int.from_bytes(log[at + 9 : at + 13], "little")
        if log[at + 4] == 2:
            found.append(read_query(log[at + 19 : at + size - 4]))
        at += size
    return found


PIECES = (
    "add column {new} {type}",
    "add column {new} {type} first",
    "drop column {old}",
    "modify column {old} {type}",
    "change column {old} {new} {type}",
    "rename column {old} to {new}",
    "alter column {old} set default null",
    "add index ({old})",
    "add unique u_{new} ({old}, id)",
    "comment = 'c{new}'",
    "default character set {charset}",
    "convert to character set {charset}",
)
TYPES = (
    "int",
    "bigint unsigned not null default 3",
    "varchar(20)",
    "char(7) character set ucs2 collate ucs2_bin",
    "decimal(12,4)",
    "datetime(2)",
    "timestamp(3) null",
    "enum('a','b')",
    "varbinary(16)",
    "double",
    "bit(3)",
    "year",
)


@pytest.mark.parametrize("seed", range(4))
def test_random_sequences(target: Any, source: Any, schema: str, seed: int) -> None:
    chance = random.Random(seed)
    tracker = tracker_of(source)
    context = Context(schema)
    follow(tracker, target, source, "create table t0 (id int primary key, c0 int)", context)
    names, tried, taken = ["t0"], 0, 0
    while taken < 12:
        tried += 1
        sql = _random_statement(chance, names, tracker, schema, tried)
        before = {name: tracker.get(TableName(schema, name)) for name in names}
        refused = refusal(MySQLdb.Error, run, source, sql)  # the source decides what is in its log
        if refused is not None:
            with pytest.raises(DdlError, match="DDL-003"):
                tracker.after(target, classify_ddl(sql, context))
            assert refused.args[0] > 1000
            continue
        taken += 1
        assert before == {name: tracker.get(TableName(schema, name)) for name in names}
        tracker.apply(tracker.after(target, classify_ddl(sql, context)))
        names = [name.table for name in tracker.names if name.table]
        for name in names:
            assert tracker.get(TableName(schema, name)) == read_table(source, TableName(schema, name)), sql


def _random_statement(chance: random.Random, names: list[str], tracker: SchemaTracker, schema: str, number: int) -> str:
    name = chance.choice(names)
    kind = chance.random()
    if kind < 0.1:
        return f"create table t{number} like {name}"
    if kind < 0.2:
        return f"rename table {name} to t{number}"
    if kind < 0.25 and len(names) > 1:
        return f"drop table {name}"
    table = tracker.get(TableName(schema, name))
    assert table is not None
    parts = [
        chance.choice(PIECES).format(
            new=f"c{number}_{n}",
            old=chance.choice(table.columns).name,
            type=chance.choice(TYPES),
            charset=chance.choice(("latin1", "utf8mb4", "gbk", "utf8mb3 collate utf8mb3_bin")),
        )
        for n in range(chance.randint(1, 3))
    ]
    return f"alter table {name} {', '.join(parts)}"


def test_state_lives_through_json(target: Any, source: Any, schema: str) -> None:
    tracker = tracker_of(source)
    follow(tracker, target, source, "create table t (a int primary key, b enum('x','y'))", Context(schema))
    table = tracker.get(TableName(schema, "t"))
    assert table is not None
    assert Table.from_dict(json.loads(json.dumps(table.to_dict()))) == table


def test_a_structure_that_nobody_knows(target: Any, source: Any, schema: str) -> None:
    tracker = tracker_of(source)
    with pytest.raises(DdlError, match="DDL-004"):
        tracker.after(target, classify_ddl("alter table t add a int", Context(schema)))
    assert tracker.after(target, classify_ddl("drop table t", Context(schema))) == {TableName(schema, "t"): None}
    run(source, "create table t (a int)")
    tracker.unknown = lambda name: read_table(source, name)
    follow(tracker, target, source, "alter table t add b int", Context(schema))


def test_what_the_server_refuses(target: Any, source: Any, schema: str) -> None:
    tracker = tracker_of(source)
    follow(tracker, target, source, "create table t (a int)", Context(schema))
    with pytest.raises(DdlError) as caught:
        tracker.after(target, classify_ddl("alter table t drop b", Context(schema)))
    assert caught.value.code == "DDL-003"
    assert "1091" in caught.value.cause
    assert caught.value.where.table == f"{schema}.t"
    with pytest.raises(DdlError, match="DDL-009"):
        tracker.after(target, classify_ddl("alter table t add b int", Context(schema, time_zone="SYSTEM")))
    sql = f"create database {schema}_b"
    with pytest.raises(DdlError, match="DDL-010"):
        tracker.after(target, classify_ddl(sql, Context(schema, collation_server=99999)))
    newer = Context(schema, default_collations=(255,))
    alone = "create table u (a varchar(9) unique) default charset = utf8mb4"
    with pytest.raises(DdlError, match="DDL-010") as caught:
        tracker.after(target, classify_ddl(alone, newer))
    assert "utf8mb4_0900_ai_ci" in str(caught.value)
    made = tracker.after(target, classify_ddl(f"{alone} collate utf8mb4_unicode_520_ci", newer))
    assert [table.columns[0].collation for table in made.values() if table is not None] == ["utf8mb4_unicode_520_ci"]
    assert leftovers(target) == []


def leftovers(target: Any) -> list[str]:
    with target.cursor() as cursor:
        cursor.execute("SHOW DATABASES LIKE 'dm\\_meta\\_task%'")
        return [name for (name,) in cursor.fetchall()]


def test_scratch_schemas_go_and_leftovers_are_found(target: Any, target_server: MariadbServer, schema: str) -> None:
    with open_scratch(target, PLACE) as scratch:
        scratch.make_schema(schema, None, classify_ddl("DROP TABLE t", Context(schema)))
        assert leftovers(target) == [], "nothing is sent before a result is read"
        assert scratch.read(TableName(schema, "t")) is None
        assert len(leftovers(target)) == 1
        assert len(leftovers(target)[0]) <= 64
    assert leftovers(target) == []
    dying = target_server.connection()

    def lose_it() -> None:
        with open_scratch(dying, PLACE) as begun:
            begun.make_schema(schema, None, classify_ddl("DROP TABLE t", Context(schema)))
            begun.read_schema(schema)
            raise MySQLdb.OperationalError(2013, "Lost connection")

    with pytest.raises(MySQLdb.OperationalError, match="Lost connection"):
        lose_it()
    dying.close()
    assert len(leftovers(target)) == 1
    drop_leftovers(target, ScratchPlace("dm_meta", "task", "source-2"))
    assert len(leftovers(target)) == 1
    drop_leftovers(target, PLACE)
    assert leftovers(target) == []


def test_the_callers_session_is_as_before(target: Any, source: Any, schema: str) -> None:
    def state() -> Any:
        with target.cursor() as cursor:
            cursor.execute(
                "SELECT @@sql_mode, @@time_zone, @@foreign_key_checks, @@collation_connection, @@collation_server,"
                " @@character_set_client, @@timestamp > 1e9"
            )
            return cursor.fetchall()

    run(target, "SET time_zone = '+03:00', sql_mode = 'ANSI_QUOTES', collation_connection = 'utf8mb4_bin'")
    before = state()
    tracker = tracker_of(source)
    context = Context(schema, timestamp=1000.5, collation_connection=8, collation_server=8, time_zone="+01:00")
    follow(tracker, target, source, "create table t (a int)", context)
    with pytest.raises(DdlError):
        tracker.after(target, classify_ddl("alter table t drop nope", context))
    assert state() == before


def test_modes_are_named_by_their_bits(target: Any) -> None:
    modes = Context(sql_mode=(1 << 34) - 1).modes
    with target.cursor() as cursor:
        cursor.execute(f"SET sql_mode = {(1 << 34) - 1}")
        cursor.execute("SELECT @@sql_mode")
        assert cursor.fetchone()[0].split(",") == list(modes)
