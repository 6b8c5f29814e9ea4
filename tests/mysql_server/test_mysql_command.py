"""`unshard run` from MySQL to MySQL: killed in the middle, sources killed too, and each change applied just once."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.exactly_once import assert_exactly_once
from support.task_runs import Command, TaskFiles, at_work
from unshard.testing.mysql_server import MysqlServer
from unshard.testing.workload import Workload, WorkPlan

pytestmark = [pytest.mark.server, pytest.mark.spark, pytest.mark.recovery]


def test_the_command_goes_on_after_a_kill_of_its_own_and_of_the_source(
    mysql_target: MysqlServer, schema: str, tmp_path: Path
) -> None:
    with MysqlServer() as source:
        work = Workload(source, WorkPlan(schema, tables=3))
        work.create()
        work.fill(400)
        files = TaskFiles(
            tmp_path,
            schema,
            {"s1": source},
            mysql_target,
            (f"{schema}_1",),
            source={"enable-gtid": True},
            syncer={"compact": False, "batch": 20},
        ).write()
        with Command(files, crash_at="sync-chunk-after:3") as command:
            command.shows("sync")
            with at_work(work):
                command.dies("sync-chunk-after:3")
        with Command(files) as command:
            command.catch_up()
            work.run(transactions=60)
            source.kill()
            source.start()
            work.run(transactions=60)
            command.catch_up()
            command.interrupt()
            assert command.wait() == 0, command.text
        assert_exactly_once(source, mysql_target, work.plan.names)
