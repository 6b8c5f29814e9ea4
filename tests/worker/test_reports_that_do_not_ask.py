"""What a page asks of a worker costs neither the source nor the target anything."""

from __future__ import annotations

import threading

import pytest
from agents import PaperMaster, Running, source_order, subtask_order
from pyspark.sql import SparkSession
from test_agent import files, rows, synced

from support.general_log import general_log
from support.task_runs import TaskFiles, newest
from support.waiting import wait_until
from unshard.api.status import Stage, SyncStatus

pytestmark = [pytest.mark.server, pytest.mark.spark]
__all__ = ["files"]


def forgets(thread: threading.Thread) -> bool:
    """Return whether the thread removes records of a copy in the target."""
    return thread.name.startswith("forget ")


def test_the_log_of_what_a_server_is_asked_writes_nothing_into_its_binlog(files: TaskFiles) -> None:
    source = files.sources["s1"]
    before = newest(source)
    with general_log(source):
        pass
    assert newest(source) == before


def test_they_leave_both_servers_alone_and_know_the_lag(spark: SparkSession, files: TaskFiles) -> None:
    source, target, name = files.sources["s1"], files.target, files.name
    master = PaperMaster()
    master.give(source_order(subtask_order(files)))
    with Running(master, spark) as agent:
        master.wait(name, Stage.RUNNING)
        source.run(f"INSERT INTO {name}.t VALUES (1, 1)")
        wait_until(lambda: rows(target, name) == [(1, 1)], "applied")
        wait_until(lambda: synced(agent).seconds_behind_master == 0, "the stream tells that nothing lies ahead")
        assert (synced(agent).backlog_bytes, synced(agent).backlog_at_least) == (0, False)
        ((file, offset, *_),) = source.query("SHOW MASTER STATUS")
        wait_until(lambda: synced(agent).syncer_binlog == f"({file}, {offset})", "the batch is closed in the target")
        wait_until(lambda: not any(map(forgets, threading.enumerate())), "the copy's records are forgotten")
        with general_log(source) as of_source, general_log(target) as of_target:
            for _ in range(50):
                agent.report(None, 5)
            assert (of_source(), of_target()) == ([], [])

            def asking() -> SyncStatus:
                (told,) = agent.fresh_report(None, 5).sub_task_status
                assert told.sync is not None
                return told.sync

            wait_until(lambda: asking().master_binlog != "", "who asks for it gets what the source says")
            assert "Connect" in [kind for kind, _ in of_source()]


def test_a_task_that_rests_is_as_far_behind_as_its_last_row(spark: SparkSession, files: TaskFiles) -> None:
    """No stream tells anything of the source then: the lag grows from the moment that the target has."""
    source, target, name = files.sources["s1"], files.target, files.name
    master = PaperMaster()
    master.give(source_order(subtask_order(files)))
    with Running(master, spark) as agent:
        master.wait(name, Stage.RUNNING)
        source.run(f"INSERT INTO {name}.t VALUES (1, 1)")
        wait_until(lambda: rows(target, name) == [(1, 1)], "applied")
        wait_until(lambda: synced(agent).seconds_behind_master is not None, "its lag is known")
        master.give(source_order(subtask_order(files, Stage.PAUSED, 2)))
        master.wait(name, Stage.PAUSED)
        wait_until(lambda: (synced(agent).seconds_behind_master or 0) > 6, "it is not taken for 0 for longer")
        (told,) = agent.report(name, 5).sub_task_status
        assert told.since
        assert synced(agent).backlog_at_least
