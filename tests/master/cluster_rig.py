"""A master, and fake workers: they beat, and do what they are told, without a database."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from threading import Event, RLock, Thread
from types import TracebackType
from typing import Any

from unshard.api.heartbeat import (
    DesiredState,
    Heartbeat,
    MasterLink,
    PurgeWish,
    SourceOrder,
    SubtaskBrief,
    SubtaskOrder,
    unread_source,
)
from unshard.api.status import (
    CopyProgress,
    FigureHistory,
    LogTail,
    ProcessError,
    ProcessResult,
    RelayStatus,
    SourceReport,
    SourceStatus,
    Stage,
    SubTaskStatus,
    UnitName,
)
from unshard.api.verbs import OperateSource, StartTask
from unshard.checks.result import CheckReport, Finding, Result
from unshard.config.source import SourceConfig
from unshard.config.subtask import SubtaskConfig
from unshard.config.task import MetaConfig, TaskConfig
from unshard.errors import ClusterError, UnshardError
from unshard.master.beginning import TimedStart, parse_time
from unshard.master.service import Master
from unshard.master.status import process_error
from unshard.master.store import Store
from unshard.target.forget import Permit

SOURCE = """\
source-id: {name}
from:
  host: 127.0.0.1
  port: 3306
  user: root
  password: pass word
"""
TASK = """\
name: {name}
task-mode: all
target-database:
  host: 127.0.0.1
  port: 4000
  user: root
  password: pass word
