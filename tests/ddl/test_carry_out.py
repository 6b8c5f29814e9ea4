"""Every kind of statement on a real target, dying at every place: its effect is there once, whatever happened."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator

import MySQLdb
import pytest

from support.statement_runs import BEGIN, Bench, Death, Deaths, bench_of
from unshard.ddl.context import Context
from unshard.ddl.execute import unquoted
from unshard.ddl.intent import Intent
from unshard.ddl.parse import classify_ddl
from unshard.ddl.prepare import PreparedDdl
from unshard.errors import DdlError
from unshard.model.table import TableName
from unshard.mysql.structure import read_table
from unshard.testing.mariadb_server import MariadbServer

pytestmark = pytest.mark.server


@pytest.fixture
def bench(source_server: MariadbServer, target_server: MariadbServer, schema: str) -> Iterator[Bench]:
    with bench_of(source_server, target_server, schema) as found:
        yield found


KINDS = [
    "create table n (a int, foreign key (a) references t (id))",
    "create table n like t",
    "create or replace table t (id int)",
    "create or replace table t (id int auto_increment primary key, v varchar(9))",
    "alter table t add c int default 5, drop v",
    "alter table t rename to n, add c int",
    "alter table t force",
    "alter table p drop partition p0",
    "alter table p truncate partition p0",
    "alter table p convert partition p0 to table n",
    "create index i on t (v)",
    "drop index i on k",
    "drop table t, u",
    "drop table if exists t, nothing_here",
    "truncate t",
    "rename table t to n",
    "rename table t to n, u to t, n to u",
    "rename table t to n, u to t",
    "create database {schema}_b",
    "alter database character set latin1",
    "drop database {schema}",
]
PLACES = ["", "ddl-execute-before", "ddl-execute-after", "ddl-noted"]


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("sql", KINDS)
def test_once_wherever_it_dies(bench: Bench, sql: str, place: str) -> None:
    sql = sql.format(schema=bench.schema)
    prepared = bench.prepare(sql)
    assert prepared.intent is not None
    bench.run(bench.source, sql)
    deaths = Deaths(place)
    stored, resumed = prepared.intent, False
    while True:
        try:
            bench.go(stored, deaths, resumed=resumed)
            break
        except Death:
            stored, resumed = Intent.from_dict(json.loads(bench.stored)), True
    assert deaths.count > 0 or not place
    bench.tracker.apply(prepared.changes)
    assert bench.equal()


def test_rows_that_move_without_a_trace_in_the_structure(bench: Bench) -> None:
    sql = "alter table p exchange partition p0 with table x"
    intent = bench.intent(sql)
    bench.run(bench.source, sql)
    with pytest.raises(Death):
        bench.go(intent, Deaths("ddl-execute-after"), resumed=False)
    assert bench.equal()
    with pytest.raises(DdlError) as caught:
        bench.resume()
    assert caught.value.code == "DDL-007"
    assert bench.equal()


def test_a_conflict_shows_all_three_structures(bench: Bench) -> None:
    intent = bench.intent("alter table t add c int")
    bench.run(bench.target, "alter table t add other int")
    with pytest.raises(DdlError) as caught:
        bench.go(intent, resumed=False)
    text = str(caught.value)
    assert caught.value.code == "DDL-006"
    for part in ("before:", "expected after:", "found:", "-   `c` int(11)", "+   `other` int(11)", str(BEGIN)):
        assert part in text
    bench.run(bench.target, "alter table t drop other")
    bench.resume()
    bench.run(bench.source, "alter table t add c int")
    assert bench.equal()


@pytest.mark.parametrize(
    ("there", "code"),
    [
        ("create table n (a int)", ""),
        ("create table n (a bigint)", "DDL-006"),
        ("create table n (a int, b int)", "DDL-006"),
    ],
)
@pytest.mark.parametrize("clause", ["", "if not exists"])
def test_a_table_that_is_there_already(bench: Bench, there: str, code: str, clause: str) -> None:
    bench.run(bench.target, there)
    intent = bench.intent(f"create table {clause} n (a int)")
    if code:
        with pytest.raises(DdlError, match=code):
            bench.go(intent, resumed=False)
    else:
        bench.go(intent, resumed=False)


def test_a_table_that_is_gone_already(bench: Bench) -> None:
    bench.run(bench.target, "drop table t")
    intent = bench.intent("drop table t, u")
    bench.go(intent, resumed=False)
    with pytest.raises(DdlError, match="DDL-005"):
        bench.prepare("truncate t")
    with pytest.raises(DdlError, match="DDL-005"):
        bench.prepare("alter table t add c int")


def test_a_schema_that_is_there_already(bench: Bench) -> None:
    bench.run(bench.target, f"create database {bench.schema}_b_t character set latin1")
    for options, code in (("character set latin1", ""), ("character set utf8mb4", "DDL-006")):
        intent = bench.intent(f"create database if not exists {bench.schema}_b {options}")
        if code:
            with pytest.raises(DdlError, match=code):
                bench.go(intent, resumed=False)
        else:
            bench.go(intent, resumed=False)


def test_the_server_refuses_because_of_rows(bench: Bench) -> None:
    bench.run(bench.target, "insert into t values (9, 't1')")
    intent = bench.intent("alter table t add unique (v)")
    with pytest.raises(DdlError) as caught:
        bench.go(intent, resumed=False)
    assert caught.value.code == "DDL-008"
    assert "1062" in caught.value.cause
    bench.run(bench.target, "delete from t where id = 9")
    bench.resume()


def test_names_that_are_kept_out(bench: Bench) -> None:
    assert bench.prepare("create table shut (a int)") == PreparedDdl({}, None)
    prepared = bench.prepare("drop table t, shut")
    assert prepared.intent is not None
    assert [step.statement for step in prepared.intent.steps] == [f"drop table `{bench.schema}_t`.`t`"]
    assert prepared.changes == {TableName(bench.schema, "t"): None}
    leaving = bench.prepare("rename table t to shut_t")
    assert leaving.changes == {TableName(bench.schema, "t"): None}
    assert leaving.intent is not None
    assert len(leaving.intent.steps) == 1
    for sql in ("rename table shut_t to n", "alter table p exchange partition p0 with table shut"):
        with pytest.raises(DdlError, match="DDL-011"):
            bench.prepare(sql)


def test_if_not_exists_on_a_table_of_the_source_does_nothing(bench: Bench) -> None:
    bench.run(bench.target, "alter table t add extra int")
    assert bench.prepare("create table if not exists t (id int)") == PreparedDdl({}, None)


def test_surroundings_of_the_source_are_written_out(bench: Bench) -> None:
    """A schema of another character set on the target, and a model table that isn't there."""
    bench.run(bench.target, f"alter database {bench.schema}_t character set latin1")
    bench.run(bench.source, "create table shut_model (a varchar(3) collate utf8mb4_bin, key (a))")
    for sql in ("create table n (a varchar(3)) engine=innodb", "create table m like shut_model"):
        prepared = bench.prepare(sql)
        assert prepared.intent is not None
        bench.go(prepared.intent, resumed=False)
        bench.run(bench.source, sql)
        bench.tracker.apply(prepared.changes)
    bench.run(bench.target, f"alter database {bench.schema}_t character set utf8mb4")
    bench.run(bench.source, "drop table shut_model")
    assert bench.equal()


