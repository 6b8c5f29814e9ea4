"""Who may change structures for a source: what is sent late, or by another account, and what is waited for."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from threading import Event
from typing import Any

import MySQLdb
import pytest

from support.stopped_threads import Aside, frozen_before
from support.waiting import wait_until
from unshard.config.files import parse_source, parse_task
from unshard.config.subtask import plan_subtask
from unshard.errors import ClusterError, SyncError
from unshard.master import beginning
from unshard.mysql.connection import rows
from unshard.retry import given_up_by
from unshard.sync.checkpoint.store import CheckpointStore
from unshard.target import fence
from unshard.target.meta import MetaTables
from unshard.testing.mariadb_server import MariadbServer

pytestmark = pytest.mark.server
TASK = """\
name: task
task-mode: incremental
meta-schema: {schema}
target-database: {{host: 127.0.0.1, port: {port}, user: root}}
mysql-instances:
- source-id: s2
  meta: {{binlog-name: bin.000001, binlog-pos: 4}}
"""


@pytest.fixture
def store(target_server: MariadbServer, schema: str) -> Iterator[CheckpointStore]:
    made = CheckpointStore(target_server.endpoint, MetaTables(schema, "task"), "s'1")
    made.claim()
    yield made
    made.drop()


@pytest.fixture
def heir(store: CheckpointStore) -> Iterator[CheckpointStore]:
    made = replace(store)
    yield made
    made.drop()


def test_what_is_sent_late_meets_a_dead_connection(
    store: CheckpointStore, heir: CheckpointStore, target_server: MariadbServer, schema: str
) -> None:
    late = frozen_before(store, f"CREATE TABLE {schema}.late (id INT)")
    heir.claim()
    late.goes_on.set()
    error = late.join()
    assert isinstance(error, SyncError), error
    assert error.code == "SYNC-001", error
    assert not target_server.query(f"SHOW TABLES FROM {schema} LIKE 'late'")
    heir.change(lambda c: rows(c, f"CREATE TABLE {schema}.own (id INT)"))
    assert target_server.query(f"SHOW TABLES FROM {schema} LIKE 'own'")


def test_what_the_server_works_at_is_waited_for(
    store: CheckpointStore, heir: CheckpointStore, target_server: MariadbServer, schema: str
) -> None:
    with closing(target_server.connection()) as other:
        other.query(f"CREATE TABLE {schema}.t (id INT)")
        other.query(f"LOCK TABLES {schema}.t READ")
        late = frozen_before(store, f"ALTER TABLE {schema}.t ADD COLUMN c INT")
        late.goes_on.set()
        wait_until(lambda: "ALTER" in at_work(target_server, schema), "the ALTER waits")
        claiming = Aside(lambda _: heir.claim())
        wait_until(lambda: heir.waits.startswith("waits for a DDL of an earlier process, connection "), "it is told")
        assert claiming.thread.is_alive()
        other.query("UNLOCK TABLES")
        assert claiming.join() is None
        assert not heir.waits
    assert late.join() is None
    assert target_server.query(f"SHOW COLUMNS FROM {schema}.t LIKE 'c'")


def test_who_gives_up_waits_no_longer(
    store: CheckpointStore, heir: CheckpointStore, target_server: MariadbServer
) -> None:
    late = frozen_before(store, "SELECT SLEEP(600)")
    late.goes_on.set()
    wait_until(lambda: "SLEEP" in at_work(target_server, "SLEEP"), "a statement that takes long")
    give_up = Event()

    def claim(_: Aside) -> None:
        with given_up_by(give_up):
            heir.claim()

    claiming = Aside(claim)
    wait_until(lambda: "GET_LOCK" in at_work(target_server, "unshard-ddl"), "the claim waits")
    give_up.set()
    assert "waiting for a statement of an earlier process" in str(claiming.join())
    for (number,) in target_server.query("SELECT ID FROM information_schema.PROCESSLIST WHERE INFO LIKE '%SLEEP(600)'"):
        target_server.run(f"KILL {number}")
    assert isinstance(late.join(), SyncError)


def test_a_source_whose_statement_still_runs_leaves_a_task_when_it_is_asked_again(
    store: CheckpointStore, target_server: MariadbServer, schema: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    late = frozen_before(store, "SELECT SLEEP(600)")
    late.goes_on.set()
    wait_until(lambda: "SLEEP" in at_work(target_server, "SLEEP"), "a statement that takes long")
    ((running,),) = target_server.query("SELECT ID FROM information_schema.PROCESSLIST WHERE INFO LIKE '%SLEEP(600)'")
    task = parse_task(TASK.format(port=target_server.port, schema=schema))
    config = plan_subtask(task, parse_source("source-id: s2\nfrom: {host: 127.0.0.1, port: 1, user: root}\n"))
    with monkeypatch.context() as patch:
        patch.setattr(beginning, "PATIENCE_SECONDS", 1.0)
        with pytest.raises(ClusterError, check=lambda error: error.code == "CLUSTER-092") as caught:
            beginning.leave(config, ["s'1"])
    assert caught.value.where.source == "s'1"
    assert f"connection {running} " in caught.value.cause
    assert "update-task" in caught.value.hint
    target_server.run(f"KILL QUERY {running}")
    late.join()
    beginning.leave(config, ["s'1"])
    beginning.leave(config, ["s'1"])


def test_a_session_that_is_not_ours_to_end_is_ended_by_the_server(
    store: CheckpointStore,
    heir: CheckpointStore,
    target_server: MariadbServer,
    schema: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(fence, "IDLE_SECONDS", 1)
    target_server.run("CREATE OR REPLACE USER heir@'127.0.0.1'", f"GRANT ALL ON {schema}.* TO heir@'127.0.0.1'")
    late = frozen_before(store, f"CREATE TABLE {schema}.late (id INT)")
    heir.endpoint = replace(heir.endpoint, user="heir")
    heir.claim()
    late.goes_on.set()
    assert isinstance(late.join(), SyncError)
    assert not target_server.query(f"SHOW TABLES FROM {schema} LIKE 'late'")
    target_server.run("DROP USER heir@'127.0.0.1'")


def test_a_server_without_such_locks_is_worked_with(
    store: CheckpointStore, schema: str, target_server: MariadbServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def without(connection: Any, statement: str, values: Any = ()) -> list[tuple[Any, ...]]:
        if "GET_LOCK" in statement:
            raise MySQLdb.OperationalError(1305, "FUNCTION GET_LOCK does not exist")
        return rows(connection, statement, values)

    monkeypatch.setattr(fence, "rows", without)
    store.change(lambda c: rows(c, f"CREATE TABLE {schema}.own (id INT)"))
    assert target_server.query(f"SHOW TABLES FROM {schema} LIKE 'own'")


def test_sources_and_tasks_have_locks_of_their_own() -> None:
    places = [(MetaTables(meta, task), source) for meta in ("m", "n") for task in ("t", "u") for source in ("a", "A")]
    names = {fence.lock_name(*place) for place in places}
    assert len({name.lower() for name in names}) == len(places)
    assert max(map(len, names)) <= 64


def at_work(server: MariadbServer, word: str) -> str:
    found = server.query("SELECT INFO FROM information_schema.PROCESSLIST WHERE INFO LIKE %s", (f"%{word}%",))
    return " ".join(text for (text,) in found if "PROCESSLIST" not in text)
