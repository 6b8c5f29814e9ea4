"""A run's cluster within one process: all ends are noticed, the first failure stops the others."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from threading import Barrier, Event
from typing import Any

import pytest
import yaml

from support.waiting import wait_until
from unshard.api.verbs import PauseTask, QueryStatus, ResumeTask, StopTask
from unshard.cli.embedded_cluster import EmbeddedCluster, Texts
from unshard.config.files import parse_source, parse_task
from unshard.config.subtask import plan_subtasks
from unshard.errors import SourceError, UnshardError, Where
from unshard.log import LogSettings, configure, logger
from unshard.retry import retrying
from unshard.worker.status import SubtaskStatus, WaitingSubtask

TASK_STATE = "dm_worker_task_state"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a source keeps by default lies below the working folder."""
    monkeypatch.chdir(tmp_path)


class Stub:
    """A subtask that does what it is told."""

    unit = worked = "sync"
    broken_off = False

    def __init__(self, source: str, work: Callable[[Event], None]) -> None:
        self.source, self.run = source, work

    def cancel_copy(self) -> bool:
        return False

    def cancel_sync(self) -> None:
        self.broken_off = True

    def look_around(self) -> None: ...

    def status(self, *, asks: bool = True) -> SubtaskStatus:
        return SubtaskStatus(self.source, "sync")


def crew(*works: Callable[[Event], None], pause: str = "10ms", **more: Any) -> EmbeddedCluster:
    """`pause`: how long auto-resume waits after a first error."""
    database = {"host": "127.0.0.1", "port": 1, "user": "root"}
    names = [f"s{number}" for number in range(len(works))]
    checker = {"backoff-min": pause}
    sources = [yaml.safe_dump({"source-id": name, "from": database, "checker": checker}) for name in names]
    task = yaml.safe_dump(
        {
            "name": "t",
            "task-mode": "incremental",
            "target-database": database,
            "mysql-instances": [{"source-id": name} for name in reversed(names)],
        }
    )
    configs = plan_subtasks(parse_task(task), [parse_source(text) for text in sources])
    stubs: Any = {name: Stub(name, work) for name, work in zip(names, works, strict=True)}
    return EmbeddedCluster(
        configs, Texts(task, tuple(sources)), lambda config, relay, order: stubs[config.source_id], **more
    )


def waits(stop: Event) -> None:
    assert stop.wait(60)


def test_subtasks_that_end_at_the_same_moment_end_the_run() -> None:
    for _ in range(5):
        together = Barrier(3)

        def work(stop: Event, together: Barrier = together) -> None:
            together.wait(60)

        with crew(*[work] * 3) as running:
            assert running.ended.wait(60)
        running.join()
        assert not running.stop.is_set()


def test_the_first_failure_stops_the_others_and_is_raised() -> None:
    def fails(stop: Event) -> None:
        raise SourceError("SOURCE-003")

    with crew(waits, fails, waits) as running:
        assert running.ended.wait(60)
    with pytest.raises(UnshardError) as raised:
        running.join()
    assert raised.value.code == "SOURCE-003"


def test_with_auto_resume_an_error_that_may_pass_ends_nothing() -> None:
    failed: list[int] = []

    def fails_once(stop: Event) -> None:
        failed.append(1)
        if len(failed) == 1:
            raise SourceError("SOURCE-003")

    with crew(fails_once, resumes=True) as running:
        assert running.ended.wait(60)
    running.join()
    assert len(failed) == 2


def test_who_waits_for_an_error_to_pass_says_for_which_and_since_when_nothing_worked() -> None:
    read: list[WaitingSubtask | None] = []

    def fails_twice(stop: Event) -> None:
        wait_until(lambda: running.readings()[0].unit == "sync", "the run knows its subtask")
        read.append(running.readings()[0].waited)
        if len(read) < 3:
            raise SourceError("SOURCE-003", Where(source="s0"), "(2013, 'gone\naway')")

    running = crew(fails_twice, resumes=True)
    with running:
        assert running.ended.wait(60)
    running.join()
    assert read[0] is None, "nothing has failed yet"
    waits = [one for one in read if one is not None]
    assert {one.since for one in waits} == {waits[0].since}
    assert len({one.until for one in waits}) == 2
    assert all(one.until > one.since for one in waits)
    assert {one.error for one in waits} == {
        "SOURCE-003 [source s0]: the connection to the source was lost: (2013, 'gone away')"
    }
    assert running.readings()[0].waits is None


