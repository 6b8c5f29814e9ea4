"""A system-versioned table of a MariaDB target holds rows as any other table does."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from support.dump_units import MakeDump
from support.task_runs import TaskFiles
from unshard.config.files import load_source, load_task
from unshard.config.subtask import plan_subtasks
from unshard.errors import LoadError
from unshard.load.empty_tables import EmptyTables
from unshard.load.unit import LoadUnit
from unshard.model.table import TableName
from unshard.mysql.connection import session
from unshard.operate.reset import look, undo
from unshard.target.filled import FilledTables
from unshard.testing.mariadb_server import MariadbServer

pytestmark = pytest.mark.server

Make = Callable[..., LoadUnit]


@pytest.fixture
def target_server() -> Iterator[MariadbServer]:
    """A MariaDB of its own, whatever the run's target is: no other product has such tables."""
    with MariadbServer() as server:
        yield server


@pytest.fixture
def name(make_dump: MakeDump, source_server: MariadbServer, target_server: MariadbServer, schema: str) -> TableName:
    """A table of 3 rows, dumped; the target has made an empty one of that name that keeps its history."""
    table = TableName(schema, "t")
    columns = f"CREATE TABLE {table} (id BIGINT PRIMARY KEY)"
    source_server.run(f"CREATE DATABASE {schema}", columns, f"INSERT INTO {table} VALUES (1), (2), (3)")
    target_server.run(f"CREATE DATABASE {schema}", f"{columns} WITH SYSTEM VERSIONING")
    make_dump(schema).run()
    return table


def test_its_rows_stop_a_copy(make_load: Make, name: TableName, target_server: MariadbServer) -> None:
    target_server.run(f"INSERT INTO {name} VALUES (100), (200)")
    with pytest.raises(LoadError) as caught:
        make_load(name.schema).run()
    assert caught.value.code == "LOAD-026"
    assert f"{name} contains 2 rows that are not in the task's records" in str(caught.value)
    assert target_server.query(f"SELECT id FROM {name} ORDER BY id") == [(100,), (200,)]


def test_one_that_has_rows_is_not_made_anew(make_load: Make, name: TableName, target_server: MariadbServer) -> None:
    make_load(name.schema).run()
    meta = f"{name.schema}_meta"
    target_server.run(
        f"UPDATE {meta}.task_lightning_checkpoint_list SET status = 'running'",
        f"UPDATE {meta}.task_load_table SET made = TRUE",
    )
    empty = EmptyTables(FilledTables(meta, "task"))
    with session(target_server.endpoint, "target") as connection:
        assert not empty.among(connection, [name])
        assert not empty.take_away(connection, name)
    assert target_server.query(f"SELECT COUNT(*) FROM {name}") == [(3,)]


def test_a_reset_counts_its_rows_and_keeps_the_history_of_others(
    make_load: Make, name: TableName, source_server: MariadbServer, target_server: MariadbServer, tmp_path: Path
) -> None:
    """MariaDB does not truncate such a table."""
    target_server.run(f"INSERT INTO {name} VALUES (100)", f"DELETE FROM {name}")
    files = TaskFiles(tmp_path / "files", "task", {"shard-1": source_server}, target_server, (name.schema,))
    files.keys = {"meta-schema": f"{name.schema}_meta"}
    files.write()
    make_load(name.schema).run()
    configs = plan_subtasks(load_task(files.task_path), [load_source(path) for path in files.source_paths])
    undone = look(configs)
    assert undone.empties == ((name, "3 rows"),)
    undo(configs, undone)
    assert target_server.query(f"SELECT * FROM {name}") == []
    assert (100,) in target_server.query(f"SELECT id FROM {name} FOR SYSTEM_TIME ALL")
    assert make_load(name.schema).run().rows == 3
