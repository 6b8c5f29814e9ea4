"""Step *apply*: a partition's chunks into the target, each with its receipt in one transaction."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable
from typing import Any, TypeVar

import MySQLdb

from unshard.crash_point import reach
from unshard.errors import SyncError, UnshardError, Where
from unshard.model.change import Op
from unshard.mysql.connection import server_error
from unshard.mysql.failures import LOST, is_transient
from unshard.sync.batch import BatchPlan, TargetPlan
from unshard.sync.ledger import Entry, Ledger, add_up, entry_of
from unshard.sync.merge import Chunk, Statement
from unshard.sync.missing import EXAMPLE_LENGTH, example_of, first_missing
from unshard.target.missing import Missed, missing_of, note_missing
from unshard.target.receipts import FENCED_OUT, advance_statement, chunks_done
from unshard.target.retrying import on_target
from unshard.target.writer import KeptWriter

DUPLICATE = 1062
NO_TABLE = 1146
T = TypeVar("T")
_COUNTS = re.compile(rb"Records: (\d+) +Duplicates: (\d+)")


class _InDoubtError(Exception):
    """The connection was lost in a COMMIT without a receipt: only safe mode can apply the chunk again."""

    def __init__(self, failure: UnshardError) -> None:
        super().__init__(str(failure))
        self.failure = failure


def apply(chunks: Iterable[Chunk], plan: BatchPlan, part: int, before: int = 0) -> tuple[Ledger, int]:
    """Apply the chunks in order; what was done, and the last chunk's number (`before` where there is none).

    May run again at any time: done chunks are skipped.

    Raises SyncError: SYNC-001 for a zombie attempt, SYNC-003 for a duplicate key, SYNC-004 for a row that the
    target refuses, SYNC-048 for one that is not found, where the plan says so; TargetError when the target stays out
    of reach.
    """
    done, missed = _applied_before(plan, part)
    last = before
    ledgers: list[Ledger] = []
    named: set[int] = set()
    for chunk in chunks:
        if chunk.number <= done:
            ledgers.append(_counted(chunk, missed, plan))
        else:
            ledgers.append(_apply_chunk(chunk, plan, part, frozenset(named)))
        named.update(target for target, entry in ledgers[-1].items() if entry.example)
        last = chunk.number
    return add_up(ledgers), last


def _counted(chunk: Chunk, missed: Missed, plan: BatchPlan) -> Ledger:
    """The ledger of a chunk that an earlier attempt applied, with what that one did not find."""
    applied = add_up({statement.target: entry_of(statement.op, statement.rows)} for statement in chunk.statements)
    here = missed.get(chunk.number, {})
    for target in plan.targets().values():
        if str(target.name) in here:
            count, example = here[str(target.name)]
            applied[target.id] += Entry(missing=count, example=example)
    return applied


def _applied_before(plan: BatchPlan, part: int) -> tuple[int, Missed]:
    """How many chunks of this batch the partition applied in earlier attempts, and what they did not find."""

    if not plan.receipts:
        return 0, {}

    def ask(connection: Any) -> tuple[int, Missed]:
        done = chunks_done(connection, plan.meta, plan.source, part, plan.epoch, plan.batch_id)
        return done, missing_of(connection, plan.meta, plan.source, part, plan.batch_id) if done else {}

    return _persisting(plan, part, ask)


def _apply_chunk(chunk: Chunk, plan: BatchPlan, part: int, named: frozenset[int]) -> Ledger:
    try:
        return _persisting(plan, part, lambda connection: _attempt(connection, chunk, plan, part, named))
    except _InDoubtError as doubt:
        KeptWriter(plan.target, part).drop()
        raise doubt.failure from doubt


def _persisting(plan: BatchPlan, part: int, operation: Callable[[Any], T]) -> T:
    return on_target(KeptWriter(plan.target, part), operation, _where(plan))


def _attempt(connection: Any, chunk: Chunk, plan: BatchPlan, part: int, named: frozenset[int]) -> Ledger:
    """One transaction. A chunk that an attempt committed before its answer was lost is not applied again.

    A list of which some rows are missing is run a second time, to tell one of them, unless its target is among those
    `named` before.
    """
    reach("sync-chunk-before")
    if not _begin(connection, chunk, plan, part):
        return _counted(chunk, missing_of(connection, plan.meta, plan.source, part, plan.batch_id), plan)
    ledger = _write(connection, chunk, plan, frozenset())
    unnamed = {target for target, entry in ledger.items() if entry.missing and not entry.example} - named
    if unnamed:
        connection.query(b"ROLLBACK")
        if not _begin(connection, chunk, plan, part):
            return _counted(chunk, missing_of(connection, plan.meta, plan.source, part, plan.batch_id), plan)
        ledger = _write(connection, chunk, plan, unnamed)
    names = plan.targets()
    missed = {str(names[id].name): (entry.missing, entry.example) for id, entry in ledger.items() if entry.missing}
    if missed and plan.receipts:
        with connection.cursor() as cursor:
            note_missing(cursor, plan.meta, plan.source, part, plan.batch_id, chunk.number, missed)
    reach("sync-chunk-commit")
    try:
        connection.query(b"COMMIT")
    except MySQLdb.Error as error:
        if plan.receipts or error.args[0] not in LOST:
            raise
        raise _InDoubtError(server_error(error, plan.target, "target").at(source=plan.source)) from error
    reach("sync-chunk-after")
    return ledger


def _begin(connection: Any, chunk: Chunk, plan: BatchPlan, part: int) -> bool:
    """Begin the chunk's transaction with its receipt; False, and no transaction, where it is applied already."""
    connection.query(b"BEGIN")
    if not plan.receipts:
        return True
    advance = advance_statement(plan.meta, plan.source, part, plan.epoch, plan.batch_id, chunk.number)
    connection.query(advance.encode())
    if connection.affected_rows() != 1:
        connection.query(b"ROLLBACK")
        done = chunks_done(connection, plan.meta, plan.source, part, plan.epoch, plan.batch_id)
        if done < chunk.number:
            raise SyncError(FENCED_OUT, _where(plan))
        return False
    return True


