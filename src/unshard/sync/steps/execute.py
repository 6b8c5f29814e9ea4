"""Runs the statements of a chunk in the caller's transaction: what each one did, and what the target refuses."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from functools import partial
from typing import Any, TypeVar

import MySQLdb

from unshard.errors import SyncError, TargetError, UnshardError, Where
from unshard.model.change import Op
from unshard.mysql.failures import Failure, failure_of, is_transient
from unshard.sync.batch.plan import BatchPlan, TargetPlan
from unshard.sync.batch.row_counts import Ledger, RowCounts, add_up, entry_of
from unshard.sync.changes.merge import EXAMPLE_LENGTH, Chunk, Keys, Statement
from unshard.target.transactions import TOO_LARGE
from unshard.target.writer import CUT, FEWEST_IN_BULK, ServerAnswer, packet_limit, query

DUPLICATE = 1062
NO_TABLE = 1146
CHANGED = "SYNC-073"
_MARIADB = "MariaDB"
T = TypeVar("T")
_COUNTS = re.compile(rb"Records: (\d+) +Duplicates: (\d+)")


def write_statements(connection: Any, piece: Chunk, plan: BatchPlan, asked: Collection[int]) -> Ledger:
    """Run the statements; for targets in `asked` the rows are looked for before they are changed. Return the counts.

    Raises SyncError, after a rollback: SYNC-003 for a duplicate key, SYNC-010 for a table that is not there, SYNC-004
    for another refusal, SYNC-073 for a value that the target would change, SYNC-048 for a row that is not found, where
    the plan says so; TargetError TARGET-007 as `_refuse_shared`; MySQLdb.Error for what may pass, or is too large for
    the target.
    """
    targets = plan.targets()
    entries: list[Ledger] = []
    start = piece.start
    for statement in piece.statements:
        target = targets[statement.target]
        if statement.upsert and target.locked_upserts:
            found = _execute_locked(connection, statement, target, plan, partial(_part, piece, start))
        else:
            found = _execute(connection, statement, target, plan, ask=target.id in asked)
        entries.append({target.id: found})
        start += statement.rows
    return add_up(entries)


def _part(piece: Chunk, start: int, first: int, last: int) -> tuple[Statement, ...]:
    """Return the statements for changes `first` to `last` of the one that begins with the piece's change `start`."""
    return piece.part(start + first, start + last).statements


def _execute_locked(
    connection: Any,
    statement: Statement,
    target: TargetPlan,
    plan: BatchPlan,
    part: Callable[[int, int], tuple[Statement, ...]],
) -> RowCounts:
    """Run an upsert for those of its rows that exist, which are locked first; the others are counted as missing.

    Those that the batch inserts are inserted then.
    """
    from unshard.sync.steps.key_search import lock_rows  # few tables have several unique keys

    keys, counts = statement.keys, RowCounts()
    assert keys is not None
    for first, last, there in _answered(connection, target, plan, lambda: lock_rows(connection, keys)):
        if there:
            for one in (statement,) if last - first == len(keys) else part(first, last):
                counts += _execute(connection, one, target, plan, ask=False)
            continue
        example = keys.example(first)
        if plan.on_missing_row == "stop":
            connection.query(b"ROLLBACK")
            raise _not_found(statement, target, plan, last - first, example)
        counts += entry_of(statement.op, last - first, last - first, example)
        _insert(connection, statement, target, plan, first, last)
    return counts


def _insert(connection: Any, statement: Statement, target: TargetPlan, plan: BatchPlan, first: int, last: int) -> None:
    """Insert those of an UPDATE's rows `first` to `last`, which the target lacks, that the batch inserts."""
    for one in statement.inserts(first, last) if statement.inserts is not None else ():
        _execute(connection, one, target, plan, ask=False)


def _insert_missing(connection: Any, statement: Statement, target: TargetPlan, plan: BatchPlan, keys: Keys) -> None:
    """Insert those of an UPDATE's rows that the target lacks and the batch inserts."""
    from unshard.sync.steps.key_search import lock_rows  # rows are rarely missing

    for first, last, there in _answered(connection, target, plan, lambda: lock_rows(connection, keys)):
        if not there:
            _insert(connection, statement, target, plan, first, last)


def _answered(connection: Any, target: TargetPlan, plan: BatchPlan, question: Callable[[], T]) -> T:
    """Return the server's answer. What it refuses for good is rolled back and raised as SyncError."""
    try:
        return question()
    except MySQLdb.Error as error:
        if is_transient(error) or failure_of(error) is Failure.TOO_LARGE:
            raise
        connection.query(b"ROLLBACK")
        raise _refusal(error, target, plan) from error


