"""Three masters on a real MySQL: who leads, who writes, and what is kept."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy import update

from unshard.api.heartbeat import SubtaskBrief
from unshard.api.status import Stage
from unshard.errors import ClusterError
from unshard.master import tables
from unshard.master.election import Election
from unshard.master.state import SourceRow, SubtaskRow, TaskRow, WorkerRow
from unshard.master.store import Store, value_of
from unshard.testing.mysql_server import MysqlServer

pytestmark = pytest.mark.server
NAMES = ("one", "two", "three")
OF_VERSION_1 = (
    "INSERT INTO unshard_sources (name, text, enabled, relay_stage, last_worker)"
    " VALUES ('s', 'source-id: s', 1, 'Paused', 'w1')"
)
TEXT = "name: 'tâsk' # 名前 🎈 \\ ' \"\n" + "x" * 100_000


@pytest.fixture
def url(mysql_target: MysqlServer, schema: str) -> str:
    """A database and an account of its own, with the password that a team would give it."""
    mysql_target.run(
        f"CREATE DATABASE {schema}",
        f"CREATE USER {schema}@'127.0.0.1' IDENTIFIED BY 'ge heim@/'",
        f"GRANT ALL ON {schema}.* TO {schema}@'127.0.0.1'",
    )
    return f"mysql://{schema}@127.0.0.1:{mysql_target.port}/{schema}"


@pytest.fixture
def stores(url: str) -> Iterator[list[Store]]:
    found = [Store(url, "ge heim@/") for _ in NAMES]
    for store in found:
        store.open()
    yield found
    for store in found:
        store.close()


def test_one_leads_and_the_next_one_takes_over_all_that_it_kept(stores: list[Store]) -> None:
    masters = [Election(store, name, f"{name}:1") for store, name in zip(stores, NAMES, strict=True)]
    for master in masters:
        master.step()
    assert [master.epoch for master in masters] == [1, 0, 0]
    brief = SubtaskBrief(task="t", stage=Stage.PAUSED, resume_count=3)
    with stores[0].writing(1) as writing:
        writing.put_worker(WorkerRow("w1", "h:1"))
        writing.put_source(SourceRow("s", "source-id: s"))
        writing.put_task(TaskRow("t", TEXT))
        writing.put_subtask(SubtaskRow("t", "s", Stage.RUNNING, 7, brief=brief))
        writing.bind("s", "w1")
    with stores[0].transaction() as connection:
        connection.execute(update(tables.LEADER).values(until=1.0))
    masters[1].step()
    masters[2].step()
    assert [master.epoch for master in masters[1:]] == [2, 0]
    state = stores[1].read()
    assert state.tasks["t"].text == TEXT
    assert state.subtasks["t", "s"] == SubtaskRow("t", "s", Stage.RUNNING, 7, brief=brief)
    assert (state.bounds["s"].worker, state.sources["s"].last_worker) == ("w1", "w1")
    with pytest.raises(ClusterError), stores[0].writing(1) as writing:  # it was asleep
        writing.drop_task("t")
    assert stores[2].read() == state
    assert {row.name for row in masters[2].masters()} == set(NAMES)


def test_masters_that_come_at_once_bring_an_earlier_version_up_to_date(stores: list[Store]) -> None:
    with stores[0].transaction() as connection:
        connection.exec_driver_sql("ALTER TABLE unshard_sources DROP COLUMN relay_kept")
        connection.exec_driver_sql("UPDATE unshard_values SET value = 1 WHERE name = 'version'")
        connection.exec_driver_sql(OF_VERSION_1)
    with ThreadPoolExecutor() as threads:
        list(threads.map(Store.open, stores))
    with stores[0].transaction() as connection:
        assert value_of(connection, "version") == tables.VERSION
        connection.exec_driver_sql(OF_VERSION_1.replace("'s'", "'t'"))  # its leader goes on meanwhile
    rows = [SourceRow(name, "source-id: s", True, Stage.PAUSED, "w1", relay_kept=True) for name in "st"]
    assert list(stores[1].read().sources.values()) == rows


def test_a_wrong_password_is_told_without_it(url: str) -> None:
    with pytest.raises(ClusterError, match="CLUSTER-003") as caught:
        Store(url, "geheim").open()
    assert "geheim" not in str(caught.value)
