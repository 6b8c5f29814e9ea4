"""Step *apply*: a partition's chunks into the target, each with its receipt in one transaction."""

from __future__ import annotations

import itertools
import re
import time
from collections.abc import Callable, Collection, Iterable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

import MySQLdb

from unshard.crash_point import reach
from unshard.errors import SyncError, TargetError, UnshardError, Where
from unshard.model.change import Op
from unshard.mysql.connection import server_error
from unshard.mysql.failures import Failure, ends_connection, failure_of, is_transient
from unshard.sync.batch.plan import BatchPlan, TargetPlan
from unshard.sync.batch.row_counts import Ledger, RowCounts, add_up, entry_of
from unshard.sync.steps.merge import Chunk, Statement
from unshard.sync.steps.missing_rows import EXAMPLE_LENGTH, example_of, first_missing
from unshard.sync.throttle import Pacer
from unshard.target.error_values import CUT, ServerAnswer, changed_value, query, query_with_error_values, with_numbers
from unshard.target.rate_limiter import RateLimiter
from unshard.target.receipts import FENCED_OUT, Applied, advance_statement, applied, note_trouble, owns
from unshard.target.row_counts import Missed, missing_of, note_missing
from unshard.target.transactions import TOO_LARGE, in_transaction, may_pass_smaller, on_target
from unshard.target.writer import KeptWriter, packet_limit

# A chunk that the target refuses as too large, in pieces: a transaction and a receipt each, in the same order.