def _execute(connection: Any, statement: Statement, target: TargetPlan, plan: BatchPlan, *, ask: bool) -> RowCounts:
    keys = statement.keys
    lost = None
    if ask and keys is not None and len(keys) > 1:
        from unshard.sync.steps.key_search import first_missing  # rows are rarely missing

        lost = first_missing(connection, keys)
    answer = _answered(connection, target, plan, lambda: _run(connection, statement, target))
    if answer.warnings and statement.op is not Op.DELETE:
        _refuse_changed(connection, statement, target, plan, answer.warnings)
    if statement.may_miss == statement.rows:
        missing = 0
    elif statement.upsert:
        records, duplicates = _counts(answer.info)
        missing = records - duplicates
    elif statement.op in (Op.INSERT, Op.INSERT_SET):
        missing = 0
    else:
        missing = max(0, statement.rows - statement.may_miss - answer.found)
    if not missing or keys is None:
        return entry_of(statement.op, statement.rows)
    if len(keys) == 1:
        lost = 0
    example = keys.example(lost) if lost is not None else ""
    if plan.on_missing_row == "stop" and (example or ask):
        connection.query(b"ROLLBACK")
        raise _not_found(statement, target, plan, missing, example)
    if statement.inserts is not None:
        _insert_missing(connection, statement, target, plan, keys)
    return entry_of(statement.op, statement.rows, missing, example)


def _not_found(statement: Statement, target: TargetPlan, plan: BatchPlan, missing: int, key: str) -> SyncError:
    where = Where(source=plan.source, table=str(target.name), position=f"{plan.begin} to {plan.end}")
    text = statement.sql[:EXAMPLE_LENGTH].decode("utf-8", "backslashreplace")
    cause = f"{missing} of the {statement.rows} rows of: {text}{'…' if len(statement.sql) > EXAMPLE_LENGTH else ''}"
    return SyncError(
        "SYNC-048", where, cause=cause, values={"kind": statement.op.name, "key": key or "one of the list"}
    )


def _run(connection: Any, statement: Statement, target: TargetPlan) -> ServerAnswer:
    """Run the statement and return the server's answer. Warnings about ENUM error values are not counted.

    Raises MySQLdb.Error, and then the statement has changed nothing.
    """
    sql = statement.sql
    if target.zeros and statement.op is Op.UPDATE:
        from unshard.target.error_values import with_numbers

        sql = with_numbers(sql, target.zeros)
    try:
        many = statement.values if statement.rows >= FEWEST_IN_BULK and sql is statement.sql else None
        if many is None or _MARIADB not in connection.get_server_info():
            return query(connection, sql)
        from unshard.target.bulk_insert import insert  # most batches have a few rows of each table

        return insert(connection, sql, many, packet_limit(connection))
    except MySQLdb.Error as error:
        if error.args[0] != CUT or not target.enums:
            raise
        from unshard.target.error_values import query_with_error_values

        _refuse_shared(connection, statement)
        answer = query_with_error_values(connection, sql, target.enums)
        if answer is None:
            raise
        return answer._replace(warnings=0)


def _refuse_changed(connection: Any, statement: Statement, target: TargetPlan, plan: BatchPlan, warnings: int) -> None:
    """Raise SyncError SYNC-073, after a rollback, where the server warns that it stored a value it was not given."""
    from unshard.target.error_values import changed_value

    _refuse_shared(connection, statement)
    if cause := changed_value(connection, warnings):
        connection.query(b"ROLLBACK")
        where = Where(source=plan.source, table=str(target.name), position=f"{plan.begin} to {plan.end}")
        raise SyncError(CHANGED, where, cause=cause)


def _refuse_shared(connection: Any, statement: Statement) -> None:
    """Raise TargetError TARGET-007 for statements that share a text, so that they are run one by one.

    Their warnings can't be distinguished.
    """
    if statement.op is Op.UPDATE and statement.rows > 1 and not statement.upsert:
        connection.query(b"ROLLBACK")
        raise TargetError(TOO_LARGE, cause="statements that share a text can't tell their warnings")


def _counts(info: bytes) -> tuple[int, int]:
    """Return the records and duplicates of a multi-row INSERT."""
    match = _COUNTS.search(info)
    return (int(match[1]), int(match[2])) if match else (0, 0)


def _refusal(error: MySQLdb.Error, target: TargetPlan, plan: BatchPlan) -> UnshardError:
    number, text = error.args[0], error.args[-1]
    where = Where(source=plan.source, table=str(target.name), position=f"{plan.begin} to {plan.end}")
    code = {DUPLICATE: "SYNC-003", NO_TABLE: "SYNC-010"}.get(number, "SYNC-004")
    return SyncError(code, where, cause=f"{number}: {text}")
