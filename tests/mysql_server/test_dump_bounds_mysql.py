"""Key ranges of a dump from a MySQL whose own sql_mode refuses values that its tables have."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.dump_units import dump_of, values_of
from unshard.dump.metadata import read_dump
from unshard.testing.mysql_server import Mysql80Server

pytestmark = pytest.mark.server


def test_a_bound_with_a_zero_date(mysql_80: Mysql80Server, schema: str, tmp_path: Path) -> None:
    """The default mode refuses to compare a column to '0000-00-00 00:00:00'."""
    rows = ", ".join(f"('0000-00-00 00:00:00', {number})" for number in range(100))
    mysql_80.run(
        f"CREATE DATABASE {schema}",
        f"CREATE TABLE {schema}.t (at DATETIME NOT NULL, id INT NOT NULL, PRIMARY KEY (at, id))",
        f"SET @@session.sql_mode = ''; INSERT INTO {schema}.t VALUES {rows}, ('2024-05-01 00:00:00', 100)",
        f"ANALYZE TABLE {schema}.t",
    )
    dump_of(mysql_80, tmp_path, schema, rows=15).run()
    (record,) = read_dump(tmp_path / "dump").records.values()
    assert len(record.files) >= 6
    assert values_of(tmp_path / "dump", record) == list(range(101))
