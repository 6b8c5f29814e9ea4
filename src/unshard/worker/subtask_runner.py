"""Runs one subtask of a worker in a thread: carries out the master's orders and drives the stage state machine.

Every run builds the subtask again from its config. So a resume begins at what is durable, as a restart of the process
does. Whatever ends the thread is noticed here, and decides the stage.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from threading import Event, RLock, Thread

from unshard.api.heartbeat import SubtaskBrief, SubtaskOrder
from unshard.api.status import CopyProgress, ProcessError, ProcessResult, Stage
from unshard.config.source import CheckerConfig
from unshard.config.subtask import SubtaskConfig
from unshard.errors import ClusterError, UnshardError, Where
from unshard.log import fields, logger
from unshard.metrics.events import count_exit, count_operation
from unshard.retry import given_up_by
from unshard.transform.route import Router
from unshard.worker.auto_resume import Resumption, makes_sense, utc_now
from unshard.worker.copied_tables import CopiedTables
from unshard.worker.report import UNITS, process_error
from unshard.worker.stages import StageEvent, after, towards
from unshard.worker.start import OTHER_DUMP
from unshard.worker.status import SubtaskStatus, WaitingSubtask
from unshard.worker.subtask import Subtask

WAIT_ON_STOP_SECONDS = 10.0
"""DM's `wait-time-on-stop`: how long a batch in hand may take to its end before it is broken off."""