def smaller(piece: Chunk) -> tuple[Chunk, ...]:
    """The piece statement by statement; a single statement in halves. Of one change: none. Pure."""
    bounds = [piece.start]
    for statement in piece.statements:
        if statement.rows:  # one without belongs to the change behind it
            bounds.append(bounds[-1] + statement.rows)
    if len(bounds) == 2:
        bounds.insert(1, piece.start + piece.rows // 2)
    if piece.rows == 1:
        return ()
    return tuple(piece.part(start, end) for start, end in itertools.pairwise(bounds))


DUPLICATE = 1062
NO_TABLE = 1146
CHANGED = "SYNC-073"
_REFUSED = frozenset({"SYNC-003", "SYNC-004", CHANGED})
T = TypeVar("T")
_COUNTS = re.compile(rb"Records: (\d+) +Duplicates: (\d+)")


class _InDoubtError(Exception):
    """The connection was lost in a COMMIT without a receipt: only safe mode can apply the chunk again."""

    def __init__(self, failure: UnshardError) -> None:
        super().__init__(str(failure))
        self.failure = failure


def apply(chunks: Iterable[Chunk], plan: BatchPlan, part: int, before: int, pacer: Pacer) -> tuple[Ledger, int]:
    """Apply the chunks in order; what was done, and the last chunk's number (`before` where there is none).

    May run again at any time: done chunks are skipped.

    Raises SyncError: SYNC-001 for a zombie attempt, SYNC-003 for a duplicate key, SYNC-004 for a row that the
    target refuses, SYNC-073 for one that it would store changed, SYNC-053 for one that is too large for it, SYNC-048
    for one that is not found, where the plan says so; TargetError when the target stays out of reach.
    """
    (done, step), missed = _applied_before(plan, part)
    last = before
    ledgers: list[Ledger] = []
    named: set[int] = set()
    for chunk in chunks:
        begun = time.monotonic()
        if chunk.number <= done:
            ledgers.append(_counted(chunk, missed, plan))
        elif step and chunk.number == done + 1:
            ledgers.append(_counted(chunk.part(0, step), missed, plan))
            ledgers.append(_apply_chunk(chunk.part(step, chunk.end), plan, part, frozenset(named)))
        else:
            ledgers.append(_apply_chunk(chunk, plan, part, frozenset(named)))
        if chunk.number > done:
            pacer.wait(chunk.rows, time.monotonic() - begun)
        named.update(target for ledger in ledgers[-2:] for target, entry in ledger.items() if entry.example)
        last = chunk.number
    return add_up(ledgers), last


def _counted(chunk: Chunk, missed: Missed, plan: BatchPlan) -> Ledger:
    """The ledger of a chunk that an earlier attempt applied, with what that one did not find."""
    counted = add_up({statement.target: entry_of(statement.op, statement.rows)} for statement in chunk.statements)
    ids = {str(target.name): target.id for target in plan.targets().values()}
    for (number, step), here in missed.items():
        if number == chunk.number and chunk.start <= step < chunk.end:
            for target, (count, example) in here.items():
                counted[ids[target]] += RowCounts(missing=count, example=example)
    return counted


def _applied_before(plan: BatchPlan, part: int) -> tuple[Applied, Missed]:
    """How far earlier attempts at this batch brought the partition, and what they did not find."""

    if not plan.receipts:
        return Applied(0), {}

    def ask(connection: Any) -> tuple[Applied, Missed]:
        done = applied(connection, plan.meta, plan.source, part, plan.epoch, plan.batch_id)
        return done, missing_of(connection, plan.meta, plan.source, part, plan.batch_id) if any(done) else {}

    return _persisting(plan, part, ask)


def _apply_chunk(chunk: Chunk, plan: BatchPlan, part: int, named: frozenset[int]) -> Ledger:
    """The chunk, or a piece of it, in one transaction; where that is too large for the target, in smaller ones."""
    ledgers: list[Ledger] = []
    waiting = [chunk]
    while waiting:
        piece = waiting.pop()
        try:
            attempt = partial(_attempt, piece=piece, plan=plan, part=part, named=named)
            ledger, end = _told(plan, part, _gated(attempt, plan.gate))
        except _InDoubtError as doubt:
            KeptWriter(plan.target, part).drop()
            raise doubt.failure from doubt
        except UnshardError as error:
            if error.code in _REFUSED:
                raise _with_seq(error, piece, plan, part) from error
            if not may_pass_smaller(error):
                raise
            pieces = smaller(piece)
            if not pieces and error.code != TOO_LARGE:
                raise
            if not pieces:
                # a session keeps the limit that it began with: the next attempt asks for the one of then
                KeptWriter(plan.target, part).drop()
                raise _too_large(piece, plan, error) from error
            waiting.extend(reversed(pieces))
            continue
        ledgers.append(ledger)
        if end < piece.end:
            waiting.append(piece.part(end, piece.end))
    return add_up(ledgers)


def _with_seq(error: UnshardError, piece: Chunk, plan: BatchPlan, part: int) -> UnshardError:
    """The error with the number of the first change that the target refuses alone, where one can be found.

    The changes are tried one by one in a transaction that is rolled back.
    """

    def attempt(connection: Any) -> int | None:
        connection.query(b"BEGIN")
        try:
            for number in range(piece.start, piece.end):
                try:
                    _write(connection, piece.part(number, number + 1), replace(plan, on_missing_row="warn"), ())
                except UnshardError:
                    return int(piece.seqs[number])
        finally:
            connection.query(b"ROLLBACK")
        return None

    seq = _persisting(plan, part, attempt)
    return error if seq is None else type(error)(error.code, error.where, error.cause, {**error.values, "seq": seq})


def _persisting(plan: BatchPlan, part: int, operation: Callable[[Any], T]) -> T:
    return on_target(KeptWriter(plan.target, part), operation, _where(plan), schema=plan.meta.schema)


def _told(plan: BatchPlan, part: int, operation: Callable[[Any], T]) -> T:
    """The same, with what is tried again left beside the receipt, where the status finds it."""
    troubles: list[str] = []

    def noted(connection: Any) -> T:
        if troubles and plan.receipts:
            with suppress(MySQLdb.Error):  # the operation meets the same trouble, and decides
                note_trouble(connection, plan.meta, plan.source, part, plan.epoch, plan.batch_id, troubles[-1])
        return operation(connection)

    kept = KeptWriter(plan.target, part)
    return on_target(kept, noted, _where(plan), tell=troubles.append, schema=plan.meta.schema)


def _gated(
    attempt: Callable[[Any], tuple[Ledger, int]], gate: RateLimiter | None
) -> Callable[[Any], tuple[Ledger, int]]:
    """The attempt, when the target's limits let it."""
    if gate is None:
        return attempt
    return lambda connection: gate.through(connection, attempt, lambda found: _written(found[0]))


def _written(ledger: Ledger) -> int:
    return sum(entry.applied for entry in ledger.values())


def _attempt(connection: Any, piece: Chunk, plan: BatchPlan, part: int, named: frozenset[int]) -> tuple[Ledger, int]:
    """One transaction; its ledger and the change it ends before, which may lie within the piece.

    What an attempt committed before its answer was lost is not applied again.

    A list of which some rows are missing is run a second time, to tell one of them, unless its target is among those
    `named` before.
    """
    _check_packets(connection, piece, plan)
    # TiDB checks foreign keys of rows that it has locked
    optimistic = plan.receipts and all(target.family is None for target in plan.targets().values())
    once = partial(_transaction, connection, piece, plan, part, named)
    return in_transaction(connection, once, may_be_optimistic=optimistic)


def _transaction(
    connection: Any, piece: Chunk, plan: BatchPlan, part: int, named: frozenset[int], begin: bytes
) -> tuple[Ledger, int]:
    """As `_attempt`, begun by that statement."""
    reach("sync-chunk-before")
    if done := _begin(connection, begin, piece, plan, part):
        return _counted_anew(connection, piece.part(piece.start, done), plan, part), done
    ledger = _write(connection, piece, plan, frozenset())
    unnamed = {target for target, entry in ledger.items() if entry.missing and not entry.example} - named
    if unnamed:
        connection.query(b"ROLLBACK")
        if done := _begin(connection, begin, piece, plan, part):
            return _counted_anew(connection, piece.part(piece.start, done), plan, part), done
        ledger = _write(connection, piece, plan, unnamed)
    names = plan.targets()
    missed = {str(names[id].name): (entry.missing, entry.example) for id, entry in ledger.items() if entry.missing}
    if missed and plan.receipts:
        with connection.cursor() as cursor:
            note_missing(cursor, plan.meta, plan.source, part, plan.batch_id, piece.number, piece.start, missed)
    reach("sync-chunk-commit")
    if not piece.whole:
        reach("sync-piece-commit")
    try:
        connection.query(b"COMMIT")
    except MySQLdb.Error as error:
        if plan.receipts or not ends_connection(error):
            raise
        raise _InDoubtError(server_error(error, plan.target, "target").at(source=plan.source)) from error
    reach("sync-chunk-after")
    if not piece.whole:
        reach("sync-piece-after")
    return ledger, piece.end


def _counted_anew(connection: Any, piece: Chunk, plan: BatchPlan, part: int) -> Ledger:
    return _counted(piece, missing_of(connection, plan.meta, plan.source, part, plan.batch_id), plan)


def _check_packets(connection: Any, piece: Chunk, plan: BatchPlan) -> None:
    """Raise TargetError TARGET-007 for a statement that the server would cut the connection for."""
    longest, limit = max(len(statement.sql) for statement in piece.statements), packet_limit(connection)
    if longest >= limit:
        raise TargetError(TOO_LARGE, _where(plan), f"a statement of {longest} bytes; max_allowed_packet takes {limit}")


def _begin(connection: Any, begin: bytes, piece: Chunk, plan: BatchPlan, part: int) -> int:
    """Begin the transaction with its receipt; 0. Or none, and the change before which all of it is applied already."""
    connection.query(begin)
    if not plan.receipts:
        if not owns(connection, plan.meta, plan.source, plan.epoch):
            connection.query(b"ROLLBACK")
            raise SyncError(FENCED_OUT, _where(plan))
        return 0
    before = Applied(piece.number - 1, piece.start)
    after = Applied(piece.number) if piece.last else Applied(piece.number - 1, piece.end)
    advance = advance_statement(plan.meta, plan.source, part, plan.epoch, plan.batch_id, before, after)
    connection.query(advance.encode())
    if connection.affected_rows() != 1:
        connection.query(b"ROLLBACK")
        done = applied(connection, plan.meta, plan.source, part, plan.epoch, plan.batch_id)
        if done <= before:
            raise SyncError(FENCED_OUT, _where(plan))
        return piece.end if done >= after else done.step
    return 0


def _write(connection: Any, piece: Chunk, plan: BatchPlan, asked: Collection[int]) -> Ledger:
    """Run the statements; `asked` are targets whose rows are looked for before they are changed."""
    targets = plan.targets()
    entries: list[Ledger] = []
    for statement in piece.statements:
        target = targets[statement.target]
        entries.append({target.id: _execute(connection, statement, target, plan, ask=target.id in asked)})
    return add_up(entries)


def _execute(connection: Any, statement: Statement, target: TargetPlan, plan: BatchPlan, *, ask: bool) -> RowCounts:
    keys = statement.keys
    lost = first_missing(connection, keys) if ask and keys is not None and len(keys) > 1 else None
    try:
        answer = _run(connection, statement, target)
    except MySQLdb.Error as error:
        if is_transient(error) or failure_of(error) is Failure.TOO_LARGE:
            raise
        connection.query(b"ROLLBACK")
        raise _refusal(error, target, plan) from error
    if answer.warnings and statement.op is not Op.DELETE:
        _refuse_changed(connection, statement, target, plan)
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


def _run(connection: Any, statement: Statement, target: TargetPlan) -> ServerAnswer:
    """What the server says; of error values it may complain. Raises MySQLdb.Error; the statement did nothing then."""
    sql = with_numbers(statement.sql, target.zeros) if target.zeros and statement.op is Op.UPDATE else statement.sql
    try:
        return query(connection, sql)
    except MySQLdb.Error as error:
        if error.args[0] != CUT or not target.enums:
            raise
        _refuse_shared(connection, statement)
        answer = query_with_error_values(connection, sql, target.enums)
        if answer is None:
            raise
        return answer._replace(warnings=0)


def _refuse_changed(connection: Any, statement: Statement, target: TargetPlan, plan: BatchPlan) -> None:
    """Roll back and raise SyncError SYNC-073 where the server has told that it stored another value than it got."""
    _refuse_shared(connection, statement)
    if cause := changed_value(connection):
        connection.query(b"ROLLBACK")
        where = Where(source=plan.source, table=str(target.name), position=f"{plan.begin} to {plan.end}")
        raise SyncError(CHANGED, where, cause=cause)


def _refuse_shared(connection: Any, statement: Statement) -> None:
    """Have statements that share a text run one by one: it can't tell their warnings."""
    if statement.op is Op.UPDATE and statement.rows > 1 and not statement.upsert:
        connection.query(b"ROLLBACK")
        raise TargetError(TOO_LARGE, cause="statements that share a text can't tell their warnings")


def _counts(info: bytes) -> tuple[int, int]:
    """Records and duplicates of a multi-row INSERT."""
    match = _COUNTS.search(info)
    return (int(match[1]), int(match[2])) if match else (0, 0)


def _refusal(error: MySQLdb.Error, target: TargetPlan, plan: BatchPlan) -> UnshardError:
    number, text = error.args[0], error.args[-1]
    where = Where(source=plan.source, table=str(target.name), position=f"{plan.begin} to {plan.end}")
    code = {DUPLICATE: "SYNC-003", NO_TABLE: "SYNC-010"}.get(number, "SYNC-004")
    return SyncError(code, where, cause=f"{number}: {text}")


def _too_large(piece: Chunk, plan: BatchPlan, error: UnshardError) -> SyncError:
    target = plan.targets()[piece.statements[-1].target]
    where = Where(source=plan.source, table=str(target.name), position=f"{plan.begin} to {plan.end}")
    return SyncError("SYNC-053", where, cause=error.cause)


def _where(plan: BatchPlan) -> Where:
    return Where(source=plan.source, position=f"{plan.begin} to {plan.end}")
