"""A copy loads only into tables that hold no rows but its own."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from threading import Thread

import pytest

from support.waiting import wait_until
from unshard.dump.unit import DumpUnit
from unshard.errors import LoadError
from unshard.load.empty_tables import EmptyTables
from unshard.load.unit import LoadUnit
from unshard.model.table import TableName
from unshard.mysql.connection import session
from unshard.target.filled import FilledTables
from unshard.target.forget import forget_task
from unshard.testing.mariadb_server import MariadbServer
from unshard.testing.tidb_server import TidbServer
from unshard.transform.column_mapping import ColumnMapping

pytestmark = pytest.mark.server

Make = Callable[..., LoadUnit]


@pytest.fixture
def name(make_dump: Callable[..., DumpUnit], source_server: MariadbServer, schema: str) -> TableName:
    """A table of 10 rows, dumped."""
    table = TableName(schema, "t")
    source_server.run(f"CREATE DATABASE {schema}", f"CREATE TABLE {table} (id BIGINT PRIMARY KEY)", database="mysql")
    source_server.run(*(f"INSERT INTO {table} VALUES ({number})" for number in range(1, 11)))
    make_dump(schema).run()
    return table


def refused(load: LoadUnit, code: str) -> LoadError:
    with pytest.raises(LoadError) as caught:
        load.run()
    assert caught.value.code == code
    return caught.value


def test_rows_of_others_stop_a_copy_before_its_first(
    make_load: Make, name: TableName, target_server: MariadbServer
) -> None:
    target_server.run(f"CREATE DATABASE {name.schema}", f"CREATE TABLE {name} (id BIGINT PRIMARY KEY)")
    target_server.run(f"INSERT INTO {name} VALUES (100)")
    error = refused(make_load(name.schema), "LOAD-026")
    assert f"{name} contains 1 row that are not in the task's records" in str(error)
    refused(make_load(name.schema), "LOAD-026")
    assert target_server.query(f"SELECT id FROM {name}") == [(100,)]
    target_server.run(f"TRUNCATE TABLE {name}")
    assert make_load(name.schema).run().rows == 10
    assert make_load(name.schema).run().rows == 10


def test_a_copy_may_be_told_to_load_beside_rows(make_load: Make, name: TableName, target_server: MariadbServer) -> None:
    target_server.run(f"CREATE DATABASE {name.schema}", f"CREATE TABLE {name} (id BIGINT PRIMARY KEY)")
    target_server.run(f"INSERT INTO {name} VALUES (100)")
    make_load(name.schema, incremental_import=True).run()
    assert target_server.query(f"SELECT COUNT(*), MAX(id) FROM {name}") == [(11, 100)]


def test_rows_of_another_source_of_the_task_are_no_rows_of_others(
    make_load: Make, name: TableName, target_server: MariadbServer
) -> None:
    mapping = ColumnMapping("rule", name, "id", "id", 1 << 44)
    make_load(name.schema).run()
    make_load(name.schema, source="shard-2", mapping_for=lambda table: mapping).run()
    assert target_server.query(f"SELECT COUNT(*) FROM {name}") == [(20,)]


def test_what_an_attempt_that_was_forgotten_wrote_stops_the_next(
    make_load: Make, name: TableName, target_server: MariadbServer
) -> None:
    make_load(name.schema).run()
    mapping = ColumnMapping("rule", name, "id", "id", 1 << 44)
    for settings in ({}, {"incremental_import": True}):
        with session(target_server.endpoint, "target") as connection:
            forget_task(connection, f"{name.schema}_meta", "task")
        error = refused(make_load(name.schema, mapping_for=lambda table: mapping, **settings), "LOAD-025")
        assert f"{name} holds 10 rows" in str(error)
        assert "--reset" in str(error)
    target_server.run(f"TRUNCATE TABLE {name}")
    make_load(name.schema, mapping_for=lambda table: mapping).run()
    assert target_server.query(f"SELECT COUNT(*), MIN(id >> 44) FROM {name}") == [(10, 1)]


def test_a_load_that_an_earlier_version_began_goes_on(
    make_load: Make, name: TableName, target_server: MariadbServer
) -> None:
    make_load(name.schema).run()
    meta = f"{name.schema}_meta"
    target_server.run(
        f"DROP TABLE {meta}.task_load_table", f"UPDATE {meta}.task_lightning_checkpoint_list SET status = 'running'"
    )
    assert make_load(name.schema).run().rows == 10
    with session(target_server.endpoint, "target") as connection:
        (record,) = FilledTables(meta, "task").read(connection).values()
    assert (record.table, record.made, record.had_rows, record.earlier) == (name, False, False, False)


def test_which_tables_the_task_has_made_is_on_record(
    make_load: Make, make_dump: Callable[..., DumpUnit], name: TableName, target_server: MariadbServer
) -> None:
    other = TableName(name.schema, "other")
    target_server.run(f"CREATE DATABASE {name.schema}", f"CREATE TABLE {other} (id BIGINT PRIMARY KEY)")
    make_load(name.schema).run()
    make_load(name.schema, source="shard-2", route=lambda table: other).run()
    with session(target_server.endpoint, "target") as connection:
        records = FilledTables(f"{name.schema}_meta", "task").read(connection)
    assert {table: (one.source, one.made) for table, one in records.items()} == {
        name: ("shard-1", True),
        other: ("shard-2", False),
    }


def test_an_empty_table_that_the_task_has_made_is_made_anew_where_the_source_has_other_columns(
    make_load: Make,
    make_dump: Callable[..., DumpUnit],
    name: TableName,
    source_server: MariadbServer,
    target_server: MariadbServer,
    tmp_path: Path,
) -> None:
    """The way of LOAD-025 by hand: the records are dropped, the table emptied; meanwhile the source was altered."""
    make_load(name.schema).run()
    with session(target_server.endpoint, "target") as connection:
        forget_task(connection, f"{name.schema}_meta", "task")
    target_server.run(f"TRUNCATE TABLE {name}")
    source_server.run(f"ALTER TABLE {name} ADD COLUMN v VARCHAR(9) NOT NULL DEFAULT 'x'", database="mysql")
    shutil.rmtree(tmp_path / "dump")
    make_dump(name.schema).run()
    assert make_load(name.schema).run().rows == 10
    assert target_server.query(f"SELECT COUNT(*), MIN(v) FROM {name}") == [(10, "x")]


def test_a_table_that_others_have_made_is_not_made_anew(
    make_load: Make, name: TableName, target_server: MariadbServer
) -> None:
    target_server.run(f"CREATE DATABASE {name.schema}", f"CREATE TABLE {name} (other BIGINT PRIMARY KEY)")
    refused(make_load(name.schema), "LOAD-004")
    assert target_server.query(f"SHOW COLUMNS FROM {name}")[0][0] == "other"


@pytest.fixture
def made(make_load: Make, name: TableName, target_server: MariadbServer) -> tuple[EmptyTables, TableName]:
    """The table as the task has made it: empty, and no load is finished."""
    make_load(name.schema).run()
    meta = f"{name.schema}_meta"
    target_server.run(f"TRUNCATE TABLE {name}", f"UPDATE {meta}.task_lightning_checkpoint_list SET status = 'running'")
    return EmptyTables(FilledTables(meta, "task")), name


def test_a_table_that_gets_a_row_in_the_last_moment_keeps_it(
    made: tuple[EmptyTables, TableName], target_server: MariadbServer
) -> None:
    empty, name = made
    writer = target_server.connection(name.schema)
    with writer.cursor() as cursor, session(target_server.endpoint, "target") as connection:
        cursor.execute("BEGIN")
        cursor.execute(f"INSERT INTO {name} VALUES (77)")
        assert name in empty.among(connection, [name]), "the row is not committed yet"
        taken: list[bool] = []
        taking = Thread(target=lambda: taken.append(empty.take_away(connection, name)))
        taking.start()
        if isinstance(target_server, TidbServer):
            waits = "SELECT 1 FROM mysql.tidb_mdl_view"
        else:
            waits = "SELECT 1 FROM information_schema.PROCESSLIST WHERE STATE LIKE '%metadata lock%'"
        wait_until(lambda: bool(target_server.query(waits)), "the RENAME waits for the writer")
        cursor.execute("COMMIT")
        taking.join()
    writer.close()
    assert taken == [False]
    assert target_server.query(f"SELECT * FROM {name}") == [(77,)]


@pytest.mark.parametrize("rows", [0, 1])
def test_a_death_behind_the_rename_loses_nothing(
    made: tuple[EmptyTables, TableName], target_server: MariadbServer, rows: int
) -> None:
    empty, name = made
    target_server.run(*[f"INSERT INTO {name} VALUES (77)"] * rows, f"RENAME TABLE {name} TO {empty._aside(name)}")
    with session(target_server.endpoint, "target") as connection:
        empty.put_back(connection, [name])
    there = target_server.query(
        f"SELECT TABLE_ROWS >= 0 FROM information_schema.TABLES WHERE TABLE_NAME = '{name.table}'"
        f" AND TABLE_SCHEMA = '{name.schema}'"
    )
    assert len(there) == rows
    assert target_server.query(f"SHOW TABLES FROM {empty.records.schema} LIKE '%emptied%'") == []


def test_a_table_to_which_a_foreign_key_refers_and_one_behind_a_finished_load_stay(
    made: tuple[EmptyTables, TableName], target_server: MariadbServer
) -> None:
    empty, name = made
    with session(target_server.endpoint, "target") as connection:
        assert empty.among(connection, [name]) == {name}
        child = f"{empty.records.schema}.child"
        target_server.run(f"CREATE TABLE {child} (id BIGINT, FOREIGN KEY (id) REFERENCES {name} (id))")
        assert not empty.among(connection, [name])
        assert not empty.take_away(connection, name)
        target_server.run(f"DROP TABLE {child}")
        target_server.run(f"UPDATE {empty.records.schema}.task_lightning_checkpoint_list SET status = 'finished'")
        assert not empty.among(connection, [name])
