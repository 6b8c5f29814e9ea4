"""`shard-ddl-lock` and its unlock, on a target whose sources are threads."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from threading import Thread
from typing import Any

import pytest

from support.reporting_sources import ReportingSources
from unshard.api.verbs import ShardDdlLock, ShardDdlLockUnlock
from unshard.config.database import TargetConfig
from unshard.errors import ClusterError, ShardError
from unshard.model.table import TableName
from unshard.operate import locks
from unshard.operate.locks import answer_locks, answer_unlock, task_of
from unshard.operate.subject import Subject
from unshard.shard.lock_keeper import LockKeeper, Outcome
from unshard.target.meta import MetaTables
from unshard.target.sharding import announce, change, done, join, load_keepers, look
from unshard.testing.mariadb_server import MariadbServer

TARGET, TABLE = TableName("db", "t`'\"\n"), TableName("up", "t_1")
ADD = ("ALTER TABLE t ADD a INT",)
ID = f"task-{TARGET.quoted}"


@pytest.fixture
def subject(target_server: MariadbServer, schema: str) -> Subject:
    end = target_server.endpoint
    target = TargetConfig(host=end.host, port=end.port, user=end.user, password=end.password)
    return Subject("task", schema, target, ("s1", "s2", "s3"))


@pytest.fixture
def rig(target_server: MariadbServer, schema: str) -> Iterator[ReportingSources]:
    rig = ReportingSources(target_server, schema, "task")
    for source in ("s1", "s2"):
        rig.do(announce, source, {TARGET: [TABLE]}, ("s1", "s2", "s3"))
    yield rig
    rig.connection.close()


def test_without_locks(subject: Subject, rig: ReportingSources) -> None:
    assert answer_locks([subject], ShardDdlLock()) == {"result": True, "msg": "no DDL lock exists", "locks": []}
    with pytest.raises(ShardError, match="SHARD-003"):
        answer_unlock(subject, ShardDdlLockUnlock(id=ID), "ann")
    with pytest.raises(ShardError, match="SHARD-003"):
        answer_unlock(subject, ShardDdlLockUnlock(id="task-`no`.`such`"), "ann")


def test_a_lock_is_listed_and_unlocked_and_its_owner_runs_it(subject: Subject, rig: ReportingSources) -> None:
    rig.do(join, "s1", TARGET, ADD)
    (lock,) = answer_locks([subject], ShardDdlLock(sources=("s2",)))["locks"]
    assert (lock["ID"], lock["owner"], lock["synced"], lock["unsynced"]) == (ID, "s1", ["s1"], ["s2", "s3"])
    assert "s3 has not said yet" in lock["waitsFor"]
    assert "file" not in lock["waitsFor"]
    (lock,) = answer_locks([replace(subject, sources=("s1", "s2"))], ShardDdlLock())["locks"]
    assert "not in the task's file: s3" in lock["waitsFor"]
    assert "update-task" in lock["help"]
    assert answer_locks([subject], ShardDdlLock(sources=("s9",)))["locks"] == []
    owner = Thread(target=rig.run_when_told, args=("s1", TARGET), daemon=True)
    owner.start()
    assert answer_unlock(subject, ShardDdlLockUnlock(id=ID), "ann", patience_seconds=90) == {"result": True, "msg": ""}
    owner.join()
    rig.do(join, "s2", TARGET, ADD)
    assert look(rig.connection, rig.meta, "s2")[TARGET].outcome is Outcome.SKIP


def test_an_owner_that_is_gone_needs_force(subject: Subject, rig: ReportingSources) -> None:
    rig.do(join, "s1", TARGET, ADD)
    with pytest.raises(ShardError, match="SHARD-006"):
        answer_unlock(subject, ShardDdlLockUnlock(id=ID), "ann", patience_seconds=0.1)
    found = answer_unlock(subject, ShardDdlLockUnlock(id=ID, force_remove=True), "ann", patience_seconds=0.1)
    assert found["msg"] == "removed: its DDL is run by nobody"
    assert look(rig.connection, rig.meta, "s1")[TARGET].outcome is Outcome.SKIP


def test_of_two_who_unlock_at_once_none_unlocks_the_next_ddl(
    subject: Subject, rig: ReportingSources, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the look of the second one and its decision the first one's is carried out."""
    rig.do(join, "s1", TARGET, ADD)
    rig.do(join, "s2", TARGET, ADD)

    def seen_early(connection: Any, meta: MetaTables) -> tuple[LockKeeper, ...]:
        found = load_keepers(connection, meta)
        rig.do(change, TARGET, lambda keeper: keeper.unlock("", "ann"))
        for source in ("s1", "s2"):
            rig.do(done, source, TARGET)
            rig.do(join, source, TARGET, ("ALTER TABLE t ADD b INT",))
        return found

    monkeypatch.setattr(locks, "load_keepers", seen_early)
    with pytest.raises(ShardError, match="SHARD-003"):
        answer_unlock(subject, ShardDdlLockUnlock(id=ID), "bob", patience_seconds=0.1)
    assert look(rig.connection, rig.meta, "s1")[TARGET].outcome is Outcome.WAIT


def test_what_can_not_be_meant(subject: Subject, rig: ReportingSources) -> None:
    rig.do(join, "s1", TARGET, ADD)
    with pytest.raises(ShardError, match="SHARD-004"):
        answer_unlock(subject, ShardDdlLockUnlock(id=ID, owner="s2"), "ann")
    with pytest.raises(ClusterError, match="CLUSTER-047"):
        answer_unlock(subject, ShardDdlLockUnlock(id=ID, database="db"), "ann")
    assert task_of("my-task-`db`.`t`") == "my-task"
    with pytest.raises(ClusterError, match="CLUSTER-047"):
        task_of("task")
