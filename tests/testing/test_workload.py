"""The workload maker, the compare and the binlog count, each against a real server."""

from __future__ import annotations

import pytest

from unshard.model.table import TableName
from unshard.testing.binlog_count import count_by_key, exactly_once, moved, row_events
from unshard.testing.compare import compare
from unshard.testing.mariadb_server import MariadbServer
from unshard.testing.shapes import SHAPES, SYSBENCH, TYPES, TableShape
from unshard.testing.workload import Workload, WorkPlan

pytestmark = [pytest.mark.server, pytest.mark.scenarios]


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_every_shape_survives_all_kinds_of_work(source_server: MariadbServer, schema: str, shape: TableShape) -> None:
    work = Workload(source_server, WorkPlan(schema, shape, schemas=2, tables=2, large_rows=40, seed=3))
    work.create()
    work.fill(30)
    report = work.run(transactions=80)
    assert report.transactions + report.kinds["contention"] == 80
    assert len(report.kinds) >= 5
    kinds = {event.kind for event in row_events(source_server, work.plan.names)}
    assert kinds == {"INSERT", "UPDATE", "DELETE"}


def test_one_thread_and_one_seed_make_the_same_rows(source_server: MariadbServer, schema: str) -> None:
    plans = [WorkPlan(f"{schema}{name}", TYPES, tables=1, threads=1, seed=7, large_rows=20) for name in "ab"]
    for plan in plans:
        work = Workload(source_server, plan)
        work.create()
        work.run(transactions=60)
    first, second = (plan.names[0] for plan in plans)
    comparison = compare([(source_server, first)], (source_server, second))
    assert comparison.equal, str(comparison)
    assert comparison.source_rows > 20


@pytest.mark.parametrize("callers", [1, 2])
def test_nothing_is_committed_until_all_callers_have_resumed(
    source_server: MariadbServer, schema: str, callers: int
) -> None:
    work = Workload(source_server, WorkPlan(schema))
    work.create()
    work.start()
    try:
        for _ in range(callers):
            work.pause()
        for _ in range(callers - 1):
            work.resume()
        before = source_server.query("SELECT @@global.gtid_binlog_pos")
        done = work.report.transactions
        assert source_server.query("SELECT SLEEP(0.2), @@global.gtid_binlog_pos")[0][1:] == before[0]
        work.resume()
        while work.report.transactions < done + 5:
            assert all(thread.is_alive() for thread in work._threads)
    finally:
        work.stop()


def two_shards_and_a_copy(server: MariadbServer, schema: str) -> tuple[WorkPlan, TableName]:
    work = Workload(server, WorkPlan(schema, SYSBENCH, tables=2))
    work.create()
    work.fill(50)
    whole = TableName(f"{schema}_1", "whole")
    server.run(f"CREATE TABLE {whole.quoted} LIKE {work.plan.names[0].quoted}")
    for name in work.plan.names:
        server.run(f"INSERT INTO {whole.quoted} SELECT * FROM {name.quoted}")
    return work.plan, whole


def test_compare_finds_equal_shards_equal_and_shows_what_differs(source_server: MariadbServer, schema: str) -> None:
    plan, whole = two_shards_and_a_copy(source_server, schema)
    shards = [(source_server, name) for name in plan.names]
    assert compare(shards, (source_server, whole)).equal
    source_server.run(
        f"UPDATE {whole.quoted} SET k = -5 WHERE id = 3",
        f"DELETE FROM {whole.quoted} WHERE id = 4",
        f"INSERT INTO {whole.quoted} (id) VALUES (9000)",
    )
    comparison = compare(shards, (source_server, whole))
    assert not comparison.equal
    assert comparison.source_rows == comparison.target_rows == 100
    changed, missing, extra = sorted(comparison.differences)
    assert changed.startswith("  id='3': k: source '")
    assert changed.endswith("target '-5'")
    assert missing.startswith("  missing in the target: id='4'")
    assert extra.startswith("  only in the target: id='9000'")


def test_compare_applies_a_mapping_to_source_rows(source_server: MariadbServer, schema: str) -> None:
    plan, whole = two_shards_and_a_copy(source_server, schema)
    source_server.run(f"UPDATE {whole.quoted} SET k = k + 1000")
    shards = [(source_server, name) for name in plan.names]
    assert compare(
        shards, (source_server, whole), mapping=lambda row: row | {"k": str(int(row["k"] or 0) + 1000)}
    ).equal
    assert not compare(shards, (source_server, whole), mapping=lambda row: row).equal


@pytest.mark.parametrize(
    ("kind", "definition", "one", "other"),
    [
        ("float", "FLOAT", "16777216", "16777217e-1"),
        ("blank", "VARCHAR(5)", "'a'", "'a '"),
        ("case", "VARCHAR(5)", "'a'", "'A'"),
        ("null", "VARCHAR(5)", "NULL", "'NULL'"),
        ("bytes", "BLOB", "x'ff'", "x'fe'"),
        ("zero date", "DATETIME(6)", "'0000-00-00'", "NULL"),
        ("microsecond", "DATETIME(6)", "'2020-01-01 00:00:00.000001'", "'2020-01-01 00:00:00.000002'"),
    ],
)
def test_compare_tells_close_values_apart(
    source_server: MariadbServer, schema: str, kind: str, definition: str, one: str, other: str
) -> None:
    source_server.run(f"CREATE DATABASE {schema}")
    for name, value in (("a", one), ("b", other), ("c", one)):
        source_server.run(
            "SET sql_mode = ''",
            f"CREATE TABLE {schema}.{name} (v {definition})",
            f"INSERT INTO {schema}.{name} VALUES ({value})",
        )
    a, b, c = ((source_server, TableName(schema, name)) for name in "abc")
    assert not compare([a], b).equal
    assert compare([a], c).equal


def test_binlog_count_shows_lost_and_doubled_changes(
    source_server: MariadbServer, target_server: MariadbServer, schema: str
) -> None:
    shard, whole = TableName(schema, "shard"), TableName(schema, "whole")
    changes = ("INSERT INTO {} VALUES (1, 'a\n`b'), (2, NULL)", "UPDATE {} SET v = 'c' WHERE id = 2", "DELETE FROM {}")
    for server, name in ((source_server, shard), (target_server, whole)):
        server.run(f"CREATE DATABASE {schema}", f"CREATE TABLE {name.quoted} (id INT PRIMARY KEY, v VARCHAR(9))")
        server.run(*(change.format(name.quoted) for change in changes))
    upstream = moved(row_events(source_server, [shard]), {shard: whole})
    downstream = row_events(target_server, [whole])
    assert exactly_once(upstream, downstream) == []
    assert count_by_key(downstream)[whole, "INSERT", ("1",)] == 1
    assert count_by_key(downstream).total() == 5
    target_server.run(f"INSERT INTO {whole.quoted} VALUES (1, 'a\n`b'), (7, 'x')")
    lines = exactly_once(upstream, row_events(target_server, [whole]))
    assert [line.split(" ")[0:2] for line in lines] == [["applied", "again"], ["from", "nowhere"]]
    upstream_more = upstream + upstream
    assert len(exactly_once(upstream_more, downstream)) == 5
