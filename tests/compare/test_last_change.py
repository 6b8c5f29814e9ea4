"""Each row that differs is told with its last change in the relay log, and with the rules that shape it."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from support.comparisons import compared
from support.task_runs import TaskFiles, TaskRun
from unshard.compare import last_change
from unshard.compare.report import text_lines
from unshard.compare.result import RowDifference
from unshard.relay import unit as relay_unit
from unshard.testing.mariadb_server import MariadbServer
from unshard.testing.throwaway_server import ThrowawayServer

pytestmark = [pytest.mark.server, pytest.mark.spark]


@pytest.fixture
def files(
    source_server: MariadbServer, target_server: ThrowawayServer, schema: str, tmp_path: Path
) -> Iterator[TaskFiles]:
    """Shards whose ids get the number of the table, merged into `t`, and a table without a key."""
    source_server.run(
        f"CREATE DATABASE {schema}",
        f"USE {schema}",
        *(f"CREATE TABLE t_{number} (id BIGINT PRIMARY KEY, seq INT, e ENUM('a','b'))" for number in (1, 2)),
        *(f"INSERT INTO t_{number} SELECT seq, seq, 'a' FROM mysql.seq_1_to_9" for number in (1, 2)),
        "CREATE TABLE bare (a INT, v VARCHAR(9))",
    )
    route = {"schema-pattern": schema, "table-pattern": "t_*", "target-schema": schema, "target-table": "t"}
    mapping = {
        "schema-pattern": schema,
        "table-pattern": "t_*",
        "expression": "partition id",
        "source-column": "id",
        "target-column": "id",
        "arguments": ["1", "", "t", "_"],
    }
    files = TaskFiles(tmp_path, f"task_{schema}", {"s1": source_server}, target_server, (schema,))
    keys = {"routes": {"r": route}, "column-mappings": {"m": mapping}}
    yield replace(files, keys=keys, instance={"route-rules": ["r"], "column-mapping-rules": ["m"]}).write()
    source_server.run(f"DROP DATABASE {schema}")
    target_server.run(f"DROP DATABASE IF EXISTS {schema}", f"DROP DATABASE IF EXISTS {files.meta}")


def change(server: ThrowawayServer, *statements: str) -> tuple[str, str]:
    """Run them as one transaction each; the place of the last one's row event, and its GTID."""
    server.run(*statements)
    ((gtid,),) = server.query("SELECT @@gtid_binlog_pos")
    ((name, *_),) = server.query("SHOW MASTER STATUS")
    connection = server.connection()
    connection.set_character_set("koi8r")  # decodes any byte; MariaDB 11.8 shows bytes of row events that are no text
    with connection.cursor() as cursor:
        cursor.execute(f"SHOW BINLOG EVENTS IN '{name}'")
        events = cursor.fetchall()
    connection.close()
    rows = [offset for _, offset, kind, *_ in events if "_rows" in kind.lower()]
    return f"{name}:{rows[-1]}", gtid


def key_of(table: int, number: int) -> int:
    return 1 << 59 | table << 51 | number


def told(files: TaskFiles, spark: SparkSession) -> dict[str, RowDifference]:
    found = compared(files, spark)
    lines = "\n".join(text_lines(found))
    assert all(
        f"last change: {one.last_change or one.change_note}" in lines for t in found.tables for one in t.differences
    )
    return {one.key or str(one.target or one.source[0][1]): one for table in found.tables for one in table.differences}


