"""A dump needs no connection that idled while a table was read: the source, or what is between, may have ended it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import MySQLdb
import pytest

from unshard.dump import lock_free, locked
from unshard.dump.metadata import read_dump
from unshard.dump.unit import DumpUnit
from unshard.model.table import TableName
from unshard.mysql.connection import Endpoint
from unshard.testing.mariadb_server import MariadbServer

pytestmark = pytest.mark.server


@pytest.mark.parametrize("consistency", ["flush", "none", "lock-free"])
def test_what_asks_for_structures_may_be_ended_while_rows_are_read(
    consistency: str,
    make_dump: Callable[..., DumpUnit],
    source_server: MariadbServer,
    schema: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Two tables of one task and, without a lock, of one snapshot: after each, what asked for structures is gone."""
    tables = [TableName(schema, name) for name in ("a", "b")]
    made = (f"CREATE TABLE {name} (id INT AUTO_INCREMENT PRIMARY KEY)" for name in tables)
    source_server.run(f"CREATE DATABASE {schema}", *made, *(f"INSERT INTO {name} VALUES (7)" for name in tables))
    idle: set[int] = set()
    runs: list[Path] = []

    for module in (locked, lock_free):
        real_reader, real_write = module.reader, module.write_files

        @contextmanager
        def reader(endpoint: Endpoint, *, text: bool, real: Any = real_reader) -> Iterator[Any]:
            with real(endpoint, text=text) as connection:
                if text:
                    idle.add(connection.thread_id())
                yield connection

        def write_files(parts: Path, *more: Any, real: Any = real_write) -> Any:
            files = real(parts, *more)
            runs.append(parts)
            for number in idle:
                with suppress(MySQLdb.Error):  # it has ended
                    source_server.run(f"KILL {number}")
            idle.clear()
            return files

        monkeypatch.setattr(module, "reader", reader)
        monkeypatch.setattr(module, "write_files", write_files)
    make_dump(schema, consistency=consistency, threads=1, follows=False).run()
    records = read_dump(tmp_path / "dump").records
    assert {name: record.counter for name, record in records.items()} == dict.fromkeys(tables, 8)
    assert len(runs) == 2, "a table was read again"
