"""The disk refuses at each kind of file of a dump: it says so, leaves no half file, and the next start goes on."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from unshard.dump.metadata import read_dump
from unshard.model.table import TableName
from unshard.testing.mariadb_server import MariadbServer

pytestmark = [pytest.mark.server, pytest.mark.recovery]
CHILD = Path(__file__).with_name("child.py")


def dump(server: MariadbServer, schema: str, folder: Path, consistency: str, largest_file: int) -> tuple[int, str]:
    """The child's exit code and what it printed; no file of its may grow beyond `largest_file` bytes."""
    order = {"source": server.port, "folder": str(folder), "schema": schema, "consistency": consistency}
    done = subprocess.run(
        [sys.executable, CHILD, json.dumps(order)],
        timeout=120,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (largest_file, largest_file)),
    )
    return done.returncode, done.stderr


@pytest.mark.parametrize("consistency", ["auto", pytest.param("flush", marks=pytest.mark.faults)])
def test_a_full_disk(consistency: str, source_server: MariadbServer, schema: str, tmp_path: Path) -> None:
    columns = ", ".join(f"a_column_with_a_long_name_{number} INT" for number in range(50))
    source_server.run(
        f"CREATE DATABASE {schema}",
        f"CREATE TABLE {schema}.long_rows (id INT PRIMARY KEY, b BLOB)",
        f"CREATE TABLE {schema}.wide (id INT PRIMARY KEY, {columns})",
    )
    fill = f"INSERT INTO {schema}.long_rows SELECT seq, RANDOM_BYTES(1000) FROM seq_1_to_1500"
    for largest, about, statements in (
        (10, "dump.json", ()),
        (2_000, "wide.json", ()),
        (100_000, "long_rows", (fill,)),
    ):
        source_server.run(*statements, database="mysql")
        folder = tmp_path / about
        code, text = dump(source_server, schema, folder, consistency, largest)
        assert code == 1
        assert "DumpError: DUMP-009 [source shard-1" in text, text
        assert "File too large" in text, text
        assert about in text.splitlines()[-3], text
        assert list(folder.rglob("*.parquet")) == list(folder.rglob("*.tmp")) == []
        assert dump(source_server, schema, folder, consistency, 1 << 30) == (0, "")
        ((count,),) = source_server.query(f"SELECT COUNT(*) FROM {schema}.long_rows")
        assert read_dump(folder).records[TableName(schema, "long_rows")].rows == count
