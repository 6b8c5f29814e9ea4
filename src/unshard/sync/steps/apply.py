"""Step *apply*: write a partition's chunks into the target, each with its receipt in one transaction."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import MySQLdb

from unshard.crash_point import reach
from unshard.errors import SyncError, TargetError, UnshardError, Where
from unshard.mysql.connection import server_error
from unshard.mysql.failures import ends_connection
from unshard.sync.batch.plan import BatchPlan
from unshard.sync.batch.row_counts import Ledger, RowCounts, add_up, entry_of
from unshard.sync.changes.merge import Chunk
from unshard.sync.steps.execute import CHANGED, write_statements
from unshard.target.receipts import FENCED_OUT, OLDER, Applied, advance_statement, applied, note_trouble, owns
from unshard.target.transactions import TOO_LARGE, in_transaction, may_pass_smaller, on_target
from unshard.target.writer import KeptWriter, packet_limit

if TYPE_CHECKING:  # few targets are limited, and few rows are missing
    from unshard.sync.steps.pacer import Pacer
    from unshard.target.rate_limiter import RateLimiter
    from unshard.target.row_counts import Missed

_REFUSED = frozenset({"SYNC-003", "SYNC-004", CHANGED})
T = TypeVar("T")


class _InDoubtError(Exception):
    """Raised where the connection was lost in a COMMIT without a receipt: only safe mode can apply the chunk again."""

    def __init__(self, failure: UnshardError) -> None:
        super().__init__(str(failure))
        self.failure = failure


def apply(chunks: Iterable[Chunk], plan: BatchPlan, part: int, before: int, pacer: Pacer | None) -> tuple[Ledger, int]:
    """Apply the chunks in order. Return the ledger, and the last chunk's number (`before` where there is none).

    May run again at any time: chunks that are done are skipped.

    Raises SyncError: SYNC-001 for an attempt of a driver that has lost the source, SYNC-003 for a duplicate key,
    SYNC-004 for a row that the target refuses, SYNC-073 for one that it would store changed, SYNC-053 for one that is
    too large for it, SYNC-048 for one that is not found, where the plan says so; TargetError when the target stays out
    of reach.
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
        if pacer is not None and chunk.number > done:
            pacer.wait(chunk.rows, time.monotonic() - begun)
        named.update(target for ledger in ledgers[-2:] for target, entry in ledger.items() if entry.example)
        last = chunk.number
    return add_up(ledgers), last


def writer_of(plan: BatchPlan, part: int) -> KeptWriter:
    """Return the connection that writes a partition of the batch."""
    return KeptWriter(plan.target, part, plan.writer)


def _counted(chunk: Chunk, missed: Missed, plan: BatchPlan) -> Ledger:
    """Return the ledger of a chunk that an earlier attempt applied, with the missing rows that it recorded."""
    counted = add_up({statement.target: entry_of(statement.op, statement.rows)} for statement in chunk.statements)
    ids = {str(target.name): target.id for target in plan.targets().values()}
    for (number, step), here in missed.items():
        if number == chunk.number and chunk.start <= step < chunk.end:
            for target, (count, example) in here.items():
                counted[ids[target]] += RowCounts(missing=count, example=example)
    return counted


def _applied_before(plan: BatchPlan, part: int) -> tuple[Applied, Missed]:
    """Return how far earlier attempts at this batch brought the partition, and the missing rows that they recorded."""
    if not plan.receipts:
        return Applied(0), {}

    def ask(connection: Any) -> tuple[Applied, Missed]:
        done = applied(connection, plan.meta, plan.source, part, plan.epoch, plan.batch_id)
        return done, _missed(connection, plan, part) if any(done) else {}

    return _persisting(plan, part, ask)


def _apply_chunk(chunk: Chunk, plan: BatchPlan, part: int, named: frozenset[int]) -> Ledger:
    """Apply the chunk, or a piece of it, in one transaction; in smaller ones where that is too large for the target."""
    ledgers: list[Ledger] = []
    waiting = [chunk]
    refused: Chunk | None = None
    while waiting:
        piece = waiting.pop()
        try:
            attempt = partial(_attempt, piece=piece, plan=plan, part=part, named=named)
            ledger, end = _told(plan, part, _gated(attempt, plan.gate))
        except _InDoubtError as doubt:
            writer_of(plan, part).drop()
            raise doubt.failure from doubt
        except UnshardError as error:
            if error.code in _REFUSED:
                raise _with_seq(error, piece, plan, part) from error
            if not may_pass_smaller(error):
                raise
            pieces = piece.smaller()
            if not pieces and error.code != TOO_LARGE:
                raise
            if not pieces:
                # a session keeps the limits that the server had when it began: a new one may have higher ones
                writer_of(plan, part).drop()
                if piece == refused:
                    raise _too_large(piece, plan, error) from error
                refused, pieces = piece, (piece,)
            waiting.extend(reversed(pieces))
            continue
        ledgers.append(ledger)
        if end < piece.end:
            waiting.append(piece.part(end, piece.end))
    return add_up(ledgers)


