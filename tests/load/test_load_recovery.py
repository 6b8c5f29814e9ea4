"""A load that is killed at any durable write and started again loads every row once: the target's binlog tells."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from support.dump_units import load
from unshard.dump.unit import DumpUnit
from unshard.load.unit import LoadResult, LoadUnit
from unshard.testing.mariadb_server import MariadbServer

pytestmark = [pytest.mark.server, pytest.mark.recovery]
PLACES = [
    "load-piece-commit:4",
    "load-piece-after",
    "load-finish-before",
    *(
        pytest.param(place, marks=pytest.mark.faults)
        for place in ("load-piece-before:2", "load-piece-commit", "load-piece-after:3", "load-finish-after")
    ),
]


def rows_written(server: MariadbServer, schema: str) -> int:
    """Rows of INSERTs into the schema's tables in the server's binlog, as mariadb-binlog prints them."""
    names = [str(path) for path in server.binlog_files()]
    command = ["mariadb-binlog", "--base64-output=decode-rows", "-v", f"--database={schema}", *names]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return text.count(f"### INSERT INTO `{schema}`.")


@pytest.mark.parametrize("place", PLACES)
def test_a_killed_load_loads_every_row_once(
    place: str,
    make_dump: Callable[..., DumpUnit],
    source_server: MariadbServer,
    target_server: MariadbServer,
    schema: str,
    tmp_path: Path,
) -> None:
    source_server.run(
        f"CREATE DATABASE {schema}",
        f"CREATE TABLE {schema}.a (id INT PRIMARY KEY)",
        f"CREATE TABLE {schema}.keyless (id INT)",
        f"INSERT INTO {schema}.a SELECT seq FROM seq_1_to_1500",
        f"INSERT INTO {schema}.keyless SELECT seq % 7 FROM seq_1_to_900",
        database="mysql",
    )
    make_dump(schema, rows=400).run()
    assert load(target_server, schema, tmp_path / "dump", place) == -signal.SIGKILL
    assert load(target_server, schema, tmp_path / "dump") == 0
    for table in ("a", "keyless"):
        there = f"SELECT COUNT(*), SUM(id) FROM {schema}.{table}"
        assert target_server.query(there) == source_server.query(there)
    assert rows_written(target_server, schema) == 2400
    assert target_server.query(f"SELECT SUM(done_rows), MIN(finished) FROM {schema}_meta.task_load_chunk") == [
        (2400, 1)
    ]


def test_a_load_of_which_only_the_end_is_left_starts_no_task(
    make_dump: Callable[..., DumpUnit],
    make_load: Callable[..., LoadUnit],
    source_server: MariadbServer,
    target_server: MariadbServer,
    schema: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    source_server.run(f"CREATE DATABASE {schema}", f"CREATE TABLE {schema}.t AS SELECT 1 AS id")
    make_dump(schema).run()
    assert load(target_server, schema, tmp_path / "dump", "load-finish-before") == -signal.SIGKILL
    unit = make_load(schema)
    monkeypatch.setattr(unit, "_run_tasks", None)
    assert unit.run() == LoadResult(1, 1)
    assert target_server.query(f"SELECT id FROM {schema}.t") == [(1,)]
