"""A target that takes names in upper and lower case for the same: a source's table may be one that is there already."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from support.dump_units import MakeDump
from support.target_servers import folding_names
from support.task_runs import TaskFiles
from unshard.config.files import load_source, load_task
from unshard.config.subtask import plan_subtasks
from unshard.load.unit import LoadUnit
from unshard.model.table import TableName
from unshard.operate.reset import look, undo
from unshard.testing.mariadb_server import MariadbServer
from unshard.testing.throwaway_server import ThrowawayServer

pytestmark = pytest.mark.server

Make = Callable[..., LoadUnit]


@pytest.fixture
def folding(target_server: ThrowawayServer) -> Iterator[ThrowawayServer]:
    with folding_names(target_server) as server:
        yield server


def test_a_reset_does_not_drop_a_table_that_the_creation_has_found(
    make_load: Make,
    make_dump: MakeDump,
    source_server: MariadbServer,
    folding: ThrowawayServer,
    schema: str,
    tmp_path: Path,
) -> None:
    name, users, made = TableName(schema, "Orders"), TableName(schema, "orders"), TableName(schema, "others")
    columns = "(id BIGINT PRIMARY KEY)"
    source_server.run(f"CREATE DATABASE {schema}", f"CREATE TABLE {name} {columns}", f"CREATE TABLE {made} {columns}")
    source_server.run(f"INSERT INTO {name} VALUES (1), (2)", f"INSERT INTO {made} VALUES (1)")
    folding.run(f"CREATE DATABASE {schema}", f"CREATE TABLE {users} {columns}")
    make_dump(schema).run()
    files = TaskFiles(tmp_path / "files", "task", {"shard-1": source_server}, folding, (schema,))
    files.keys = {"meta-schema": f"{schema}_meta"}
    files.write()
    make_load(f"{schema}", target=folding).run()
    configs = plan_subtasks(load_task(files.task_path), [load_source(path) for path in files.source_paths])
    undone = look(configs)
    assert (undone.drops, undone.empties) == (((made, "1 row"),), ((name, "2 rows"),))
    undo(configs, undone)
    assert folding.query(f"SELECT * FROM {users}") == []
