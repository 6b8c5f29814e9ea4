"""Receipts: how a batch is applied exactly once.

| step | who | in one transaction |
|---|---|---|
| claim | driver, at start | `epoch` goes up by one: every older attempt is a zombie from here. An open batch of rows \
of which nothing is applied is given up |
| open | driver | the plan is written, every partition row is set to (epoch, batch, chunk 0) |
| chunk k | a partition | the row moves from k-1 to k, and the chunk's rows are written |
| piece of k | a partition, where k is too large | `step` moves on by the changes written; the last piece as *chunk* |
| close | driver | the checkpoint moves to the batch's end, the batch is marked done |
| any other write | driver | `moves` goes up by one: a target that has lost the write is told by that |

| the process dies | then |
|---|---|
| before *open* | there is no batch |
| between *open* and the first chunk | the next start plans the batch anew, by the rules that it has |
| between the first chunk and *close* | the next start finds the open plan; each partition skips the chunks that its \
row counts, and the changes of the next chunk that it counts |
| after *close* | the next batch begins |
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from unshard.errors import SyncError, Where
from unshard.model.position import Position
from unshard.model.table import quote_text
from unshard.mysql.tidb import is_tidb
from unshard.target.meta import MetaTables
from unshard.target.transactions import upsert

FENCED_OUT = "SYNC-001"
OLDER = "SYNC-079"
"""The target has lost commits that it had confirmed, in a fail-over or a power cut."""
OLD_ORDER = "SYNC-071"
BATCH_COLUMNS = "batch_id, begin_name, begin_pos, end_name, end_pos, plan, state"
"""The columns that `open_batch_of` takes."""
FIRST_EPOCH = "FLOOR(UNIX_TIMESTAMP(NOW(6)) * 1000)"
"""The first epoch of a source, in milliseconds since 1970.

A task that was forgotten and began anew must not take attempts of its former runs for its own.
"""


@dataclass(frozen=True, slots=True)
class OpenBatch:
    """The batch that a source has planned and not closed, over the log from `begin` to `end`.

    `plan` is the JSON object that was written.
    """

    batch_id: int
    begin: Position
    end: Position
    plan: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Order:
    """The master's order to claim a source.

    `epoch` grows with each order that the store `cluster` gives out. Orders of different stores are not compared,
    because a new store begins with small numbers. `worker` is the name of the worker that got the order.
    """

    cluster: int
    epoch: int
    worker: str


@dataclass(frozen=True, slots=True)
class Claim:
    """The driver's state after `claim`: its epoch, the last batch's number, that batch if open, `moves` (`hold`)."""

    epoch: int
    batch_id: int
    open_batch: OpenBatch | None
    moves: int = 0


class Applied(NamedTuple):
    """The progress of a partition in its batch: chunks done, and changes done of the next chunk where that is split."""

    chunks: int
    step: int = 0


def claim(connection: Any, meta: MetaTables, source: str, order: Order | None = None) -> Claim:
    """Claim the source: one transaction that raises its epoch. Called by a driver once at its start.

    A batch of rows of which nothing is applied is closed: a user whom it stopped may correct the rules and go on.
    Without an `order`, a human has started the process. Waits for transactions of earlier processes. Raises SyncError
    SYNC-071 where a process with a later order of the same master has claimed before: this process was frozen
    meanwhile.
    """
    from unshard.target.silent_sessions import claiming  # a worker process claims nothing

    with claiming(connection, meta.schema), connection.cursor() as cursor:
        cursor.execute("BEGIN")
        if order is not None:
            _refuse_older(cursor, meta, source, order)
        upsert(
            cursor,
            f"INSERT INTO {meta.batch} (source, epoch, batch_id, plan, state)"
            f" VALUES (%s, {FIRST_EPOCH}, 0, '{{}}', 'done')"
            " ON DUPLICATE KEY UPDATE epoch = epoch + 1",
            (source,),
        )
        columns = f"epoch, moves, {BATCH_COLUMNS}"
        cursor.execute(f"SELECT {columns} FROM {meta.batch} WHERE source = %s FOR UPDATE", (source,))
        epoch, moves, *row = cursor.fetchone()
        batch_id, found = row[0], open_batch_of(row)
        cursor.execute(f"UPDATE {meta.partition} SET epoch = %s WHERE source = %s", (epoch, source))
        _record(cursor, meta, source, order)
        if found is not None and found.plan["kind"] == "rows" and not is_begun(cursor, meta, source, batch_id):
            mark_done(cursor, meta, source, epoch, batch_id)
            found = None
        cursor.execute("COMMIT")
    return Claim(epoch, batch_id, found, moves)


def _refuse_older(cursor: Any, meta: MetaTables, source: str, order: Order) -> None:
    cursor.execute(
        f"SELECT order_epoch, worker FROM {meta.batch}"
        " WHERE source = %s AND cluster = %s AND order_epoch > %s FOR UPDATE",
        (source, order.cluster, order.epoch),
    )
    found = cursor.fetchone()
    if found is not None:
        cursor.execute("ROLLBACK")
        values = {"worker": found[1] or "`unshard run`", "epoch": found[0], "own": order.epoch}
        raise SyncError(OLD_ORDER, Where(source=source), values=values)


def _record(cursor: Any, meta: MetaTables, source: str, order: Order | None) -> None:
    """Record who has the source now. A human's start leaves the last order recorded, to refuse older ones."""
    if order is None:
        cursor.execute(f"UPDATE {meta.batch} SET worker = '' WHERE source = %s", (source,))
    else:
        cursor.execute(
            f"UPDATE {meta.batch} SET cluster = %s, order_epoch = %s, worker = %s WHERE source = %s",
            (order.cluster, order.epoch, order.worker[:255], source),
        )


