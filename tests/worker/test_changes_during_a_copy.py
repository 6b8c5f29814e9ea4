"""A change of the settings of the sync, or of the source's password, does not break off a dump or a load."""

from __future__ import annotations

from collections.abc import Iterator
from threading import Event

import pytest

from support.waiting import wait_until
from unshard.api.heartbeat import SubtaskOrder
from unshard.api.status import Stage
from unshard.config.files import parse_source, parse_task
from unshard.config.subtask import SubtaskConfig, plan_subtasks
from unshard.worker.status import SubtaskStatus
from unshard.worker.subtask import Subtask
from unshard.worker.subtask_runner import SubtaskRunner

SOURCE = """\
source-id: s1
from: {host: 127.0.0.1, port: 1, user: root, password: one}
"""
TASK = """\
name: t
task-mode: all
target-database: {host: 127.0.0.1, port: 1, user: root}
mysql-instances: [{source-id: s1, syncer-config-name: all, mydumper-config-name: all}]
mydumpers: {all: {threads: 4}}
syncers: {all: {worker-count: 4}}
"""
LIVE = {
    "syncers": (TASK.replace("worker-count: 4", "worker-count: 8"), SOURCE),
    "ignore-checking-items": (f"{TASK}ignore-checking-items: [dump_privilege]\n", SOURCE),
    "checker": (TASK, f"{SOURCE}checker: {{check-enable: false}}\n"),
    "purge": (TASK, f"{SOURCE}purge: {{expires: 5}}\n"),
    "password": (TASK, SOURCE.replace("password: one", "password: two")),
}
OTHER = {
    "mydumpers": (TASK.replace("threads: 4", "threads: 8"), SOURCE),
    "user": (TASK, SOURCE.replace("user: root", "user: other")),
    "both": (TASK.replace("count: 4", "count: 8"), SOURCE.replace("user: root", "user: other")),
}


class _Copying(Subtask):
    """It is in the unit that the test says, until it is stopped. `configs`: those that a run has begun with."""

    configs: list[SubtaskConfig]

    def run(self, stop: Event) -> None:
        assert stop.wait(600)

    def status(self, *, asks: bool = True) -> SubtaskStatus:
        return SubtaskStatus("s1", self.worked)

    def cancel_copy(self) -> bool:
        return True

    def cancel_sync(self) -> None: ...
    def look_around(self) -> None: ...


def planned(task: str, source: str) -> SubtaskConfig:
    (config,) = plan_subtasks(parse_task(task), [parse_source(source)])
    return config


@pytest.fixture
def copying() -> Iterator[tuple[SubtaskRunner, _Copying]]:
    subtask = _Copying.__new__(_Copying)
    subtask.worked, subtask.unit, subtask.copies, subtask.followed = "dump", "dump", True, False
    subtask.validation, subtask.configs = None, []

    def build(config: SubtaskConfig) -> Subtask:
        subtask.configs.append(config)
        return subtask

    runner = SubtaskRunner(order(1), planned(TASK, SOURCE), build, lambda: None, "w1")
    runner.obey(runner.order, runner.config)
    wait_until(lambda: runner.worked == "dump", "it copies", told=lambda: str(runner.stage))
    yield runner, subtask
    runner.close()
    wait_until(lambda: runner.ended, "it has ended")


def order(revision: int) -> SubtaskOrder:
    return SubtaskOrder(task="t", stage=Stage.RUNNING, revision=revision, config={})


@pytest.mark.parametrize("unit", ["dump", "load"])
@pytest.mark.parametrize("key", LIVE)
def test_a_copy_goes_on_and_the_sync_has_the_new_settings(
    copying: tuple[SubtaskRunner, _Copying], key: str, unit: str
) -> None:
    runner, subtask = copying
    subtask.worked = unit
    new = planned(*LIVE[key])
    for _ in range(2):  # each heartbeat brings the order
        runner.obey(order(2), new)
        runner.tick()
    assert (runner.stage, len(subtask.configs)) == (Stage.RUNNING, 1)
    assert runner.brief().revision == 2
    assert runner.checker == new.source.checker
    subtask.worked = "sync"
    runner.tick()
    wait_until(lambda: len(subtask.configs) == 2, "it goes on by the new settings")
    assert subtask.configs[1] == new
    wait_until(lambda: runner.stage is Stage.RUNNING, "it runs")
    runner.obey(order(2), planned(*LIVE[key]))
    runner.tick()
    assert (runner.stage, len(subtask.configs)) == (Stage.RUNNING, 2)


@pytest.mark.parametrize("key", OTHER)
def test_a_change_that_concerns_the_copy_begins_it_by_the_new_settings(
    copying: tuple[SubtaskRunner, _Copying], key: str
) -> None:
    runner, subtask = copying
    runner.obey(order(2), planned(*LIVE["syncers"]))
    assert len(subtask.configs) == 1
    new = planned(*OTHER[key])
    runner.obey(order(3), new)
    wait_until(lambda: len(subtask.configs) == 2, "it goes on by the new settings")
    assert subtask.configs[1] == new


def test_a_change_during_the_sync_counts_at_once(copying: tuple[SubtaskRunner, _Copying]) -> None:
    runner, subtask = copying
    subtask.worked = "sync"
    runner.obey(order(2), planned(*LIVE["syncers"]))
    wait_until(lambda: len(subtask.configs) == 2, "it goes on by the new settings")
