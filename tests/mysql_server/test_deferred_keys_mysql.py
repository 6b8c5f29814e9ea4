"""Keys that only MySQL has are built after the rows, and are then as in the source."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.dump_units import dump_of
from support.threads import run_tasks
from unshard.load import deferred_keys
from unshard.load.checkpoint import LoadTables
from unshard.load.unit import LoadSettings, LoadUnit
from unshard.testing.mysql_server import MysqlServer

pytestmark = pytest.mark.server
TABLES = (
    "CREATE TABLE {0}.t (id INT PRIMARY KEY, a VARCHAR(20), b INT, j JSON, g POINT NOT NULL SRID 0,"
    " KEY lower_a ((lower(a)), b DESC), KEY hidden (b) INVISIBLE COMMENT '100%',"
    " KEY members ((CAST(j->'$[*]' AS UNSIGNED ARRAY))), UNIQUE KEY u (b, id), SPATIAL KEY place (g),"
    " FULLTEXT KEY words (a))",
    "CREATE TABLE {0}.parts (id INT, n INT, KEY n (n), KEY both_of (n, id)) PARTITION BY HASH (id) PARTITIONS 3",
)


def lines_of(server: MysqlServer, schema: str, table: str) -> list[str]:
    """Without the order of the keys: those of columns with coordinates were there before."""
    ((_, text),) = server.query(f"SHOW CREATE TABLE {schema}.{table}")
    return sorted(line.rstrip(",") for line in text.splitlines())


def test_keys_are_as_in_the_source(
    mysql_source: MysqlServer, mysql_target: MysqlServer, schema: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mysql_source.run(
        f"CREATE DATABASE {schema}",
        *(table.format(schema) for table in TABLES),
        f"INSERT INTO {schema}.t VALUES (1, 'A', 5, '[1, 2]', POINT(1, 2)), (2, 'b', 6, '[]', POINT(3, 4))",
        f"INSERT INTO {schema}.parts VALUES (1, 2), (3, 4)",
    )
    dump_of(mysql_source, tmp_path, schema).run()
    monkeypatch.setattr(deferred_keys, "DEFERRED_BYTES", 0)
    added: list[str] = []
    add = deferred_keys.DeferredKeys._add

    def seen(own: deferred_keys.DeferredKeys, connection: object, table: object, keys: dict[str, str]) -> None:
        added.extend(keys)
        add(own, connection, table, keys)  # type: ignore[arg-type]

    monkeypatch.setattr(deferred_keys.DeferredKeys, "_add", seen)
    tables = LoadTables(f"{schema}_meta", "task", "shard-1")
    settings = LoadSettings(tmp_path / "dump", 2)
    LoadUnit(mysql_target.endpoint, tables, settings, lambda name: name, lambda name: None, run_tasks).run()
    assert sorted(added) == ["both_of", "hidden", "lower_a", "members", "n"]
    for table in ("t", "parts"):
        assert lines_of(mysql_target, schema, table) == lines_of(mysql_source, schema, table)
