"""Step *apply*: a partition's chunks into the target, each with its receipt in one transaction."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import MySQLdb

from unshard.crash_point import reach
from unshard.errors import SyncError, UnshardError, Where
from unshard.model.change import Op
from unshard.mysql.failures import is_transient
from unshard.sync.batch import BatchPlan, TargetPlan
from unshard.sync.ledger import Entry, Ledger, add_up, entry_of
from unshard.sync.merge import Chunk, Statement
from unshard.target.receipts import FENCED_OUT, advance_statement, chunks_done
from unshard.target.retrying import on_target
from unshard.target.writer import KeptWriter

DUPLICATE = 1062
NO_TABLE = 1146
T = TypeVar("T")
_COUNTS = re.compile(rb"Records: (\d+) +Duplicates: (\d+)")


def apply(chunks: Iterable[Chunk], plan: BatchPlan, part: int, before: int = 0) -> tuple[Ledger, int]:
    """Apply the chunks in order; what was done, and the last chunk's number (`before` where there is none).

    May run again at any time: done chunks are skipped.

    Raises SyncError: SYNC-001 for a zombie attempt, SYNC-003 for a duplicate key, SYNC-004 for a row that the
    target refuses; TargetError when the target stays out of reach.
    """
    done = _applied_before(plan, part)
    last = before
    ledgers: list[Ledger] = []
    for chunk in chunks:
        ledgers.append(_counted(chunk) if chunk.number <= done else _apply_chunk(chunk, plan, part))
        last = chunk.number
    return add_up(ledgers), last


def _counted(chunk: Chunk) -> Ledger:
    """The ledger of a chunk that an earlier attempt applied; what it missed is no longer known."""
    return add_up({statement.target: entry_of(statement.op, statement.rows, 0)} for statement in chunk.statements)


def _applied_before(plan: BatchPlan, part: int) -> int:
    """How many chunks of this batch the partition applied in an earlier attempt."""

    def ask(connection: Any) -> int:
        return chunks_done(connection, plan.meta, plan.source, part, plan.epoch, plan.batch_id)

    return _persisting(plan, part, ask)


def _apply_chunk(chunk: Chunk, plan: BatchPlan, part: int) -> Ledger:
    return _persisting(plan, part, lambda connection: _attempt(connection, chunk, plan, part))


def _persisting(plan: BatchPlan, part: int, operation: Callable[[Any], T]) -> T:
    return on_target(KeptWriter(plan.target, part), operation, _where(plan))


def _attempt(connection: Any, chunk: Chunk, plan: BatchPlan, part: int) -> Ledger:
    """One transaction. A chunk that an attempt committed before its answer was lost is not applied again."""
    targets = plan.targets()
    entries: list[Ledger] = []
    reach("sync-chunk-before")
    connection.query(b"BEGIN")
    advance = advance_statement(plan.meta, plan.source, part, plan.epoch, plan.batch_id, chunk.number)
    connection.query(advance.encode())
    if connection.affected_rows() != 1:
        connection.query(b"ROLLBACK")
        done = chunks_done(connection, plan.meta, plan.source, part, plan.epoch, plan.batch_id)
        if done < chunk.number:
            raise SyncError(FENCED_OUT, _where(plan))
        return _counted(chunk)
    for statement in chunk.statements:
        entries.append({statement.target: _execute(connection, statement, targets[statement.target], plan)})
    reach("sync-chunk-commit")
    connection.query(b"COMMIT")
    reach("sync-chunk-after")
    return add_up(entries)


def _execute(connection: Any, statement: Statement, target: TargetPlan, plan: BatchPlan) -> Entry:
    try:
        connection.query(statement.sql)
    except MySQLdb.Error as error:
        if is_transient(error):
            raise
        connection.query(b"ROLLBACK")
        raise _refusal(error, target, plan) from error
    found = connection.affected_rows()
    if statement.may_miss == statement.rows:
        missing = 0
    elif statement.op is Op.UPDATE and not target.ordered:
        records, duplicates = _counts(connection)
        missing = records - duplicates
    elif statement.op in (Op.INSERT, Op.INSERT_SET):
        missing = 0
    else:
        missing = max(0, statement.rows - statement.may_miss - found)
    return entry_of(statement.op, statement.rows, missing)


def _counts(connection: Any) -> tuple[int, int]:
    """Records and duplicates of the last multi-row INSERT, from the server's info text (mysql_info)."""
    info = connection.info() or b""
    match = _COUNTS.search(info if isinstance(info, bytes) else info.encode())
    return (int(match[1]), int(match[2])) if match else (0, 0)


def _refusal(error: MySQLdb.Error, target: TargetPlan, plan: BatchPlan) -> UnshardError:
    number, text = error.args[0], error.args[-1]
    where = Where(source=plan.source, table=str(target.name), position=f"{plan.begin} to {plan.end}")
    code = {DUPLICATE: "SYNC-003", NO_TABLE: "SYNC-010"}.get(number, "SYNC-004")
    return SyncError(code, where, cause=f"{number}: {text}")


def _where(plan: BatchPlan) -> Where:
    return Where(source=plan.source, position=f"{plan.begin} to {plan.end}")
