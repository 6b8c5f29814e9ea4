"""A dump under a lock whose table is altered between the plan and the lock."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from support.dump_units import values_of
from support.vanishing_tables import Vanishing
from unshard.dump import locked
from unshard.dump.metadata import read_dump
from unshard.dump.unit import DumpUnit
from unshard.model.table import TableName
from unshard.testing.mariadb_server import MariadbServer

pytestmark = pytest.mark.server

FLUSH = "FLUSH TABLES WITH READ LOCK"


@pytest.fixture
def name(source_server: MariadbServer, schema: str) -> TableName:
    """A table of three rows, whose statistics say so."""
    name = TableName(schema, "t")
    source_server.run(
        f"CREATE DATABASE {schema}",
        f"CREATE TABLE {name} (id INT PRIMARY KEY)",
        f"INSERT INTO {name} VALUES (1), (2), (3)",
        f"ANALYZE TABLE {name}",
    )
    return name


def test_a_row_without_a_key_is_in_the_copy(
    name: TableName,
    make_dump: Callable[..., DumpUnit],
    source_server: MariadbServer,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    """No range of the key that the table had has a NULL."""
    change = (f"ALTER TABLE {name} DROP PRIMARY KEY, MODIFY id INT NULL", f"INSERT INTO {name} VALUES (NULL)")
    altered = Vanishing(FLUSH, lambda: source_server.run(*change)).before(monkeypatch, locked, "ask")
    make_dump(name.schema, consistency="flush", rows=1).run()
    assert altered.done
    found = values_of(tmp_path / "dump", read_dump(tmp_path / "dump").records[name])
    assert sorted(found, key=str) == [1, 2, 3, None]


@pytest.mark.parametrize(
    "change",
    ["ALTER TABLE {0} ENGINE = MyISAM", "RENAME TABLE {0} TO {1}, {2} TO {0}, {1} TO {2}"],
    ids=["engine", "swap"],
)
def test_a_table_without_snapshots_is_read_under_the_lock(
    change: str,
    name: TableName,
    make_dump: Callable[..., DumpUnit],
    source_server: MariadbServer,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    """A row that comes after the lock is not in the copy: it comes with the log."""
    names = [name, TableName(name.schema, "t_old"), TableName(name.schema, "t_new")]
    if "RENAME" in change:
        source_server.run(f"CREATE TABLE {names[2]} (id INT PRIMARY KEY) ENGINE = MyISAM SELECT * FROM {name}")
    sql = change.format(*names)
    altered = Vanishing(FLUSH, lambda: source_server.run(sql)).before(monkeypatch, locked, "ask")
    dump_chunk, written = locked._dump_chunk, list[Any]()

    def dumped(work: Any, bulk: Any, structures: Any, chunk: Any) -> Any:
        if not written and chunk.transactional and chunk.table == name:
            written.append(chunk)
            source_server.run(f"INSERT INTO {name} VALUES (4)")
        return dump_chunk(work, bulk, structures, chunk)

    monkeypatch.setattr(locked, "_dump_chunk", dumped)
    result = make_dump(name.schema, consistency="flush", threads=1).run()
    assert altered.done
    record = read_dump(tmp_path / "dump").records[name]
    events = source_server.query(f"SHOW BINLOG EVENTS IN '{result.begin.position.file}'")
    later = [row for row in events if row[2] == "Annotate_rows" and row[5] == f"INSERT INTO {name} VALUES (4)"]
    assert len(later) == 1
    is_copied = int(later[0][1]) < result.begin.position.offset
    assert values_of(tmp_path / "dump", record) == [1, 2, 3, *([4] if is_copied else [])]
