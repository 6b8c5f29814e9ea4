"""`unshard ctl binlog-schema`: the structure that a source's table has at its checkpoint, shown and set."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from unshard.cli.operators import WrongUse, chosen_sources
from unshard.config.files import load_source, load_task
from unshard.config.subtask import plan_subtask
from unshard.config.task import TaskConfig
from unshard.ddl.context import Context
from unshard.ddl.given import parse_given
from unshard.ddl.scratch import ScratchPlace
from unshard.ddl.statement import Kind
from unshard.ddl.tracker import SchemaTracker
from unshard.ddl.without_columns import renamed, without_columns
from unshard.errors import DdlError, UnshardError, Where
from unshard.model.table import Table, TableName
from unshard.mysql.connection import session
from unshard.mysql.endpoint import to_endpoint
from unshard.mysql.structure import read_table
from unshard.target.meta import MetaTables
from unshard.target.recorded import read_recorded
from unshard.target.structures import set_structure, structure_of
from unshard.transform.route import Router

Write = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class TableWish:
    """Which table of a task; `sources` by id or file, none: all of the task."""

    task: Path
    sources: tuple[str, ...]
    table: TableName


def list_structure(wish: TableWish, write: Write) -> bool:
    """Print the tracked CREATE TABLE of each source; whether all have one."""

    def one(connection: Any, meta: MetaTables, source: str) -> str:
        found = structure_of(connection, meta, source, wish.table)
        if found is None:
            raise DdlError("DDL-030", Where(source, str(wish.table)))
        return found.create_sql

    return _each(wish, one, write)


def update_structure(wish: TableWish, write: Write, file: Path | None, *, from_source: bool, from_target: bool) -> bool:
    """Set the tracked structure; from a file with a CREATE TABLE, or as the table is at either end now."""
    if (file is not None) + from_source + from_target != 1:
        raise WrongUse("give one of FILE, --from-source and --from-target")
    text = file.read_text() if file is not None else ""
    task = load_task(wish.task)

    def one(connection: Any, meta: MetaTables, source: str) -> str:
        if text:
            found = _from_text(connection, task, source, wish.table, text)
        elif from_source:
            found = _from_source(wish, source)
        else:
            found = _from_target(connection, task, wish, source)
        if found is None:
            raise DdlError("DDL-031", Where(source, str(wish.table)))
        set_structure(connection, meta, source, wish.table, found)
        return found.create_sql

    return _each(wish, one, write)


def delete_structure(wish: TableWish, write: Write) -> bool:
    """Forget the tracked structure: that of the target is taken when it is needed next."""

    def one(connection: Any, meta: MetaTables, source: str) -> str:
        if structure_of(connection, meta, source, wish.table) is None:
            raise DdlError("DDL-030", Where(source, str(wish.table)))
        set_structure(connection, meta, source, wish.table, None)
        return ""

    return _each(wish, one, write)


def _from_text(connection: Any, task: TaskConfig, source: str, name: TableName, text: str) -> Table | None:
    """What the target's server makes of the text, on an empty copy. Raises DdlError DDL-026, DDL-003."""
    ddl = parse_given(text.strip().rstrip(";"), Context(name.schema))
    if ddl.kind is not Kind.CREATE_TABLE or ddl.tables[0].table != name.table:
        raise DdlError("DDL-026", cause=f"a CREATE TABLE of {name} is needed", values={"statement": text})
    place = ScratchPlace(task.meta_schema, task.name, source)
    return SchemaTracker(place).after(connection, ddl).get(ddl.tables[0])


def _from_source(wish: TableWish, source: str) -> Table | None:
    with session(to_endpoint(load_source(_file_of(wish, source)).database), "source") as connection:
        return read_table(connection, wish.table)


def _from_target(connection: Any, task: TaskConfig, wish: TableWish, source: str) -> Table | None:
    """The target's table under the source's name, without columns that names fill."""
    config = plan_subtask(task, load_source(_file_of(wish, source)))
    router = Router(config.routes, config.case_sensitive)
    found = read_table(connection, router.route(wish.table))
    extracted = [one.column for one in router.extracted(wish.table, source)]
    return None if found is None else renamed(without_columns(found, extracted), wish.table)


def _file_of(wish: TableWish, source: str) -> Path:
    for word in wish.sources:
        if Path(word).is_file() and load_source(word).source_id == source:
            return Path(word)
    raise WrongUse(f"-s has to be the source file of {source}: it tells where the server is and what its routes are")


def _each(wish: TableWish, one: Callable[[Any, MetaTables, str], str], write: Write) -> bool:
    """Do `one` thing for each source and print dmctl's JSON; whether all went well."""
    task = load_task(wish.task)
    meta = MetaTables(task.meta_schema, task.name)
    results = []
    with session(to_endpoint(task.target_database), "target") as connection:
        for name in chosen_sources(task, wish.sources):
            good, text = True, ""
            try:
                if read_recorded(connection, meta, name).location is None:
                    raise DdlError("DDL-030", Where(name, str(wish.table)))
                text = one(connection, meta, name)
            except UnshardError as error:
                good, text = False, str(error)
            results.append({"result": good, "msg": text, "source": name, "worker": ""})
    all_good = all(result["result"] for result in results)
    write(json.dumps({"result": all_good, "msg": "", "sources": results}, indent=4, ensure_ascii=False))
    return all_good
