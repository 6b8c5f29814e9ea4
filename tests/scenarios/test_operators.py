"""Statements that the target can't take: the task stops, a human says what to do, the task goes on."""

from __future__ import annotations

import json
import re
import shlex
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from support.operated_tasks import copied_task, ctl, go_on, operators_of, stopped_run
from support.task_runs import Command, TaskFiles
from unshard.model.position import Position
from unshard.model.table import TableName
from unshard.testing.compare import assert_equal
from unshard.testing.mariadb_server import MariadbServer
from unshard.testing.mysql_server import MysqlServer

pytestmark = [pytest.mark.server, pytest.mark.spark]


@pytest.fixture
def files(
    spark: SparkSession, source_server: MariadbServer, target_server: MariadbServer, schema: str, tmp_path: Path
) -> TaskFiles:
    """A task that is copied, over a table `t` whose copy in the target has a column `mine` of its own."""
    made = copied_task(spark, source_server, target_server, schema, tmp_path)
    target_server.run(f"ALTER TABLE {schema}.t ADD COLUMN mine INT NULL")
    return made


def add_mine(source: MariadbServer, schema: str) -> None:
    """The statement that the target can't take, and a row behind it."""
    source.run(f"ALTER TABLE {schema}.t ADD COLUMN mine INT NULL", f"INSERT INTO {schema}.t VALUES (2, 'two', 22)")


@pytest.mark.faults
def test_the_command_that_the_error_prints_gets_past_the_statement(
    files: TaskFiles, spark: SparkSession, source_server: MariadbServer, target_server: MariadbServer, schema: str
) -> None:
    add_mine(source_server, schema)
    with Command(files) as command:
        assert command.wait() == 1
        text = command.text
    found = re.search(r"`unshard (ctl binlog skip [^`]*)`", text)
    assert found is not None, text
    said = ctl(*shlex.split(found[1])[1:])
    assert said["result"]
    assert said["sources"][0]["source"] == "s1"
    ((listed,),) = [json.loads(one["msg"]) for one in ctl("binlog", "list", str(files.task_path))["sources"]]
    assert (listed["op"], listed["task"], listed["sqls"]) == (1, schema, [])
    assert re.fullmatch(r"\(\S+\.\d+, \d+\)", listed["binlogPos"])
    go_on(files, spark)
    # the source's rows come in the structure behind it, so they land in the column that was there before
    assert_equal([(source_server, TableName(schema, "t"))], (target_server, TableName(schema, "t")))
    assert operators_of(files) == [("skip", "applied")]
    assert json.loads(ctl("binlog", "list", str(files.task_path))["sources"][0]["msg"]) == []


@pytest.mark.faults
@pytest.mark.parametrize("crash", ["ddl-execute-after", "sync-close-before"])
def test_another_statement_stands_in_for_it_once(
    crash: str,
    files: TaskFiles,
    spark: SparkSession,
    source_server: MariadbServer,
    target_server: MariadbServer,
    schema: str,
) -> None:
    maybe = "" if isinstance(target_server, MysqlServer) else " IF EXISTS"
    add_mine(source_server, schema)
    stopped_run(files, spark)
    ctl(
        "binlog",
        "replace",
        str(files.task_path),
        "-s",
        "s1",
        f"ALTER TABLE {schema}.t DROP COLUMN{maybe} mine, ADD COLUMN mine BIGINT NOT NULL DEFAULT 9;",
    )
    with Command(files, crash_at=crash) as command:
        command.dies(crash)
    go_on(files, spark)
    assert target_server.query(f"SELECT id, v, mine FROM {schema}.t ORDER BY id") == [(1, "one", 9), (2, "two", 22)]
    assert operators_of(files) == [("replace", "applied")]


