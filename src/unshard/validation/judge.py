"""Re-checks keys that differed, until each is found equal or different: `compare.chase`, repeated while the task runs.

A key is checked again once the target has everything that the source had at the check before. The caller records the
keys that are decided.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from unshard.compare.chase import ChasedTable, KeyChase
from unshard.compare.places import LogPlace, SourceWatch, newest_places, recorded_tables
from unshard.compare.result import DIFFERENT, RowClass, RowDifference, TableOutcome
from unshard.compare.tables import ComparedTable
from unshard.errors import UnshardError
from unshard.model.table import TableName
from unshard.run_tasks import RunTasks
from unshard.target.pending_keys import PendingKey
from unshard.target.validation_errors import ErrorKind, RowError
from unshard.target.validation_questions import RowAnswer, RowQuestion
from unshard.validation.tables import GONE, OLD_KEY, ValidatedTables

MOST_OPEN = 20_000
"""Keys that are judged at a time; the others wait in the target."""

BY_ITSELF = "a later look"
DROPPED = "the table is gone"

_KINDS = {
    RowClass.EXTRA: ErrorKind.EXTRA,
    RowClass.MISSING: ErrorKind.MISSING,
    RowClass.CHANGED: ErrorKind.CHANGED,
    RowClass.COLLISION: ErrorKind.COLLISION,
}


@dataclass(frozen=True, slots=True)
class JudgedKey:
    """A key that is settled, with the verdict on its row.

    Args:
        error: its row differs; without an error the row is right, or can't be judged.
        known: the error on record for which it was checked again.
        asks: only the target has the row, and another source may have it.
        own: whether it was checked for anything else than the questions of other sources.
        questions: the questions of other sources that it answers.
        answer: the answer to these questions.
        also: the records of the same key by other tables of the source.
        settled_by: why the known error is resolved.
    """

    pending: PendingKey
    error: RowError | None = None
    known: RowError | None = None
    note: str = ""
    asks: bool = False
    own: bool = True
    questions: tuple[int, ...] = ()
    answer: RowAnswer = RowAnswer.ANSWERS
    also: tuple[PendingKey, ...] = ()
    settled_by: str = BY_ITSELF


@dataclass(slots=True)
class _OpenKey:
    """A key that is not settled yet.

    `confirmed`: all other sources have answered that they lack the row. `also` is as in JudgedKey, by table.
    """

    pending: PendingKey
    known: RowError | None = None
    own: bool = True
    confirmed: bool = False
    questions: list[int] = field(default_factory=list)
    also: dict[TableName, PendingKey] = field(default_factory=dict)

    def judged(self, **more: Any) -> JudgedKey:
        own = tuple(one for one in self.also.values() if one.origin != self.pending.origin)
        return JudgedKey(self.pending, own=self.own, questions=tuple(self.questions), also=own, **more)


@dataclass(slots=True)
class Judge:
    """The judge of the keys that are not settled yet, which checks them until they are. Used by the validator's thread.

    `alone`: no other source of the task has rows of the same target tables.
    """

    watch: SourceWatch
    tables: ValidatedTables
    run: RunTasks
    alone: bool = True
    at_once: int = 1
    _open: dict[tuple[TableName, tuple[str, ...]], _OpenKey] = field(default_factory=dict)
    _chased: dict[TableName, ChasedTable] = field(default_factory=dict)
    _place: dict[str, LogPlace | None] | None = None
    _fault: UnshardError | None = None

    @property
    def room(self) -> int:
        """Number of keys that may be added before `MOST_OPEN` are open."""
        return max(MOST_OPEN - len(self._open), 0)

    def add(self, pending: Iterable[PendingKey], known: RowError | None = None) -> None:
        """Add keys. A key that is open for a known error, and has changed since, is judged as a new one."""
        for one in pending:
            entry = self._open.setdefault((one.target, one.key), _OpenKey(one, known))
            entry.also[one.origin] = one
            if known is None or not entry.own:
                entry.pending, entry.known, entry.own, entry.confirmed = one, known, True, False

    def restore(self, pending: Iterable[PendingKey]) -> None:
        """Add recorded keys that are not open yet."""
        for one in pending:
            entry = self._open.get((one.target, one.key))
            if entry is None:
                self.add([one])
            else:
                entry.also[one.origin] = one

    def confirm(self, pending: PendingKey, known: RowError | None) -> None:
        """Open a key again, after all other sources have answered that they lack the row."""
        if (pending.target, pending.key) not in self._open:
            self._open[pending.target, pending.key] = _OpenKey(pending, known, confirmed=True)

    def answer(self, question: RowQuestion) -> None:
        """Open a key that another source asks about."""
        pending = PendingKey(question.target, question.target, question.key, 2, 0.0, columns=question.columns)
        entry = self._open.setdefault((question.target, question.key), _OpenKey(pending, own=False))
        if question.number not in entry.questions:
            entry.questions.append(question.number)

    def look(self, place: str) -> list[JudgedKey]:
        """Look at all open keys once, unless the target has not yet what the source had at the last look.

        `place` is the applied position, for errors. Raises SourceError, TargetError, EngineError.
        """
        if not self._open:
            self._place = None
            return []
        if self._place is None:
            self._place = newest_places([self.watch])
        source = self.watch.side.source
        if not self.watch.has_passed(self._place[source]):
            return []
        judged = self._prepared()
        tables = list(self._chased.values())
        before = newest_places([self.watch])
        chase = KeyChase(self.run, [self.watch], 0.0, MOST_OPEN, _silent, _never, self.at_once, keeps_locked=True)
        chase.look(tables, before, frozenset({source}))
        self._place = newest_places([self.watch])
        for one in tables:
            judged += self._settled(one, place)
        self._note_failed(tables)
        return judged

    def _prepared(self) -> list[JudgedKey]:
        """Assign the open keys to their tables. Return the keys of tables that can't be compared."""
        judged = []
        dropped: Callable[[TableName], bool] | None = None
        for (name, key), entry in list(self._open.items()):
            plan = self.tables.get(name)
            if plan.fault == GONE and entry.known is not None:
                dropped = dropped or self._dropped()
                if dropped(entry.known.origin):
                    judged.append(entry.judged(known=entry.known, settled_by=DROPPED, answer=RowAnswer.LACKS))
                    del self._open[name, key]
                    continue
            if plan.table is None or not entry.pending.is_of(plan.table.key):
                answer = RowAnswer.LACKS if plan.fault == GONE else RowAnswer.ANSWERS
                judged.append(entry.judged(note=(plan.fault or OLD_KEY) if entry.own else "", answer=answer))
                del self._open[name, key]
                continue
            chased = self._chased.get(name)
            if chased is None or chased.table is not plan.table:
                chased = self._chased[name] = ChasedTable(plan.table, TableOutcome.of(plan.table))
            chased.add([key], 1)
        return judged

    def _dropped(self) -> Callable[[TableName], bool]:
        """Return what tells whether the task has dropped a table: its record in the target lacks it.

        A table that the source does not show may be there all the same: the account may have lost its rights.
        """
        meta = self.watch.meta
        found = recorded_tables(self.watch.target, meta, self.watch.side.source) if meta is not None else None
        return lambda name: found is not None and name not in found

    def _settled(self, one: ChasedTable, place: str) -> list[JudgedKey]:
        name = one.table.name
        differences = {difference.literals: difference for difference in one.outcome.differences}
        judged = []
        for (target, key), entry in list(self._open.items()):
            if target != name or key in one.suspects:
                continue
            judged.append(self._judged(one.table, entry, differences.get(key), place))
            del self._open[target, key]
        one.outcome.differences.clear()
        one.outcome.classes.clear()
        return judged

    def _judged(self, table: ComparedTable, entry: _OpenKey, difference: RowDifference | None, place: str) -> JudgedKey:
        pending, known = entry.pending, entry.known
        told = entry.judged(known=known)
        if difference is None:
            return told
        if difference.kind not in DIFFERENT:
            note = f"rows that the rule {difference.rule} may have made differ are not judged"
            return replace(told, known=None, note=note if difference.kind is RowClass.UNCLEAR and entry.own else "")
        if difference.kind is RowClass.EXTRA:
            told = replace(told, answer=RowAnswer.LACKS)
            if not entry.own:
                return told
            if not self.alone and not entry.confirmed:
                return replace(told, asks=True)
        row, origin = None, pending.origin if known is None else known.origin
        if difference.source:
            name, row = difference.source[0]
            origin = next((one.table.name for one in table.shards if one.name == name), origin)
        kind, found = _KINDS[difference.kind], difference.target
        error = RowError(origin, pending.target, pending.key, kind, row, found, difference.columns, place)
        return replace(told, error=replace(error, key_columns=table.key))

    def _note_failed(self, tables: Iterable[ChasedTable]) -> None:
        """Keep the error of a look. The table is planned anew, since its structure may have changed."""
        fault: UnshardError | None = None
        for one in tables:
            if one.outcome.errors:
                fault = fault or one.outcome.errors[0]
                one.outcome.errors.clear()
                self.tables.forget(one.table.name)
        for name in [name for name, one in self._chased.items() if not one.suspects]:
            del self._chased[name]
        self._fault = fault

    def take_fault(self) -> UnshardError | None:
        """Return the error that the last look met in a table, once."""
        fault, self._fault = self._fault, None
        return fault


def _silent(line: str) -> None:
    del line


def _never() -> bool:
    return False
