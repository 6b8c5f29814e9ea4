"""`binlog`: writes a binlog operator to the target, a user's instruction for one position of a task's binlog."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from unshard.api.verbs import Binlog
from unshard.ddl.context import Context
from unshard.ddl.pieces import parse_given, split_given
from unshard.errors import SyncError, Where
from unshard.model.position import Position
from unshard.mysql.connection import session
from unshard.mysql.endpoint import to_endpoint
from unshard.operate.subject import Subject, wrong_use
from unshard.target.meta import MetaTables
from unshard.target.operators import OperatorKind, give, load_operators, revert
from unshard.target.recorded import Recorded, read_recorded
from unshard.target.sharding_groups import load_groups

LATER = "takes effect when the task is started again, or gets there"
"""When an operator takes effect, for a task whose process is not known."""
UNDER_WAY = ", but the batch of this position is under way: it is used only if the task stops before the batch is done"
"""The limit of the promise of an operator that is given while its position is being applied."""

_FOLDER = re.compile(r"\|\d+(?=\.\d+$)")  # DM's name for a file of its relay log: `mysql-bin|000001.000003`


def answer_binlog(
    subject: Subject, request: Binlog, who: str, effect: Callable[[str], str] = lambda source: LATER
) -> dict[str, Any]:
    """Run the command, and return dmctl's answer.

    `who` is stored with the operator. `effect` says in words when the operator takes effect on a source. Raises
    ClusterError CLUSTER-047, DdlError DDL-026 for a statement that is no DDL, TargetError.
    """
    place = position_of(request.binlog_pos)
    if request.op == "list":
        return _listed(subject, request, place)
    op = None if request.op == "revert" else OperatorKind(request.op)
    sqls = _statements(request.sqls, op)

    def one(connection: Any, meta: MetaTables, source: str) -> str:
        recorded = read_recorded(connection, meta, source)
        if recorded.location is None:
            raise SyncError("SYNC-069", Where(source), values={"checkpoint": "not there yet"})
        meta.create(connection)
        at = _place(recorded, place)
        if op is not None:
            rereads = op is OperatorKind.SKIP or _waits_at(connection, meta, source, at)
            _refuse_passed(recorded, at, rereads=rereads)
            in_time = give(connection, meta, source, op, at, sqls, who)
            return f"{op} at {at}: {effect(source)}{'' if in_time else UNDER_WAY}"
        if not revert(connection, meta, source, at, who):
            raise SyncError("SYNC-070", Where(source, position=str(at)))
        return f"taken back at {at}"

    return subject.each(_meant(subject, request.sources, place), one)


def _listed(subject: Subject, request: Binlog, place: Position | None) -> dict[str, Any]:
    """Answer DM's `binlog list`: each source's `msg` is a JSON list of its pending operators, or of all of them."""

    def one(connection: Any, meta: MetaTables, source: str) -> str:
        if read_recorded(connection, meta, source).location is None:
            raise SyncError("SYNC-069", Where(source), values={"checkpoint": "not there yet"})
        meta.create(connection)
        found = load_operators(connection, meta, source, every=request.every)
        forms = [form.to_dict(subject.task) for form in found if place is None or form.position == place]
        return json.dumps(forms, ensure_ascii=False)

    return subject.each(subject.chosen(request.sources), one)


def position_of(text: str) -> Position | None:
    """Parse `FILE:POS`; None for an empty text. Raises ClusterError CLUSTER-047."""
    if not text:
        return None
    with suppress(ValueError):
        found = Position.parse(_FOLDER.sub("", text))
        if found.number >= 0:
            return found
    raise wrong_use(f"-b takes FILE:POS, such as mysql-bin.000003:1234, not {text}")


def _meant(subject: Subject, named: Sequence[str], place: Position | None) -> list[str]:
    """Return the sources that a change applies to.

    Without names and a position: those that an error has stopped, or else all.
    """
    sources = subject.chosen(named)
    if place is not None and len(sources) > 1:
        raise wrong_use("-b is a place of one source: name it with -s")
    if place is None and not named:
        meta = MetaTables(subject.meta_schema, subject.task)
        with session(to_endpoint(subject.target), "target") as connection:
            return [name for name in sources if read_recorded(connection, meta, name).stopped is not None] or sources
    return sources


def _place(recorded: Recorded, given: Position | None) -> Position:
    """Return the position that an operator is for: `given`, or else the one where the source has stopped.

    Raises SyncError SYNC-068 without a position.
    """
    stopped = recorded.stopped
    place = given or (stopped.position if stopped is not None and stopped.sure else None)
    if place is None:
        raise SyncError("SYNC-068", Where(recorded.source), cause=stopped.error if stopped is not None else "")
    return place


def _refuse_passed(recorded: Recorded, place: Position, *, rereads: bool) -> None:
    """Raise SyncError SYNC-069 for a position before the checkpoint.

    `rereads`: the operator may be for a change that waits for a sharding DDL and is read again after it, or for a
    statement that waits itself, so earlier positions are allowed.
    """
    stopped = recorded.stopped
    assert recorded.location is not None, "a source without a checkpoint was refused"
    stopped_there = stopped is not None and stopped.sure and stopped.position == place
    first = (recorded.held or recorded.location) if rereads or stopped_there else recorded.location
    if place < first.position:
        values = {"checkpoint": str(recorded.location.position)}
        raise SyncError("SYNC-069", Where(recorded.source, position=str(place)), values=values)


def _waits_at(connection: Any, meta: MetaTables, source: str, place: Position) -> bool:
    """Return whether a table of optimistic mode waits with the statement at that position."""
    states = (state for group in load_groups(connection, meta, source).unresolved for state in group.tables.values())
    items = [item for state in states for item in state.sequence.items if "request" in item.payload]
    return any(item.begin.position <= place < item.end.position for item in items)


def _statements(texts: Sequence[str], op: OperatorKind | None) -> tuple[str, ...]:
    sqls = split_given(" ".join(texts))
    if op in (OperatorKind.SKIP, None):
        if sqls:
            raise wrong_use(f"{op or 'revert'} takes no statement; replace runs others in its place")
        return ()
    if not sqls:
        raise wrong_use(f"{op} needs at least one statement")
    for text in sqls:
        parse_given(text, Context())
    return sqls
