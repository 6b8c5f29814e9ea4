"""A copy loads only into tables that hold no rows but its own."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from unshard.dump.unit import DumpUnit
from unshard.errors import LoadError
from unshard.load.unit import LoadUnit
from unshard.model.table import TableName
from unshard.mysql.connection import session
from unshard.target.filled import FilledTables
from unshard.target.forget import forget_task
from unshard.testing.servers import MariadbServer
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
    assert f"{name} holds 1 row that this task has no record of" in str(error)
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
        assert f"{name} holds 10 rows" in str(error) and "--reset" in str(error)
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