@pytest.mark.parametrize(
    "unlike",
    [
        "add extra int not null",
        "drop v",
        "change v w varchar(9)",
        "modify v varchar(8)",
        "modify v varchar(9) not null",
        "modify v varchar(9) collate utf8mb4_bin",
        "add unique (v)",
        "drop primary key, add primary key (id, v)",
    ],
)
def test_a_model_that_the_target_has_otherwise_is_written_out(unlike: str, bench: Bench) -> None:
    """A statement that waits there or that was left out, columns that a route fills."""
    bench.run(bench.target, f"alter table t {unlike}")
    sql = "create table n like t"
    prepared = bench.prepare(sql)
    assert prepared.intent is not None
    bench.go(prepared.intent, resumed=False)
    bench.run(bench.source, sql)
    names = TableName(bench.schema, "n"), TableName(f"{bench.schema}_t", "n")
    found = [read_table(side, name) for side, name in zip((bench.source, bench.target), names, strict=True)]
    assert found[0] is not None
    assert found[1] is not None
    assert found[1].create_sql == found[0].create_sql


@pytest.mark.parametrize("like", ["comment 'by hand'", "add key by_hand (v)", "row_format=dynamic"])
def test_a_model_that_the_target_has_with_more_keys_or_other_options_is_taken(like: str, bench: Bench) -> None:
    bench.run(bench.target, f"alter table t {like}")
    (step,) = bench.intent("create table n like t").steps
    assert step.statement == f"create table `{bench.schema}_t`.`n` like `{bench.schema}_t`.`t`"


