"""Views and sequences in the place of a table: what a statement of the log names need not be a table."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from unshard.dump.metadata import read_dump
from unshard.dump.unit import DumpUnit
from unshard.model.table import TableName
from unshard.testing.mariadb_server import MariadbServer

pytestmark = pytest.mark.server


def test_they_are_absent_from_a_copy(
    make_dump: Callable[..., DumpUnit], source_server: MariadbServer, schema: str, tmp_path: Path
) -> None:
    source_server.run(
        f"CREATE DATABASE {schema}",
        f"CREATE TABLE {schema}.t (id INT PRIMARY KEY)",
        f"CREATE TABLE {schema}.gone (id INT PRIMARY KEY)",
        f"INSERT INTO {schema}.t VALUES (1), (2)",
        f"CREATE VIEW {schema}.view AS SELECT * FROM {schema}.t",
        f"CREATE VIEW {schema}.broken AS SELECT * FROM {schema}.gone",
        f"DROP TABLE {schema}.gone",
        f"CREATE SEQUENCE {schema}.counter",
    )
    named = frozenset(TableName(schema, table) for table in ("view", "broken", "counter", "t"))
    told = [named, frozenset[TableName]()]
    assert make_dump(schema).run_apart_from(lambda _: told.pop(0)) is not None
    records = read_dump(tmp_path / "dump").records
    assert {name.table: record.table.is_absent for name, record in records.items()} == {
        "view": True,
        "broken": True,
        "counter": True,
        "t": False,
    }
    assert records[TableName(schema, "t")].rows == 2
