"""`binlog-schema`: shows and sets the structure that a source table has at the checkpoint."""

from __future__ import annotations

from typing import Any

from unshard.api.verbs import BinlogSchema
from unshard.config.subtask import SubtaskConfig
from unshard.ddl.context import Context
from unshard.ddl.pieces import parse_given
from unshard.ddl.renamed_table import renamed, without_columns
from unshard.ddl.sandbox import ScratchPlace
from unshard.ddl.statement import StatementKind
from unshard.ddl.tracker import SchemaTracker
from unshard.errors import DdlError, Where
from unshard.model.table import Table, TableName
from unshard.mysql.connection import session
from unshard.mysql.endpoint import to_endpoint
from unshard.mysql.structure import read_table
from unshard.operate.subject import Subject, wrong_use
from unshard.target.checkpoint import set_structure, structure_of
from unshard.target.meta import MetaTables
from unshard.target.recorded import read_recorded
from unshard.transform.route import Router


def answer_schema(subject: Subject, request: BinlogSchema) -> dict[str, Any]:
    """Run the command, and return dmctl's answer; each source's `msg` is the table's CREATE TABLE.

    A change stops a task that is running (SYNC-001). `delete` removes the structure, and the target's structure is used
    when one is next needed. Raises ClusterError CLUSTER-047, TargetError.
    """
    name = TableName(request.database, request.table)
    if request.op == "update" and bool(request.schema_text) + request.from_source + request.from_target != 1:
        raise wrong_use("give one of FILE, --from-source and --from-target")
    sources = subject.chosen(request.sources)
    unknown = [source for source in sources if source not in subject.configs]
    if unknown and (request.from_source or request.from_target):
        raise wrong_use(f"-s has to be the file of {unknown[0]}: it tells where that server is and what its routes are")

    def one(connection: Any, meta: MetaTables, source: str) -> str:
        if read_recorded(connection, meta, source).location is None:
            raise DdlError("DDL-030", Where(source, str(name)))
        if request.op == "update":
            found = _wanted(connection, subject, request, name, source)
            if found is None:
                raise DdlError("DDL-031", Where(source, str(name)))
            set_structure(connection, meta, source, name, found)
            return found.create_sql
        found = structure_of(connection, meta, source, name)
        if found is None:
            raise DdlError("DDL-030", Where(source, str(name)))
        if request.op == "delete":
            set_structure(connection, meta, source, name, None)
            return ""
        return found.create_sql

    return subject.each(sources, one)


def _wanted(connection: Any, subject: Subject, request: BinlogSchema, name: TableName, source: str) -> Table | None:
    if request.schema_text:
        return _from_text(connection, subject, source, name, request.schema_text)
    config = subject.configs[source]
    return _from_source(config, name) if request.from_source else _from_target(connection, config, name)


def _from_text(connection: Any, subject: Subject, source: str, name: TableName, text: str) -> Table | None:
    """Return the table that the target's server makes from the text, in an empty copy.

    Raises DdlError DDL-026, DDL-003.
    """
    ddl = parse_given(text.strip().rstrip(";"), Context(name.schema))
    if ddl.kind is not StatementKind.CREATE_TABLE or ddl.tables[0].table != name.table:
        raise DdlError("DDL-026", cause=f"a CREATE TABLE of {name} is needed", values={"statement": text})
    place = ScratchPlace(subject.meta_schema, subject.task, source)
    return SchemaTracker(place).after(connection, ddl).get(ddl.tables[0])


def _from_source(config: SubtaskConfig, name: TableName) -> Table | None:
    with session(to_endpoint(config.source.database), "source") as connection:
        return read_table(connection, name)


def _from_target(connection: Any, config: SubtaskConfig, name: TableName) -> Table | None:
    """Return the target's table under the source's name, without the columns that a route fills."""
    router = Router(config.routes, config.case_sensitive)
    found = read_table(connection, router.route(name))
    extracted = [one.column for one in router.extracted(name, config.source_id)]
    return None if found is None else renamed(without_columns(found, extracted), name)
