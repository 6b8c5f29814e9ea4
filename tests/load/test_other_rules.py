"""Rules that change between two attempts at a load: never half a table by each."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from unshard.dump.unit import DumpUnit
from unshard.errors import ConfigError, LoadError
from unshard.load.unit import LoadUnit
from unshard.model.table import TableName
from unshard.testing.mariadb_server import MariadbServer
from unshard.transform.column_mapping import ColumnMapping

pytestmark = pytest.mark.server


def test_a_file_that_is_begun_keeps_its_rules(
    make_dump: Callable[..., DumpUnit],
    make_load: Callable[..., LoadUnit],
    source_server: MariadbServer,
    target_server: MariadbServer,
    schema: str,
) -> None:
    source_server.run(
        f"CREATE DATABASE {schema}",
        f"CREATE TABLE {schema}.a (id BIGINT PRIMARY KEY)",
        f"CREATE TABLE {schema}.b (id BIGINT PRIMARY KEY)",
        f"INSERT INTO {schema}.a SELECT seq FROM seq_1_to_900",
        f"INSERT INTO {schema}.b VALUES ({1 << 44})",
        database="mysql",
    )
    make_dump(schema, rows=400).run()

    def load(route: str = "a", **numbers: int) -> None:
        mappings = {
            name: ColumnMapping("rule", TableName(schema, name), "id", "id", number << 44)
            for name, number in numbers.items()
        }
        make_load(
            schema,
            mapping_for=lambda name: mappings.get(name.table),
            route=lambda name: TableName(schema, route) if name.table == "a" else name,
        ).run()

    with pytest.raises(ConfigError, match="CONFIG-009"):
        load(a=1, b=1)
    assert target_server.query(f"SELECT COUNT(*) FROM {schema}.a") == [(900,)]
    for route, numbers in (("a", {"a": 2}), ("a", {}), ("elsewhere", {"a": 1})):
        with pytest.raises(LoadError, match="LOAD-019") as caught:
            load(route, **numbers)
        assert f"{schema}.a." in str(caught.value.where.file)
    load(a=1)
    assert target_server.query(f"SELECT MIN(id >> 44), MAX(id >> 44), COUNT(*) FROM {schema}.a") == [(1, 1, 900)]
    assert target_server.query(f"SELECT id FROM {schema}.b") == [(1 << 44,)]
