"""Rules that change between two attempts at a load: never half a table by each."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from unshard.config.rules import BlockAllowRule, TableEntry
from unshard.dump.unit import DumpUnit
from unshard.errors import ConfigError, LoadError, UnshardError
from unshard.load.unit import LoadUnit
from unshard.model.table import TableName
from unshard.testing.mariadb_server import MariadbServer
from unshard.transform.block_allow import BlockAllowList
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


@pytest.mark.parametrize("begun", [False, True])
def test_a_table_is_left_out_that_the_load_stopped_at(
    make_dump: Callable[..., DumpUnit],
    make_load: Callable[..., LoadUnit],
    source_server: MariadbServer,
    target_server: MariadbServer,
    schema: str,
    begun: bool,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Rows of it that are loaded stay, and the log says so. Taken again, the load goes on with them."""
    source_server.run(
        f"CREATE DATABASE {schema}",
        f"CREATE TABLE {schema}.a (id BIGINT PRIMARY KEY)",
        f"CREATE TABLE {schema}.b (id BIGINT PRIMARY KEY)",
        f"INSERT INTO {schema}.a SELECT seq FROM seq_1_to_900",
        f"INSERT INTO {schema}.b SELECT seq FROM seq_1_to_{900 if begun else 300}",
        database="mysql",
    )
    make_dump(schema, rows=400).run()
    target_server.run(
        f"CREATE DATABASE {schema}",
        f"CREATE TABLE {schema}.b (id BIGINT PRIMARY KEY CHECK (id <> {850 if begun else 1}))",
    )
    with pytest.raises(UnshardError, match=rf"CONSTRAINT.*{schema}.*b"):
        make_load(schema).run()
    loaded = target_server.query(f"SELECT COUNT(*) FROM {schema}.b")[0][0]
    assert bool(loaded) is begun
    rule = BlockAllowRule(ignore_tables=(TableEntry(db_name=schema, tbl_name="b"),))
    with caplog.at_level("WARNING"):
        load = make_load(schema, allow=BlockAllowList(rule))
        assert load.run().rows == 900 + loaded
    assert load.progress().bytes_done == load.progress().bytes_total
    assert target_server.query(f"SELECT COUNT(*) FROM {schema}.a") == [(900,)]
    assert target_server.query(f"SELECT COUNT(*) FROM {schema}.b") == [(loaded,)]
    told = [record.msg for record in caplog.records if isinstance(record.msg, dict)]
    assert [line["table"] for line in told if "left out since" in line["event"]] == [f"{schema}.b"] * begun
