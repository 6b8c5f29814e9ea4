"""Small tables of a dump without a lock have one snapshot together, and a DDL on one of them holds up no other."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from support.dump_units import values_of
from support.waiting import wait_until
from unshard.dump import lock_free
from unshard.dump.metadata import Record, read_dump, write_record
from unshard.dump.unit import DumpUnit
from unshard.source.snapshot import snapshots_apart_from_xa
from unshard.testing.mariadb_server import MariadbServer

pytestmark = pytest.mark.server

TABLES = [f"t{number:02}" for number in range(48)]
GROUP = 6
"""The tables of a snapshot, of 48 that one task dumps."""


@pytest.fixture(autouse=True)
def tables(source_server: MariadbServer, schema: str) -> None:
    source_server.run(
        f"CREATE DATABASE {schema}",
        *(f"CREATE TABLE {schema}.{table} (id INT PRIMARY KEY)" for table in TABLES),
        *(f"INSERT INTO {schema}.{table} VALUES (0)" for table in TABLES),
    )


def groups(folder: Path) -> list[list[Record]]:
    found = defaultdict(list)
    for record in read_dump(folder).records.values():
        found[record.location.position].append(record)
    return list(found.values())


def test_the_rows_of_a_group_are_of_one_moment(
    make_dump: Callable[..., DumpUnit],
    source_server: MariadbServer,
    schema: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A transaction that writes into every table is committed before each snapshot, and one behind it."""
    written = iter(range(1, 1_000))

    def write() -> None:
        number = next(written)
        statements = (f"INSERT INTO {schema}.{table} VALUES ({number})" for table in TABLES)
        source_server.run("START TRANSACTION", *statements, "COMMIT")

    def between(*connections: Any) -> Any:
        write()
        found = snapshots_apart_from_xa(*connections)
        write()
        return found

    monkeypatch.setattr(lock_free, "snapshots_apart_from_xa", between)
    make_dump(schema, threads=1).run()
    found = groups(tmp_path / "dump")
    assert [len(group) for group in found] == [GROUP] * (len(TABLES) // GROUP)
    for number, group in enumerate(found):
        assert {tuple(values_of(tmp_path / "dump", record)) for record in group} == {tuple(range(2 * number + 2))}


def test_a_table_that_a_statement_keeps_holds_up_no_other(
    make_dump: Callable[..., DumpUnit], source_server: MariadbServer, schema: str, tmp_path: Path
) -> None:
    """Those before it in its group are dumped, and all can be altered, while the dump waits for the one."""
    unit, kept = make_dump(schema, threads=1), 3 * GROUP + 2
    held = source_server.connection()
    held.query(f"LOCK TABLES {schema}.{TABLES[kept]} WRITE")
    dumping = threading.Thread(target=unit.run)
    dumping.start()
    alone = f"SELECT 1 FROM information_schema.PROCESSLIST WHERE INFO LIKE 'SELECT 1 FROM `{schema}`.`{TABLES[kept]}`%'"
    try:
        wait_until(lambda: bool(source_server.query(alone)), "the dump waits for the table alone")
        assert unit.progress().tables_done == kept
        source_server.run(*(f"ALTER TABLE {schema}.{table} ADD w INT" for table in TABLES if table != TABLES[kept]))
    finally:
        held.close()
        dumping.join()
    found = read_dump(tmp_path / "dump").records
    assert len(found) == len(TABLES)
    assert sum(file.rows for record in found.values() for file in record.files) == len(TABLES)


def test_a_group_goes_on_with_the_tables_that_are_missing(
    make_dump: Callable[..., DumpUnit],
    source_server: MariadbServer,
    schema: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The records that are there when a dump dies between those of a group stay as they are."""
    seen: list[Record] = []

    def dies(directory: Path, run: str, record: Record) -> bool:
        if len(seen) == GROUP + GROUP // 2:
            raise KeyboardInterrupt
        seen.append(record)
        return write_record(directory, run, record)

    monkeypatch.setattr(lock_free, "write_record", dies)
    with pytest.raises(KeyboardInterrupt):
        make_dump(schema, threads=1).run()
    monkeypatch.setattr(lock_free, "write_record", write_record)
    source_server.run(*(f"INSERT INTO {schema}.{table} VALUES (1)" for table in TABLES))
    make_dump(schema, threads=1).run()
    found = read_dump(tmp_path / "dump").records
    old = {record.table.name for record in seen}
    assert all(found[record.table.name].location == record.location for record in seen)
    assert {name: values_of(tmp_path / "dump", record) for name, record in found.items()} == {
        name: [0] if name in old else [0, 1] for name in found
    }