def test_values_that_only_the_source_has_are_given_by_a_human(
    files: TaskFiles, spark: SparkSession, source_server: MariadbServer, target_server: MariadbServer, schema: str
) -> None:
    """Random values: a constant, or the same statement; numbers: the table copied again."""
    task, t = str(files.task_path), f"{schema}.t"
    target_server.run(f"ALTER TABLE {t} DROP COLUMN mine, DROP PRIMARY KEY, ADD KEY (id)")
    refused = f"ALTER TABLE {t} ADD c CHAR(36) NOT NULL DEFAULT (UUID())"
    source_server.run(refused, f"INSERT INTO {t} (id, v) VALUES (2, 'two')")
    before = target_server.query(f"SHOW CREATE TABLE {t}")
    error = stopped_run(files, spark)
    assert getattr(error, "code", "") == "DDL-034"
    assert "fills c of rows" in str(error)
    assert target_server.query(f"SHOW CREATE TABLE {t}") == before
    assert ("open",) not in target_server.query(f"SELECT state FROM `{files.meta}`.`{files.name}_apply_batch`")
    ctl("binlog", "replace", task, "-s", "s1", f"ALTER TABLE {t} ADD c CHAR(36) NOT NULL DEFAULT 'none'")
    go_on(files, spark)
    ((first,), (second,)) = target_server.query(f"SELECT c FROM {t} ORDER BY id")
    assert first == "none"
    assert [(second,)] == source_server.query(f"SELECT c FROM {t} WHERE id = 2")
    target_server.run(f"ALTER TABLE {t} DROP KEY id, ADD PRIMARY KEY (id)", f"UPDATE {t} SET c = '' WHERE id = 1")
    source_server.run(f"UPDATE {t} SET c = '' WHERE id = 1")
    bare = f"ALTER TABLE {t} DROP PRIMARY KEY"
    source_server.run(bare, f"ALTER TABLE {t} ADD n INT AUTO_INCREMENT PRIMARY KEY")
    source_server.run(f"UPDATE {t} SET v = 'behind' WHERE n = 2")
    error = stopped_run(files, spark)
    assert getattr(error, "code", "") == "DDL-034"
    assert "fills n of rows" in str(error)
    (created,) = source_server.query(f"SHOW CREATE TABLE {t}")
    kept = ", ".join(str(row) for row in source_server.query(f"SELECT id, v, c, n FROM {t}"))
    target_server.run(f"DROP TABLE {t}", f"USE {schema}", created[1], f"INSERT INTO {t} VALUES {kept}")
    ctl("binlog", "skip", task, "-s", "s1")
    files = replace(files, syncer={"safe-mode": True}).write()
    source_server.run(f"INSERT INTO {t} (id, v) VALUES (3, 'three')")
    go_on(files, spark)
    assert_equal([(source_server, TableName(schema, "t"))], (target_server, TableName(schema, "t")))
    assert operators_of(files) == [("replace", "applied"), ("skip", "applied")]


def test_statements_are_run_before_it(
    files: TaskFiles, spark: SparkSession, source_server: MariadbServer, target_server: MariadbServer, schema: str
) -> None:
    add_mine(source_server, schema)
    stopped_run(files, spark)
    drop = f"ALTER TABLE {schema}.t DROP COLUMN mine"
    ctl("handle-error", str(files.task_path), "inject", f"CREATE TABLE {schema}.made (id INT PRIMARY KEY)", code=0)
    assert "mine" in str(stopped_run(files, spark))
    assert operators_of(files) == [("inject", "pending")]
    ctl("binlog", "revert", str(files.task_path))
    ctl("binlog", "revert", str(files.task_path), code=1)
    target_server.run(drop)
    go_on(files, spark)
    assert_equal([(source_server, TableName(schema, "t"))], (target_server, TableName(schema, "t")))
    assert operators_of(files) == [("inject", "reverted")]