@dataclass(slots=True)
class SubtaskRunner:
    """The runner of one subtask in a thread, by the master's orders.

    `obey`, `tick` and `close` are called by the agent's thread, everything else by any; `changed` by any thread.
    `fault` is the error with which the last run failed. With `resumes` false only a human resumes the subtask.
    """

    order: SubtaskOrder
    config: SubtaskConfig
    build: Callable[[SubtaskConfig], Subtask]
    changed: Callable[[], None]
    worker: str = ""
    wait_on_stop: float = WAIT_ON_STOP_SECONDS
    resumes: bool = True
    stage: Stage = Stage.NEW
    subtask: Subtask | None = None
    error: ProcessError | None = None
    fault: BaseException | None = None
    canceled: bool = False
    resumption: Resumption = field(default_factory=Resumption)
    _changed_at: datetime = field(default_factory=utc_now)
    _detail: str = ""
    _dump_elsewhere: str = ""
    _waited: WaitingSubtask | None = None
    _stop: Event = field(default_factory=Event)
    _give_up: Event = field(default_factory=Event)
    _deadline: float = 0.0
    _thread: Thread | None = None
    _failed_at: int = -1
    _followed: str | None = None
    _attempt: str = ""
    _copied: CopiedTables | None = None
    _used: SubtaskConfig | None = None
    _renews: bool = False
    _lock: RLock = field(default_factory=RLock)

    def __post_init__(self) -> None:
        """Take up what the master kept of the same order: an error is still valid, and so is the wait after it."""
        self._note_dump()
        kept = self.order.kept
        self._followed = kept.followed if kept is not None else None
        if kept is None or kept.revision != self.order.revision or self.order.stage is not Stage.RUNNING:
            return
        if kept.stage is Stage.FINISHED:
            self.stage = Stage.FINISHED
        elif kept.error is not None and kept.stage is Stage.PAUSED:
            self.stage, self.error, self._failed_at = Stage.PAUSED, kept.error, kept.revision
        if kept.stage is not Stage.FINISHED:
            self.resumption = Resumption.kept(kept.resume_count, kept.next_resume, utc_now())
            self._detail = self._why_it_stands(worth_it=not self.resumption.may_go_on(self.checker))

    @property
    def source(self) -> str:
        """Name of the source."""
        return self.config.source_id

    @property
    def checker(self) -> CheckerConfig:
        """Settings of auto-resume."""
        return self.config.source.checker

    def obey(self, order: SubtaskOrder, config: SubtaskConfig) -> None:
        """Bring it towards the stage of the order. Returns at once. The same order again changes nothing."""
        with self._lock:
            if order.revision < self.order.revision:
                return
            if order.revision > self.order.revision:
                self.resumption = Resumption()  # a human says so: counted anew
                if order.kept is None:
                    self._begins_anew()
            renewed = config != self.config and order.stage is Stage.RUNNING
            if config != self.config:
                self._copied = None
            validates = order.validation != self.order.validation
            self.order, self.config = order, config
            self._note_dump()
            if renewed and self._keeps_copying(config):
                self._renews = True
            elif renewed and self.stage in (Stage.RUNNING, Stage.RESUMING):
                self._say(StageEvent.PAUSE)  # at its end it goes on by the new config
            if validates and self.subtask is not None and self.subtask.validation is not None:
                self.subtask.validation.look()
            self._pursue()

    def tick(self) -> None:
        """Do what is due by time: end a wait for a batch, end a wait to resume. Called every half second or so."""
        with self._lock:
            if self.stage in (Stage.PAUSING, Stage.STOPPING):
                over = time.monotonic() >= self._deadline
                copies = self.subtask is not None and self.subtask.cancel_copy()
                if over or copies:
                    self._give_up.set()
                if over and self.subtask is not None:
                    self.subtask.cancel_sync()
            elif self.stage is Stage.PAUSED and self.order.stage is Stage.RUNNING:
                if self.resumption.is_due(utc_now(), self.checker):
                    self._log.info("dispatch auto resume", count=self.resumption.step)
                    self.fault, self.resumption = None, self.resumption.resumed()
                    self._say(StageEvent.RESUME)
            elif self.stage is Stage.RUNNING and self._renews and not self._copies:
                self._say(StageEvent.PAUSE)
            elif self.stage is Stage.RUNNING:
                self.resumption = self.resumption.ran(utc_now(), self.checker)
                if self.subtask is not None:
                    self.subtask.look_around()

    def close(self, *, graceful: bool = True) -> None:
        """Stop it, and cancel its batch at once where not `graceful`. Returns at once; `ended` says when it is over."""
        with self._lock:
            self._say(StageEvent.STOP)
            if not graceful:
                self._deadline = 0.0

    @property
    def fenced(self) -> bool:
        """True if the target keeps apart what it writes from what another worker's subtask of the source does."""
        with self._lock:
            works = self.stage is Stage.RUNNING and self.subtask is not None and self.subtask.claimed
        return works and self.config.delivery == "exactly-once"

    @property
    def ended(self) -> bool:
        """True if no thread of a run is alive."""
        return self._thread is None or not self._thread.is_alive()

    def reading(self, *, asks: bool = True) -> SubtaskStatus:
        """Return the present status; before the first run there is nothing but a note. `asks`: as `Subtask.status`."""
        subtask = self.subtask
        status = subtask.status(asks=asks) if subtask is not None else SubtaskStatus(self.source, "starting")
        with self._lock:
            waits = self.stage is Stage.PAUSED and not self.canceled and self.resumption.due is not None
            return replace(status, waits=self._waited if waits else None, waited=self._waited)

    def copy_progress(self, life: str, since: int) -> CopyProgress:
        """Return the tables whose copy has advanced after `since`, as far as is known. No server is asked."""
        with self._lock:
            if self._copied is None:
                self._copied = CopiedTables(Router(self.config.routes, self.config.case_sensitive).route)
            copied, subtask = self._copied, self.subtask
        return copied.since(subtask.tables() if subtask is not None else (), life, since)

    def brief(self) -> SubtaskBrief:
        """Return the report for the master to store."""
        with self._lock:
            return SubtaskBrief(
                task=self.order.task,
                stage=self.stage,
                unit=UNITS[self.worked].value,
                revision=self.order.revision,
                error=self.error,
                resume_count=self.resumption.step,
                next_resume=self.resumption.due_text,
                dump_at=self._dump_at(),
                lost_dump=self._lost_dump,
                followed=self._has_followed,
            )

    @property
    def since(self) -> datetime:
        """The time at which it came to its stage, or while it runs to its unit."""
        with self._lock:
            if self.stage is not Stage.RUNNING or self.subtask is None:
                return self._changed_at
            return max(self._changed_at, self.subtask.entered)

    @property
    def worked(self) -> str:
        """The unit that its last run came to."""
        return self.subtask.worked if self.subtask is not None else ""

    def result(self) -> ProcessResult | None:
        """Return the reason why it does not run; None while it works."""
        with self._lock:
            if self.stage is not Stage.PAUSED:
                return None
            errors = (self.error,) if self.error is not None else ()
            due = self.resumption.due_text
            detail = f"goes on by itself at {due}" if due and not self.canceled else self._detail
            return ProcessResult(is_canceled=self.canceled, errors=errors, detail=detail)

    @property
    def _lost_dump(self) -> bool:
        return self.error is not None and self.error.err_code == OTHER_DUMP

    def _dump_at(self) -> str:
        """Return the worker that has the dump: the earlier one, until this one has made or loaded a dump itself.

        A subtask that only looks whether it may continue the load has not: a heartbeat in that moment, or one before
        LOAD-008, must not make the master forget where the dump is.
        """
        kept = self.order.kept.dump_at if self.order.kept is not None else ""
        if self._lost_dump:
            return self._dump_elsewhere or kept
        if self.subtask is None or not self.worked:
            return kept
        if self.worked == "sync":
            return ""
        return self.worker if self.subtask.copies else kept

    @property
    def _has_followed(self) -> str | None:
        """The attempt in which the target has had a checkpoint, in this run or an earlier one of any worker."""
        return self._attempt if self.subtask is not None and self.subtask.followed else self._followed

    def _begins_anew(self) -> None:
        """Forget that the target has had a checkpoint: a human has stopped the task, and starts it by its file."""
        self._followed = None
        if self.subtask is not None and self.ended:
            self.subtask.followed = False

    def _note_dump(self) -> None:
        kept = self.order.kept
        if kept is not None and kept.dump_at not in ("", self.worker):
            self._dump_elsewhere = kept.dump_at

    @property
    def _auto(self) -> bool:
        return self.resumes and self.checker.check_enable

    def _why_it_stands(self, *, worth_it: bool) -> str:
        """Return why nothing goes on by itself any more, where nothing is due. `worth_it`: another attempt may help."""
        if not self._auto:
            return "resume-task goes on; auto-resume is off"
        tries = self.resumption.step if worth_it else 0
        gives_up = f"auto-resume has given up after {tries}" if tries else "task can't auto resume"
        return f"{gives_up}: mend what the error tells, then resume-task"

    @property
    def _copies(self) -> bool:
        return self.stage is Stage.RUNNING and self.worked in ("dump", "load")

    def _keeps_copying(self, config: SubtaskConfig) -> bool:
        """Return whether it is in a copy that a new config does not concern. It has it from the sync's beginning on.

        A dump with locks that is broken off begins anew.
        """
        return self._copies and self._used is not None and self._used.of_copy() == config.of_copy()

    def _pursue(self) -> None:
        event = towards(self.stage, self.order.stage)
        if event is StageEvent.RESUME and self.error is not None and self._failed_at >= self.order.revision:
            return  # an error has paused it: auto-resume, or a human's new revision, goes on
        if self.stage is Stage.PAUSED and self.order.stage is Stage.PAUSED:
            self.canceled = True
        if event is not None:
            self._say(event)

    def _say(self, event: StageEvent) -> None:
        before, self.stage = self.stage, after(self.stage, event)
        if self.stage is before:
            return
        self._changed_at = utc_now()
        self._log.info("stage", was=before.value, now=self.stage.value)
        if event in (StageEvent.PAUSE, StageEvent.STOP):
            self.canceled = self.order.stage is not Stage.RUNNING
            self._deadline = time.monotonic() + self.wait_on_stop
            self._stop.set()
        elif event in (StageEvent.RESUME, StageEvent.RUN) and before in (Stage.NEW, Stage.PAUSED):
            self.canceled, self._stop, self._give_up = False, Event(), Event()
            run = partial(self._run_named, self._stop, self._give_up)
            self._thread = Thread(target=run, name=f"{self.order.task} {self.source}")
            self._thread.start()
        self.changed()

    def _run_named(self, stop: Event, give_up: Event) -> None:
        """Run as the thread of a run: every line of its log has the task and source.

        After `give_up` nothing is tried again.
        """
        with fields(task=self.order.task, source=self.source, worker=self.worker), given_up_by(give_up):
            self._run(stop)

    def _run(self, stop: Event) -> None:
        fault: BaseException | None = None
        try:
            config = self.config
            subtask = self.build(config)
            with self._lock:
                self._followed = self._has_followed
                subtask.followed = self._followed == config.attempt
                self.subtask, self._attempt = subtask, config.attempt
                self._used, self._renews = config, False
                if not stop.is_set():
                    self.error, self.fault, self._detail = None, None, ""
                    self._say(StageEvent.RUN)
            if not stop.is_set():
                subtask.run(stop)
        except BaseException as caught:  # noqa: BLE001 - whatever it is, the stage has to tell of it
            fault = caught
        with self._lock:
            try:
                self._end(fault, stopped=stop.is_set())
            except Exception as bug:  # noqa: BLE001 - a subtask without a thread must not go on as Running
                self._log.error("failed by a bug", exc_info=bug)
                self.error = process_error(_bug(fault or bug, self.source), datetime.now(UTC))
                self.fault, self._failed_at = bug, self.order.revision
                self._detail = self._why_it_stands(worth_it=False)
                self._say(StageEvent.FAIL)
            self._pursue()
        self.changed()

    def _end(self, fault: BaseException | None, *, stopped: bool) -> None:
        if fault is None:
            self._log.info("ended", unit=self.subtask.unit if self.subtask is not None else "starting")
            self._say(StageEvent.REST if stopped else StageEvent.FINISH)
            return
        error = fault if isinstance(fault, UnshardError) else _bug(fault, self.source)
        if error is fault:
            self._log.error("failed", **error.to_dict())
        else:
            self._log.error("failed by a bug", exc_info=fault)
        if self.worked:
            count_exit(self.worked, error)
        else:
            count_operation("AutoResume" if self.resumption.step else "Start")
        now = utc_now()
        self.error, self._failed_at = process_error(error, datetime.now(UTC)), self.order.revision
        self._detail = self._why_it_stands(worth_it=makes_sense(error))
        if not self._auto:
            pass
        elif makes_sense(error) and self.resumption.may_go_on(self.checker):
            self.resumption = self.resumption.failed(now, self.checker)
            self._waited = self._waiting(error, now)
        elif makes_sense(error):
            self._log.error("auto-resume gives up", code=error.code, count=self.resumption.step)
        else:
            self._log.error("task can't auto resume", code=error.code)
        self.fault = fault  # last: who looks without the lock may count on what goes with it
        self._say(StageEvent.FAIL)

    def _waiting(self, error: UnshardError, now: datetime) -> WaitingSubtask:
        """Return the wait from `now` on: since the first error, unless a run has copied or applied rows since."""
        place = f" [{error.where}]" if str(error.where) else ""
        cause = f": {error.cause}" if error.cause else ""
        text = " ".join(f"{error.code}{place}: {error.message}{cause}".split())
        # nobody is asked: heartbeats wait for the lock meanwhile, and the target may be what does not answer
        status = self.reading(asks=False)
        copied = status.progress is not None and status.progress.rows_done > status.progress.rows_before
        worked = copied or (status.sync is not None and status.sync.batches > 0)
        before = self._waited if self.resumption.step > 1 and not worked else None
        return WaitingSubtask(text, before.since if before is not None else now, self.resumption.due or now)

    @property
    def _log(self):  # type: ignore[no-untyped-def]
        return logger("worker", source=self.source, task=self.order.task, worker=self.worker)


def _bug(fault: BaseException, source: str) -> ClusterError:
    return ClusterError("CLUSTER-021", Where(source=source), repr(fault)[:500])
