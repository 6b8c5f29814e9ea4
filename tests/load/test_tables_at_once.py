"""The load creates several tables at a time, and those of foreign keys one after the other."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import pytest

from support.dump_units import MakeDump
from support.schema_tables import names_in
from unshard.load import structure
from unshard.load.unit import LoadUnit
from unshard.testing.mariadb_server import MariadbServer

pytestmark = pytest.mark.server

PLAIN = [f"plain_{number}" for number in range(12)]
CONNECTED = ["a", "b", "c"]


@pytest.mark.parametrize(("pool_size", "sessions"), [(2, 2), (16, 4)])
def test_each_table_is_made_once(
    pool_size: int,
    sessions: int,
    source_server: MariadbServer,
    target_server: MariadbServer,
    schema: str,
    make_dump: MakeDump,
    make_load: Callable[..., LoadUnit],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    source_server.run(
        f"CREATE DATABASE {schema}",
        *(f"CREATE TABLE {schema}.{table} (id INT PRIMARY KEY, v INT)" for table in [*PLAIN, *CONNECTED]),
        *(
            f"ALTER TABLE {schema}.{table} ADD FOREIGN KEY (v) REFERENCES {schema}.{other} (id)"
            for table, other in zip(CONNECTED, "bca", strict=True)
        ),
        *(f"INSERT INTO {schema}.{table} VALUES (1, NULL)" for table in [*PLAIN, *CONNECTED]),
    )
    make_dump(schema).run()
    create, together = structure._create, threading.Barrier(sessions)
    made: dict[int, list[str]] = defaultdict(list)

    def first_together(connection: Any, statement: str, what: str, *more: Any) -> bool:
        if what.startswith("table"):
            session = connection.thread_id()
            if session not in made and ".plain_" in what:
                together.wait(60)
            made[session].append(what.rpartition(".")[2])
        return create(connection, statement, what, *more)

    monkeypatch.setattr(structure, "_create", first_together)
    make_load(schema, pool_size=pool_size).run()
    assert sorted(table for tables in made.values() for table in tables) == sorted([*PLAIN, *CONNECTED])
    assert sorted(sorted(tables) for tables in made.values() if set(tables) & set(CONNECTED)) == [CONNECTED]
    assert sum(set(tables) <= set(PLAIN) for tables in made.values()) == sessions
    assert names_in(target_server, schema) == {*PLAIN, *CONNECTED}
    assert target_server.query(
        f"SELECT COUNT(*) FROM information_schema.REFERENTIAL_CONSTRAINTS WHERE CONSTRAINT_SCHEMA = '{schema}'"
    ) == [(3,)]