def open_batch_of(row: Sequence[Any]) -> OpenBatch | None:
    """Return the batch of a row with `BATCH_COLUMNS`, None where it is closed."""
    batch_id, begin_name, begin_pos, end_name, end_pos, plan, state = row
    if state != "open":
        return None
    begin, end = Position(begin_name, int(begin_pos)), Position(end_name, int(end_pos))
    return OpenBatch(batch_id, begin, end, json.loads(plan))


def is_begun(cursor: Any, meta: MetaTables, source: str, batch_id: int) -> bool:
    """Return whether any change of the batch is applied.

    Called where nothing more can be applied: after the epoch is raised, or while the source's row is locked and an
    error has stopped the source.
    """
    # FOR UPDATE: else TiDB answers as of the transaction's begin, and misses what a zombie had just committed
    cursor.execute(
        f"SELECT part FROM {meta.partition} WHERE source = %s AND batch_id = %s AND (chunk > 0 OR step > 0)"
        " LIMIT 1 FOR UPDATE",
        (source, batch_id),
    )
    return cursor.fetchone() is not None


def open_batch(
    connection: Any,
    meta: MetaTables,
    source: str,
    epoch: int,
    batch: OpenBatch,
    partitions: int,
    operators: Sequence[int] | None = None,
    moves: int | None = None,
) -> bool:
    """Write the plan and reset every partition's receipt.

    `operators` are the numbers of the pending ones by which the batch is planned. Returns False, and writes nothing,
    where others are pending; None stands for a plan that does not depend on them. An operator that is given or taken
    back meanwhile comes wholly before or wholly after, because that locks the source's row too (`target.operators`).

    Raises SyncError SYNC-001 if another driver has claimed, SYNC-079 if the batch before is not the last one that the
    target has, or is not closed there, or if the target has another number of `moves`.
    """
    where = (
        "source = %s AND epoch = %s AND (batch_id = %s AND (state = 'done' OR plan LIKE '%%\"handed_on\": true%%')"
        f" OR batch_id = %s AND state = 'open'){_after(moves)}"  # an attempt whose answer was lost has opened it
    )
    found = source, epoch, batch.batch_id - 1, batch.batch_id
    begin, end = batch.begin, batch.end
    with connection.cursor() as cursor:
        cursor.execute("BEGIN")
        cursor.execute(
            f"UPDATE {meta.batch} SET batch_id = %s, begin_name = %s, begin_pos = %s, end_name = %s, end_pos = %s,"
            f" plan = %s, state = 'open' WHERE {where}{_by(meta, operators)}",
            (batch.batch_id, begin.file, begin.offset, end.file, end.offset, json.dumps(batch.plan), *found),
        )
        if not _written(cursor, source, meta, epoch, where, found):
            return False
        cursor.executemany(
            f"REPLACE INTO {meta.partition} (source, part, epoch, batch_id, chunk, step) VALUES (%s, %s, %s, %s, 0, 0)",
            [(source, part, epoch, batch.batch_id) for part in range(partitions)],
        )
        cursor.execute("COMMIT")
    return True


