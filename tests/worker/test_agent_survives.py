"""What isn't foreseen in a worker's own threads is logged, and the next order is carried out as ever."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from agents import PaperMaster

from support.waiting import wait_until
from unshard.api.heartbeat import DesiredState, Heartbeat, SourceOrder
from unshard.worker.agent import Agent
from unshard.worker.source_worker import Means
from unshard.worker.subtask import Subtask

SOURCE = {"source-id": "s1", "from": {"host": "127.0.0.1", "port": 1, "user": "root"}}


def built(config: Any, relay: Any, order: Any) -> Subtask:
    raise AssertionError("no task is given here")


@contextmanager
def running(master: PaperMaster) -> Iterator[Agent]:
    agent = Agent("127.0.0.1:1", master, Means("w1", built))
    master.wake = agent.wake
    stop = threading.Event()
    thread = threading.Thread(target=agent.run, args=(stop,))
    thread.start()
    try:
        yield agent
    finally:
        stop.set()
        thread.join()


def beaten(master: PaperMaster, agent: Agent, times: int) -> None:
    def heard() -> bool:
        agent.wake()
        return len(master.beats) >= times

    wait_until(heard, f"{times} beats")


def test_an_order_that_cannot_be_read_does_not_end_the_worker() -> None:
    master = PaperMaster()
    with running(master) as agent:
        master.give(SourceOrder(source="s1", epoch=1, config={"of": "another version"}))
        beaten(master, agent, 4)
        assert agent.host is None
        master.give(SourceOrder(source="s1", epoch=2, config=SOURCE))
        wait_until(lambda: master.beats[-1].epoch == 2, "the next order")
        master.give(SourceOrder(source="s1", epoch=2, config={"of": "another version"}))
        beaten(master, agent, len(master.beats) + 4)
        assert agent.host is not None  # it stays with what it had
    assert master.beats[-1].leaving


class FaultyMaster(PaperMaster):
    faults = 0

    def beat(self, beat: Heartbeat) -> DesiredState:
        if self.faults < 3:
            self.faults += 1
            raise RuntimeError("not foreseen")
        return super().beat(beat)


def test_a_beat_that_fails_by_a_bug_is_sent_again() -> None:
    master = FaultyMaster()
    with running(master):
        wait_until(lambda: bool(master.beats), "a beat")
