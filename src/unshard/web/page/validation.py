"""Continuous validation of a task on the page: the progress of each source, and the rows that differ.

How far it is comes with the workers' status. Rows and tables are on record in the target, which is asked while somebody
has the screen open, and again only when the status shows that the record has changed.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from threading import Event, Lock, Thread
from typing import Any

from unshard.api.status import ValidationStatus
from unshard.api.verbs import Validation
from unshard.errors import UnshardError
from unshard.log import logger
from unshard.model.position import Position
from unshard.model.progress import size_text
from unshard.target.validation_errors import ErrorKind

KEPT_SECONDS = 600.0
"""A record that has not changed is read again after that."""
AGAIN_SECONDS = 5.0
"""The target is asked for one record at most as often."""
SILENT_SECONDS = 30.0
"""A target that did not answer is asked again after that."""
WATCHED_SECONDS = 15.0
MOST_ERRORS = 1000
"""So many rows of a task and a state are read."""
MOST_RECORDS = 20
ROWS_A_PAGE = 12
STATES = ("unprocessed", "ignored", "resolved", "all")
STOPPED_TABLES = 100
_FIRST_WAIT_SECONDS = 0.03
_CELL, _QUIET_CELL = 160, 60
_MARKED, _OTHERS = 10, 20
"""Columns of a row that are shown: those that differ, and others."""
_PLACE = re.compile(r"\((.+), (\d+)\)\Z")

_KINDS = {
    ErrorKind.EXTRA.words: "The target has a row that the source does not have",
    ErrorKind.MISSING.words: "The row is missing in the target",
    ErrorKind.CHANGED.words: "The row has other values in the target",
    ErrorKind.COLLISION.words: "Several source rows have the same key in the target",
}

Key = tuple[str, str, bool]
"""Task, state of the errors, whether rows are read too."""
Answer = Callable[[Validation], dict[str, Any]]


@dataclass(frozen=True, slots=True)
class ValidatorFigures:
    """The status of one source's validator. Counts are None while unknown; `behind`: how far it lags the sync."""

    source: str
    mode: str
    stage: str
    position: str
    behind: str = "unknown"
    processed: int | None = None
    pending: int | None = None
    new: int | None = None
    ignored: int | None = None
    resolved: int | None = None
    code: str = ""
    fault: str = ""
    advice: str = ""
    cutover: str = ""

    @property
    def kind(self) -> str:
        """The kind of its state, as `Health` has it."""
        if self.fault:
            return "error"
        return {"Running": "fine", "Stopped": "waits"}.get(self.stage, "unknown")


@dataclass(frozen=True, slots=True)
class DifferingCell:
    """One column of a row in source and target, each value cut to what a page shows.

    A value is None for NULL, and on a side that has no row (`DifferingRow.in_source`, `DifferingRow.in_target`).
    """

    column: str
    source: str | None
    target: str | None
    differs: bool


@dataclass(frozen=True, slots=True)
class DifferingRow:
    """A row error on record.

    `marked` are the columns that differ, `others` the remaining ones; `hidden` is how many of both are not shown.
    """

    number: int
    source: str
    origin: str
    target: str
    kind: str
    state: str
    time: str
    place: str
    times: int
    settled_by: str
    in_source: bool
    in_target: bool
    marked: tuple[DifferingCell, ...]
    others: tuple[DifferingCell, ...]
    hidden: int

    @property
    def words(self) -> str:
        """The kind in plain words."""
        return _KINDS.get(self.kind, self.kind)


@dataclass(frozen=True, slots=True)
class UnvalidatedTable:
    """A table that the validator does not compare, with the reason."""

    source: str
    table: str
    target: str
    message: str


@dataclass(frozen=True, slots=True)
class ValidationRecord:
    """The target's records of a task's validation, read at `at` (unix time).

    `trouble`: why they could not be read. `validated` counts the tables that are compared, `stopped` are the others.
    """

    at: float
    validators: tuple[ValidatorFigures, ...] = ()
    rows: tuple[DifferingRow, ...] = ()
    more: str = ""
    validated: int = 0
    stopped: tuple[UnvalidatedTable, ...] = ()
    trouble: str = ""
    made_of: object = field(default=None, repr=False)