def note_plan(
    connection: Any,
    meta: MetaTables,
    source: str,
    epoch: int,
    batch_id: int,
    plan: dict[str, Any],
    operators: Sequence[int] | None = None,
) -> bool:
    """Replace the plan of the open batch; `operators` and the result are those of `open_batch`.

    Raises SyncError SYNC-001 where another driver has claimed, SYNC-079 where the target does not have the batch open.
    """
    where, found = "source = %s AND epoch = %s AND batch_id = %s AND state = 'open'", (source, epoch, batch_id)
    with connection.cursor() as cursor:
        cursor.execute(
            f"UPDATE {meta.batch} SET plan = %s WHERE {where}{_by(meta, operators)}", (json.dumps(plan), *found)
        )
        return _written(cursor, source, meta, epoch, where, found)


def hand_on(cursor: Any, meta: MetaTables, source: str) -> dict[str, Any] | None:
    """Return the plan of the source's open sharding DDL and mark it as handed on; None where there is none.

    The source no longer finishes that DDL. Runs in the transaction that gives it to another source, after a `claim`.
    """
    cursor.execute(f"SELECT plan FROM {meta.batch} WHERE source = %s AND state = 'open' FOR UPDATE", (source,))
    found = cursor.fetchone()
    plan: dict[str, Any] = json.loads(found[0]) if found else {}
    if plan.get("kind") != "ddl" or "group" not in plan or plan.get("handed_on"):
        return None
    cursor.execute(
        f"UPDATE {meta.batch} SET plan = %s WHERE source = %s", (json.dumps({**plan, "handed_on": True}), source)
    )
    return plan


def mark_done(cursor: Any, meta: MetaTables, source: str, epoch: int, batch_id: int, chunks: int | None = None) -> None:
    """Close the batch; the caller's transaction moves the checkpoint too.

    `chunks`: how many of them all partitions have applied, where that is known. Raises SyncError SYNC-001 for a zombie,
    SYNC-079 where the receipts tell of fewer, or the target does not have the batch open.
    """
    told = f" AND %s = (SELECT COALESCE(SUM(chunk), 0) FROM {meta.partition} WHERE source = %s AND batch_id = %s)"
    cursor.execute(
        f"UPDATE {meta.batch} SET state = 'done', plan = '{{}}'"
        " WHERE source = %s AND epoch = %s AND batch_id = %s AND state = 'open'" + (told if chunks is not None else ""),
        (source, epoch, batch_id, *((chunks, source, batch_id) if chunks is not None else ())),
    )
    _own_or_rollback(cursor, source, meta, epoch)


def hold(
    cursor: Any, meta: MetaTables, source: str, epoch: int, batch_id: int | None = None, moves: int | None = None
) -> None:
    """Check that this driver still owns the source, and lock that until the caller's transaction ends.

    `batch_id`: the last batch that it has opened. `moves`: how many transactions of the source the target has
    confirmed, without those of batches; this one is added. Raises SyncError SYNC-001 where another owns the source,
    SYNC-079 where the target has another last batch, or other moves.
    """
    last = "" if batch_id is None else f" AND batch_id = {batch_id}"
    count = "" if moves is None else f", moves = {moves + 1}"
    where = f"source = %s AND epoch = %s{last}{_after(moves)}"
    cursor.execute(f"UPDATE {meta.batch} SET epoch = epoch{count} WHERE {where}", (source, epoch))
    _own_or_rollback(cursor, source, meta, epoch)


def owns(connection: Any, meta: MetaTables, source: str, epoch: int) -> bool:
    """Return whether this driver still owns the source, for writes that have no receipt.

    Called in the transaction that writes. No other driver can claim the source before that ends. Into TiDB, which has
    no shared locks, only the beginning of the transaction is safe.
    """
    shared = "" if is_tidb(connection) else " LOCK IN SHARE MODE"
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT 1 FROM {meta.batch} WHERE source = %s AND epoch = %s{shared}", (source, epoch))
        return cursor.fetchone() is not None


