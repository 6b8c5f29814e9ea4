"""One source in a worker: its relay, shared by its tasks, and a subtask for each of them, by the master's orders.

An order that can't be read becomes a subtask that reports the reason (`refused_subtask.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from typing import Any

from unshard.api.heartbeat import PurgeWish, SourceOrder, SubtaskBrief, SubtaskOrder, unread_source, unread_task
from unshard.api.status import CopyProgress, SourceReport, SourceStatus, Stage
from unshard.config.source import SourceConfig
from unshard.config.subtask import SubtaskConfig
from unshard.config.task import SparkConfig
from unshard.errors import ClusterError, ConfigError, RelayError, Where, bounded
from unshard.log import logger
from unshard.mysql.endpoint import to_endpoint
from unshard.relay.purge import PurgeLimits
from unshard.spark.lazy import LazySession
from unshard.target.receipts import Order
from unshard.worker.build import build_subtask
from unshard.worker.history import FigureRing
from unshard.worker.purging import Followers, Purger
from unshard.worker.refused_subtask import RefusedSubtask, understood
from unshard.worker.report import relay_form, subtask_form
from unshard.worker.shared_relay import SharedRelay
from unshard.worker.subtask import Subtask
from unshard.worker.subtask_runner import WAIT_ON_STOP_SECONDS, SubtaskRunner
from unshard.worker.watch import UpstreamWatch

Build = Callable[[SubtaskConfig, SharedRelay, Order | None], Subtask]
"""A subtask on the relay that it shares, which claims its source by a master's order; without one by a human's."""


def builder(spark: Callable[[SparkConfig], LazySession]) -> Build:
    """Return how to make a subtask whose jobs run in the session that `spark` returns for its task."""
    return lambda config, relay, order: build_subtask(config, spark(config.spark), relay.reader, order)


@dataclass(frozen=True, slots=True)
class Means:
    """The settings and functions of a worker that do not depend on the source that it serves.

    `build` makes a subtask, on the relay that it shares; `relay_dir` overrides the directory in the source's file;
    `resumes`: whether auto-resume works at all.
    """

    worker: str
    build: Build
    wait_on_stop: float = WAIT_ON_STOP_SECONDS
    relay_dir: str = ""
    resumes: bool = True


@dataclass(slots=True)
class SourceWorker:
    """The worker's part for one source: the shared relay, and a subtask for each task of the source.

    `obey`, `tick` and `close` are called by the agent's thread, `report` and `briefs` by any. `order` is the last order
    from the master; `changed` is called when a stage has changed.
    """

    order: SourceOrder
    means: Means
    changed: Callable[[], None]
    source: SourceConfig = field(init=False)
    relay: SharedRelay = field(init=False)
    subtasks: dict[str, SubtaskRunner] = field(default_factory=dict)
    refused: dict[str, RefusedSubtask] = field(default_factory=dict)
    purger: Purger = field(default_factory=Purger)
    history: FigureRing = field(default_factory=FigureRing)
    _watch: UpstreamWatch = field(init=False)
    _closing: bool = False
    _last: tuple[SubtaskBrief, ...] = ()
    _alone: bool = False

    def __post_init__(self) -> None:
        if self.order.unread:
            raise unread_source(self.order.source, self.order.unread)
        self.source = self._located(understood(SourceConfig, self.order.config, self.order.source))
        self.relay = SharedRelay.of(self.source)
        self._watch = UpstreamWatch(to_endpoint(self.source.database))
        self.obey(self.order)

    def obey(self, order: SourceOrder) -> None:
        """Bring all that it does in line with the order, of the same source and epoch. Returns at once. Idempotent.

        A subtask whose order has what this version doesn't know stops, and reports it. Raises ClusterError CLUSTER-085
        where the source's part has: all goes on as before then. What the master itself can't read goes on by the
        config of the order before, through the same stages; without one it does not begin, and reports it. Raises
        ConfigError, after all else is done, where a secret of the source's new file is not on this machine: relay and
        watch go on by the old one.
        """
        if self._closing:
            return
        source = self.source
        if not order.unread:
            source = self._located(understood(SourceConfig, order.config, order.source))
        if self._alone:
            self._log.info("a master answers again")
        self._stand(alone=False)
        self.order = order
        failure: ConfigError | None = None
        if source != self.source:
            try:
                self._renew(source)
            except ConfigError as error:
                failure = error
        wanted = {one.task: one for one in order.subtasks if one.stage is not Stage.STOPPED}
        refused = {}
        for task, one in wanted.items():
            try:
                self._obey(task, one)
            except ClusterError as error:
                refused[task] = self._refuse(one, error)
        self.refused = refused
        for task, hosted in self.subtasks.items():
            if task not in wanted or task in refused:
                hosted.close()
        self.relay.keep(order.relay_stage)
        if failure is not None:
            raise failure

    def tick(self) -> None:
        """Do what is due by time. Called every half second or so."""
        self.relay.tick()
        if not (self._alone or self._closing):  # `_followers` would refuse it
            self.purger.tick(self.relay, self._followers)
        self.history.keep(self.subtasks)
        for task, hosted in tuple(self.subtasks.items()):
            if not (self._alone and hosted.stage is Stage.PAUSED):  # nothing goes on that has to claim the source
                hosted.tick()
            if hosted.stage is Stage.STOPPED and hosted.ended:
                self.subtasks = {name: other for name, other in self.subtasks.items() if name != task}
                self.changed()

    def stand_alone(self) -> None:
        """Go on without a master, with what the target fences, until `obey`; cancel the rest. Idempotent."""
        if not self._alone:
            self._log.error("no master answers: what the target fences goes on, the rest stops")
        self._stand(alone=True)
        works = False
        for hosted in self.subtasks.values():
            if hosted.fenced:
                works = True
            elif hosted.stage is not Stage.PAUSED:
                hosted.close(graceful=False)
        if not works:
            self.close(graceful=False)

    def close(self, *, graceful: bool = True) -> None:
        """Release the source. Returns at once; `tick` completes it. Without `graceful` no batch is waited for."""
        if not self._closing:
            self._closing, self._last = True, self.briefs()
        for hosted in self.subtasks.values():
            hosted.close(graceful=graceful)

    @property
    def ended(self) -> bool:
        """True if nothing of it works any more; the relay is closed then."""
        if not self._closing or any(not hosted.ended for hosted in self.subtasks.values()):
            return False
        self.relay.close()
        return True

    def briefs(self) -> tuple[SubtaskBrief, ...]:
        """Return the reports of all subtasks for the master.

        While the source is released they are those from before, for the next worker.
        """
        if self._closing:
            return self._last
        runs = tuple(hosted.brief() for name, hosted in self.subtasks.items() if name not in self.refused)
        return (*runs, *(one.brief() for one in self.refused.values()))

    def report(self, task: str | None, *, asks: bool = False) -> SourceReport:
        """Return the present state: of all tasks, or of one. No server is asked anything unless it `asks`."""
        now, upstream = datetime.now(UTC), self._watch.look() if asks else None
        relay = relay_form(self.relay.stage, self.relay.reading(), upstream, now)
        status = SourceStatus(source=self.source.source_id, worker=self.means.worker, relay_status=relay)
        refused = {name: one.form() for name, one in self.refused.items()}
        told = {
            name: subtask_form(
                name, hosted.stage, hosted.worked, hosted.result(), hosted.reading(asks=asks), hosted.since
            )
            for name, hosted in self.subtasks.items()
            if task in (None, name) and name not in refused
        }
        told |= {name: form for name, form in refused.items() if task in (None, name)}
        return SourceReport(source_status=status, sub_task_status=tuple(told.values()))

    def copy_progress(self, task: str, life: str, since: int) -> CopyProgress:
        """As `SubtaskRunner.copy_progress`; of a task that does not run here, nothing."""
        hosted = self.subtasks.get(task)
        return hosted.copy_progress(life, since) if hosted is not None else CopyProgress()

    def purge(self, wish: PurgeWish) -> str:
        """Delete relay files, as far as no reader needs them; in words what went and what stays, and why.

        Raises RelayError 034 while another purge is under way, 037 while tasks come or go, ClusterError CLUSTER-097
        or 085 where a task's order can't be read, and what else keeps it from learning what is needed.
        """
        limits = PurgeLimits(wish.before, wish.sub_dir, wish.time)
        return self.purger.purge(self.relay, self._followers, limits).told()

    def _renew(self, source: SourceConfig) -> None:
        watch = UpstreamWatch(to_endpoint(source.database))  # first: a secret may not be there
        self.relay.renew(source)
        self.source, self._watch = source, watch

    def _refuse(self, order: SubtaskOrder, error: ClusterError) -> RefusedSubtask:
        known, cause = self.refused.get(order.task), bounded(error.cause)
        if known is not None and (known.order.config, known.error.raw_cause) == (order.config, cause):
            return replace(known, order=order)
        self._log.error("order refused", task=order.task, **error.to_dict())
        return RefusedSubtask.of(order, error)

    def _stand(self, *, alone: bool) -> None:
        self._alone = alone
        for hosted in self.subtasks.values():
            if hosted.subtask is not None:
                hosted.subtask.alone = alone

    @property
    def _log(self):  # type: ignore[no-untyped-def]
        return logger("worker", worker=self.means.worker, source=self.source.source_id)

    @property
    def _claims_by(self) -> Order | None:
        order = self.order
        return Order(order.cluster, order.epoch, self.means.worker) if order.cluster else None

    def _followers(self) -> Followers:
        """Return all that read the relay log, or will again. Raises RelayError 037, ClusterError CLUSTER-085, 097."""
        order, subtasks = self.order, self.subtasks
        if why := self._unsettled(order, subtasks):
            raise RelayError("RELAY-037", Where(self.source.source_id), values={"why": why})
        progress = [one for one in order.subtasks if one.stage is Stage.STOPPED and one.task not in subtasks]
        unread = [one.task for one in progress if order.unread or one.unread]
        if unknown := [*(task for task in self.refused if task not in subtasks), *unread]:
            raise ClusterError("CLUSTER-097", Where(self.source.source_id), values={"task": unknown[0]})
        return Followers(
            [hosted.config for hosted in subtasks.values()], [self._config(one.config) for one in progress]
        )

    def _unsettled(self, order: SourceOrder, subtasks: Mapping[str, SubtaskRunner]) -> str:
        """Return why its list may lack tasks that some worker goes on with; "" where it has them all."""
        if self._closing:
            return "it lets the source go"
        if self._alone:
            return "no master answers it"
        wanted = (one.task for one in order.subtasks if one.stage is not Stage.STOPPED)
        coming = [task for task in wanted if task not in subtasks and task not in self.refused]
        return f"{coming[0]} has ended and begins anew" if coming else ""

    def _config(self, form: dict[str, Any]) -> SubtaskConfig:
        config = understood(SubtaskConfig, form, self.order.source)
        return config.model_copy(update={"source": self._located(config.source)})

    def _obey(self, task: str, order: SubtaskOrder) -> None:
        hosted = self.subtasks.get(task)
        if self.order.unread or order.unread:
            if hosted is None:
                raise self._unread(order)
            config = hosted.config
        else:
            config = self._config(order.config)
        if hosted is not None and hosted.stage in (Stage.STOPPING, Stage.STOPPED):
            return  # it was taken away and has come back: once its end is here it begins anew
        if hosted is None:
            hosted = SubtaskRunner(
                order,
                config,
                partial(self._build, order=self._claims_by),
                self.changed,
                self.means.worker,
                self.means.wait_on_stop,
                resumes=self.means.resumes,
            )
            self.subtasks = {**self.subtasks, task: hosted}
        hosted.obey(order, config)

    def _unread(self, order: SubtaskOrder) -> ClusterError:
        if self.order.unread:
            return unread_source(self.order.source, self.order.unread)
        return unread_task(order.task, order.unread)

    def _located(self, source: SourceConfig) -> SourceConfig:
        return source.model_copy(update={"relay_dir": self.means.relay_dir}) if self.means.relay_dir else source

    def _build(self, config: SubtaskConfig, order: Order | None) -> Subtask:
        return self.means.build(config, self.relay, order)