def validator_figures(told: ValidationStatus, synced: str) -> ValidatorFigures:
    """Return the figures of one source. `synced`: the position of the sync, as `query-status` writes it."""
    errors = told.result.errors if told.result is not None else ()
    first = errors[0] if errors else None
    new, ignored, resolved = _counts(told.error_rows_status, 3)
    return ValidatorFigures(
        told.source, told.mode, told.stage, told.validator_binlog, _behind(told.validator_binlog, synced),
        _sum(told.processed_rows_status), _sum(told.pending_rows_status), new, ignored, resolved,
        first.err_code if first is not None else "", first.message if first is not None else "",
        first.workaround if first is not None else "", told.cutover_binlog_gtid or told.cutover_binlog_pos,
    )  # fmt: skip


def record_mark(validators: Iterable[ValidatorFigures]) -> object:
    """Return a value that differs once the record has changed."""
    return tuple((one.source, one.stage, one.new, one.ignored, one.resolved, one.fault) for one in validators)


def shown_validators(
    told: Iterable[ValidatorFigures], record: ValidationRecord | None
) -> list[tuple[ValidatorFigures, bool]]:
    """Return the validators of a task, each with whether its worker reports it.

    The record's counts of errors are newer.
    """
    known = {one.source: one for one in record.validators} if record is not None else {}
    found = []
    for one in told:
        stored = known.pop(one.source, one)
        newer = replace(one, new=stored.new, ignored=stored.ignored, resolved=stored.resolved)
        found.append((newer, True))
    return [*found, *((one, False) for one in known.values())]


def validation_values(task: Any, record: ValidationRecord | None, query: Mapping[str, str]) -> dict[str, Any]:
    """Return the template's values beside those of `TaskFigures`; the caller cuts the page from `found`."""
    words = query.get("q", "")[:200].lower()
    rows = record.rows if record is not None else ()
    found = [one for one in rows if words in one.origin.lower() or words in one.target.lower()]
    return {
        "record": record, "validators": shown_validators(task.validators, record), "found": found,
        "state_of": query.get("error", "") if query.get("error") in STATES else STATES[0], "states": STATES,
        "q": query.get("q", "")[:200], "most_stopped": STOPPED_TABLES,
    }  # fmt: skip


def differing_row(form: Mapping[str, Any]) -> DifferingRow:
    """Return a row of `validation show-error`."""
    source, target = (json.loads(form[key]) if form[key] else None for key in ("srcData", "dstData"))
    differing = list(form["columns"])
    names = list(dict.fromkeys([*(source or ()), *(target or ())]))
    marked = [name for name in names if name in differing]
    others = [name for name in names if name not in differing]

    def cells(chosen: Iterable[str], longest: int, differs: bool) -> tuple[DifferingCell, ...]:
        return tuple(
            DifferingCell(name, _cell(source, name, longest), _cell(target, name, longest), differs) for name in chosen
        )

    return DifferingRow(
        int(form["id"]), form["source"], form["srcTable"], form["dstTable"], form["errorType"], form["status"],
        form["time"], form["binlogPos"], form["times"], form["settledBy"], source is not None, target is not None,
        cells(marked[:_MARKED], _CELL, True), cells(others[:_OTHERS], _QUIET_CELL, False),
        len(marked[_MARKED:]) + len(others[_OTHERS:]),
    )  # fmt: skip


