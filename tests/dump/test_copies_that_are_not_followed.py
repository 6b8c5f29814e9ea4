"""A copy after which no binlog is followed: all tables are of one moment."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from support.dump_units import values_of
from support.task_runs import TaskFiles
from support.threads import run_tasks
from unshard.config.files import load_source, load_task
from unshard.config.subtask import plan_subtasks
from unshard.dump import lock_free, locked
from unshard.dump.metadata import read_dump
from unshard.dump.read import read_rows
from unshard.dump.unit import DumpUnit
from unshard.model.table import TableName
from unshard.testing.mariadb_server import MariadbServer
from unshard.worker import build

pytestmark = pytest.mark.server


@pytest.mark.parametrize(("grants", "consistency"), [("SELECT, BINLOG MONITOR", "lock-free"), ("ALL", "flush")])
def test_a_row_that_moves_from_table_to_table_is_copied_once(
    grants: str,
    consistency: str,
    make_dump: Callable[..., DumpUnit],
    source_server: MariadbServer,
    schema: str,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    """An account that may not lock reads all tables from one snapshot."""
    names = [TableName(schema, table) for table in "ab"]
    source_server.run(
        f"CREATE DATABASE {schema}",
        *(f"CREATE TABLE {name} (id INT PRIMARY KEY)" for name in names),
        *(f"INSERT INTO {name} VALUES ({number})" for number, name in enumerate(names)),
        f"CREATE USER {schema}@`127.0.0.1`",
        f"GRANT {grants} ON *.* TO {schema}@`127.0.0.1`",
    )
    moved: list[TableName] = []

    def read(connection: Any, table: Any, *more: Any, **named: Any) -> Any:
        if not moved:
            moved.append(table.name)
            (other,) = set(names) - {table.name}
            moves = (f"INSERT INTO {table.name} SELECT id FROM {other}", f"DELETE FROM {other}")
            source_server.run("START TRANSACTION", *moves, "COMMIT")
        return read_rows(connection, table, *more, **named)

    monkeypatch.setattr(lock_free, "read_rows", read)
    monkeypatch.setattr(locked, "read_rows", read)
    unit = make_dump(schema, threads=1, follows=False)
    unit._endpoint = replace(source_server.endpoint, user=schema)
    unit.run()
    assert moved, "before the other table was read"
    dump = read_dump(tmp_path / "dump")
    assert dump.header.consistency == consistency
    assert [values_of(tmp_path / "dump", dump.records[name]) for name in names] == [[0], [1]]


@pytest.mark.parametrize(("mode", "follows"), [("all", True), ("full", False), ("dump", False)])
def test_the_task_mode_says_whether_a_copy_is_followed(
    mode: str, follows: bool, source_server: MariadbServer, target_server: MariadbServer, schema: str, tmp_path: Path
) -> None:
    files = TaskFiles(tmp_path, schema, {"s1": source_server}, target_server, (schema,), {"task-mode": mode}).write()
    (config,) = plan_subtasks(load_task(files.task_path), [load_source(path) for path in files.source_paths])
    unit = build._dump(config, source_server.endpoint, tmp_path, run_tasks, 1)
    assert unit._settings.follows == follows