def _with_seq(error: UnshardError, piece: Chunk, plan: BatchPlan, part: int) -> UnshardError:
    """Return the error with the number of the first change that the target refuses by itself, if one is found.

    The changes are tried one by one in a transaction that is rolled back.
    """
    lenient = replace(plan, on_missing_row="warn")

    def attempt(connection: Any) -> int | None:
        connection.query(b"BEGIN")
        try:
            for number in range(piece.start, piece.end):
                try:
                    write_statements(connection, piece.part(number, number + 1), lenient, ())
                except UnshardError:
                    return int(piece.seqs[number])
        finally:
            connection.query(b"ROLLBACK")
        return None

    seq = _persisting(plan, part, attempt)
    return error if seq is None else type(error)(error.code, error.where, error.cause, {**error.values, "seq": seq})


def _persisting(plan: BatchPlan, part: int, operation: Callable[[Any], T]) -> T:
    return on_target(writer_of(plan, part), operation, _where(plan), schema=plan.meta.schema)


def _told(plan: BatchPlan, part: int, operation: Callable[[Any], T]) -> T:
    """Run `operation` as `_persisting` does, and record beside the receipt what is tried again, for the status."""
    troubles: list[str] = []

    def noted(connection: Any) -> T:
        if troubles and plan.receipts:
            with suppress(MySQLdb.Error):  # the operation meets the same trouble, and decides
                note_trouble(connection, plan.meta, plan.source, part, plan.epoch, plan.batch_id, troubles[-1])
        return operation(connection)

    kept = writer_of(plan, part)
    return on_target(kept, noted, _where(plan), tell=troubles.append, schema=plan.meta.schema)


def _gated(
    attempt: Callable[[Any], tuple[Ledger, int]], gate: RateLimiter | None
) -> Callable[[Any], tuple[Ledger, int]]:
    """Return the attempt, which then waits for the target's limits."""
    if gate is None:
        return attempt
    return lambda connection: gate.through(connection, attempt, lambda found: _written(found[0]))


def _written(ledger: Ledger) -> int:
    return sum(entry.applied for entry in ledger.values())


def _attempt(connection: Any, piece: Chunk, plan: BatchPlan, part: int, named: frozenset[int]) -> tuple[Ledger, int]:
    """Apply the piece in one transaction. Return its ledger and the change before which it ends.

    That change may lie within the piece. What an attempt has committed before its answer was lost is not applied again.
    A list with missing rows is run a second time, to find one of them, unless its target is in `named`, which have an
    example already.
    """
    _check_packets(connection, piece, plan)
    # TiDB checks foreign keys of rows that it has locked
    optimistic = plan.receipts and all(target.family is None for target in plan.targets().values())
    once = partial(_transaction, connection, piece, plan, part, named)
    return in_transaction(connection, once, may_be_optimistic=optimistic)


def _transaction(
    connection: Any, piece: Chunk, plan: BatchPlan, part: int, named: frozenset[int], begin: bytes
) -> tuple[Ledger, int]:
    """Do as `_attempt` in a transaction that the statement `begin` begins."""
    reach("sync-chunk-before")
    if done := _begin(connection, begin, piece, plan, part):
        return _counted_anew(connection, piece.part(piece.start, done), plan, part), done
    ledger = write_statements(connection, piece, plan, frozenset())
    unnamed = {target for target, entry in ledger.items() if entry.missing and not entry.example} - named
    if unnamed:
        connection.query(b"ROLLBACK")
        if done := _begin(connection, begin, piece, plan, part):
            return _counted_anew(connection, piece.part(piece.start, done), plan, part), done
        ledger = write_statements(connection, piece, plan, unnamed)
    names = plan.targets()
    missed = {str(names[id].name): (entry.missing, entry.example) for id, entry in ledger.items() if entry.missing}
    if missed and plan.receipts:
        from unshard.target.row_counts import note_missing

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
    return _counted(piece, _missed(connection, plan, part), plan)


def _missed(connection: Any, plan: BatchPlan, part: int) -> Missed:
    from unshard.target.row_counts import missing_of

    return missing_of(connection, plan.meta, plan.source, part, plan.batch_id)


def _check_packets(connection: Any, piece: Chunk, plan: BatchPlan) -> None:
    """Raise TargetError TARGET-007 for a statement so long that the server would close the connection."""
    longest, limit = max(len(statement.sql) for statement in piece.statements), packet_limit(connection)
    if longest >= limit:
        raise TargetError(TOO_LARGE, _where(plan), f"a statement of {longest} bytes; max_allowed_packet takes {limit}")


def _begin(connection: Any, begin: bytes, piece: Chunk, plan: BatchPlan, part: int) -> int:
    """Begin the transaction with its receipt and return 0.

    Where all of the piece or its beginning is applied already, roll back and return the change before which it is.
    Raises SyncError SYNC-001 for an attempt of a driver that has lost the source.
    """
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
            raise SyncError(OLDER if done < before else FENCED_OUT, _where(plan))
        return piece.end if done >= after else done.step
    return 0


def _too_large(piece: Chunk, plan: BatchPlan, error: UnshardError) -> SyncError:
    target = plan.targets()[piece.statements[-1].target]
    where = Where(source=plan.source, table=str(target.name), position=f"{plan.begin} to {plan.end}")
    return SyncError("SYNC-053", where, cause=error.cause)


def _where(plan: BatchPlan) -> Where:
    return Where(source=plan.source, position=f"{plan.begin} to {plan.end}")