def test_an_altered_schema_that_the_target_lacks_is_tracked(bench: Bench) -> None:
    """Nothing goes into it so far. A table that does gets the schema's new default character set."""
    other = f"{bench.schema}_b"
    bench.run(bench.source, f"create database {other} character set utf8mb4")
    altered = bench.prepare(f"alter database {other} character set latin1")
    assert altered.intent is None
    bench.tracker.apply(altered.changes)
    made = bench.intent(f"create table {other}.n (a varchar(3))")
    assert made.steps[0].statement.startswith(f"CREATE DATABASE IF NOT EXISTS `{other}_t`")
    bench.go(made, resumed=False)
    with bench.target.cursor() as cursor:
        cursor.execute(
            "SELECT CHARACTER_SET_NAME FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = %s", (f"{other}_t",)
        )
        assert cursor.fetchall() == (("latin1",),)
        cursor.execute(
            "SELECT DEFAULT_CHARACTER_SET_NAME FROM information_schema.SCHEMATA WHERE SCHEMA_NAME = %s", (f"{other}_t",)
        )
        assert cursor.fetchall() == (("latin1",),)


def test_the_statement_runs_in_its_own_session(bench: Bench) -> None:
    context = Context(
        bench.schema, sql_mode="ANSI_QUOTES,STRICT_TRANS_TABLES", timestamp=1000000000.5, time_zone="+02:00"
    )
    ddl = classify_ddl('alter table "t" add "at" datetime(1) default now(1) not null', context)
    prepared = bench.prepared(ddl)
    assert prepared.intent is not None
    bench.go(prepared.intent, resumed=False)
    with bench.target.cursor() as cursor:
        cursor.execute("SELECT DISTINCT CAST(`at` AS CHAR) FROM t")
        assert cursor.fetchall() == (("2001-09-09 03:46:40.5",),)


@pytest.mark.parametrize("name", ["`a`.`b`", "`a``b`.`c.d`", "```a`.`b```", "`a`.```.```"])
def test_keys_are_read_back(name: str) -> None:
    assert unquoted(name).quoted == name


def test_a_lost_connection_is_the_callers_to_mend(bench: Bench, target_server: MariadbServer) -> None:
    sql = "alter table t add c int"
    intent = bench.intent(sql)
    bench.run(bench.source, sql)

    def cut(name: str) -> None:
        if name == "ddl-execute-before":
            target_server.run(f"KILL {bench.target.thread_id()}")

    with pytest.raises(MySQLdb.Error):
        bench.go(intent, cut, resumed=False)
    bench.target = target_server.connection()
    bench.resume()
    assert bench.equal()


def test_a_locked_table_is_waited_for_by_the_caller(bench: Bench, target_server: MariadbServer) -> None:
    intent = bench.intent("alter table t add c int")
    other = target_server.connection()
    bench.run(other, "begin", f"select * from {bench.schema}_t.t")
    bench.run(bench.target, "set lock_wait_timeout = 1")
    with pytest.raises(MySQLdb.OperationalError) as caught:
        bench.go(intent, resumed=False)
    assert caught.value.args[0] == 1205
    other.close()
    bench.run(bench.target, "set lock_wait_timeout = default")  # the server lets go of the table in its own time
    bench.resume()


DRIVER = """
import json, sys, MySQLdb
from unshard.crash_point import reach
from unshard.ddl.execute import carry_out
from unshard.ddl.intent import Intent
form = json.loads(sys.stdin.read())
connection = MySQLdb.connect(host="127.0.0.1", port=int(sys.argv[1]), user="root", charset="utf8mb4", autocommit=True)
carry_out(connection, Intent.from_dict(form), reach, lambda count: print(count, flush=True), resumed=False)
"""


@pytest.mark.recovery
@pytest.mark.parametrize("place", ["ddl-execute-before", "ddl-execute-after", "ddl-execute-after:2", "ddl-noted"])
def test_killed_for_real(bench: Bench, target_server: MariadbServer, place: str) -> None:
    sql = "rename table t to n, u to t, n to u"
    intent = bench.intent(sql)
    bench.run(bench.source, sql)
    killed = subprocess.run(
        [sys.executable, "-c", DRIVER, str(target_server.port)],
        input=json.dumps(intent.to_dict()),
        env={**os.environ, "UNSHARD_CRASH_AT": place},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert killed.returncode == -9, killed.stderr
    noted = [int(line) for line in killed.stdout.split()]
    bench.stored = json.dumps({**intent.to_dict(), "done": noted[-1] if noted else 0})
    bench.resume()
    assert bench.equal()
