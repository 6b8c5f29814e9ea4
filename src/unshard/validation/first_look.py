"""The first comparison of the keys that batches have changed: finds those whose rows differ on source and target."""

from __future__ import annotations

import pickle
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from threading import Event

import pyarrow as pa

from unshard.compare.executor.changed import ChangedOrder, look_first
from unshard.errors import UnshardError, disclose
from unshard.model.table import TableName
from unshard.run_tasks import RunTasks
from unshard.sync.batch.key_report import SEPARATOR, KeyReport, KeyReportTable
from unshard.target.changed_keys import ChangedKeyPart
from unshard.target.pending_keys import PendingKey
from unshard.target.validation import RUNNING, STOPPED, Key
from unshard.validation.tables import GONE, OTHER_KEY, ValidatedTables

KEYS_AT_ONCE = 2_000
"""Keys of one task: its slot is soon free for the sync."""

REST_SHARE = 4
"""While the sync lags, the validator rests so many times as long as a look took."""

_LONGEST_REST = 10.0


@dataclass(slots=True)
class FirstFindings:
    """The findings of a first look at changed keys.

    `statuses` are those of source tables: name, target, stage and message.
    """

    pending: list[PendingKey] = field(default_factory=list)
    statuses: list[tuple[TableName, TableName, str, str]] = field(default_factory=list)
    processed: tuple[int, int, int] = (0, 0, 0)


@dataclass(frozen=True, slots=True)
class _Ordered:
    """A comparison order for a Spark task, with the table that it is for."""

    table: KeyReportTable
    order: ChangedOrder


@dataclass(slots=True)
class FirstLook:
    """The first comparison of changed keys. Used by the validator's thread.

    `lags` tells whether the sync lags.
    """

    tables: ValidatedTables
    run: RunTasks
    query_size: int
    at_once: int
    lags: Callable[[], bool]
    stop: Event

    def look(self, parts: Sequence[ChangedKeyPart], *, leave_faulty: bool = False) -> FirstFindings | None:
        """Look at all keys of the parts, at each key once. Return None where it was stopped meanwhile.

        Raises SourceError, TargetError, EngineError; the tables are planned anew then, for a DDL may be the reason.
        With `leave_faulty` a table that can't be read is reported in `statuses`, and its keys are left.
        """
        reports = [KeyReport.of(part.described, part.keys, part.data) for part in parts]
        found = FirstFindings()
        totals = [(one.inserts, one.updates, one.deletes) for report in reports for one in report.tables]
        inserts, updates, deletes = (sum(kind) for kind in zip(*totals, strict=True)) if totals else (0, 0, 0)
        found.processed = inserts, updates, deletes
        works = [
            _Ordered(table, order)
            for table, keys in _by_table(reports).items()
            for order in self._orders(table, pa.concat_arrays(keys).unique(), found)
        ]
        tasks = list(_together(works))
        for start in range(0, len(tasks), self.at_once):
            if self.stop.is_set():
                return None
            begun = time.monotonic()
            self._run(tasks[start : start + self.at_once], found, leave_faulty=leave_faulty)
            self.rest(time.monotonic() - begun)
        return found

    def rest(self, worked: float) -> None:
        """Sleep after `worked` seconds of work where the sync lags, so that the sync has the machine."""
        if self.lags():
            self.stop.wait(min(REST_SHARE * worked, _LONGEST_REST))

    def _orders(self, table: KeyReportTable, keys: pa.Array, found: FirstFindings) -> Iterator[ChangedOrder]:
        plan = self.tables.get(table.target)
        fault, note = plan.fault, plan.note
        alone = plan.of_shard(table.source) if plan.table is not None else None
        if plan.table is not None and alone is None:
            fault = GONE
        places = _places(table.key, alone.key) if alone is not None else None
        if alone is not None and places is None:
            fault = OTHER_KEY
        found.statuses.append((table.source, table.target, STOPPED if fault else RUNNING, fault or note))
        if alone is None or places is None:
            return
        for start in range(0, len(keys), KEYS_AT_ONCE):
            yield ChangedOrder(alone, _split(keys.slice(start, KEYS_AT_ONCE), places), self.query_size)

    def _run(self, tasks: list[list[_Ordered]], found: FirstFindings, *, leave_faulty: bool) -> None:
        payloads = [pickle.dumps(tuple(work.order for work in task)) for task in tasks]
        now = time.time()
        for task, outcome in zip(tasks, self.run(payloads, look_first), strict=True):
            try:
                looks = disclose(outcome)
            except UnshardError as error:
                for work in task:
                    self.tables.forget(work.table.target)
                if not leave_faulty or error.retryable:
                    raise
                message = f"not validated: {error.code}: {error.message}: {error.cause}"
                found.statuses += [(one.table.source, one.table.target, STOPPED, message) for one in task]
                continue
            for work, differing in zip(task, looks, strict=True):
                names, columns = (work.table.source, work.table.target), work.order.table.key
                found.pending += [PendingKey(*names, tuple(key), kind, now, 0, columns) for kind, key in differing]


def _by_table(reports: Iterable[KeyReport]) -> dict[KeyReportTable, list[pa.Array]]:
    """Return the keys of all reports by source table, target table and columns of the key."""
    found: dict[KeyReportTable, list[pa.Array]] = {}
    for report in reports:
        for table, keys in report.unpacked():
            found.setdefault(KeyReportTable(table.source, table.target, table.key), []).append(keys)
    return found


def _places(reported: Key, wanted: Key) -> list[int] | None:
    """Return the places of the wanted key's columns in the reported key; None where the columns differ."""
    names = [name.lower() for name in reported]
    if sorted(names) != sorted(name.lower() for name in wanted):
        return None
    return [names.index(name.lower()) for name in wanted]


def _split(keys: pa.Array, places: list[int]) -> tuple[Key, ...]:
    texts = [key.split(SEPARATOR) for key in keys.to_pylist()]
    return tuple(tuple(values[place].decode() for place in places) for values in texts)


def _together(works: list[_Ordered]) -> Iterator[list[_Ordered]]:
    """Group the orders into tasks. Small tables share one."""
    some: list[_Ordered] = []
    count = 0
    for work in works:
        if some and count + len(work.order.keys) > KEYS_AT_ONCE:
            yield some
            some, count = [], 0
        some.append(work)
        count += len(work.order.keys)
    if some:
        yield some