mysql-instances:
"""


def source_text(name: str, **more: str) -> str:
    return SOURCE.format(name=name) + "".join(f"{key.replace('_', '-')}: {value}\n" for key, value in more.items())


def task_text(name: str, *sources: str, more: str = "") -> str:
    return TASK.format(name=name) + "".join(f"- source-id: {source}\n" for source in sources) + more


class FakeWorker:
    """Obeys its orders within a beat. `fails`: tasks that stop by an error as soon as they run.

    `lacks`: sources that it can't begin with. `taken`: the sources with which it has begun, in turn.
    `heard`: held while it beats; who holds it knows that no beat is on its way. `quiet`: none until it is asked.
    """

    def __init__(self, name: str, master: MasterLink, addr: str = "") -> None:
        self.name, self.addr, self.master = name, addr or f"{name}:8262", master
        self.order: SourceOrder | None = None
        self.briefs: dict[str, SubtaskBrief] = {}
        self.fails: set[str] = set()
        self.error = "SYNC-001"
        self.deaf = False
        self.quiet = False
        self.unit = UnitName.SYNC
        self.heard = RLock()
        self.relay_stage = Stage.RUNNING
        self.purged: list[tuple[str, str]] = []
        self.resumed = 0
        self.refusal: ClusterError | None = None
        self.lacks: set[str] = set()
        self.life, self.beaten = "", 0
        self.refused = 0
        self.taken: list[str] = []

    def beat(self) -> DesiredState | None:
        with self.heard:
            return None if self.deaf or self.quiet else self._beat()

    def falls_silent(self) -> None:
        """It answers nothing and beats no more. No beat of it is on its way when this returns."""
        with self.heard:
            self.deaf = True

    def _beat(self) -> DesiredState | None:
        try:
            orders = self.master.beat(self._sign())
            if self._begins_unread(orders.order) or self._refuses(orders.order):
                return orders
            if orders.order != self.order or self._differs(orders.order):
                if self._epoch(orders.order) != self._epoch(self.order):
                    self.briefs = {}
                    self.taken += [orders.order.source] if orders.order is not None else []
                self.order = orders.order
                self._obey()
                self.master.beat(self._sign())
        except UnshardError:
            return None
        return orders

    def _begins_unread(self, order: SourceOrder | None) -> bool:
        """Whether it is to begin with a source whose file the master can't read: it serves none then."""
        serves = self.order is not None and order is not None and self.order.epoch == order.epoch
        self.refusal = unread_source(order.source, order.unread) if order is not None and order.unread else None
        if self.refusal is not None and not serves:
            self.order, self.briefs = None, {}
        return self.refusal is not None and not serves

    def _refuses(self, order: SourceOrder | None) -> bool:
        """Whether it can't begin with the source: as with a secret that is not on its machine. It tells the master."""
        self.refused = 0
        if order is None or order.source not in self.lacks or self._epoch(self.order) == order.epoch:
            return False
        self.order, self.briefs, self.refused = None, {}, order.epoch
        self.refusal = ClusterError("CLUSTER-021", cause=f"{self.name} lacks a secret")
        return True

    def report(self, task: str | None, seconds: float) -> SourceReport:
        self.quiet = False
        if self.deaf:
            raise ClusterError("CLUSTER-001")
        if self.refusal is not None and self.order is None:
            raise self.refusal
        source = self.order.source if self.order is not None else ""
        relay = RelayStatus(stage=self.relay_stage)
        status = SourceStatus(source=source, worker=self.name, relay_status=relay)
        found = [one for one in self.briefs.values() if task in (None, one.task)]
        return SourceReport(source_status=status, sub_task_status=tuple(_status(one) for one in found))

    fresh_report = report

    def come_to(self, unit: UnitName, *, quiet: bool = False) -> None:
        """All of its tasks are in that unit now."""
        with self.heard:
            self.unit, self.quiet = unit, quiet
            self.briefs = {task: brief.model_copy(update={"unit": unit.value}) for task, brief in self.briefs.items()}

    def copy_progress(self, task: str, life: str, since: int, seconds: float) -> CopyProgress:
        return CopyProgress()

    def history(self, seconds: float) -> FigureHistory:
        return FigureHistory()

    def log_tail(self, life: str, after: int, seconds: float) -> LogTail:
        return LogTail()

    def wake(self) -> None:
        Thread(target=self.beat).start()

    def purge_relay(self, wish: PurgeWish) -> str:
        self.purged.append((wish.before, wish.sub_dir))
        return f"files before {wish.before} are gone"

    def resume_relay(self) -> None:
        self.resumed += 1

    def _sign(self) -> Heartbeat:
        epoch, source = (self.order.epoch, self.order.source) if self.order is not None else (0, "")
        self.beaten += 1
        told = process_error(self.refusal) if self.refused and self.refusal is not None else None
        return Heartbeat(
            name=self.name, addr=self.addr, epoch=epoch, source=source, subtasks=tuple(self.briefs.values()),
            life=self.life, number=self.beaten, refused=self.refused if told is not None else 0, refusal=told,
        )  # fmt: skip

    def _differs(self, order: SourceOrder | None) -> bool:
        wanted = {one.task for one in order.subtasks} if order is not None else set()
        return wanted != self.briefs.keys()

    def _obey(self) -> None:
        subtasks = self.order.subtasks if self.order is not None else ()
        self.briefs = {one.task: self._brief(one) for one in subtasks}

    def _epoch(self, order: SourceOrder | None) -> int:
        return order.epoch if order is not None else 0

    def _brief(self, order: SubtaskOrder) -> SubtaskBrief:
        assert self.order is not None
        known = self.briefs.get(order.task)
        if known is not None and known.revision > order.revision:
            return known
        if not (self.order.unread or order.unread):
            config = SubtaskConfig.model_validate(order.config)
            assert config.source_id == self.order.source
        stage, error = order.stage, None
        if stage is Stage.RUNNING and order.task in self.fails:
            stage, error = (
                Stage.PAUSED,
                ProcessError(
                    ErrCode=self.error, Message="another one writes", RawCause="epoch 2", Workaround="see who"
                ),
            )
        return SubtaskBrief(task=order.task, stage=stage, unit=self.unit.value, revision=order.revision, error=error)


def _status(brief: SubtaskBrief) -> SubTaskStatus:
    result = ProcessResult(errors=(brief.error,)) if brief.error is not None else None
    return SubTaskStatus(name=brief.task, stage=brief.stage, unit=UnitName(brief.unit), result=result)


