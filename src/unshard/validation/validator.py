"""The continuous validator of one source: a thread beside the sync, and its status.

Its state is in the target, so that a restart goes on where it was. Whether it runs is there too: a verb writes it, and
the validator then reads it again.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from threading import Event, Lock, Thread
from typing import Any, TypeVar

from unshard.compare.places import LogPlace, SourceWatch
from unshard.compare.sides import SourceSide
from unshard.config.subtask import ValidatorSettings
from unshard.errors import CompareError, UnshardError, Where
from unshard.log import fields, known_fields, logger
from unshard.model.position import Location
from unshard.mysql.connection import Endpoint
from unshard.run_tasks import RunTasks
from unshard.sync.checkpoint.store import CheckpointStore
from unshard.sync.status import Meter
from unshard.target.changed_keys import ChangedKeyPart, drop_parts, oldest_parts
from unshard.target.checkpoint import Checkpoint, load_checkpoint
from unshard.target.loaded_rows import FullLoadProgress, full_load_progress
from unshard.target.meta import MetaTables
from unshard.target.pending_keys import add_pending, load_pending
from unshard.target.validation import (
    RUNNING,
    STOPPED,
    PendingSize,
    ValidationState,
    is_recorded,
    load_state,
    move_location,
    pending_size,
    set_stage,
)
from unshard.target.validation_errors import ErrorState, count_errors, load_errors
from unshard.target.validation_tables import create_validation
from unshard.validation.first_look import FirstLook
from unshard.validation.full_load import LoadedRows
from unshard.validation.judge import Judge
from unshard.validation.tables import ValidatedTables
from unshard.validation.verdicts import Verdicts

T = TypeVar("T")
FAILURES = 3
"""Failures of a part before the tables that can't be read are left out of it."""

PARTS_AT_ONCE, MANY_KEYS = 500, 20_000
"""Parts of changed keys that one look takes at most, and about how many keys they have together."""

ERRORS_AT_ONCE = 1000
"""Errors on record that are looked at again in one round."""


@dataclass(frozen=True, slots=True)
class ValidationReading:
    """The status of the validator at one moment.

    `pending` counts the keys that are not settled, `errors` the new, ignored and resolved errors. `fault` is why the
    validator does not run, or the error of its last round.
    """

    state: ValidationState
    pending: PendingSize = field(default_factory=lambda: PendingSize(0, 0, (0, 0, 0)))
    errors: tuple[int, int, int] = (0, 0, 0)
    fault: UnshardError | None = None
    full_load: FullLoadProgress = field(default_factory=FullLoadProgress)


@dataclass(slots=True)
class FailedPart:
    """A part of a batch whose keys could not be read. `place` is the source's newest position at the first failure."""

    number: int
    place: LogPlace | None
    times: int = 0


