"""Tables that are not listed when a dump begins: MariaDB leaves one out while a statement changes its files."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from support.waiting import wait_until
from unshard.dump import folder, plan
from unshard.dump.metadata import read_dump
from unshard.dump.unit import DumpUnit
from unshard.mysql.connection import rows, session
from unshard.mysql.structure import IS_TABLE
from unshard.testing.mariadb_server import MariadbServer

pytestmark = pytest.mark.server


def test_a_table_that_is_not_listed_at_first_is_dumped(
    make_dump: Callable[..., DumpUnit],
    source_server: MariadbServer,
    schema: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    source_server.run(
        f"CREATE DATABASE {schema}",
        *(f"CREATE TABLE {schema}.{table} (id INT PRIMARY KEY)" for table in ("hidden", "shown")),
        *(f"INSERT INTO {schema}.{table} VALUES (1), (2), (3)" for table in ("hidden", "shown")),
    )
    listing = plan.list_tables
    monkeypatch.setattr(
        folder, "list_tables", lambda *asked: tuple(one for one in listing(*asked) if one.name.table != "hidden")
    )
    make_dump(schema).run()
    records = read_dump(tmp_path / "dump").records
    assert {name.table: sum(file.rows for file in record.files) for name, record in records.items()} == {
        "hidden": 3,
        "shown": 3,
    }


def test_a_table_that_is_listed_by_its_name_alone(
    source_server: MariadbServer, schema: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    source_server.run(
        f"CREATE DATABASE {schema}", *(f"CREATE TABLE {schema}.{table} (id INT PRIMARY KEY)" for table in "ab")
    )
    listed = plan._listed
    monkeypatch.setattr(
        plan,
        "_listed",
        lambda connection, asked, values=(): (
            one for one in listed(connection, asked, values) if values or one.name.table != "a"
        ),
    )
    with session(source_server.endpoint, "source") as connection:
        found = plan.list_tables(connection, lambda name: name.schema == schema)
    assert [(one.name.table, one.transactional) for one in found] == [("a", True), ("b", True)]


def test_mariadb_does_not_list_a_table_while_its_files_change(source_server: MariadbServer, schema: str) -> None:
    """Why a dump lists the tables twice, and looks for others in the log. If this fails, it need not any more."""
    source_server.run(f"CREATE DATABASE {schema}", f"CREATE TABLE {schema}.t (id INT PRIMARY KEY, v TEXT)")
    found = threading.Event()

    def alter() -> None:
        with closing(source_server.connection()) as connection:
            while not found.is_set():
                connection.query(f"ALTER TABLE {schema}.t MODIFY v VARCHAR(20)")
                connection.query(f"ALTER TABLE {schema}.t MODIFY v TEXT")

    altering = threading.Thread(target=alter)
    altering.start()
    try:
        with session(source_server.endpoint, "source") as connection:
            asked = f"SELECT 1 FROM information_schema.TABLES WHERE {IS_TABLE} AND TABLE_SCHEMA = %s"
            wait_until(lambda: not rows(connection, asked, (schema,)), "the table is not listed", every=0)
    finally:
        found.set()
        altering.join()