def test_position_gtid_and_rules(files: TaskFiles, spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(last_change, "PART_BYTES", 300)
    monkeypatch.setattr(relay_unit, "SYNC_SECONDS", 3600.0)  # what is not on record as durable is searched, too
    (schema,) = files.schemas
    source, target = files.sources["s1"], files.target
    with TaskRun(files, spark) as run:
        run.catch_up()
        source.run(f"UPDATE {schema}.t_1 SET seq = seq + 10", f"UPDATE {schema}.t_2 SET seq = seq + 10")
        updated = change(source, f"UPDATE {schema}.t_1 SET e = 'b' WHERE id = 3")
        source.run("FLUSH BINARY LOGS")
        deleted = change(source, f"DELETE FROM {schema}.t_2 WHERE id IN (4, 5)")
        inserted = change(source, f"INSERT INTO {schema}.t_2 VALUES (44, 1, NULL)")
        bare = change(source, f"INSERT INTO {schema}.bare VALUES (1, 'x'), (1, 'x')")
        run.catch_up()
        target.run(
            f"USE {schema}",
            f"UPDATE t SET seq = 0 WHERE id = {key_of(1, 3)}",
            f"INSERT INTO t VALUES ({key_of(2, 5)}, 15, 'a'), (77, 0, 'a')",
            f"DELETE FROM t WHERE id = {key_of(2, 44)}",
            "DELETE FROM bare LIMIT 1",
        )
        found = told(files, spark)
        last = {name: one.last_change for name, one in found.items()}
        wanted = {
            f"id={key_of(1, 3)}": ("UPDATE", *updated),
            f"id={key_of(2, 5)}": ("DELETE", *deleted),
            f"id={key_of(2, 44)}": ("INSERT", *inserted),
            "{'a': '1', 'v': 'x'}": ("INSERT", *bare),
        }
        for name, expected in wanted.items():
            one = last.pop(name)
            assert one is not None
            assert (one.statement, one.position, one.gtid) == expected
            assert one.time.endswith(" UTC")
        assert last == {"id=77": None}
        first = updated[0].rpartition(":")[0]
        assert f"not in the relay log of s1 since {first}:" in found["id=77"].change_note
        assert found["id=77"].shaped_by == ("routes.r", "column-mappings.m")
        assert found["{'a': '1', 'v': 'x'}"].shaped_by == ()

        monkeypatch.setattr(last_change, "SEARCHED_BYTES", 1)
        note = told(files, spark)[f"id={key_of(1, 3)}"].change_note
        assert note.startswith(f"not in the relay log of s1 since {bare[0].rpartition(':')[0]}:")
    shutil.rmtree(files.folder / "relay")
    assert told(files, spark)["id=77"].change_note == "s1 has no relay log on this machine"


def test_a_table_that_was_altered_since(files: TaskFiles, spark: SparkSession) -> None:
    """The task is healthy: no advice for one that can't go on."""
    (schema,) = files.schemas
    source = files.sources["s1"]
    source.run(f"CREATE TABLE {schema}.own (id INT PRIMARY KEY, v INT)")
    with TaskRun(files, spark) as run:
        run.catch_up()
        source.run(f"INSERT INTO {schema}.own VALUES (3, 1), (4, 1)", f"ALTER TABLE {schema}.own MODIFY v BIGINT")
        updated = change(source, f"UPDATE {schema}.own SET v = 2 WHERE id = 4")
        run.catch_up()
        files.target.run(f"DELETE FROM {schema}.own")
        found = told(files, spark)
    earlier, later = found["id=3"], found["id=4"]
    assert earlier.last_change is None
    assert earlier.change_note == "its table was altered since: older changes in the relay log of s1 are not searched"
    assert later.last_change is not None
    assert later.last_change.position == updated[0]


def test_a_log_that_can_not_be_read_is_told(files: TaskFiles, spark: SparkSession) -> None:
    (schema,) = files.schemas
    with TaskRun(files, spark) as run:
        run.catch_up()
        files.sources["s1"].run(f"UPDATE {schema}.t_1 SET e = 'b' WHERE id = 3")
        run.catch_up()
    files.target.run(f"DELETE FROM {schema}.t WHERE id = {key_of(1, 3)}")
    log = max((files.folder / "relay").glob("*/*/mysql-bin.*"))
    data = bytearray(log.read_bytes())
    data[:4] = b"oops"
    log.write_bytes(data)
    (one,) = told(files, spark).values()
    assert one.kind.value == "missing"
    assert one.last_change is None
    assert "the relay log of s1 can't be searched further" in one.change_note
    assert "BINLOG-003" in one.change_note
