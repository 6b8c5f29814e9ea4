"""The tables of `bench load_shapes`, and the figures of several runs."""

from __future__ import annotations

import pytest
from bench.load import SCHEMA, _median, _spread
from bench.load_shapes import SHAPES

from unshard.testing.mariadb_server import MariadbServer


@pytest.mark.server
@pytest.mark.parametrize(
    ("shape", "tables", "rows"),
    [("narrow", 1, 2_000), ("wide", 1, 2_000), ("blobs", 1, 20), ("many", 20, 2_000), ("huge", 1, 2_000)],
)
def test_each_shape_has_its_tables_and_rows(shape: str, tables: int, rows: int, source_server: MariadbServer) -> None:
    source_server.run(f"CREATE DATABASE {SCHEMA}")
    try:
        SHAPES[shape](source_server, 0.0)
        asked = f"SELECT TABLE_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA = '{SCHEMA}'"
        names = [str(name) for (name,) in source_server.query(asked)]
        counts = [int(source_server.query(f"SELECT COUNT(*) FROM {SCHEMA}.{name}")[0][0]) for name in names]
        assert (len(names), sum(counts)) == (tables, rows)
    finally:
        source_server.run(f"DROP DATABASE {SCHEMA}")


def test_every_shape_is_tested() -> None:
    assert set(SHAPES) == {"narrow", "wide", "blobs", "many", "huge"}


def test_the_median_is_that_of_whole_runs_and_the_spread_theirs() -> None:
    runs = [(1.0, 2.0), (0.5, 3.5), (2.0, 0.1)]
    assert _median(runs) == (1.0, 2.0)
    assert _spread("native_", runs) == {"native_shortest_s": 2.1, "native_longest_s": 4.0}
    assert _spread("", runs[:1]) == {}
