"""`unshard ctl binlog`: what a human wants done with one place of the log, written to the target."""

from __future__ import annotations

import getpass
import json
import re
import socket
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from unshard.config.files import load_source, load_task
from unshard.config.task import TaskConfig
from unshard.ddl.context import Context
from unshard.ddl.given import parse_given, split_given
from unshard.errors import SyncError, UnshardError, Where
from unshard.model.position import Position
from unshard.mysql.connection import session
from unshard.mysql.endpoint import to_endpoint
from unshard.target.meta import MetaTables
from unshard.target.operators import Op, give, load_operators, revert
from unshard.target.recorded import Recorded, read_recorded

_FOLDER = re.compile(r"\|\d+(?=\.\d+$)")  # DM's name of a file in its relay log: `mysql-bin|000001.000003`


@dataclass(frozen=True, slots=True)
class Wish:
    """A command: its sources by id or file (none: all of the task), its place (none: where each has stopped)."""

    task: Path
    sources: tuple[str, ...] = ()
    position: str = ""
    sqls: tuple[str, ...] = ()


class WrongUse(Exception):
    """What was given can't be meant, told in the message."""


def give_operator(wish: Wish, op: Op, write: Callable[[str], None]) -> bool:
    """Write an operator for each source; whether all took it. Raises WrongUse, ConfigError and DdlError DDL-026."""
    sqls = _statements(wish.sqls, op)
    place = position_of(wish.position)
    task = load_task(wish.task)

    def one(connection: Any, meta: MetaTables, recorded: Recorded) -> str:
        at = _place(recorded, place)
        give(connection, meta, recorded.source, op, at, sqls, _who())
        return f"{op} at {at}: takes effect when the task is started again, or gets there"

    return _each(task, _meant(task, wish, place), one, write)


def revert_operator(wish: Wish, write: Callable[[str], None]) -> bool:
    """Take a pending operator of each source back; whether all had one. Raises as `give_operator`."""
    place = position_of(wish.position)
    task = load_task(wish.task)

    def one(connection: Any, meta: MetaTables, recorded: Recorded) -> str:
        at = _place(recorded, place)
        if not revert(connection, meta, recorded.source, at, _who()):
            raise SyncError("SYNC-070", Where(recorded.source, position=str(at)))
        return f"taken back at {at}"

    return _each(task, _meant(task, wish, place), one, write)


def list_operators(wish: Wish, write: Callable[[str], None], *, every: bool = False) -> bool:
    """Print the operators of each source as DM's `binlog list`, a JSON list; the pending ones, or `every` one."""
    place = position_of(wish.position)
    task = load_task(wish.task)

    def one(connection: Any, meta: MetaTables, recorded: Recorded) -> str:
        found = load_operators(connection, meta, recorded.source, every=every)
        forms = [form.to_dict(task.name) for form in found if place is None or form.position == place]
        return json.dumps(forms, ensure_ascii=False)

    return _each(task, chosen_sources(task, wish.sources), one, write)


def position_of(text: str) -> Position | None:
    """`FILE:POS` as a position, None for an empty text. Raises WrongUse."""
    if not text:
        return None
    with suppress(ValueError):
        found = Position.parse(_FOLDER.sub("", text))
        if found.number >= 0:
            return found
    raise WrongUse(f"-b takes FILE:POS, such as mysql-bin.000003:1234, not {text}")


def chosen_sources(task: TaskConfig, given: Sequence[str]) -> list[str]:
    """Ids of the sources that are named by id or by file, else all of the task. Raises WrongUse and ConfigError."""
    known = [instance.source_id for instance in task.mysql_instances]
    words = [word for text in given for word in text.split(",")]
    named = [load_source(word).source_id if word not in known and Path(word).is_file() else word for word in words]
    for name in named:
        if name not in known:
            raise WrongUse(f"-s takes {', '.join(known)} or a source file of one, not {name}")
    return list(dict.fromkeys(named)) or known


def _meant(task: TaskConfig, wish: Wish, place: Position | None) -> list[str]:
    """The sources that a change is for. Without names and place: those that an error has stopped."""
    sources = chosen_sources(task, wish.sources)
    if place is not None and len(sources) > 1:
        raise WrongUse("-b is a place of one source: name it with -s")
    if place is None and not wish.sources:
        meta = MetaTables(task.meta_schema, task.name)
        with session(to_endpoint(task.target_database), "target") as connection:
            return [name for name in sources if read_recorded(connection, meta, name).stopped is not None] or sources
    return sources


def _each(
    task: TaskConfig,
    sources: Sequence[str],
    one: Callable[[Any, MetaTables, Recorded], str],
    write: Callable[[str], None],
) -> bool:
    """Do `one` thing for each source and print dmctl's JSON; whether all went well."""
    meta = MetaTables(task.meta_schema, task.name)
    results = []
    with session(to_endpoint(task.target_database), "target") as connection:
        for name in sources:
            try:
                recorded = read_recorded(connection, meta, name)
                if recorded.location is None:
                    raise SyncError("SYNC-069", Where(name), values={"checkpoint": "not there yet"})
                meta.create(connection)
                results.append({"result": True, "msg": one(connection, meta, recorded), "source": name, "worker": ""})
            except UnshardError as error:
                results.append({"result": False, "msg": str(error), "source": name, "worker": ""})
    good = all(result["result"] for result in results)
    write(json.dumps({"result": good, "msg": "", "sources": results}, indent=4, ensure_ascii=False))
    return good


def _place(recorded: Recorded, given: Position | None) -> Position:
    """Where an operator is for. Raises SyncError SYNC-068 without a place, SYNC-069 for one that is passed."""
    stopped = recorded.stopped
    place = given or (stopped.position if stopped is not None and stopped.sure else None)
    if place is None:
        raise SyncError("SYNC-068", Where(recorded.source), cause=stopped.error if stopped is not None else "")
    assert recorded.location is not None, "a source without a checkpoint was refused"
    if place < recorded.location.position:
        values = {"checkpoint": str(recorded.location.position)}
        raise SyncError("SYNC-069", Where(recorded.source, position=str(place)), values=values)
    return place


def _statements(texts: Sequence[str], op: Op) -> tuple[str, ...]:
    sqls = split_given(" ".join(texts))
    if op is Op.SKIP:
        if sqls:
            raise WrongUse("skip takes no statement; replace runs others in its place")
        return ()
    if not sqls:
        raise WrongUse(f"{op} needs at least one statement")
    for text in sqls:
        parse_given(text, Context())
    return sqls


def _who() -> str:
    with suppress(OSError, KeyError):
        return f"{getpass.getuser()}@{socket.gethostname()}"
    return "unknown"
