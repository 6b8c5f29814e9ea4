"""Stores the validation result of each key, and exchanges questions about rows of merged tables with other sources."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from unshard.log import logger
from unshard.model.table import TableName
from unshard.mysql.connection import Endpoint, session
from unshard.retry import retrying
from unshard.target.meta import MetaTables
from unshard.target.pending_keys import PendingKey, drop_pending
from unshard.target.validation import RUNNING, Key, load_state, load_table_statuses, set_table_status
from unshard.target.validation_errors import ErrorState, RowError, renew_error, save_errors, settle_errors
from unshard.target.validation_questions import (
    RowAnswer,
    RowQuestion,
    answer_questions,
    ask_others,
    drop_questions,
    questions_of,
    questions_to,
)
from unshard.validation.judge import Judge, JudgedKey

T = TypeVar("T")
QUESTIONS_AT_ONCE = 1000
_UNASKED = (
    "a row that only the target has is not judged: source {source} may have it, and has no validator that could tell"
)


@dataclass(slots=True)
class Verdicts:
    """The writer of the validator's records. Used by the validator's thread. `others` are the task's other sources."""

    source: str
    target: Endpoint
    meta: MetaTables
    others: tuple[str, ...] = ()
    _asked: dict[tuple[TableName, Key], JudgedKey] = field(default_factory=dict)
    _planned: dict[tuple[TableName, TableName], tuple[str, str]] = field(default_factory=dict)
    _planned_now: dict[tuple[TableName, TableName], tuple[str, str]] = field(default_factory=dict)

    def on_target(self, ask: Callable[[Any], T]) -> T:
        """Run `ask` on a new connection to the target. Raises TargetError."""

        def attempt() -> T:
            with session(self.target, "target") as connection:
                return ask(connection)

        return retrying(attempt, attempts=3)

    def in_one(self, write: Callable[[Any], None]) -> None:
        """Run `write` in one transaction, which may run again."""

        def attempt(connection: Any) -> None:
            self._planned_now.clear()
            with connection.cursor() as cursor:
                cursor.execute("BEGIN")
                write(cursor)
                cursor.execute("COMMIT")
            self._planned |= self._planned_now

        self.on_target(attempt)

    def tell_status(self, cursor: Any, table: TableName, target: TableName, stage: str, message: str) -> None:
        """Record a table's stage and message. In the caller's transaction."""
        if stage != RUNNING:
            self._planned.pop((table, target), None)  # its next plan is told again
        set_table_status(cursor, self.meta, self.source, table, target, stage, message)

    def tell_planned(self, cursor: Any, table: TableName, target: TableName, stage: str, message: str) -> None:
        """Record the findings of a table's plan, where they have changed. In the caller's transaction.

        A message about rows that can't be judged is not overwritten by a plan that is as it was.
        """
        name, told = (table, target), (stage, message)
        if self._planned_now.get(name, self._planned.get(name)) != told:
            self.tell_status(cursor, table, target, stage, message)
            self._planned_now[name] = told

    def recall(self) -> None:
        """Take the tables on record as running for planned, so that their messages outlast a restart."""
        for table, target, stage, _ in self.on_target(lambda c: load_table_statuses(c, self.meta, self.source)):
            if stage == RUNNING:
                self._planned[table, target] = RUNNING, ""

    def asks(self, pending: PendingKey) -> bool:
        """Return whether other sources are asked for the row of the key."""
        return (pending.target, pending.key) in self._asked

    def record(self, judged: Iterable[JudgedKey]) -> None:
        """Record the verdicts on keys in one transaction."""
        judged = list(judged)
        if not judged:
            return
        settled = [one for one in judged if one.own and not one.asks]
        asking = [one for one in judged if one.asks]
        errors = [one.error for one in judged if one.error is not None and one.known is None]

        def write(cursor: Any) -> None:
            save_errors(cursor, self.meta, self.source, errors)
            self._settle(cursor, settled)
            for one in asking:
                ask_others(cursor, self.meta, self.source, self.others, one.pending)
            for answer in (RowAnswer.LACKS, RowAnswer.ANSWERS):
                numbers = [number for one in judged if one.answer is answer for number in one.questions]
                answer_questions(cursor, self.meta, numbers, answer)

        self.in_one(write)
        self._asked |= {(one.pending.target, one.pending.key): one for one in asking}
        for one in settled:
            self._asked.pop((one.pending.target, one.pending.key), None)
        self._log_errors(errors)

    def take_up(self, judge: Judge) -> None:
        """Open the keys that other sources ask about, and act on their answers."""
        if not self.others:
            return
        for question in self.on_target(lambda c: questions_to(c, self.meta, self.source, QUESTIONS_AT_ONCE)):
            judge.answer(question)
        if self._asked:
            self._hear(judge, self.on_target(lambda c: questions_of(c, self.meta, self.source)))

    def _hear(self, judge: Judge, questions: Iterable[RowQuestion]) -> None:
        answers: dict[tuple[TableName, Key], list[RowQuestion]] = {}
        for question in questions:
            answers.setdefault((question.target, question.key), []).append(question)
        unheard = self._unheard()
        over = []
        for name, one in list(self._asked.items()):
            told = answers.get(name, [])
            if all(question.answer is RowAnswer.LACKS for question in told):
                judge.confirm(one.pending, one.known)
                del self._asked[name]
                continue
            silent = [q.asked for q in told if q.answer is RowAnswer.OPEN and q.asked in unheard]
            if silent or any(question.answer is RowAnswer.ANSWERS for question in told):
                over.append((one, _UNASKED.format(source=silent[0]) if silent else ""))
                del self._asked[name]

        def write(cursor: Any) -> None:
            self._settle(cursor, [one for one, _ in over])
            for one, note in over:
                if note:
                    self.tell_status(cursor, one.pending.origin, one.pending.target, RUNNING, note)

        if over:
            self.in_one(write)

    def _unheard(self) -> set[str]:
        """Return the other sources whose validators don't run."""

        def ask(connection: Any) -> set[str]:
            states = {other: load_state(connection, self.meta, other) for other in self.others}
            return {other for other, state in states.items() if state is None or state.stage != RUNNING}

        return self.on_target(ask)

    def _settle(self, cursor: Any, settled: list[JudgedKey]) -> None:
        right: dict[str, list[int]] = {}
        for one in settled:
            if one.error is None and one.known is not None:
                right.setdefault(one.settled_by, []).append(one.known.number)
        for why, numbers in right.items():
            settle_errors(cursor, self.meta, self.source, numbers, ErrorState.RESOLVED, why)
        for one in settled:
            if one.error is not None and one.known is not None:
                renew_error(cursor, self.meta, one.known.number, one.error)
            if one.note:
                self.tell_status(cursor, one.pending.origin, one.pending.target, RUNNING, one.note)
            if self.others:
                drop_questions(cursor, self.meta, self.source, one.pending.target, one.pending.key)
        drop_pending(cursor, self.meta, self.source, [key for one in settled for key in (one.pending, *one.also)])

    def _log_errors(self, errors: Iterable[RowError]) -> None:
        log = logger("validation", source=self.source)
        for error in errors:
            named = {"table": str(error.origin), "target": str(error.target), "kind": error.kind.words}
            log.error("a row differs", **named, key=", ".join(error.key)[:200])
