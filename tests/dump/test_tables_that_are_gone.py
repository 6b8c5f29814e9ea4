"""A table that is dropped or renamed after it was listed does not end a dump."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from support.vanishing_tables import Vanishing
from unshard.dump import lock_free, locked
from unshard.dump.metadata import read_dump
from unshard.dump.unit import DumpUnit
from unshard.model.table import TableName
from unshard.mysql import structure
from unshard.mysql.connection import session
from unshard.mysql.structure import read_table
from unshard.source import snapshot
from unshard.testing.mariadb_server import MariadbServer

pytestmark = pytest.mark.server

SHOWN, TOUCHED, LOCKED, FLUSHED = "SHOW CREATE TABLE", "SELECT 1 FROM", "LOCK TABLES", "FLUSH TABLES"
COLUMNS = "(id INT PRIMARY KEY)"


@pytest.fixture
def name(source_server: MariadbServer, schema: str) -> TableName:
    """A table that goes, beside one that stays."""
    source_server.run(
        f"CREATE DATABASE {schema}",
        *(f"CREATE TABLE {schema}.{table} {COLUMNS}" for table in ("goes", "stays")),
        *(f"INSERT INTO {schema}.{table} VALUES (1), (2), (3)" for table in ("goes", "stays")),
    )
    return TableName(schema, "goes")


@pytest.mark.parametrize("statement", ["DROP TABLE {0}", "RENAME TABLE {0} TO {0}_away", "DROP DATABASE {1}"])
def test_it_has_no_structure(
    statement: str, name: TableName, source_server: MariadbServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    change = statement.format(name, name.schema)
    gone = Vanishing(SHOWN, lambda: source_server.run(change)).before(monkeypatch, structure, "rows")
    with session(source_server.endpoint, "source") as connection:
        assert read_table(connection, name) is None
    assert gone.done


@pytest.mark.parametrize("rows", [0, 1])
@pytest.mark.parametrize(
    ("consistency", "words"),
    [("auto", TOUCHED), ("flush", FLUSHED), ("lock", LOCKED), ("none", SHOWN), ("flush", SHOWN)],
)
@pytest.mark.parametrize("renamed", [False, True])
def test_it_is_left_out_or_looked_at_again(
    consistency: str,
    words: str,
    rows: int,
    renamed: bool,
    name: TableName,
    make_dump: Callable[..., DumpUnit],
    source_server: MariadbServer,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    if consistency == "flush" and words == SHOWN and not rows:
        words = FLUSHED  # its structure is only read while it can't go any more
    source_server.run(f"ANALYZE TABLE {name}", f"ANALYZE TABLE {name.schema}.stays")
    change = f"RENAME TABLE {name} TO {name}_away" if renamed else f"DROP TABLE {name}"
    asks = (structure, "rows") if words == SHOWN else (lock_free if words == TOUCHED else locked, "ask")
    shown = f"{words} {name.quoted}" if words in (SHOWN, TOUCHED) else words
    gone = Vanishing(shown, lambda: source_server.run(change)).before(monkeypatch, *asks)
    make_dump(name.schema, consistency=consistency, rows=rows).run()
    assert gone.done
    records = read_dump(tmp_path / "dump").records
    found = {table.table for table, record in records.items() if not record.table.is_absent}
    assert found == ({"stays", "goes_away"} if renamed else {"stays"})


def test_a_schema_that_is_dropped_is_left_out(
    name: TableName,
    make_dump: Callable[..., DumpUnit],
    source_server: MariadbServer,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    words = f"SHOW CREATE DATABASE `{name.schema}`"
    drop = f"DROP DATABASE {name.schema}"
    gone = Vanishing(words, lambda: source_server.run(drop)).before(monkeypatch, snapshot, "ask")
    make_dump(name.schema).run()
    assert gone.done
    assert all(record.table.is_absent for record in read_dump(tmp_path / "dump").records.values())