class ValidationReader:
    """The reader of validation records, which reads once for all pages. Any thread may call it.

    `answer` asks the master's verb; `changed` is called when there is a new reading. A target that does not answer
    blocks one thread of the reader, never a page.
    """

    def __init__(self, answer: Answer, changed: Callable[[], None]) -> None:
        self._answer, self._changed = answer, changed
        self._found: dict[Key, ValidationRecord] = {}
        self._watched: dict[Key, float] = {}
        self._reading: dict[Key, Event] = {}
        self._lock = Lock()

    def of(self, key: Key, mark: object) -> ValidationRecord | None:
        """Return the record; None while it is read for the first time. `mark`: the status that it belongs to."""
        self._watched[key] = time.monotonic()
        ended = self._asked(key, mark)
        if key not in self._found and ended is not None:
            ended.wait(_FIRST_WAIT_SECONDS)
        return self._found.get(key)

    def watch(self, task: str) -> None:
        """Note that a user has the screen of the task open."""
        for key in list(self._watched):
            if key[0] == task and time.monotonic() - self._watched[key] <= WATCHED_SECONDS:
                self._watched[key] = time.monotonic()

    def look(self, marks: Mapping[str, object]) -> None:
        """Begin to read what is watched and has changed; called at each look at the cluster."""
        now = time.monotonic()
        for key, at in list(self._watched.items()):
            if key[0] in marks and now - at <= WATCHED_SECONDS:
                self._asked(key, marks[key[0]])
            elif now - at > KEPT_SECONDS:
                self._watched.pop(key, None)

    def forget(self, task: str) -> None:
        """Drop the record of a task, which was changed here: the next look reads it."""
        with self._lock:
            self._found = {key: one for key, one in self._found.items() if key[0] != task}

    def _asked(self, key: Key, mark: object) -> Event | None:
        """Begin to read where that is due; what to wait for."""
        with self._lock:
            found, reading = self._found.get(key), self._reading.get(key)
            if reading is not None or (found is not None and time.time() - found.at < _kept(found, mark)):
                return reading
            ended = self._reading[key] = Event()
            Thread(target=self._read, args=(key, mark, ended), name=f"validation {key[0]}", daemon=True).start()
            return ended

    def _read(self, key: Key, mark: object, ended: Event) -> None:
        try:
            record = self._record(key, mark)
        except UnshardError as error:
            record = ValidationRecord(time.time(), trouble=str(error), made_of=mark)
        except Exception as error:  # noqa: BLE001 - the page shows that it is blind
            logger("page").error("validation not read", exc_info=True, sampled=True)
            trouble = f"a bug: {type(error).__name__}; the log of the process tells more"
            record = ValidationRecord(time.time(), trouble=trouble, made_of=mark)
        with self._lock:
            known = {**self._found, key: record}
            newest = sorted(known, key=lambda name: known[name].at)[-MOST_RECORDS:]
            self._found = {name: known[name] for name in newest}
            del self._reading[key]
        ended.set()
        self._changed()

    def _record(self, key: Key, mark: object) -> ValidationRecord:
        task, state, with_rows = key
        status = self._answer(Validation(op="status", task=task))
        validators = [validator_figures(ValidationStatus.model_validate(one), "") for one in status["validators"]]
        tables: Sequence[Mapping[str, str]] = status["tableStatuses"]
        stopped = [one for one in tables if one["stage"] != "Running"]
        rows: tuple[DifferingRow, ...] = ()
        more = ""
        if with_rows:
            asked = Validation.model_validate({"op": "show-error", "task": task, "error": state, "limit": MOST_ERRORS})
            told = self._answer(asked)
            rows, more = tuple(differing_row(one) for one in told["error"]), str(told["msg"]) if told["error"] else ""
        left_out = tuple(
            UnvalidatedTable(one["source"], one["srcTable"], one["dstTable"], one["message"]) for one in stopped
        )
        looked_at = len(tables) - len(stopped)
        return ValidationRecord(time.time(), tuple(validators), rows, more, looked_at, left_out, "", mark)


def _kept(found: ValidationRecord, mark: object) -> float:
    if found.made_of != mark:
        return AGAIN_SECONDS
    return SILENT_SECONDS if found.trouble else KEPT_SECONDS


def _counts(text: str, many: int) -> list[int | None]:
    """Return the numbers of a figure such as `new/ignored/resolved: 1/2/3`."""
    numbers = text.rpartition(": ")[2].split("/")
    good = len(numbers) == many and all(one.isdecimal() for one in numbers)
    return [int(one) for one in numbers] if good else [None] * many


def _sum(text: str) -> int | None:
    known = [one for one in _counts(text, 3) if one is not None]
    return sum(known) if known else None


def _behind(place: str, synced: str) -> str:
    own, other = _PLACE.match(place), _PLACE.match(synced)
    if own is None or other is None:
        return "unknown"
    try:
        at, ahead = Position(own[1], int(own[2])), Position(other[1], int(other[2]))
        if at >= ahead:
            return "nothing"
        return size_text(ahead.offset - at.offset) if at.file == ahead.file else f"{ahead.number - at.number} files"
    except ValueError:
        return "unknown"


def _cell(row: Mapping[str, Any] | None, name: str, longest: int) -> str | None:
    value = None if row is None else row.get(name)
    text = None if value is None else str(value)
    return text if text is None or len(text) <= longest else f"{text[:longest]}… ({len(text):,} characters)"
