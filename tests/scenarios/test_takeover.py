"""A task that DM has run goes on here, from the rows that DM wrote of itself."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from support.dm_records import CHECKPOINT, SHARDING_META
from support.task_runs import TaskFiles, TaskRun, newest
from unshard.error_catalogue import CATALOGUE
from unshard.errors import SyncError
from unshard.model.position import Position
from unshard.model.table import TableName
from unshard.testing.compare import assert_equal
from unshard.testing.mariadb_server import MariadbServer

pytestmark = [pytest.mark.server, pytest.mark.spark]

TABLE_INFO = {  # TiDB's form of a structure, as DM keeps it
    "id": 1, "name": {"O": "t", "L": "t"}, "charset": "utf8mb4", "collate": "utf8mb4_bin",
    "cols": [{"id": 1, "name": {"O": "id", "L": "id"}, "offset": 0, "type": {"Tp": 3, "Flag": 4099, "Flen": 11}}],
    "index_info": None, "state": 5, "pk_is_handle": True,
}  # fmt: skip


class Dm:
    """What DM left in the target's meta schema of task `name`."""

    def __init__(self, server: MariadbServer, meta: str, name: str) -> None:
        self.server, self.meta, self.name = server, meta, name
        server.run(f"CREATE DATABASE {meta}", CHECKPOINT.format(name=self.table("syncer_checkpoint")))

    def table(self, suffix: str) -> str:
        return f"`{self.meta}`.`{self.name}_{suffix}`"

    def row(self, at: Position, name: TableName | None = None, exit_at: Position | None = None) -> None:
        """The global row, or that of a table; files are named as those of DM's relay log."""
        info = json.dumps(TABLE_INFO) if name else "null"
        base, _, number = at.file.rpartition(".")
        exit_values = f"'{exit_at.file}', {exit_at.offset}, NULL" if exit_at else "'', 0, NULL"
        self.server.run(
            f"INSERT INTO {self.table('syncer_checkpoint')} VALUES ('s1', '{name.schema if name else ''}',"
            f" '{name.table if name else ''}', '{base}|000001.{number}', {at.offset}, '', {exit_values}, '{info}',"
            f" {name is None}, NOW(), NOW())"
        )


@pytest.fixture
def tables(source_server: MariadbServer, target_server: MariadbServer, schema: str) -> tuple[TableName, TableName]:
    for server in (source_server, target_server):
        server.run(f"CREATE DATABASE {schema}")
        for table in ("t", "ahead"):
            server.run(f"CREATE TABLE {schema}.{table} (id INT PRIMARY KEY, v VARCHAR(9))")
            server.run(f"INSERT INTO {schema}.{table} VALUES (1, 'a'), (2, 'b')")
    return TableName(schema, "t"), TableName(schema, "ahead")


@pytest.fixture
def files(source_server: MariadbServer, target_server: MariadbServer, schema: str, tmp_path: Path) -> TaskFiles:
    return TaskFiles(tmp_path, schema, {"s1": source_server}, target_server, (schema,)).write()


@pytest.fixture
def dm(target_server: MariadbServer, files: TaskFiles) -> Dm:
    return Dm(target_server, files.meta, files.name)


@pytest.mark.parametrize("with_exit", [True, False], ids=["exit point", "none"])
def test_it_goes_on_where_dm_stood_in_safe_mode_up_to_dms_exit_point(
    with_exit: bool,
    tables: tuple[TableName, TableName],
    files: TaskFiles,
    dm: Dm,
    source_server: MariadbServer,
    target_server: MariadbServer,
    spark: SparkSession,
) -> None:
    name, ahead = tables
    begin = newest(source_server)
    source_server.run(f"INSERT INTO {name} VALUES (3, 'c')", f"INSERT INTO {ahead} VALUES (3, 'skipped')")
    table_at = newest(source_server)
    source_server.run(f"UPDATE {name} SET id = 9 WHERE id = 1", f"INSERT INTO {ahead} VALUES (4, 'd')")
    exit_at = newest(source_server)
    for statement in (f"INSERT INTO {name} VALUES (3, 'c')", f"UPDATE {name} SET id = 9 WHERE id = 1"):
        target_server.run(statement)  # DM had applied it, and its checkpoint does not tell
    dm.row(begin, exit_at=exit_at if with_exit else None)
    dm.row(table_at, ahead)
    dm.row(begin, TableName(name.schema, "t"))
    with TaskRun(files, spark) as run:
        run.catch_up()
        source_server.run(f"DELETE FROM {name} WHERE id = 2", f"INSERT INTO {ahead} VALUES (5, 'e')")
        run.catch_up()
        assert run.sync.safe_mode == ""
        assert run.sync.missing == 0
    assert_equal([(source_server, name)], (target_server, name))
    assert target_server.query(f"SELECT id FROM {ahead} ORDER BY id") == [(1,), (2,), (4,), (5,)]
    ((mark, exit_name),) = target_server.query(
        f"SELECT table_info, exit_safe_binlog_name FROM {dm.table('syncer_checkpoint')} WHERE is_global"
    )
    assert json.loads(mark)["delivery"] == "exactly-once"
    assert exit_name == ""
    infos = target_server.query(f"SELECT table_info FROM {dm.table('syncer_checkpoint')} WHERE NOT is_global")
    assert all("columns" in json.loads(info) for (info,) in infos)


def test_what_dm_left_unfinished_is_not_taken_over(
    tables: tuple[TableName, TableName], files: TaskFiles, dm: Dm, spark: SparkSession
) -> None:
    dm.row(newest(files.sources["s1"]))
    left = dm.table("syncer_sharding_meta")
    dm.server.run(SHARDING_META.format(name=left), f"INSERT INTO {left} (source_id, data) VALUES ('s1', '{{}}')")
    error = TaskRun(files, spark).start().error()
    assert isinstance(error, SyncError)
    assert error.code == "SYNC-046"
    assert "syncer_sharding_meta" in str(error)
    assert "delete what {table} has of the source" in CATALOGUE["SYNC-046"].hint
    dm.server.run(f"DELETE FROM {left} WHERE source_id = 's1'")
    with TaskRun(files, spark) as run:
        run.catch_up()
    for name in tables:
        assert_equal([(files.sources["s1"], name)], (dm.server, name))


def test_a_load_that_dm_did_not_finish_is_not_gone_on_with(files: TaskFiles, dm: Dm, spark: SparkSession) -> None:
    name = dm.table("lightning_checkpoint_list")
    dm.server.run(
        f"CREATE TABLE {name} (task_name VARCHAR(255), source_name VARCHAR(255), status VARCHAR(10),"
        " PRIMARY KEY (task_name, source_name))",
        f"INSERT INTO {name} VALUES ('{files.name}', 's1', 'running')",
    )
    with pytest.raises(SyncError, match=r"SYNC-046[\s\S]*full load is not finished"):
        TaskRun(files, spark)
