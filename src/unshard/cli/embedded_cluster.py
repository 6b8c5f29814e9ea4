"""A whole cluster within one process: a master with its store in memory, and a worker for each source.

Nothing of the task's files is written to disk: they may hold secrets. Durable state is kept in the target; the master's
store only lets `unshard ctl` see and change what runs. Master and workers live and end together, so no worker is ever
presumed dead, and a lease lasts as long as the process.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from threading import Event, Thread

from unshard.api.status import Stage
from unshard.api.verbs import OperateSource, StartTask
from unshard.config.files import parse_source
from unshard.config.subtask import SubtaskConfig
from unshard.errors import UnshardError
from unshard.master.service import Master
from unshard.master.store import Store
from unshard.metrics.sample import Sample
from unshard.worker.agent import Agent
from unshard.worker.metrics import host_samples
from unshard.worker.source_worker import Build, Means
from unshard.worker.status import SubtaskStatus
from unshard.worker.subtask_runner import WAIT_ON_STOP_SECONDS, SubtaskRunner

FOREVER_SECONDS = 10.0 * 365 * 86400
LOOK_SECONDS = 0.05
_OVER = frozenset({Stage.FINISHED, Stage.STOPPED})


@dataclass(frozen=True, slots=True)
class Texts:
    """The texts of a run's task file and source files, as they were read."""

    task: str = field(repr=False)
    sources: tuple[str, ...] = field(repr=False)


@dataclass(slots=True)
class EmbeddedCluster:
    """A cluster in this process that runs one task until its sources are finished, `stop` is set, or one of them fails.

    The first failure stops the other sources. A context manager: the run begins on entry, and the exit waits for its
    end. `build` makes a subtask. With `resumes`, auto-resume continues after an error, which otherwise ends the run.
    `ended` is set when nothing runs any more.
    """

    configs: Sequence[SubtaskConfig]
    texts: Texts
    build: Build
    wait_on_stop: float = WAIT_ON_STOP_SECONDS
    resumes: bool = False
    stop: Event = field(default_factory=Event)
    ended: Event = field(default_factory=Event)
    errors: list[BaseException] = field(default_factory=list)
    master: Master = field(init=False)
    _agents: dict[str, Agent] = field(default_factory=dict)
    _hosted: dict[str, SubtaskRunner] = field(default_factory=dict)
    _done: Event = field(default_factory=Event)
    _thread: Thread = field(init=False)
    _stack: ExitStack = field(default_factory=ExitStack)

    def __enter__(self) -> EmbeddedCluster:
        self.master = Master(
            Store("sqlite://"),
            self._agents.__getitem__,
            "run",
            lease_seconds=FOREVER_SECONDS,
            worker_ttl_seconds=FOREVER_SECONDS,
            ask=lambda config: None,  # the checks have asked both ends
        )
        self._stack.callback(self.master.close)
        self._thread = Thread(target=self._run, name="crew")
        self._thread.start()
        return self

    def __exit__(self, *failure: object) -> None:
        if any(failure):
            self.stop.set()
        self._thread.join()
        self._stack.close()

    def join(self) -> None:
        """Wait for the end. Raises the first failure; those of other sources are in the log."""
        self._thread.join()
        if self.errors:
            raise self.errors[0]

    def readings(self) -> list[SubtaskStatus]:
        """Return the status of each source, in the order of the configs."""
        names = [config.source_id for config in self.configs]
        hosted = self._hosted
        return [hosted[name].reading() if name in hosted else SubtaskStatus(name, "starting") for name in names]

    def samples(self) -> Iterator[Sample]:
        """Yield every series of the workers. Any thread may ask."""
        for agent in tuple(self._agents.values()):
            yield from host_samples(agent.name, agent.host)

    def broken_off(self) -> list[str]:
        """Return the sources whose batch under way a stop did not wait for."""
        subtasks = [hosted.subtask for hosted in self._hosted.values()]
        return [subtask.source for subtask in subtasks if subtask is not None and subtask.broken_off]

    def _run(self) -> None:
        threads: list[Thread] = []
        try:
            self.master.start()
            for config in self.configs:
                name = config.source_id
                means = Means(f"worker-{name}", self.build, self.wait_on_stop, resumes=self.resumes)
                self._agents[means.worker] = agent = Agent(means.worker, self.master, means, leaves=False)
                threads.append(Thread(target=agent.run, args=(self._done,), name=f"worker {name}"))
                threads[-1].start()
            self._begin()
            self._watch()
        except BaseException as error:
            self._fail(error)
            if not isinstance(error, UnshardError):
                raise
        finally:
            self._done.set()
            for thread in threads:
                thread.join()
            self._look()
            self.ended.set()

    def _begin(self) -> None:
        """Give each source its worker, then start the task on all of them."""
        for config, text in zip(self.configs, self._ordered(), strict=True):
            name = config.source_id
            while f"worker-{name}" not in self.master.liveness.online():
                time.sleep(LOOK_SECONDS / 5)
            self.master.operate_source(OperateSource(op="create", config=(text,), worker=f"worker-{name}"))
        self.master.start_task(StartTask(task=self.texts.task), checked=True)

    def _ordered(self) -> list[str]:
        """Return the texts of the source files in the order of the configs."""
        by_name = {parse_source(text).source_id: text for text in self.texts.sources}
        return [by_name[config.source_id] for config in self.configs]

    def _watch(self) -> None:
        """Wait until all is finished, a user stops it, or an error does."""
        while not self.stop.wait(LOOK_SECONDS):
            self._look()
            if self._forgotten:
                if self._told:
                    self.stop.set()
            elif self._hosted and all(hosted.stage in _OVER for hosted in self._hosted.values()):
                return

    @property
    def _forgotten(self) -> bool:
        """True if a user has stopped the task by ctl."""
        name = self.configs[0].name
        return all(task != name for task, _ in self.master.cluster.state.subtasks)

    @property
    def _told(self) -> bool:
        """True if the master has heard from the workers that the task has ended: a stop waits for that."""
        name = self.configs[0].name
        beats = filter(None, map(self.master.liveness.beat_of, self._agents))
        return not any(brief.task == name for beat in beats for brief in beat.subtasks)

    def _look(self) -> None:
        """Find the subtasks as they appear, and what has ended them."""
        task = self.configs[0].name
        for config in self.configs:
            agent = self._agents.get(f"worker-{config.source_id}")
            host = agent.host if agent is not None else None
            hosted = host.subtasks.get(task) if host is not None else None
            if hosted is not None:
                self._hosted[config.source_id] = hosted
        for hosted in self._hosted.values():
            fault = hosted.fault
            if fault is not None and fault not in self.errors and hosted.resumption.due is None:
                self._fail(fault)

    def _fail(self, error: BaseException) -> None:
        self.errors.append(error)
        self.stop.set()
