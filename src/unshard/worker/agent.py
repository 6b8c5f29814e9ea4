"""The worker of a cluster: it sends heartbeats to the master, and carries out the orders in the answers.

A `SourceWorker` serves the source that the orders name.

| what happens | then |
|---|---|
| an answer with a source | its `SourceWorker` is created, or follows the new orders |
| an answer with another source, or another epoch of it | the `SourceWorker` is closed, and batches end; then a new \
one is created |
| an answer without a source | the `SourceWorker` is closed, and batches end |
| an order that it can't carry out, as a secret is not on this machine | it tells the master why, and tries again with \
the next answer |
| no answer for the TTL, counted from the request | the `SourceWorker` runs without a master |
| an answer again | the `SourceWorker` follows its orders again |
| a request to stop | the `SourceWorker` is closed, and batches end; then the master is told that the worker leaves |

Without a master, a worker can't know whether its source has been assigned to another worker. The target can tell. As
soon as another worker has claimed the source, no transaction of a subtask that syncs exactly once commits any more. So
such a subtask continues, and stops by itself if it has been superseded. No subtask is started meanwhile, because a
start claims the source. Dump, load and at-least-once delivery are cancelled at once.

A batch that is cancelled is in the target with its receipts, and the next worker finishes it
(`sync/planning/planner.py`).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from secrets import token_hex
from threading import Event, Lock, Thread

from unshard.api.heartbeat import DesiredState, Heartbeat, MasterLink, PurgeWish
from unshard.api.status import (
    MOST_LINES,
    CopyProgress,
    FigureHistory,
    LogLine,
    LogTail,
    ProcessResult,
    SourceReport,
)
from unshard.errors import ClusterError, UnshardError
from unshard.log import logger
from unshard.log.ring import RING, LogRing
from unshard.metrics.sample import free_share, own_version
from unshard.worker.report import process_error
from unshard.worker.source_worker import Means, SourceWorker

TICK_SECONDS = 0.25
LONGEST_BEAT_SECONDS = 3.0
FIRST_BEAT_SECONDS = 0.5
"""Between two beats before the first answer tells a ttl."""


@dataclass(slots=True)
class Agent:
    """The worker of a cluster.

    `run` is called by one thread and lasts as long as the worker; the methods of `WorkerLink` may be called by any
    other. `leaves`: the master keeps running when the worker stops, and is to be told that it stops.
    """

    addr: str
    link: MasterLink
    means: Means
    leaves: bool = True
    host: SourceWorker | None = None
    _orders: DesiredState | None = None
    _refusal: UnshardError | None = None
    _refused: int = 0
    _life: str = field(default_factory=lambda: token_hex(8))
    _beaten: int = 0
    _asked: float = 0.0
    _ttl: float = 0.0
    _disk_free: float | None = None
    _beat_now: Event = field(default_factory=Event)
    _look_now: Event = field(default_factory=Event)
    _lock: Lock = field(default_factory=Lock)

    @property
    def name(self) -> str:
        """Name of the worker."""
        return self.means.worker

    def advertise(self, addr: str) -> None:
        """Set the address at which the master reaches it; also its name where it has none. Called before `run`."""
        self.addr = addr
        self.means = replace(self.means, worker=self.means.worker or addr)

    def run(self, stop: Event) -> None:
        """Serve until `stop` is set and the source is let go in good order."""
        ended = Event()
        beats = Thread(target=self._beats, args=(ended,), name=f"beats {self.name}", daemon=True)
        beats.start()
        try:
            while not stop.is_set():
                self._unfailing(self._step)
                self._look_now.wait(TICK_SECONDS)
                self._look_now.clear()
            self._close(graceful=True)
            while self.host is not None:
                self._unfailing(self._tick)
                time.sleep(TICK_SECONDS / 5)
        finally:
            ended.set()
            self._beat_now.set()
            beats.join()
        if self.leaves:
            self._leave()

    def report(self, task: str | None, seconds: float) -> SourceReport:
        """As `WorkerLink`. Raises ClusterError CLUSTER-023 while it serves no source, or why it could not begin."""
        return self._report(task, seconds, asks=False)

    def fresh_report(self, task: str | None, seconds: float) -> SourceReport:
        """As `WorkerLink`. Raises as `report`."""
        return self._report(task, seconds, asks=True)

    def _report(self, task: str | None, seconds: float, *, asks: bool) -> SourceReport:
        del seconds  # what it says, it knows
        refusal, host = self._refusal, self.host
        if refusal is None:
            return self._serving().report(task, asks=asks)
        if host is None:
            raise refusal
        found = host.report(task, asks=asks)
        result = ProcessResult(errors=(process_error(refusal, datetime.now(UTC)),))
        status = found.source_status.model_copy(update={"result": result})
        return found.model_copy(update={"source_status": status})

    def copy_progress(self, task: str, life: str, since: int, seconds: float) -> CopyProgress:
        """As `WorkerLink`. Raises ClusterError CLUSTER-023."""
        del seconds
        return self._serving().copy_progress(task, life, since)

    def history(self, seconds: float) -> FigureHistory:
        """As `WorkerLink`. Raises ClusterError CLUSTER-023."""
        del seconds
        return self._serving().history.told()

    def log_tail(self, life: str, after: int, seconds: float) -> LogTail:
        """As `WorkerLink`."""
        del seconds
        return log_tail(life, after)

    def wake(self) -> None:
        """Send a heartbeat now, and thereby get the orders."""
        self._beat_now.set()

    def purge_relay(self, wish: PurgeWish) -> str:
        """As `WorkerLink`. Raises RelayError 034 while another purge is under way, ClusterError CLUSTER-023."""
        return self._serving().purge(wish)

    def resume_relay(self) -> None:
        """As `WorkerLink`. Raises ClusterError CLUSTER-023."""
        self._serving().relay.resume()

    def _serving(self) -> SourceWorker:
        host = self.host
        if host is None:
            raise ClusterError("CLUSTER-023")
        return host

    def _step(self) -> None:
        with self._lock:
            orders, self._orders = self._orders, None
            alone = self._ttl and time.monotonic() - self._asked > self._ttl
        if alone:
            if self.host is not None:
                self.host.stand_alone()
        elif orders is not None:
            self._heed(orders)
        self._tick()

    def _unfailing(self, work: Callable[[], None]) -> None:
        """Do it; what isn't foreseen is logged. This thread is the only one that stops what the master stops."""
        try:
            work()
        except Exception as error:  # noqa: BLE001 - logged, and the next order is carried out
            self._log.error("the order is not carried out", error=str(error), exc_info=True, sampled=True)

    def _heed(self, orders: DesiredState) -> None:
        """Obey the orders. Why it can't is told in the source's status, and to the master; the next answer tries again.

        It may be a form that this version can't read, or a secret that is not on this machine.
        """
        try:
            self._obey(orders)
        except UnshardError as error:
            self._refuse(orders, error)
            raise
        except Exception as bug:
            self._refuse(orders, ClusterError("CLUSTER-021", cause=repr(bug)[:500]))
            raise
        self._refusal, self._refused = None, 0

    def _refuse(self, orders: DesiredState, error: UnshardError) -> None:
        known, self._refusal = self._refusal, error
        self._refused = orders.order.epoch if orders.order is not None else 0
        if known is None or str(known) != str(error):
            self._changed()

    def _obey(self, orders: DesiredState) -> None:
        order, host = orders.order, self.host
        if host is not None and (order is None or (order.source, order.epoch) != (host.order.source, host.order.epoch)):
            self._close(graceful=True)
        elif order is not None and host is not None:
            host.obey(order)
        elif order is not None:
            self._log.info("source taken", source=order.source, epoch=order.epoch)
            self.host = SourceWorker(order, self.means, self._changed)
            self._changed()  # the master waits to hear that it is served

    def _tick(self) -> None:
        host = self.host
        if host is None:
            return
        host.tick()
        self._disk_free = free_share(host.relay.folder)  # not by the thread that beats: a disk may hang
        if host.ended:
            self._log.info("source let go", source=host.order.source, epoch=host.order.epoch)
            self.host = None
            self._changed()

    def _close(self, *, graceful: bool) -> None:
        if self.host is not None:
            self.host.close(graceful=graceful)

    def _leave(self) -> None:
        """Notify the master that the source is free; a master that doesn't get this finds out by the ttl."""
        try:
            self.link.beat(self._beat().model_copy(update={"leaving": True}))
        except UnshardError as error:
            self._log.warning("no master hears that this worker leaves", error=str(error))

    def _changed(self) -> None:
        self._beat_now.set()
        self._look_now.set()

    def _beats(self, ended: Event) -> None:
        silent_since: float | None = None
        while not ended.is_set():
            self._beat_now.clear()
            asked = time.monotonic()
            try:
                orders = self.link.beat(self._beat())
            except Exception as error:  # noqa: BLE001 - without beats the worker would stand alone for good
                if silent_since is None:
                    bug = None if isinstance(error, UnshardError) else error
                    self._log.warning("the master does not answer", error=str(error), exc_info=bug)
                silent_since = silent_since or asked
            else:
                silent_since = None
                with self._lock:
                    self._orders, self._asked, self._ttl = orders, asked, orders.ttl_seconds
                self._look_now.set()
            every = min(self._ttl / 10, LONGEST_BEAT_SECONDS) if self._ttl else FIRST_BEAT_SECONDS
            self._beat_now.wait(every)

    def _beat(self) -> Heartbeat:
        self._beaten += 1
        beat = Heartbeat(name=self.name, addr=self.addr, life=self._life, number=self._beaten, version=own_version())
        host, refusal = self.host, self._refusal
        if refusal is not None:
            told = process_error(refusal, datetime.now(UTC))
            beat = beat.model_copy(update={"refused": self._refused, "refusal": told})
        if host is None:
            return beat
        serves = {"epoch": host.order.epoch, "source": host.order.source, "disk_free": self._disk_free}
        return beat.model_copy(update={**serves, "relay_stage": host.relay.stage, "subtasks": host.briefs()})

    @property
    def _log(self):  # type: ignore[no-untyped-def]
        return logger("worker", worker=self.name)


_NAMED = frozenset({"level", "logger", "event", "task", "source"})


def log_tail(life: str, after: int, ring: LogRing = RING) -> LogTail:
    """Return at most MOST_LINES lines after line `after` of that process."""
    lines = [_line(number, fields) for number, fields in ring.since(life, after, MOST_LINES)]
    return LogTail(life=ring.life, lines=tuple(lines))


def _line(number: int, fields: dict[str, str]) -> LogLine:
    more = {name: text for name, text in fields.items() if name not in _NAMED and name != "timestamp"}
    named = {name: text for name, text in fields.items() if name in _NAMED}
    return LogLine(number=number, time=fields.get("timestamp", ""), more=more, **named)
