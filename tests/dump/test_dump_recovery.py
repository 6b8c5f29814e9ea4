"""A dump that is killed just before or just after any durable write goes on, or starts over, and is whole."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from support.dump_units import values_of
from unshard.dump.metadata import read_dump, read_header, read_records
from unshard.model.table import TableName
from unshard.testing.mariadb_server import MariadbServer

pytestmark = [pytest.mark.server, pytest.mark.recovery]
CHILD = Path(__file__).with_name("child.py")
PLACES = [
    "dump-header-before",
    "dump-header-after",
    "dump-file-before",
    "dump-file-after:2",
    "dump-table-before",
    "dump-table-after",
    "dump-table-before:2",
    "dump-table-after:2",
    "dump-rename-before",
    "dump-rename-after:2",
    "dump-header-before:2",
]
WAYS = [("auto", place) for place in PLACES]
WAYS += [("flush", place) for place in ("dump-file-after", "dump-table-after", "dump-rename-after")]
MOST_TELLING = {
    ("auto", "dump-file-before"),
    ("auto", "dump-table-after"),
    ("auto", "dump-rename-before"),
    ("flush", "dump-rename-after"),
}


def dump(server: MariadbServer, schema: str, folder: Path, consistency: str, crash_at: str = "") -> int:
    order = {"source": server.port, "folder": str(folder), "schema": schema, "consistency": consistency}
    environment = {**os.environ, "UNSHARD_CRASH_AT": crash_at}
    return subprocess.run([sys.executable, CHILD, json.dumps(order)], env=environment, timeout=120).returncode


@pytest.mark.parametrize(
    ("consistency", "place"),
    [pytest.param(*way, marks=() if way in MOST_TELLING else pytest.mark.faults) for way in WAYS],
)
def test_a_killed_dump_is_completed(
    consistency: str, place: str, source_server: MariadbServer, schema: str, tmp_path: Path
) -> None:
    source_server.run(
        f"CREATE DATABASE {schema}",
        f"CREATE TABLE {schema}.a (id INT PRIMARY KEY)",
        f"CREATE TABLE {schema}.b (id INT PRIMARY KEY)",
        f"INSERT INTO {schema}.a SELECT seq FROM seq_1_to_1500",
        f"INSERT INTO {schema}.b SELECT seq FROM seq_1_to_900",
        database="mysql",
    )
    folder = tmp_path / "dump"
    assert dump(source_server, schema, folder, consistency, place) == -signal.SIGKILL
    header = read_header(folder)
    done = read_records(folder, header) if header else {}
    source_server.run(f"DELETE FROM {schema}.a WHERE id = 7", f"DELETE FROM {schema}.b WHERE id = 7")
    assert dump(source_server, schema, folder, consistency) == 0
    again = read_dump(folder)
    for table, count in ((TableName(schema, "a"), 1500), (TableName(schema, "b"), 900)):
        record = again.records[table]
        kept = consistency == "auto" and table in done
        assert record.rows == (count if kept else count - 1), "a table is of one moment, the one it is recorded for"
        if kept:
            assert record.location == done[table].location
        rows = values_of(folder, record)
        assert len(rows) == len(set(rows)) == record.rows
    left_over = [path for path in folder.rglob("*") if path.parent.name == "parts"]
    assert left_over == []
    assert {path.name for path in folder.glob("*.parquet")} == {
        file.name for record in again.records.values() for file in record.files
    }
