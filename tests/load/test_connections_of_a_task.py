"""A task that loads over several connections, as one does into TiDB."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

from support.dump_units import MakeDump
from unshard.errors import LoadError
from unshard.load import unit
from unshard.load.unit import LoadUnit
from unshard.load.write import Writer
from unshard.testing.mariadb_server import MariadbServer

pytestmark = pytest.mark.server
ROWS = ",".join(f"({number}, {number})" for number in range(600))


@pytest.fixture(autouse=True)
def several(monkeypatch: pytest.MonkeyPatch) -> None:
    """The target is taken for one to which a task has several connections."""
    monkeypatch.setattr(unit, "is_tidb", lambda connection: True)


def dumped(source: MariadbServer, schema: str, make_dump: MakeDump) -> None:
    source.run(f"CREATE DATABASE {schema}")
    for table in (f"{schema}.{name}" for name in "abc"):
        source.run(f"CREATE TABLE {table} (id INT PRIMARY KEY, v INT)", f"INSERT INTO {table} VALUES {ROWS}")
    make_dump(schema, rows=100).run()


def test_files_are_loaded_over_several_connections_at_once(
    source_server: MariadbServer,
    target_server: MariadbServer,
    schema: str,
    make_dump: MakeDump,
    make_load: Callable[..., LoadUnit],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    dumped(source_server, schema, make_dump)
    together = threading.Barrier(3)
    met: set[Writer] = set()
    apply = Writer.apply

    def first_together(writer: Writer, *arguments: Any) -> None:
        if writer not in met:
            met.add(writer)
            together.wait(60)
        apply(writer, *arguments)

    monkeypatch.setattr(Writer, "apply", first_together)
    result = make_load(schema, pool_size=3, tasks=1).run()
    assert len(met) == 3
    assert result.rows == 1800
    for table in ("a", "b", "c"):
        assert target_server.query(f"SELECT COUNT(*), SUM(v) FROM {schema}.{table}") == [(600, sum(range(600)))]


def test_the_error_of_one_connection_ends_the_others_and_the_load_goes_on_later(
    source_server: MariadbServer,
    target_server: MariadbServer,
    schema: str,
    make_dump: MakeDump,
    make_load: Callable[..., LoadUnit],
) -> None:
    dumped(source_server, schema, make_dump)
    target_server.run(f"CREATE DATABASE {schema}", f"CREATE TABLE {schema}.b (id INT PRIMARY KEY, v INT)")
    target_server.run(f"INSERT INTO {schema}.b VALUES (599, 1)")
    with pytest.raises(LoadError, match="LOAD-005"):
        make_load(schema, incremental_import=True, pool_size=4, tasks=1).run()
    target_server.run(f"DELETE FROM {schema}.b WHERE id = 599 AND v = 1")
    make_load(schema, pool_size=4, tasks=1).run()
    for table in ("a", "b", "c"):
        assert target_server.query(f"SELECT COUNT(*), SUM(v) FROM {schema}.{table}") == [(600, sum(range(600)))]
