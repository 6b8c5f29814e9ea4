"""The tables of a task in the REST API.

A task has of each source the tables that it takes, their targets, and their recorded structures.
"""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import Any, Literal

from fastapi import APIRouter, status
from pydantic import BaseModel, ConfigDict

from unshard.api.verbs import BinlogSchema
from unshard.config.access import Role
from unshard.config.subtask import SubtaskConfig
from unshard.errors import ClusterError
from unshard.master.orders import subtask_config
from unshard.master.service import Master
from unshard.model.table import TableName
from unshard.mysql.connection import session
from unshard.mysql.endpoint import to_endpoint
from unshard.mysql.structure import table_names
from unshard.transform.route import Router
from unshard.transform.source_rules import allow_list
from unshard.web.answers import done, listed
from unshard.web.guard import needs
from unshard.web.leader import LeaderRoute


class Structure(BaseModel):
    """The new structure of a tracked table, given as SQL or read from the source or the target."""

    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)

    schema_source: Literal["sql", "upstream", "downstream"] = "sql"
    sql_content: str = ""
    flush: bool = True
    sync: bool = True


def task_table_routes(master: Master) -> APIRouter:
    """Return the routes of DM's REST for the tables of a task."""
    router = APIRouter(prefix="/api/v1/tasks", tags=["task"], route_class=LeaderRoute)

    @router.get("/{task_name}/sources/{source_name}/migrate_targets")
    @needs(Role.VIEWER)
    def migrate_targets(
        task_name: str, source_name: str, schema_pattern: str = "*", table_pattern: str = "*"
    ) -> dict[str, Any]:
        """List the tables of the source, each with its target table."""
        config, names = _taken(master, task_name, source_name)
        rules = Router(config.routes, config.case_sensitive)
        pairs = []
        for name in names:
            if fnmatchcase(name.schema, schema_pattern) and fnmatchcase(name.table, table_pattern):
                to = rules.route(name)
                pairs.append(
                    {
                        "source_schema": name.schema,
                        "source_table": name.table,
                        "target_schema": to.schema,
                        "target_table": to.table,
                    }
                )
        return listed(pairs)

    @router.get("/{task_name}/sources/{source_name}/schemas")
    @needs(Role.VIEWER)
    def task_schemas(task_name: str, source_name: str) -> list[str]:
        """List the schemas of the source that the task takes tables of."""
        return sorted({name.schema for name in _taken(master, task_name, source_name)[1]})

    @router.get("/{task_name}/sources/{source_name}/schemas/{schema_name}")
    @needs(Role.VIEWER)
    def task_tables(task_name: str, source_name: str, schema_name: str) -> list[str]:
        """List the tables of a schema that the task takes."""
        return [name.table for name in _taken(master, task_name, source_name)[1] if name.schema == schema_name]

    @router.get("/{task_name}/sources/{source_name}/schemas/{schema_name}/{table_name}")
    @needs(Role.VIEWER)
    def get_structure(task_name: str, source_name: str, schema_name: str, table_name: str) -> dict[str, Any]:
        """Return the structure of a tracked table."""
        sql = _structure(master, "list", task_name, source_name, TableName(schema_name, table_name))
        return {"schema_name": schema_name, "table_name": table_name, "schema_create_sql": sql}

    @router.put("/{task_name}/sources/{source_name}/schemas/{schema_name}/{table_name}")
    @needs(Role.OPERATOR)
    def set_structure(task_name: str, source_name: str, schema_name: str, table_name: str, body: Structure) -> None:
        """Set the structure of a table that is tracked; the task has to be paused."""
        _structure(
            master,
            "update",
            task_name,
            source_name,
            TableName(schema_name, table_name),
            schema_text=body.sql_content if body.schema_source == "sql" else "",
            from_source=body.schema_source == "upstream",
            from_target=body.schema_source == "downstream",
        )

    @router.delete(
        "/{task_name}/sources/{source_name}/schemas/{schema_name}/{table_name}", status_code=status.HTTP_204_NO_CONTENT
    )
    @needs(Role.OPERATOR)
    def drop_structure(task_name: str, source_name: str, schema_name: str, table_name: str) -> None:
        """Forget the structure of a table that is tracked."""
        _structure(master, "delete", task_name, source_name, TableName(schema_name, table_name))

    return router


def _taken(master: Master, task: str, source: str) -> tuple[SubtaskConfig, list[TableName]]:
    """Return the subtask, and the tables of the source's present ones that it takes. Asks the source."""
    state = master.cluster.state
    row = state.subtasks.get((task, source))
    if row is None:
        raise ClusterError("CLUSTER-017", values={"task": task})
    config = subtask_config(state, row)
    allowed = allow_list(config)
    with session(to_endpoint(config.source.database), "source") as connection:
        return config, [name for name in table_names(connection) if allowed.allows(name)]


def _structure(
    master: Master, op: Literal["list", "update", "delete"], task: str, source: str, table: TableName, **more: Any
) -> str:
    """Return the answer of `binlog-schema` for one table. Raises ClusterError CLUSTER-016 where it refuses."""
    request = BinlogSchema(op=op, task=task, sources=(source,), database=table.schema, table=table.table, **more)
    return str(done(master.binlog_schema(request))["sources"][0]["msg"])