def applied(connection: Any, meta: MetaTables, source: str, part: int, epoch: int, batch_id: int) -> Applied:
    """Return how far the partition is in this batch.

    Raises SyncError SYNC-001 for a zombie, and for a late attempt of an earlier batch; SYNC-079 where the target does
    not know the batch or the claim any more.
    """
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT chunk, step, epoch, batch_id FROM {meta.partition} WHERE source = %s AND part = %s", (source, part)
        )
        chunk, step, claimed, last = cursor.fetchone() or (0, 0, epoch, 0)
    if claimed < epoch or (claimed == epoch and last < batch_id):
        raise SyncError(OLDER, Where(source=source), cause=f"partition {part} is in batch {last} of {claimed} there")
    if claimed != epoch or last > batch_id:
        raise _fenced_out(source)
    return Applied(int(chunk), int(step))


def advance_statement(
    meta: MetaTables, source: str, part: int, epoch: int, batch_id: int, before: Applied, after: Applied
) -> str:
    """Return the UPDATE that must hit one row before the changes between `before` and `after` may be written.

    Both run in the same transaction. The UPDATE also records the transaction's session, for `target.waits`.
    """
    return (
        f"UPDATE {meta.partition} SET chunk = {after.chunks}, step = {after.step},"
        " writer = CONNECTION_ID(), trouble = ''"
        f" WHERE source = {quote_text(source)} AND part = {part} AND epoch = {epoch} AND batch_id = {batch_id}"
        f" AND chunk = {before.chunks} AND step = {before.step}"
    )


def note_trouble(
    connection: Any, meta: MetaTables, source: str, part: int, epoch: int, batch_id: int, trouble: str
) -> None:
    """Record, for the status alone, what this session tries again, until the partition's next advance. No zombie can.

    Runs outside of a transaction. Raises MySQLdb.Error.
    """
    with connection.cursor() as cursor:
        cursor.execute(
            f"UPDATE {meta.partition} SET writer = CONNECTION_ID(), trouble = %s"
            " WHERE source = %s AND part = %s AND epoch = %s AND batch_id = %s",
            (trouble[:500], source, part, epoch, batch_id),
        )


def _after(moves: int | None) -> str:
    """Return the condition that the target has just so many moves; one more where the answer to its COMMIT was lost."""
    return "" if moves is None else f" AND moves IN ({moves}, {moves + 1})"


def _by(meta: MetaTables, operators: Sequence[int] | None) -> str:
    """Return the condition that just these operators of the batch's source are pending.

    The subquery names the batch's row, so that it is read after that row is locked.
    """
    if operators is None:
        return ""
    numbers = ", ".join(map(str, (0, *operators)))  # no row has the number 0
    return (
        f" AND {len(operators)} = (SELECT COALESCE(SUM(CASE WHEN number IN ({numbers}) THEN 1 ELSE -1 END), 0)"
        f" FROM {meta.operator} AS pending WHERE pending.source = {meta.batch}.source AND pending.state = 'pending')"
    )


def _written(cursor: Any, source: str, meta: MetaTables, epoch: int, where: str, values: Sequence[Any]) -> bool:
    """Return whether the last statement has changed the source's row, which it found by `where`; else roll back.

    False where the row is there, so that only other operators are in the way; else it raises as `_own_or_rollback`.
    """
    if cursor.rowcount == 1:
        return True
    cursor.execute("ROLLBACK")
    cursor.execute(f"SELECT 1 FROM {meta.batch} WHERE {where}", values)
    if cursor.fetchone() is not None:
        return False
    _own_or_rollback(cursor, source, meta, epoch)
    return True


def _own_or_rollback(cursor: Any, source: str, meta: MetaTables, epoch: int) -> None:
    """Roll back and raise where the last statement has not changed the source's row."""
    if cursor.rowcount == 1:
        return
    cursor.execute("ROLLBACK")
    cursor.execute(f"SELECT epoch, batch_id, state, moves FROM {meta.batch} WHERE source = %s", (source,))
    found = cursor.fetchone()
    if found is None or found[0] > epoch:
        raise _fenced_out(source)
    cause = f"its last batch is {found[1]}, which is {found[2]}; epoch {found[0]}, moves {found[3]}"
    raise SyncError(OLDER, Where(source=source), cause=cause)


def _fenced_out(source: str) -> SyncError:
    return SyncError(FENCED_OUT, Where(source=source))