class Rig:
    """A master, its fake workers, and a thread that makes these beat.

    Leases last for longer than a test, which `lose` makes short.

    `checks`: what `check_task` was asked; `forgotten`: tasks whose records were dropped; `left`: a task, and sources
    that have left it; `moves`: a task, the new place of a source, and its others. `meanwhile`: happens once, while
    either end is asked something.
    """

    def __init__(self, url: str, name: str = "m1", lease: float = 60.0, ttl: float = 60.0) -> None:
        self.url = url
        self.workers: dict[str, FakeWorker] = {}
        self.checks: list[tuple[str, tuple[str, ...]]] = []
        self.report = CheckReport(())
        self.meanwhile: Callable[[], object] | None = None
        self.beside: list[tuple[str, ...]] = []
        self.asked: list[str] = []
        self.forgotten: list[str] = []
        self.resets: list[tuple[str, ...]] = []
        self.left: list[tuple[str, ...]] = []
        self.moves: list[tuple[str, ...]] = []
        self.master = Master(
            Store(url),
            self._link,
            name,
            f"{name}:8261",
            lease_seconds=lease,
            worker_ttl_seconds=ttl,
            check=self._check,
            ask=self._ask,
            forget=self._forget,
            leave=self._leave,
            moved=self._moved,
            at_time=self._at_time,
            reset=self._reset,
        )
        self._stop = Event()
        self._thread = Thread(target=self._beats)

    def __enter__(self) -> Rig:
        self.master.start()
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        self._thread.join()
        self.master.close()

    def worker(self, name: str, addr: str = "") -> FakeWorker:
        found = FakeWorker(name, self.master, addr)
        self.workers[found.addr] = found
        found.beat()
        return found

    def lose(self, worker: FakeWorker) -> None:
        """The worker has been silent for as long as it is waited for."""
        worker.falls_silent()
        self.master.liveness.forget(worker.name)
        self.master.cluster.seat()

    def settled(self, task: str) -> bool:
        """Whether each worker's last word of the task is kept, and is what was wanted."""
        rows = self.master.cluster.state.of_task(task)
        return all(row.brief is not None and row.brief.stage is row.stage for row in rows)

    def sources(self, *names: str, worker: str = "") -> dict[str, Any]:
        texts = tuple(source_text(name) for name in names)
        return self.master.operate_source(OperateSource(op="create", config=texts, worker=worker))

    def start(self, name: str, *sources: str, on: tuple[str, ...] = ()) -> dict[str, Any]:
        return self.master.start_task(StartTask(task=task_text(name, *sources), sources=on))

    def _link(self, addr: str) -> FakeWorker:
        return self.workers[addr]

    def _check(self, task: TaskConfig, configs: Sequence[SubtaskConfig], also: Any, others: Any) -> CheckReport:
        del also
        self.checks.append((task.name, tuple(config.source_id for config in configs)))
        self.beside.append(tuple(config.source_id for config in others))
        self._happen()
        return self.report

    def _ask(self, config: SourceConfig) -> None:
        self.asked.append(config.source_id)
        self._happen()

    def _forget(self, config: SubtaskConfig, permit: Permit) -> None:
        self._happen()
        permit()
        self.forgotten.append(config.name)

    def _reset(self, configs: Sequence[SubtaskConfig], ask: bool, permit: Permit) -> tuple[str, ...]:
        if not ask:
            self._happen()
            permit()
        self.resets.append(("ask" if ask else "do", *(config.source_id for config in configs)))
        return ("drops orders",)

    def _leave(self, config: SubtaskConfig, sources: Sequence[str], permit: Permit) -> None:
        self._happen()
        permit()
        self.left.append((config.name, *sources))

    def _moved(self, task: TaskConfig, config: SubtaskConfig, others: Sequence[SubtaskConfig]) -> CheckReport:
        database = config.source.database
        self.moves.append((task.name, f"{database.host}:{database.port}", *(one.source_id for one in others)))
        self._happen()
        return self.report

    def _at_time(self, config: SubtaskConfig, time: str, forgets: bool) -> TimedStart:
        return TimedStart(MetaConfig(binlog_name="bin.000007", binlog_pos=4), parse_time(time))

    def _happen(self) -> None:
        act, self.meanwhile = self.meanwhile, None
        if act is not None:
            act()

    def _beats(self) -> None:
        while not self._stop.wait(0.05):
            for worker in list(self.workers.values()):
                worker.beat()


FAILED_CHECK = CheckReport((Result("privileges", "what the account may", (Finding("fail", "no SELECT", "GRANT"),)),))
"""A check that refuses a start."""


def two_sources(rig: Rig) -> None:
    """Give the rig two workers and the sources `a` and `b`."""
    rig.worker("w1")
    rig.worker("w2")
    assert rig.sources("a", "b")["result"]
