"""Applies binlog operators across stops and starts of a source.

A binlog operator is a user's instruction for one position of the log (`unshard ctl binlog skip`). When an error stops
the sync, its position is recorded: an operator that is given without a position is for that one. When the sync starts
again, it finishes the statement that was in progress:

| the statement was planned | pending operator | then |
|---|---|---|
| without an operator, or with the pending one | none, or this one | its plan is finished |
| without an operator, or with another one | there is one | it is planned again; what is already done of it stays |
| with an operator that was reverted since | none | it is planned again as the statement itself |
| by an owner of a sharding DDL that was taken out of the task meanwhile | either | by `Lock.begun` |
| for a merged table in optimistic mode | either | `merged_runs` |

If the process ends before the new plan is stored, the old plan is valid, and the statement is planned once more. If it
ends afterwards, the new plan is valid.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from unshard.errors import DdlError, SyncError, UnshardError, Where, bounded
from unshard.log import logger
from unshard.model.position import Location, Position
from unshard.sync.checkpoint.store import CheckpointStore
from unshard.sync.sharding.owner import operator_for
from unshard.sync.source_log.open_batch import statement_again
from unshard.sync.source_log.reader import Log
from unshard.sync.statement import Statements
from unshard.sync.statements.plan_record import StatementPlan
from unshard.target.operators import Operator, OperatorKind
from unshard.target.receipts import FENCED_OUT, OpenBatch
from unshard.target.recorded import Stopped


def finish_statement(
    statements: Statements,
    store: CheckpointStore,
    batch: OpenBatch,
    log: Log | None,
    gtid: str,
    ready: Callable[[], bool],
) -> bool:
    """Finish an open batch that is a statement, by the module's table. Return False if `ready` says to stop.

    `ready` waits until `log` holds the batch again; `gtid` is the checkpoint's set. Raises DdlError DDL-027 where part
    of the statement is on the target already and something else is to take its place, SyncError SYNC-067 where it must
    be read again without a `log`, because the source has failed over.
    """
    plan = StatementPlan.of(batch)
    begin = Position.parse(plan.intent.position_begin)
    group = statements.group_of(plan)
    if group is None and plan.group is not None:  # another source runs it, or none does
        statements.finish(batch, store)
        return True
    if group is not None and plan.handed_on:  # the source was taken out of the task, and is the owner again
        statements.execute(group, plan.end, store, again=batch)
        return True
    operator = store.operator_in(begin, batch.end) if group is None else operator_for(group, store)
    if (operator.number if operator is not None else None) == plan.operator:
        statements.finish(batch, store)
        return True
    where = Where(source=store.source, position=str(begin))
    done, steps = plan.intent.done, len(plan.intent.steps)
    if done and (operator is None or operator.op is not OperatorKind.SKIP):
        raise DdlError("DDL-027", where, values={"done": done, "all": steps})
    if group is not None:
        statements.execute(group, plan.end, store, again=batch)
        return True
    if log is None:
        raise SyncError("SYNC-067", where, values={"places": str(begin), "server": "the open batch"})
    if not ready():
        return False
    work = statement_again(log, batch, begin, gtid, store.source)
    statements.carry_out(work, Location(batch.begin, gtid), store, again=batch)
    return True


def record_stop(store: CheckpointStore, error: UnshardError, place: Position, *, sure: bool) -> None:
    """Record where the source stops and why.

    `place` is where it was at work, for an error that names no position; it is not `sure` where several transactions
    begin there. Raises SyncError SYNC-001 where another process has taken the source over: the error may be an effect
    of what that one has done, and its advice would be wrong.
    """
    if error.code == FENCED_OUT:
        return
    try:
        named = _place_of(error, place)
        store.stopped(Stopped(named or place, error.code, bounded(str(error)), sure=sure or named is not None))
    except UnshardError as failure:
        if failure.code == FENCED_OUT:
            raise failure from error
        log = logger("sync", source=store.source)
        log.warning("not put on record where it stopped", error=str(failure), after=str(error))


def refuse_pending(source: str, pending: Sequence[Operator], server: str) -> None:
    """Raise SyncError SYNC-067 where operators wait for positions in the binlog of the server before a fail-over."""
    if pending:
        values = {"places": ", ".join(str(one.position) for one in pending), "server": server}
        raise SyncError("SYNC-067", Where(source=source), values=values)


def _place_of(error: UnshardError, near: Position) -> Position | None:
    """Return the position that the error names, if it names a single one in the file of `near`."""
    file, _, offset = (error.where.position or "").rpartition(":")
    return Position(file, int(offset)) if file == near.file and offset.isdigit() else None
