"""Agents against a master that only hands out what a test puts into it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import inf
from typing import Any

from pyspark.sql import SparkSession

from support.task_runs import TaskFiles
from support.waiting import wait_until
from unshard.api.heartbeat import DesiredState, Heartbeat, SourceOrder, SubtaskBrief, SubtaskOrder
from unshard.api.status import Stage
from unshard.config.files import load_source, load_task
from unshard.config.subtask import plan_subtasks
from unshard.errors import ClusterError
from unshard.spark.lazy import started
from unshard.worker.agent import Agent
from unshard.worker.source_worker import Means, builder


@dataclass(slots=True)
class PaperMaster:
    """Answers each beat with `orders`, keeps what it was told, and is silent on demand.

    The ttl is longer than a machine stands still; `falls_silent` ends it.
    """

    orders: DesiredState = field(default_factory=lambda: DesiredState(ttl_seconds=60.0))
    beats: list[Heartbeat] = field(default_factory=list)
    silent: bool = False
    wake: Callable[[], None] = lambda: None

    def beat(self, beat: Heartbeat) -> DesiredState:
        if self.silent:
            raise ClusterError("CLUSTER-022", values={"addresses": "none"})
        self.beats.append(beat)
        return self.orders

    def give(self, order: SourceOrder | None) -> None:
        self.orders = self.orders.model_copy(update={"order": order})
        self.wake()

    def falls_silent(self, agent: Agent) -> None:
        """Answer nothing from now on, and wait until the agent's ttl is over: it has no source, or stands alone."""
        self.silent = True

        def is_alone() -> bool:
            with agent._lock:
                agent._asked = -inf  # again and again: an answer may have been on its way
            agent.wake()
            return agent.host is None or agent.host._alone

        wait_until(is_alone, "the agent knows that no master answers")

    def speaks(self) -> None:
        """Answer again, from now on."""
        self.silent = False
        self.wake()

    def brief(self, task: str) -> SubtaskBrief | None:
        """The last word on a task; None where it isn't named any more."""
        briefs = self.beats[-1].subtasks if self.beats else ()
        return next((brief for brief in briefs if brief.task == task), None)

    def wait(self, task: str, stage: Stage) -> SubtaskBrief:
        return self.wait_for(task, lambda brief: brief.stage is stage)

    def wait_for(self, task: str, wanted: Callable[[SubtaskBrief], bool]) -> SubtaskBrief:
        """The first word on the task that is as wanted."""
        found: list[SubtaskBrief] = []

        def there() -> bool:
            brief = self.brief(task)
            found[:] = [brief] if brief is not None and wanted(brief) else []
            return bool(found)

        wait_until(there, f"another word on {task}", told=lambda: f"{self.brief(task)}")
        return found[0]


class Running:
    """An agent in a thread, as a context."""

    def __init__(self, master: PaperMaster, spark: SparkSession, **means: Any) -> None:
        self.agent = Agent("127.0.0.1:1", master, Means("w1", builder(lambda config: started(spark)), **means))
        master.wake = self.agent.wake
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self.agent.run, args=(self._stop,))

    def __enter__(self) -> Agent:
        self._thread.start()
        return self.agent

    def __exit__(self, *failure: object) -> None:
        self._stop.set()
        self._thread.join()


def source_order(*orders: SubtaskOrder, epoch: int = 1, relay_stage: Stage = Stage.STOPPED) -> SourceOrder:
    source = orders[0].config["source"]
    return SourceOrder(source=source["source_id"], epoch=epoch, config=source, relay_stage=relay_stage, subtasks=orders)


def subtask_order(
    files: TaskFiles, stage: Stage = Stage.RUNNING, revision: int = 1, kept: SubtaskBrief | None = None
) -> SubtaskOrder:
    """The order for the one source of the task files."""
    (config,) = plan_subtasks(load_task(files.task_path), [load_source(path) for path in files.source_paths])
    form: Mapping[str, Any] = config.model_dump(mode="json")
    return SubtaskOrder(task=config.name, stage=stage, revision=revision, config=dict(form), kept=kept)