def test_while_it_waits_it_says_so() -> None:
    def fails(stop: Event) -> None:
        raise SourceError("SOURCE-003")

    with crew(fails, pause="5m", resumes=True) as running:
        wait_until(lambda: running.readings()[0].waits is not None, "it waits")
        (reading,) = running.readings()
        assert reading.waits is reading.waited
        running.stop.set()


def test_a_fault_of_ours_is_raised_as_it_is() -> None:
    def breaks(stop: Event) -> None:
        raise ZeroDivisionError

    with crew(breaks) as running:
        assert running.ended.wait(60)
    with pytest.raises(ZeroDivisionError):
        running.join()


def test_a_batch_that_takes_too_long_is_broken_off() -> None:
    running = crew(waits, wait_on_stop=0.0)
    with running:
        running.stop.set()
    running.join()


def test_a_server_that_does_not_answer_holds_up_no_stop() -> None:
    begun = Event()

    def tries(stop: Event) -> None:
        def fails() -> None:
            begun.set()
            raise SourceError("SOURCE-003")

        retrying(fails, attempts=10**6)

    with crew(tries, wait_on_stop=0.0) as running:
        assert begun.wait(60)
        running.stop.set()
        assert running.ended.wait(60)


def test_the_master_within_pauses_resumes_and_stops_the_task() -> None:
    begun: list[int] = []

    def works(stop: Event) -> None:
        begun.append(1)
        waits(stop)

    with crew(works) as running:
        master = running.master
        wait_until(lambda: len(begun) == 1, "it works")
        assert master.pause_task(PauseTask(name="t"))["result"]
        (told,) = master.query_status(QueryStatus(name="t"))["sources"]
        assert told["subTaskStatus"][0]["stage"] == "Paused"
        assert master.resume_task(ResumeTask(name="t"))["result"]
        wait_until(lambda: len(begun) == 2, "it works again")  # who runs has not begun yet
        assert master.stop_task(StopTask(name="t"))["result"]
        assert running.ended.wait(60)
    running.join()
    assert running.stop.is_set()


def test_a_source_that_is_stopped_by_hand_is_not_waited_for() -> None:
    begun = [Event(), Event()]

    def first(stop: Event) -> None:
        begun[0].set()
        waits(stop)

    def second(stop: Event) -> None:
        begun[1].set()
        assert begun[0].wait(60)
        while "s0" in stopped:
            stop.wait(0.02)

    stopped = ["s0"]
    with crew(first, second) as running:
        assert all(one.wait(60) for one in begun)
        assert running.master.stop_task(StopTask(name="t", sources=("s0",)))["result"]
        stopped.clear()
        assert running.ended.wait(60)
    running.join()
    assert not running.stop.is_set()


def test_the_end_of_all_sources_is_told_to_who_has_stopped_them() -> None:
    begun = [Event(), Event()]

    def work(number: int) -> Callable[[Event], None]:
        def works(stop: Event) -> None:
            begun[number].set()
            waits(stop)

        return works

    with crew(work(0), work(1)) as running:
        assert all(one.wait(60) for one in begun)
        told = running.master.stop_task(StopTask(name="t"))
        assert [one["result"] for one in told["sources"]] == [True, True]
        assert running.ended.wait(60)
    running.join()


def test_what_runs_is_seen_in_its_samples_and_each_line_of_the_log_tells_whose_it_is(tmp_path: Path) -> None:
    begun = Event()

    def works(stop: Event) -> None:
        logger("sync").info("at work")
        begun.set()
        waits(stop)

    configure(LogSettings(tmp_path / "log"))
    with crew(works) as running:
        assert begun.wait(60)
        found = {sample.labels["worker"]: sample for sample in running.samples() if sample.name == TASK_STATE}
        assert found["worker-s0"].labels == {"task": "t", "source_id": "s0", "worker": "worker-s0"}
        running.stop.set()
    lines = [json.loads(line) for line in (tmp_path / "log").read_text().splitlines()]
    (line,) = [line for line in lines if line.get("event") == "at work"]
    assert (line["task"], line["source"], line["worker"]) == ("t", "s0", "worker-s0")