@pytest.mark.faults
def test_what_is_injected_is_run_before_the_statement_and_once(
    files: TaskFiles, spark: SparkSession, source_server: MariadbServer, target_server: MariadbServer, schema: str
) -> None:
    add_mine(source_server, schema)
    stopped_run(files, spark)
    drop = f"ALTER TABLE {schema}.t DROP COLUMN mine"
    ctl("binlog", "inject", str(files.task_path), "-s", "s1", drop)
    with Command(files, crash_at="ddl-noted") as command:
        command.dies("ddl-noted")
    go_on(files, spark)
    assert_equal([(source_server, TableName(schema, "t"))], (target_server, TableName(schema, "t")))
    assert operators_of(files) == [("inject", "applied")]


def refusing(files: TaskFiles, source: MariadbServer, schema: str) -> None:
    """Rows of many keys, in several transactions; the target refuses one of the middle."""
    if files.target.product == "TiDB":
        files.target.run("SET GLOBAL tidb_enable_check_constraint = ON")
    files.target.run(f"ALTER TABLE {schema}.t ADD CONSTRAINT c CHECK (v <> 'bad')")
    rows = [f"INSERT INTO {schema}.t (id, v) VALUES ({n}, 'row {n}')" for n in range(10, 30)]
    bad = f"INSERT INTO {schema}.t (id, v) VALUES (40, 'good'), (41, 'bad'), (42, 'good')"
    more = [f"UPDATE {schema}.t SET v = 'changed' WHERE id = {n}" for n in range(10, 30)]
    source.run(*rows, bad, *more)


@pytest.mark.usefixtures("small_jobs")
@pytest.mark.parametrize(
    "crash",
    ["", *(pytest.param(place, marks=pytest.mark.faults) for place in ("sync-chunk-commit", "sync-close-before"))],
)
def test_a_row_change_that_the_target_refuses_is_left_out(
    crash: str,
    files: TaskFiles,
    spark: SparkSession,
    source_server: MariadbServer,
    target_server: MariadbServer,
    schema: str,
) -> None:
    files = replace(files, syncer={"worker-count": 3, "batch": 2}).write()
    refusing(files, source_server, schema)
    error = stopped_run(files, spark)
    assert getattr(error, "code", "") == "SYNC-004", error
    applied = target_server.query(f"SELECT COUNT(*) FROM {schema}.t")
    assert applied > [(1,)], "other partitions went on: a part of the batch is applied"
    said = ctl("binlog", "skip", str(files.task_path))
    assert said["sources"][0]["msg"].startswith("skip at ")
    if crash:
        with Command(files, crash_at=crash) as command:
            command.dies(crash)
    go_on(files, spark)
    own = f"SELECT id, v FROM {schema}.t WHERE id NOT IN (40, 41, 42) ORDER BY id"
    assert target_server.query(own) == source_server.query(own)
    left = f"SELECT SUM(changes) FROM `{files.meta}`.`{files.name}_apply_left_out` WHERE rule = 'operator'"
    there = {id for (id,) in target_server.query(f"SELECT id FROM {schema}.t WHERE id IN (40, 41, 42)")}
    assert 41 not in there
    assert target_server.query(left) == [(3 - len(there),)]
    assert operators_of(files) == [("skip", "applied")]
    source_server.run(f"INSERT INTO {schema}.t (id, v) VALUES (50, 'behind')")
    go_on(files, spark)
    assert target_server.query(own) == source_server.query(own)
    counts = f"SELECT SUM(decoded), SUM(filtered + compacted + inserted + updated + deleted) FROM `{files.meta}`."
    ((decoded, accounted),) = target_server.query(f"{counts}`{files.name}_apply_ledger`")
    assert decoded == accounted


def refuse_bad(files: TaskFiles, schema: str) -> None:
    if files.target.product == "TiDB":
        files.target.run("SET GLOBAL tidb_enable_check_constraint = ON")
    files.target.run(f"ALTER TABLE {schema}.t ADD CONSTRAINT c CHECK (v <> 'bad')")