@dataclass(slots=True)
class Validator:
    """The continuous validator of one source, with a thread of its own.

    `begin`, `look` and `end` are called by the subtask's threads, `reading` by any; all else runs in the validator's
    thread. `version` returns the number of statements that the sync has applied. `slots` is the number of tasks that
    Spark runs at once, of which the validator takes half at most. `others` are the task's other sources.
    """

    source: str
    settings: ValidatorSettings
    side: Callable[[], SourceSide]
    target: Endpoint
    meta: MetaTables
    store: CheckpointStore
    meter: Meter
    run: RunTasks
    version: Callable[[], int]
    slots: int = 1
    others: tuple[str, ...] = ()
    interrupt: Callable[[], None] = lambda: None
    _reading: ValidationReading | None = None
    _thread: Thread | None = None
    _active: bool = False
    _stop: Event = field(default_factory=Event)
    _wake: Event = field(default_factory=Event)
    _lock: Lock = field(default_factory=Lock)
    _judge: Judge | None = None
    _first: FirstLook | None = None
    _loaded: LoadedRows | None = None
    _mode: str = ""
    _more: bool = True
    _error_after: int = 0
    _judged: float = 0.0
    _failed: FailedPart | None = None
    _watch: SourceWatch = field(init=False)
    _verdicts: Verdicts = field(init=False)

    def __post_init__(self) -> None:
        self._verdicts = Verdicts(self.source, self.target, self.meta, self.others)

    def begin(self) -> None:
        """Start the validator where the target's record or the settings say so.

        Called once the source is claimed, before its first batch, whose keys are reported already. Raises TargetError.
        """
        self.activate()
        wanted = self.settings.mode != "none"
        if wanted or self._verdicts.on_target(lambda c: is_recorded(c, self.meta, self.source)):
            self._verdicts.on_target(lambda c: create_validation(c, self.meta))
        state = self._state()
        stage = state.stage if state is not None else ""
        if wanted and stage in ("", RUNNING) and (state is None or not stage or state.mode != self.settings.mode):
            self._verdicts.on_target(lambda c: set_stage(c, self.meta, self.source, RUNNING, self.settings.mode))
        elif stage != RUNNING:
            return
        self.store.validates = True
        self.look()  # a verb may have stopped it since the record was read

    def activate(self) -> None:
        """Let `look` start the thread from now on."""
        self._stop, self._active = Event(), True

    def look(self) -> None:
        """Read the record again: a verb has changed it. Returns at once."""
        if self._active:
            with self._lock:
                self._wake.set()
            self._start()

    def end(self) -> None:
        """Stop the thread and wait for its end. The work that is left is on record."""
        self._active = False
        self._stop.set()
        self._wake.set()
        with self._lock:
            thread = self._thread
        while thread is not None and thread.is_alive():
            self.interrupt()
            thread.join(1.0)

    def reading(self) -> ValidationReading | None:
        """Return the last reading; None where this process has never validated the source."""
        return self._reading

    def _start(self) -> None:
        with self._lock:
            if self._thread is None or not self._thread.is_alive():
                run = partial(self._run, known_fields())
                self._thread = Thread(target=run, name=f"validator {self.source}", daemon=True)
                self._thread.start()

    def _run(self, known: Mapping[str, str]) -> None:
        with fields(**known):
            self._judge, self._more, self._judged = None, True, 0.0
            self._verdicts = Verdicts(self.source, self.target, self.meta, self.others)
            while not self._stop.is_set():
                try:
                    if not self._round() and self._is_over():
                        return
                except UnshardError as error:
                    self._fail(error)
                except Exception as error:  # noqa: BLE001 - it must not end unnoticed
                    self._log.error("validation failed by a bug", exc_info=error)
                    self._fail(CompareError("COMPARE-021", Where(self.source), repr(error)[:500]))
                self._wake.wait(min(self.settings.check_interval_seconds, self.settings.validate_interval_seconds))
                self._wake.clear()

    def _is_over(self) -> bool:
        """Return whether the thread may end: no verb has asked it to look again since it read the record."""
        with self._lock:
            if self._wake.is_set():
                return False
            self._thread = None
            return True

    def _fail(self, error: UnshardError) -> None:
        if self._stop.is_set():
            return
        self._log.warning("a round of the validation has failed", error=str(error), sampled=True)
        if self._reading is not None:
            self._reading = replace(self._reading, fault=error.at(source=self.source))

    def _round(self) -> bool:
        """Do one round. Return whether there is to be another one."""
        state = self._state()
        if state is None or state.stage != RUNNING:
            self.store.validates = False
            self._read(state)
            return False
        judge, first, loaded = self._tools(state)
        self.store.validates = True
        if not self._within_bounds():
            return False
        while not self._stop.is_set() and self._look(first, loaded, judge):
            if time.monotonic() - self._judged > 2 * self.settings.validate_interval_seconds:
                break
            if not self._within_bounds():
                return False
        now = time.monotonic()
        fault = None
        if now - self._judged >= self.settings.validate_interval_seconds:
            self._take_up(judge)
            self._verdicts.take_up(judge)
            begun = time.monotonic()
            judged = judge.look(str(self.meter.location.position) if self.meter.location is not None else "")
            self._verdicts.record(judged)
            fault = judge.take_fault()
            first.rest(time.monotonic() - begun)
            self._judged = time.monotonic()
        self._read(self._state(), fault)
        return True

    def _look(self, first: FirstLook, loaded: LoadedRows, judge: Judge) -> bool:
        """Look at changed keys, and at a range of loaded rows, even if there are always changed keys.

        Return whether there may be more of either.
        """
        changed = self._look_first(first, judge)
        return (not self._stop.is_set() and self._look_at_loaded(loaded, judge)) or changed

    def _look_at_loaded(self, loaded: LoadedRows, judge: Judge) -> bool:
        """Compare one range of the loaded rows. Return whether there may be another one now."""
        room = judge.room
        found = loaded.look(room)
        if found is None:
            return False
        self._more = self._more or len(found) > room
        judge.add(found[:room])
        return True

    def _tools(self, state: ValidationState) -> tuple[Judge, FirstLook, LoadedRows]:
        if self._judge is None or self._first is None or self._loaded is None or state.mode != self._mode:
            side = self.side()
            tables = ValidatedTables(side, self.target, self.version, state.mode == "fast")
            self._verdicts.recall()
            self._watch = watch = SourceWatch(side, self.target, self.meta)
            at_once = max(1, min(self.settings.worker_count, self.slots // 2))
            self._judge = Judge(watch, tables, self.run, not self.others, at_once)
            self._first = FirstLook(
                tables, self.run, self.settings.batch_query_size, at_once, lambda: self.meter.behind, self._stop
            )
            self._loaded = self._loaded_rows(tables, self._first, listed=state.listed)
            self._mode, self._more = state.mode, True
        elif self._loaded.listed and not state.listed:  # stopped and started again since the last round
            self._loaded = self._loaded_rows(self._loaded.tables, self._first, listed=False)
        return self._judge, self._first, self._loaded

    def _loaded_rows(self, tables: ValidatedTables, first: FirstLook, *, listed: bool) -> LoadedRows:
        rate = self.settings.full_load_rows_per_second
        return LoadedRows(tables, self.run, self._verdicts, first, rate, shared=bool(self.others), listed=listed)

    def _within_bounds(self) -> bool:
        """Return whether the waiting work is within the settings. Beyond them the validator stops with an error."""
        size = self._verdicts.on_target(lambda c: pending_size(c, self.meta, self.source))
        settings = self.settings
        if size.rows <= settings.max_pending_rows and size.unseen_bytes <= settings.max_pending_bytes:
            return True
        values = {"rows": f"{size.rows:,}", "bytes": f"{size.unseen_bytes:,}"}
        error = CompareError("COMPARE-020", Where(self.source), values=values)
        self._log.error("the validation stops", **error.to_dict())
        self._verdicts.on_target(lambda c: set_stage(c, self.meta, self.source, STOPPED, fault=str(error)))
        self.store.validates = False
        self._read(self._state(), error)
        return False

    def _look_first(self, first: FirstLook, judge: Judge) -> bool:
        """Look at the oldest parts of the changed keys. Return whether there was one.

        Batches come faster than looks, so a look takes many of them; each one alone where one could not be read.
        """
        checkpoint = self._verdicts.on_target(self._checkpoint)
        parts = self._verdicts.on_target(self._oldest)
        if not parts:
            if checkpoint is not None:
                self._verdicts.in_one(lambda cursor: self._move(cursor, checkpoint.held or checkpoint.location))
            return False
        held = self._verdicts.on_target(self._held)  # asked after the parts, so of their time or later
        end = min(parts[-1].end, held or parts[-1].end, key=lambda location: location.position)
        try:
            found = first.look(parts, leave_faulty=self._is_lost(parts[0].number))
        except UnshardError as error:
            self._note_failed(parts[0].number, error)
            raise
        if found is None:  # stopped on the way
            return False
        room = judge.room
        self._more = self._more or len(found.pending) > room

        def write(cursor: Any) -> None:
            add_pending(cursor, self.meta, self.source, found.pending)
            for table, target, stage, message in found.statuses:
                self._verdicts.tell_planned(cursor, table, target, stage, message)
            drop_parts(cursor, self.meta, [part.number for part in parts])
            move_location(cursor, self.meta, self.source, end, found.processed)

        self._verdicts.in_one(write)
        judge.add(found.pending[:room])
        return True

    def _checkpoint(self, connection: Any) -> Checkpoint | None:
        return load_checkpoint(connection, self.meta, self.source, tables_too=False)

    def _held(self, connection: Any) -> Location | None:
        """Return the location from which on rows wait for a sharding DDL: they have reported no keys yet."""
        checkpoint = self._checkpoint(connection)
        return checkpoint.held if checkpoint is not None else None

    def _oldest(self, connection: Any) -> tuple[ChangedKeyPart, ...]:
        found = oldest_parts(connection, self.meta, self.source, most_parts=PARTS_AT_ONCE, most_keys=MANY_KEYS)
        alone = self._failed is not None and found and found[0].number <= self._failed.number
        return found[:1] if alone else found

    def _note_failed(self, number: int, error: UnshardError) -> None:
        """Note that a part could not be read. A DDL that is not in the target yet may be the reason."""
        if self._failed is None or self._failed.number != number:
            self._failed = FailedPart(number, self._watch.newest())
        if not error.retryable:
            self._failed.times += 1

    def _is_lost(self, number: int) -> bool:
        """Return whether a part has failed several times, also after the target has caught up with the first."""
        failed = self._failed
        if failed is None or failed.number != number or failed.times < FAILURES:
            return False
        return self._watch.has_passed(failed.place)

    def _move(self, cursor: Any, location: Location) -> None:
        state = self._reading.state if self._reading is not None else None
        if state is None or state.location != location:
            move_location(cursor, self.meta, self.source, location, (0, 0, 0))

    def _take_up(self, judge: Judge) -> None:
        """Open recorded keys that are not open yet, and known errors."""
        if self._more and judge.room:
            after, self._more = 0, False
            while room := judge.room:
                found = self._verdicts.on_target(partial(self._pending_after, after, room))
                judge.restore(one for one in found if not self._verdicts.asks(one))
                if len(found) < room:
                    break
                after, self._more = found[-1].number, True
        errors = self._verdicts.on_target(self._some_errors)
        self._error_after = errors[-1].number if len(errors) == ERRORS_AT_ONCE else 0
        for one in errors:
            if one.key and not self._verdicts.asks(one.pending):  # DM keeps no key
                judge.add([one.pending], one)

    def _pending_after(self, after: int, limit: int, connection: Any) -> Any:
        return load_pending(connection, self.meta, self.source, after, limit)

    def _some_errors(self, connection: Any) -> Any:
        states = [ErrorState.NEW]
        return load_errors(connection, self.meta, [self.source], states, self._error_after, ERRORS_AT_ONCE)

    def _state(self) -> ValidationState | None:
        return self._verdicts.on_target(lambda c: load_state(c, self.meta, self.source))

    def _read(self, state: ValidationState | None, fault: UnshardError | None = None) -> None:
        if state is None:
            self._reading = None
            return
        pending = self._verdicts.on_target(lambda c: pending_size(c, self.meta, self.source))
        errors = self._verdicts.on_target(lambda c: count_errors(c, self.meta, self.source))
        loaded = self._verdicts.on_target(lambda c: full_load_progress(c, self.meta, self.source))
        self._reading = ValidationReading(state, pending, errors, fault, loaded)

    @property
    def _log(self):  # type: ignore[no-untyped-def]
        return logger("validation", source=self.source)
