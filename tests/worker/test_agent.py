"""An agent does what its orders say, tells what became of it, and lets go of its source when no master answers."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest
from agents import PaperMaster, Running, source_order, subtask_order
from pyspark.sql import SparkSession

from support.task_runs import TaskFiles, newest
from support.waiting import wait_until
from unshard.api.heartbeat import PurgeWish, SubtaskOrder
from unshard.api.status import Stage, SyncStatus, UnitName
from unshard.errors import ClusterError
from unshard.metrics.sample import own_version
from unshard.testing.mariadb_server import MariadbServer
from unshard.testing.throwaway_server import ThrowawayServer
from unshard.worker.agent import Agent

pytestmark = [pytest.mark.server, pytest.mark.spark]


@pytest.fixture
def files(source_server: MariadbServer, target_server: MariadbServer, schema: str, tmp_path: Path) -> TaskFiles:
    """An incremental task that begins at the present end, with one table at both ends."""
    for server in (source_server, target_server):
        server.run(f"CREATE DATABASE {schema}", f"CREATE TABLE {schema}.t (id INT PRIMARY KEY, v INT)")
    return begun(tmp_path, schema, source_server, target_server)


def begun(folder: Path, schema: str, source: MariadbServer, target: MariadbServer, **source_keys: Any) -> TaskFiles:
    end = newest(source)
    keys = {"task-mode": "incremental"}
    meta = {"meta": {"binlog-name": end.file, "binlog-pos": end.offset}}
    return TaskFiles(
        folder, schema, {"s1": source}, target, (schema,), keys=keys, instance=meta, source=source_keys
    ).write()


def rows(server: ThrowawayServer, schema: str) -> list[tuple[Any, ...]]:
    return server.query(f"SELECT id, v FROM {schema}.t ORDER BY id")


def follows(agent: Agent, task: str) -> bool:
    subtask = agent.host.subtasks[task].subtask if agent.host is not None else None
    return subtask is not None and subtask.claimed


def synced(agent: Agent) -> SyncStatus:
    (told,) = agent.report(None, 5).sub_task_status
    assert told.sync is not None
    return told.sync


def test_a_task_is_run_paused_resumed_and_stopped(spark: SparkSession, files: TaskFiles) -> None:
    source, target, name = files.sources["s1"], files.target, files.name
    master = PaperMaster()
    master.give(source_order(subtask_order(files)))
    with Running(master, spark) as agent:
        master.wait(name, Stage.RUNNING)
        source.run(f"INSERT INTO {name}.t VALUES (1, 1)")
        wait_until(lambda: rows(target, name) == [(1, 1)], "applied")

        report = agent.report(None, 5)
        (told,) = report.sub_task_status
        assert (told.name, told.stage, told.unit, told.result) == (name, Stage.RUNNING, UnitName.SYNC, None)
        wait_until(lambda: synced(agent).total_rows == 1, "counted")
        assert told.sync is not None
        assert told.sync.syncer_binlog.startswith("(")
        assert report.source_status.relay_status is not None
        assert report.source_status.relay_status.stage is Stage.RUNNING

        wait_until(
            lambda: master.beats[-1].disk_free is not None, "a beat that was sent after the first look at the disk"
        )
        newest = master.beats[-1]
        assert newest.version == own_version()
        assert newest.disk_free is not None
        assert 0 <= newest.disk_free < 1

        master.give(source_order(subtask_order(files, Stage.PAUSED, 2)))
        master.wait(name, Stage.PAUSED)
        source.run(f"INSERT INTO {name}.t VALUES (2, 2)")
        (told,) = agent.report(name, 5).sub_task_status
        assert told.result is not None
        assert told.result.is_canceled
        assert rows(target, name) == [(1, 1)]

        master.give(source_order(subtask_order(files, Stage.RUNNING, 3)))
        wait_until(lambda: rows(target, name) == [(1, 1), (2, 2)], "resumed")
        assert master.wait(name, Stage.RUNNING).revision == 3

        master.give(source_order(subtask_order(files, Stage.STOPPED, 4)))
        wait_until(lambda: master.brief(name) is None, "gone")
        assert agent.report(None, 5).sub_task_status == ()


def test_without_a_master_what_is_delivered_at_least_once_is_let_go_and_taken_up_again(
    spark: SparkSession, files: TaskFiles
) -> None:
    source, target, name = files.sources["s1"], files.target, files.name
    files.keys = {**files.keys, "delivery": "at-least-once"}
    files.write()
    master = PaperMaster()
    master.give(source_order(subtask_order(files)))
    with Running(master, spark) as agent:
        master.wait(name, Stage.RUNNING)
        master.falls_silent(agent)
        wait_until(lambda: agent.host is None, "let go")
        with pytest.raises(ClusterError, match="CLUSTER-023"):
            agent.report(None, 5)
        source.run(f"INSERT INTO {name}.t VALUES (1, 1)")
        master.speaks()
        wait_until(lambda: rows(target, name) == [(1, 1)], "carried on")


def test_without_a_master_what_is_exactly_once_goes_on_until_another_worker_has_the_source(
    spark: SparkSession, files: TaskFiles, tmp_path: Path
) -> None:
    source, target, name = files.sources["s1"], files.target, files.name
    master, other = PaperMaster(), PaperMaster()
    master.give(source_order(subtask_order(files)))
    with Running(master, spark, relay_dir=str(tmp_path / "first")) as agent:
        master.wait(name, Stage.RUNNING)
        wait_until(lambda: follows(agent, name), "it follows")
        master.falls_silent(agent)
        assert agent.host is not None, "it goes on alone"
        source.run(f"INSERT INTO {name}.t VALUES (1, 1)")
        wait_until(lambda: rows(target, name) == [(1, 1)], "applied without a master")
        told = len(master.beats)
        master.speaks()
        wait_until(lambda: len(master.beats) > told, "a master again")
        assert master.wait(name, Stage.RUNNING).revision == 1
        kept = agent.host
        master.falls_silent(agent)

        other.give(source_order(subtask_order(files), epoch=2))
        with Running(other, spark, relay_dir=str(tmp_path / "second")) as second:
            other.wait(name, Stage.RUNNING)
            wait_until(lambda: follows(second, name), "the other has claimed the source")
            source.run(f"INSERT INTO {name}.t VALUES (2, 2)")
            wait_until(lambda: rows(target, name) == [(1, 1), (2, 2)], "applied by the other")
            wait_until(lambda: agent.host is None, "superseded, and let go")
            assert kept is not None
            source.run(f"UPDATE {name}.t SET v = v + 10")
            wait_until(lambda: rows(target, name) == [(1, 11), (2, 12)], "once")
            assert other.wait(name, Stage.RUNNING).error is None


def test_who_stops_lets_go_and_tells_it(spark: SparkSession, files: TaskFiles) -> None:
    master = PaperMaster()
    master.give(source_order(subtask_order(files)))
    with Running(master, spark):
        master.wait(files.name, Stage.RUNNING)
    assert [beat.leaving for beat in master.beats[-2:]] == [False, True]
    assert (master.beats[-1].epoch, master.beats[-1].subtasks) == (0, ())


def test_an_error_pauses_the_task_and_it_goes_on_by_itself_once_mended(spark: SparkSession, files: TaskFiles) -> None:
    source, target, name = files.sources["s1"], files.target, files.name
    master = PaperMaster()
    master.give(source_order(subtask_order(files)))
    with Running(master, spark) as agent:
        master.wait(name, Stage.RUNNING)
        target.run(f"RENAME TABLE {name}.t TO {name}.away")
        source.run(f"INSERT INTO {name}.t VALUES (1, 1)")
        brief = master.wait_for(name, lambda brief: brief.stage is Stage.PAUSED and brief.error is not None)
        assert brief.next_resume

        def the_same() -> bool:  # both are of one try: it is made again and again
            told, heard = agent.report(name, 5).sub_task_status[0].result, master.brief(name)
            return told is not None and heard is not None and told.errors == (heard.error,)

        wait_until(the_same, "the report tells the error that the master was told")
        target.run(f"RENAME TABLE {name}.away TO {name}.t")
        wait_until(lambda: rows(target, name) == [(1, 1)], "resumed")


def test_what_the_master_kept_of_an_error_still_stands_for_the_next_worker(
    spark: SparkSession, files: TaskFiles
) -> None:
    name = files.name
    master = PaperMaster()
    files.target.run(f"DROP TABLE {name}.t")
    files.sources["s1"].run(f"INSERT INTO {name}.t VALUES (1, 1)")
    master.give(source_order(subtask_order(files)))
    with Running(master, spark, resumes=False):
        brief = master.wait(name, Stage.PAUSED)
    threads = {thread.name for thread in threading.enumerate()}
    master.give(source_order(subtask_order(files, kept=brief), epoch=2))
    with Running(master, spark):
        assert master.wait(name, Stage.PAUSED).error == brief.error
        assert {thread.name for thread in threading.enumerate() if thread.name.startswith(name)} <= threads


def test_a_source_that_is_bound_anew_begins_anew(spark: SparkSession, files: TaskFiles) -> None:
    name = files.name
    master = PaperMaster()
    master.give(source_order(subtask_order(files)))
    with Running(master, spark) as agent:
        master.wait(name, Stage.RUNNING)
        first = agent.host
        master.give(source_order(subtask_order(files), epoch=2))
        wait_until(lambda: master.beats[-1].epoch == 2, "bound anew")
        assert agent.host is not first
        master.give(None)
        wait_until(lambda: master.beats[-1].epoch == 0, "a spare")


def test_an_order_of_a_later_version_is_refused_in_words_and_what_is_understood_goes_on(
    spark: SparkSession, files: TaskFiles
) -> None:
    name = files.name
    master = PaperMaster()
    order = subtask_order(files)
    later = SubtaskOrder(task="later", stage=Stage.RUNNING, revision=3, config={**order.config, "of-a-later-one": 7})
    master.give(source_order(order, later))
    with Running(master, spark) as agent:
        told = master.wait("later", Stage.PAUSED)
        assert told.error is not None
        assert told.revision == 3
        assert told.next_resume
        assert told.error.err_code == "CLUSTER-085"
        assert "of-a-later-one" in told.error.raw_cause
        files.sources["s1"].run(f"INSERT INTO {name}.t VALUES (1, 1)")
        wait_until(lambda: rows(files.target, name) == [(1, 1)], "the other task runs")
        (status,) = agent.report("later", 5).sub_task_status
        assert status.result is not None
        assert "upgrade the worker" in status.result.errors[0].workaround
        changed = order.model_copy(update={"revision": 2, "config": {**order.config, "of-a-later-one": 7}})
        master.give(source_order(changed))
        master.wait(name, Stage.PAUSED)
        wait_until(lambda: agent.host is not None and not agent.host.subtasks, "what it can't read does not run on")
        with pytest.raises(ClusterError, check=lambda error: error.code == "CLUSTER-097"):
            agent.purge_relay(PurgeWish(time=2**40))
        master.give(source_order(subtask_order(files, Stage.RUNNING, 3)))
        files.sources["s1"].run(f"INSERT INTO {name}.t VALUES (2, 2)")
        wait_until(lambda: len(rows(files.target, name)) == 2, "it goes on by what it can read")
        master.orders = master.orders.model_copy(
            update={"order": source_order(order).model_copy(update={"config": {"of-a-later-one": 7}})}
        )
        wait_until(lambda: told_of(agent, "CLUSTER-085"), "a source that it can't read is told")


@pytest.mark.scenarios
def test_what_the_master_can_t_read_goes_on_by_the_order_before_and_does_not_begin(
    spark: SparkSession, files: TaskFiles
) -> None:
    name, source = files.name, files.sources["s1"]
    master = PaperMaster()
    order = subtask_order(files)
    unread = order.model_copy(update={"config": {}, "unread": "CONFIG-001: line 7"})
    other = unread.model_copy(update={"task": "other"})
    master.give(source_order(order))
    whole = master.orders.order
    assert whole is not None
    with Running(master, spark) as agent:
        master.wait(name, Stage.RUNNING)
        master.give(whole.model_copy(update={"subtasks": (unread, other)}))
        told = master.wait("other", Stage.PAUSED)
        assert told.error is not None
        assert told.error.err_code == "CLUSTER-091"
        assert "line 7" in told.error.raw_cause
        bare = order.model_copy(update={"config": {}})
        nothing = whole.model_copy(update={"config": {}, "unread": "CONFIG-001: line 9", "subtasks": (bare,)})
        master.give(nothing)
        wait_until(lambda: master.brief("other") is None, "the order is taken")
        source.run(f"INSERT INTO {name}.t VALUES (1, 1)")
        wait_until(lambda: rows(files.target, name) == [(1, 1)], "it goes on")
        paused = bare.model_copy(update={"stage": Stage.PAUSED})
        master.give(nothing.model_copy(update={"subtasks": (paused,)}))
        master.wait(name, Stage.PAUSED)
        master.give(nothing.model_copy(update={"epoch": 2}))
        wait_until(lambda: told_of(agent, "CLUSTER-091"), "a worker that begins with it is told")
        assert master.beats[-1].epoch in (0, 1)
        assert agent.host is None
        master.give(whole.model_copy(update={"epoch": 2}))
        source.run(f"INSERT INTO {name}.t VALUES (2, 2)")
        wait_until(lambda: len(rows(files.target, name)) == 2, "mended, it goes on")


def told_of(agent: Agent, code: str) -> bool:
    try:
        result = agent.report(None, 5).source_status.result
    except ClusterError as error:
        return error.code == code
    return result is not None and result.errors[0].err_code == code