REFUSED = {
    "the second of three": (["INSERT (2, 'good')", "INSERT (3, 'bad')", "INSERT (4, 'good')"], 1),
    "an UPDATE": (["UPDATE 1 'bad'", "INSERT (2, 'good')"], 0),
    "an event of several rows": (["INSERT (2, 'good')", "INSERT (3, 'good'), (4, 'bad')", "INSERT (5, 'good')"], 1),
}


@pytest.mark.usefixtures("small_jobs")
@pytest.mark.parametrize("case", REFUSED)
def test_just_the_row_event_that_the_target_refuses_is_left_out(
    case: str, files: TaskFiles, spark: SparkSession, source_server: MariadbServer, schema: str
) -> None:
    """The error names its place in the log."""
    refuse_bad(files, schema)
    statements, refused = REFUSED[case]
    places = []
    for one in statements:
        verb, rest = one.split(" ", 1)
        places.append(int(source_server.query(source_server.position_query)[0][1]))
        source_server.run(
            f"INSERT INTO {schema}.t (id, v) VALUES {rest}"
            if verb == "INSERT"
            else f"UPDATE {schema}.t SET v = {rest[2:]} WHERE id = {rest[0]}"
        )
    places.append(int(source_server.query(source_server.position_query)[0][1]))
    error = stopped_run(files, spark)
    assert getattr(error, "code", "") == "SYNC-004", error
    position = Position.parse(error.where.position)  # type: ignore[attr-defined]
    assert places[refused] <= position.offset < places[refused + 1]
    ctl("binlog", "skip", str(files.task_path))
    go_on(files, spark)
    wanted = {1: "one", **dict(source_server.query(f"SELECT id, v FROM {schema}.t WHERE v = 'good'"))}
    there = dict(files.target.query(f"SELECT id, v FROM {schema}.t"))
    for other in {id for id in wanted if f"({id}," in statements[refused]}:
        del wanted[other]
        there.pop(other, None)  # another partition may have been applied before
    assert there == wanted


@pytest.mark.usefixtures("small_jobs")
def test_a_place_that_the_user_names_is_left_out_of_the_rest_of_an_open_batch(
    files: TaskFiles, spark: SparkSession, source_server: MariadbServer, schema: str
) -> None:
    files = replace(files, syncer={"worker-count": 3, "batch": 1}).write()
    refuse_bad(files, schema)
    place = ""
    for n in range(10, 40):
        if n == 15:
            ((file, offset, *_),) = source_server.query(source_server.position_query)
            place = f"{file}:{offset}"
        source_server.run(f"INSERT INTO {schema}.t (id, v) VALUES ({n}, '{'bad' if n == 15 else 'good'}')")
    error = stopped_run(files, spark)
    assert getattr(error, "code", "") == "SYNC-004", error
    source_server.run(f"INSERT INTO {schema}.t (id, v) VALUES (50, 'behind'), (51, 'behind')")
    ctl("binlog", "skip", str(files.task_path), "-s", "s1", "-b", place)
    go_on(files, spark)
    there = {id for (id,) in files.target.query(f"SELECT id FROM {schema}.t")}
    assert there == {1, *range(10, 40), 50, 51} - {15}


def test_what_is_given_on_names_that_the_task_does_not_take_is_refused(
    files: TaskFiles, spark: SparkSession, source_server: MariadbServer, schema: str
) -> None:
    source_server.run(f"ALTER TABLE {schema}.t ADD COLUMN mine INT NULL")
    stopped_run(files, spark)
    ctl("binlog", "replace", str(files.task_path), f"ALTER TABLE {schema}_all.t ADD COLUMN other INT")
    error = stopped_run(files, spark)
    assert getattr(error, "code", "") == "DDL-033"
    assert f"{schema}_all.t kept out" in str(error)
    assert operators_of(files) == [("replace", "pending")]
    ctl("binlog", "skip", str(files.task_path))
    go_on(files, spark)
    assert ("skip", "applied") in operators_of(files)
