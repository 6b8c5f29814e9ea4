"""Which events of a source's binlog are nothing to a task whose tables it does not touch."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing

import pytest

from unshard.model.position import Position
from unshard.model.table import TableName
from unshard.mysql.flavour import current_location, identify
from unshard.source import log_since
from unshard.source.log_since import is_without_changes
from unshard.testing.throwaway_server import ThrowawayServer

pytestmark = pytest.mark.server


@pytest.fixture
def other(source_server: ThrowawayServer, schema: str) -> Iterator[str]:
    """A schema with a table, beside the task's."""
    name = f"{schema}_beside"
    for one in (schema, name):
        source_server.run(f"CREATE DATABASE {one}", f"CREATE TABLE {one}.t (id INT PRIMARY KEY, v INT)")
    yield name
    for one in (schema, name):
        source_server.run(f"DROP DATABASE {one}")


def end(server: ThrowawayServer) -> Position:
    with closing(server.connection()) as connection:
        found = current_location(connection, identify(connection))
    assert found is not None
    return found.position


def looked(server: ThrowawayServer, schema: str, before: Position) -> bool:
    def takes(name: TableName) -> bool:
        return name.schema == schema

    with closing(server.connection()) as connection:
        return is_without_changes(connection, before, end(server), takes)


OTHERS: dict[str, Callable[[str], tuple[str, ...]]] = {
    "nothing": lambda beside: (),
    "files": lambda beside: ("FLUSH BINARY LOGS", "FLUSH BINARY LOGS"),
    "rows": lambda beside: (f"INSERT INTO {beside}.t VALUES (1, 1), (2, 2)", f"DELETE FROM {beside}.t WHERE id = 1"),
    "both": lambda beside: (f"INSERT INTO {beside}.t VALUES (1, 1)", "FLUSH BINARY LOGS", f"DELETE FROM {beside}.t"),
}


@pytest.mark.parametrize("case", OTHERS)
@pytest.mark.parametrize("at_once", [3, 10_000])
def test_new_files_and_rows_of_other_tables_are_no_changes(
    source_server: ThrowawayServer, schema: str, other: str, case: str, at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_since, "_AT_ONCE", at_once)
    before = end(source_server)
    source_server.run(*OTHERS[case](other))
    assert looked(source_server, schema, before)


@pytest.mark.parametrize(
    "change",
    [
        "INSERT INTO {0}.t VALUES (1, 1)",
        "INSERT INTO {1}.t SELECT 1, 1; INSERT INTO {0}.t SELECT 1, 1",
        "CREATE TABLE {1}.more (id INT)",
        "FLUSH BINARY LOGS; TRUNCATE {0}.t",
    ],
)
def test_statements_and_rows_of_the_task_are_changes(
    source_server: ThrowawayServer, schema: str, other: str, change: str
) -> None:
    before = end(source_server)
    source_server.run(*(one.strip() for one in change.format(schema, other).split(";")))
    assert not looked(source_server, schema, before)


def test_a_part_that_was_purged_is_not_known(source_server: ThrowawayServer, schema: str, other: str) -> None:
    newest = end(source_server)
    assert not looked(source_server, schema, Position(f"{newest.file.rpartition('.')[0]}.999999"))