def _write(connection: Any, chunk: Chunk, plan: BatchPlan, asked: Collection[int]) -> Ledger:
    """Run the chunk's statements; `asked` are targets whose rows are looked for before they are changed."""
    targets = plan.targets()
    entries: list[Ledger] = []
    for statement in chunk.statements:
        target = targets[statement.target]
        entries.append({target.id: _execute(connection, statement, target, plan, ask=target.id in asked)})
    return add_up(entries)


def _execute(connection: Any, statement: Statement, target: TargetPlan, plan: BatchPlan, *, ask: bool) -> Entry:
    keys = statement.keys
    lost = first_missing(connection, keys) if ask and keys is not None and len(keys) > 1 else None
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
    if not missing or keys is None:
        return entry_of(statement.op, statement.rows)
    if len(keys) == 1:
        lost = 0
    example = example_of(keys, lost) if lost is not None else ""
    if plan.on_missing_row == "stop" and (example or ask):
        connection.query(b"ROLLBACK")
        raise _not_found(statement, target, plan, missing, example)
    return entry_of(statement.op, statement.rows, missing, example)


def _not_found(statement: Statement, target: TargetPlan, plan: BatchPlan, missing: int, key: str) -> SyncError:
    where = Where(source=plan.source, table=str(target.name), position=f"{plan.begin} to {plan.end}")
    text = statement.sql[:EXAMPLE_LENGTH].decode("utf-8", "backslashreplace")
    cause = f"{missing} of the {statement.rows} rows of: {text}{'…' if len(statement.sql) > EXAMPLE_LENGTH else ''}"
    return SyncError(
        "SYNC-048", where, cause=cause, values={"kind": statement.op.name, "key": key or "one of the list"}
    )


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
