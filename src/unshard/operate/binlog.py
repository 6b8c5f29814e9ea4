"""`binlog`: what a human wants done with one place of the log, written to the target."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from unshard.api.verbs import Binlog
from unshard.ddl.context import Context
from unshard.ddl.operator_statements import parse_given, split_given
from unshard.errors import SyncError, Where
from unshard.model.position import Position
from unshard.mysql.connection import session
from unshard.mysql.endpoint import to_endpoint
from unshard.operate.subject import Subject, wrong_use
from unshard.target.meta import MetaTables
from unshard.target.operators import OperatorKind, give, load_operators, revert
from unshard.target.recorded import Recorded, read_recorded

LATER = "takes effect when the task is started again, or gets there"
"""Of a task whose process is not known."""

_FOLDER = re.compile(r"\|\d+(?=\.\d+$)")  # DM's name of a file in its relay log: `mysql-bin|000001.000003`


def answer_binlog(
    subject: Subject, request: Binlog, who: str, effect: Callable[[str], str] = lambda source: LATER
) -> dict[str, Any]:
    """dmctl's answer. `who` stands in the record of what was given; `effect`: when it shows on a source, in words.

    Raises ClusterError CLUSTER-047, DdlError DDL-026 for a statement that is no DDL, TargetError.
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
        at = _place(recorded, place, rereads=op in (OperatorKind.SKIP, None))
        if op is not None:
            give(connection, meta, source, op, at, sqls, who)
            return f"{op} at {at}: {effect(source)}"
        if not revert(connection, meta, source, at, who):
            raise SyncError("SYNC-070", Where(source, position=str(at)))
        return f"taken back at {at}"

    return subject.each(_meant(subject, request.sources, place), one)


def _listed(subject: Subject, request: Binlog, place: Position | None) -> dict[str, Any]:
    """DM's `binlog list`: a JSON list in each source's `msg`; pending operators, or every one."""

    def one(connection: Any, meta: MetaTables, source: str) -> str:
        if read_recorded(connection, meta, source).location is None:
            raise SyncError("SYNC-069", Where(source), values={"checkpoint": "not there yet"})
        meta.create(connection)
        found = load_operators(connection, meta, source, every=request.every)
        forms = [form.to_dict(subject.task) for form in found if place is None or form.position == place]
        return json.dumps(forms, ensure_ascii=False)

    return subject.each(subject.chosen(request.sources), one)


def position_of(text: str) -> Position | None:
    """`FILE:POS` as a position, None for an empty text. Raises ClusterError CLUSTER-047."""
    if not text:
        return None
    with suppress(ValueError):
        found = Position.parse(_FOLDER.sub("", text))
        if found.number >= 0:
            return found
    raise wrong_use(f"-b takes FILE:POS, such as mysql-bin.000003:1234, not {text}")


def _meant(subject: Subject, named: Sequence[str], place: Position | None) -> list[str]:
    """The sources that a change is for. Without names and place: those that an error has stopped."""
    sources = subject.chosen(named)
    if place is not None and len(sources) > 1:
        raise wrong_use("-b is a place of one source: name it with -s")
    if place is None and not named:
        meta = MetaTables(subject.meta_schema, subject.task)
        with session(to_endpoint(subject.target), "target") as connection:
            return [name for name in sources if read_recorded(connection, meta, name).stopped is not None] or sources
    return sources


def _place(recorded: Recorded, given: Position | None, *, rereads: bool) -> Position:
    """Where an operator is for. Raises SyncError SYNC-068 without a place, SYNC-069 for one that is passed.

    `rereads`: it may be for a change that waits for a sharding DDL, and is read again behind it.
    """
    stopped = recorded.stopped
    place = given or (stopped.position if stopped is not None and stopped.sure else None)
    if place is None:
        raise SyncError("SYNC-068", Where(recorded.source), cause=stopped.error if stopped is not None else "")
    assert recorded.location is not None, "a source without a checkpoint was refused"
    stopped_there = stopped is not None and stopped.sure and stopped.position == place
    first = (recorded.held or recorded.location) if rereads or stopped_there else recorded.location
    if place < first.position:
        values = {"checkpoint": str(recorded.location.position)}
        raise SyncError("SYNC-069", Where(recorded.source, position=str(place)), values=values)
    return place


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
