"""By which key a backfill finds the rows of the target, on real servers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from types import SimpleNamespace
from typing import Any

import pytest

from unshard.model.table import TableName
from unshard.sync.statements.backfill import Backfiller
from unshard.sync.statements.plan_record import ColumnBackfill
from unshard.testing.throwaway_server import ThrowawayServer

pytestmark = pytest.mark.server


def refused(why: str) -> Any:
    raise AssertionError(why)


@pytest.fixture
def bring(
    source_server: ThrowawayServer, target_server: ThrowawayServer, schema: str
) -> Iterator[Callable[[str, str], None]]:
    """`bring(columns, rows)`: t on both ends, of which only the source's has values in `u`, which are brought."""

    def brought(columns: str, rows: str) -> None:
        for server in (source_server, target_server):
            server.run(
                f"CREATE DATABASE {schema}",
                f"CREATE TABLE {schema}.t ({columns}, u CHAR(9))",
                f"INSERT INTO {schema}.t VALUES {rows}",
            )
        target_server.run(f"UPDATE {schema}.t SET u = '-'")

        def nothing(*_: object) -> tuple[()]:
            return ()

        rules: Any = SimpleNamespace(
            source="s1",
            router=SimpleNamespace(route=lambda name: name, extracted=nothing),
            mapper=SimpleNamespace(mapping_for=lambda name: None),
            events=SimpleNamespace(row_filters=nothing),
            row_filters=nothing,
        )
        with closing(target_server.connection()) as connection:

            def in_one(write: Callable[[Any], Any]) -> Any:
                with connection.cursor() as cursor:
                    return write(cursor)

            store: Any = SimpleNamespace(source="s1", on_target=lambda operation: operation(connection), in_one=in_one)
            fill = ColumnBackfill(TableName(schema, "t"), ("u",))
            Backfiller(source_server.endpoint, rules).bring(fill, store, refused)
        sql = f"SELECT * FROM {schema}.t"
        assert sorted(target_server.query(sql)) == sorted(source_server.query(sql))

    yield brought
    for server in (source_server, target_server):
        server.run(f"DROP DATABASE IF EXISTS {schema}")


def test_the_primary_key_is_taken_first(bring: Callable[[str, str], None]) -> None:
    columns = "id INT PRIMARY KEY, active BIT(1) NOT NULL, email VARCHAR(99) NOT NULL, UNIQUE a_active (active, email)"
    bring(columns, "(1, b'1', 'a', 'one'), (2, b'0', 'a', 'two'), (3, b'1', 'b', 'three')")


@pytest.mark.parametrize("key", ["PRIMARY KEY (b)", "PRIMARY KEY (b, id)"])
def test_a_key_of_bits(key: str, bring: Callable[[str, str], None]) -> None:
    """MariaDB takes x'31' for the text 1, which is another row."""
    bring(f"b BIT(16) NOT NULL, id INT NOT NULL, {key}", "(b'1', 1, 'one'), (49, 2, 'fourty'), (65535, 3, 'all')")


def test_how_many_rows_were_found_is_told(bring: Callable[[str, str], None], monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[dict[str, Any]] = []
    log: Any = SimpleNamespace(info=lambda text, **words: told.append(words))
    monkeypatch.setattr("unshard.sync.statements.backfill.logger", lambda *_, **__: log)
    bring("id INT PRIMARY KEY", "(1, 'a'), (2, 'a'), (3, 'b')")
    assert [(one["rows"], one["found"]) for one in told] == [(3, 3)]
