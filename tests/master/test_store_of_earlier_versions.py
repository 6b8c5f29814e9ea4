"""A store that an earlier version has made: opened, brought up to date, and nothing of it lost."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from unshard.api.status import Stage
from unshard.master import tables
from unshard.master.state import SourceRow
from unshard.master.store import Store, value_of

VERSION_1 = (
    "CREATE TABLE unshard_values (name VARCHAR(64) NOT NULL, value BIGINT NOT NULL, PRIMARY KEY (name))",
    "CREATE TABLE unshard_sources (name VARCHAR(64) NOT NULL, text TEXT NOT NULL, enabled BOOLEAN NOT NULL,"
    " relay_stage VARCHAR(16) NOT NULL, last_worker VARCHAR(255) NOT NULL, PRIMARY KEY (name))",
    "INSERT INTO unshard_values VALUES ('version', 1), ('epoch', 7)",
    "INSERT INTO unshard_sources VALUES ('s1', 'source-id: s1', 1, 'Paused', 'w1'),"
    " ('s2', 'source-id: s2', 0, 'Stopped', '')",
)


@pytest.fixture(params=["sqlite", "mariadb"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    url = f"sqlite:///{tmp_path / 'master.db'}"
    if request.param == "mariadb":
        server, name = request.getfixturevalue("target_server"), request.getfixturevalue("schema")
        server.query(f"CREATE DATABASE {name}")
        url = f"mysql://root@127.0.0.1:{server.port}/{name}"
    found = Store(url)
    with found.transaction() as connection:
        for statement in VERSION_1:
            connection.exec_driver_sql(statement)
    found.open()
    yield found
    found.close()


def versions(store: Store) -> tuple[int, int]:
    with store.transaction() as connection:
        return value_of(connection, "version"), value_of(connection, "epoch")


def test_its_rows_stay_and_a_paused_relay_is_kept_when_it_is_resumed(store: Store) -> None:
    assert versions(store) == (tables.VERSION, 7)
    assert store.read().sources == {
        "s1": SourceRow("s1", "source-id: s1", True, Stage.PAUSED, "w1", relay_kept=True),
        "s2": SourceRow("s2", "source-id: s2", False, Stage.STOPPED, "", relay_kept=True),
    }


def test_an_upgrade_that_was_cut_off_is_made_again(store: Store) -> None:
    before = store.read()
    with store.transaction() as connection:
        connection.execute(tables.VALUES.update().where(tables.VALUES.c.name == "version").values(value=1))
    store.open()
    assert versions(store) == (tables.VERSION, 7)
    assert store.read() == before


def test_a_master_of_the_earlier_version_that_leads_meanwhile_goes_on(store: Store) -> None:
    with store.transaction() as connection:
        connection.exec_driver_sql("DELETE FROM unshard_sources WHERE name = 's1'")
        connection.exec_driver_sql(
            "INSERT INTO unshard_sources (name, text, enabled, relay_stage, last_worker)"
            " VALUES ('s1', '', 1, 'Paused', '')"
        )
    assert store.read().sources["s1"].relay_kept
