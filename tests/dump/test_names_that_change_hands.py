"""A snapshot of a table has its rows, though another table of the same structure takes its name at that moment."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from support.dump_units import values_of
from support.waiting import wait_until
from unshard.dump import lock_free
from unshard.dump.metadata import read_dump
from unshard.dump.unit import DumpUnit
from unshard.model.position import Location
from unshard.source.snapshot import snapshots_apart_from_xa
from unshard.testing.mariadb_server import MariadbServer

pytestmark = pytest.mark.server


@pytest.mark.parametrize(
    "statement",
    ["RENAME TABLE {s}.a TO {s}.x, {s}.z TO {s}.a, {s}.x TO {s}.z", "RENAME TABLE {s}.a TO {s}.y, {s}.z TO {s}.a"],
)
def test_the_rows_are_those_of_the_location(
    statement: str,
    make_dump: Callable[..., DumpUnit],
    source_server: MariadbServer,
    schema: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It is renamed as soon as there is a snapshot: at once, or when the statement gets the table."""
    source_server.run(
        f"CREATE DATABASE {schema}",
        *(f"CREATE TABLE {schema}.{table} (v CHAR(1)) COMMENT = 'one'" for table in "az"),
        *(f"INSERT INTO {schema}.{table} VALUES ('{table}'), ('{table}')" for table in "az"),
    )
    sql = statement.format(s=schema)
    first = threading.Lock()  # several threads of the dump take snapshots at a time
    renaming = threading.Thread(target=lambda: source_server.run(sql))
    waiting = f"SELECT 1 FROM information_schema.PROCESSLIST WHERE INFO = '{sql}' AND STATE LIKE 'Waiting%metadata%'"

    def snapshot(*connections: Any) -> tuple[Location, int]:
        found = snapshots_apart_from_xa(*connections)
        if first.acquire(blocking=False):
            renaming.start()
            done = lambda: not renaming.is_alive() or bool(source_server.query(waiting))  # noqa: E731
            wait_until(done, "the statement has run, or waits")
        return found

    monkeypatch.setattr(lock_free, "snapshots_apart_from_xa", snapshot)
    make_dump(schema).run()
    renaming.join()
    (file, *_) = source_server.query("SHOW BINARY LOGS")[-1]
    events = source_server.query(f"SHOW BINLOG EVENTS IN '{file}'")
    renamed = next(row[1] for row in events if row[2] == "Query" and row[5].endswith(sql))
    for name, record in read_dump(tmp_path / "dump").records.items():
        before = record.location.position.offset < renamed
        now = {"a": "z", "z": "a" if "x" in statement else None, "y": "a"}
        expected = name.table if before else now[name.table]
        found = set(values_of(tmp_path / "dump", record, "v"))
        assert found == {expected} - {None}, (name, record.location, renamed)
