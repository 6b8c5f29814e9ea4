"""The dump path and the binlog path give one Arrow value for each type, and it arrives in a target as it was."""

from __future__ import annotations

import struct
from collections.abc import Iterator

import pyarrow as pa
import pytest

from support.both_paths import Made, by_dump, create_copies, make, write
from unshard.model.change import IMAGE_FIELDS
from unshard.testing.mariadb_server import MariadbServer
from unshard.testing.type_cases import COMMON, MARIADB

CASES = {**COMMON, **MARIADB}
SCHEMA = "both_paths"


@pytest.fixture(scope="module")
def made(source_server: MariadbServer) -> Iterator[Made]:
    yield make(source_server, SCHEMA, CASES)
    source_server.run(f"DROP DATABASE {SCHEMA}")


def exact(values: pa.ChunkedArray | pa.Array) -> list[object]:
    """Python values in which -0.0 is not 0.0."""
    return [struct.pack("<d", value) if isinstance(value, float) else value for value in values.to_pylist()]


def test_dump_and_binlog_agree(source_server: MariadbServer, made: Made) -> None:
    logged = made.by_binlog()
    dumped = by_dump(source_server, made.tables)
    assert set(logged) == set(dumped) == {table.name for table in made.tables}
    assert set(made.columns) == set(CASES)
    for table in made.tables:
        assert list(logged[table.name].schema)[len(IMAGE_FIELDS) :] == list(dumped[table.name].schema)
    for definition, (name, column) in made.columns.items():
        batch = logged[name]
        assert batch.column("id").to_pylist() == list(range(batch.num_rows))
        assert batch.num_rows >= len(CASES[definition]), definition
        assert exact(batch.column(column)) == exact(dumped[name].column(column)), definition


def test_all_arrives_in_a_target(source_server: MariadbServer, target_server: MariadbServer, made: Made) -> None:
    create_copies(target_server, SCHEMA, made.tables)
    try:
        logged = made.by_binlog()
        write(target_server, [(table, logged[table.name]) for table in made.tables])
        ours, theirs = (by_dump(server, made.tables) for server in (source_server, target_server))
        for definition, (name, column) in made.columns.items():
            assert exact(theirs[name].column(column)) == exact(ours[name].column(column)), definition
    finally:
        target_server.run(f"DROP DATABASE {SCHEMA}")
