"""What auto-resume does with errors of real servers: what may pass is tried again, what can't is told of and stands."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from agents import PaperMaster, Running, source_order, subtask_order
from pyspark.sql import SparkSession

from support.task_runs import TaskFiles, newest
from support.waiting import wait_until
from unshard.api.heartbeat import SubtaskBrief
from unshard.api.status import Stage
from unshard.testing.mariadb_server import MariadbServer
from unshard.testing.proxy import FaultProxy
from unshard.worker.agent import Agent

pytestmark = [pytest.mark.server, pytest.mark.spark]
CHECKER = {"backoff-min": "200ms", "backoff-jitter": False}


@pytest.fixture
def files(source_server: MariadbServer, target_server: MariadbServer, schema: str, tmp_path: Path) -> TaskFiles:
    for server in (source_server, target_server):
        server.run(f"CREATE DATABASE {schema}", f"CREATE TABLE {schema}.t (id INT PRIMARY KEY, v INT)")
    end = newest(source_server)
    instance = {"meta": {"binlog-name": end.file, "binlog-pos": end.offset}}
    keys, sources = {"task-mode": "incremental"}, {"s1": source_server}
    return TaskFiles(
        tmp_path, schema, sources, target_server, (schema,), keys=keys, instance=instance, source={"checker": CHECKER}
    ).write()


def rows(files: TaskFiles) -> list[tuple[int, int]]:
    return files.target.query(f"SELECT id, v FROM {files.name}.t ORDER BY id")


def told(master: PaperMaster, files: TaskFiles) -> SubtaskBrief:
    brief = master.brief(files.name)
    assert brief is not None
    return brief


def resumes(master: PaperMaster, files: TaskFiles) -> int:
    brief = master.brief(files.name)
    return brief.resume_count if brief is not None else 0


def test_a_target_that_is_away_is_waited_for(spark: SparkSession, files: TaskFiles) -> None:
    master = PaperMaster()
    with FaultProxy("127.0.0.1", files.target.port) as proxy:
        database = {"host": "127.0.0.1", "port": proxy.port, "user": "root"}
        behind = replace(files, keys={**files.keys, "target-database": database})
        master.give(source_order(subtask_order(behind.write())))
        proxy.refuse()
        with Running(master, spark):
            brief = master.wait_for(files.name, lambda brief: brief.resume_count >= 2 and brief.error is not None)
            assert brief.error is not None
            assert brief.error.err_code.startswith("TARGET-")
            proxy.refuse(False)
            files.sources["s1"].run(f"INSERT INTO {files.name}.t VALUES (1, 1)")
            wait_until(lambda: rows(files) == [(1, 1)], "resumed")


def test_a_duplicate_key_stands_and_says_so(spark: SparkSession, files: TaskFiles) -> None:
    files.target.run(f"INSERT INTO {files.name}.t VALUES (1, 9)")
    files.sources["s1"].run(f"INSERT INTO {files.name}.t VALUES (1, 1)")
    master = PaperMaster()
    master.give(source_order(subtask_order(files)))
    with Running(master, spark) as agent:
        brief = master.wait(files.name, Stage.PAUSED)
        assert (brief.resume_count, brief.next_resume) == (0, "")
        (one,) = agent.report(files.name, 5).sub_task_status
        assert one.result is not None
        assert "can't auto resume" in one.result.detail
        assert "1062" in one.result.errors[0].raw_cause
        assert agent.host is not None
        stands = agent.host.subtasks[files.name]
        stands.tick()  # nothing is due
        stood = stands.brief().model_copy(update={"resume_count": 2})  # twice before, by other errors
        assert stood.stage is Stage.PAUSED
    master.give(source_order(subtask_order(files, kept=stood), epoch=2))
    with Running(master, spark) as agent:
        wait_until(lambda: agent.host is not None and bool(agent.host.subtasks), "the worker is started again")
        assert "can't auto resume" in detail(agent, files)
        files.target.run(f"DELETE FROM {files.name}.t")
        master.give(source_order(subtask_order(files, revision=2), epoch=2))
        wait_until(lambda: rows(files) == [(1, 1)], "resumed by hand")


@pytest.mark.scenarios
def test_it_gives_up_after_so_many_tries_also_of_another_worker(
    spark: SparkSession, files: TaskFiles, caplog: pytest.LogCaptureFixture
) -> None:
    files = replace(files, source={"checker": {**CHECKER, "max-resumes": 3}}).write()
    files.target.run(f"DROP TABLE {files.name}.t")
    files.sources["s1"].run(f"INSERT INTO {files.name}.t VALUES (1, 1)")
    master = PaperMaster()
    master.give(source_order(subtask_order(files)))
    with Running(master, spark):
        wait_until(lambda: resumes(master, files) >= 2, "tried twice")
    brief = told_before_leaving(master, files)
    assert brief.resume_count >= 2
    master.give(source_order(subtask_order(files, kept=brief), epoch=2))
    with Running(master, spark) as agent:
        wait_until(lambda: given_up(master, files), "given up")
        stood = told(master, files)
        assert stood.resume_count == 3
        assert detail(agent, files).startswith("auto-resume has given up after 3")
    assert "auto-resume gives up" in caplog.text
    master.give(source_order(subtask_order(files, kept=stood), epoch=3))
    with Running(master, spark) as agent:
        wait_until(lambda: given_up(master, files), "a worker that is started again leaves it at that")
        assert detail(agent, files).startswith("auto-resume has given up after 3")
        files.target.run(f"CREATE TABLE {files.name}.t (id INT PRIMARY KEY, v INT)")
        master.give(source_order(subtask_order(files, revision=2), epoch=3))
        wait_until(lambda: rows(files) == [(1, 1)], "resumed by hand")
        wait_until(lambda: resumes(master, files) == 0, "counted anew")


def detail(agent: Agent, files: TaskFiles) -> str:
    (one,) = agent.report(files.name, 5).sub_task_status
    assert one.result is not None
    return one.result.detail


def given_up(master: PaperMaster, files: TaskFiles) -> bool:
    brief = master.brief(files.name)
    return brief is not None and brief.stage is Stage.PAUSED and brief.resume_count == 3 and not brief.next_resume


def told_before_leaving(master: PaperMaster, files: TaskFiles) -> SubtaskBrief:
    """The last word on the task: who leaves tells how it stood."""
    return next(brief for beat in reversed(master.beats) for brief in beat.subtasks if brief.task == files.name)
