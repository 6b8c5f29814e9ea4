"""DDL that would fill rows of the target with other values than the source's is refused before it is run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from unshard.ddl.backfill import filled_unlike_upstream, numbered, same_order
from unshard.ddl.intent import Intent, Step
from unshard.ddl.parse import classify_ddl
from unshard.ddl.statement import StatementKind
from unshard.errors import DdlError
from unshard.model.table import Table, TableName
from unshard.mysql.connection import rows
from unshard.mysql.structure import read_table
from unshard.sync.checkpoint.store import CheckpointStore


def refuse_unlike_fills(intent: Intent, upstream: Callable[[TableName], Table | None], store: CheckpointStore) -> None:
    """Raises DdlError DDL-034 where rows of the target would get other values by the statement than the source's have.

    `upstream` gives the source's table, as it was before the statement, by its name on the target.
    """
    for step in intent.steps:
        if step.kind is not StatementKind.ALTER_TABLE:
            continue
        target = classify_ddl(step.statement, step.context).tables[0]
        columns = store.on_target(partial(unlike_fills, step=step, target=target, upstream=upstream(target)))
        if columns:
            where = replace(intent.context.where, table=str(target))
            values = {"columns": ", ".join(columns), "statement": step.statement}
            raise DdlError("DDL-034", where, values=values)


def unlike_fills(connection: Any, step: Step, target: TableName, upstream: Table | None) -> tuple[str, ...]:
    """The columns which the step would fill, in rows that the target has now, with other values than the source's."""
    columns = filled_unlike_upstream(step)
    if columns and not has_rows(connection, target):
        columns = ()
    if (found := numbered(step)) is None:
        return columns
    column, of = found
    if not step.context.by_tool and _numbers_alike(connection, step, upstream, read_table(connection, target)):
        return columns
    return (*columns, column) if has_rows(connection, target, of, 1 if of else 2) else columns


def _numbers_alike(connection: Any, step: Step, upstream: Table | None, there: Table | None) -> bool:
    (counts,) = rows(connection, "SELECT @@auto_increment_increment, @@auto_increment_offset")
    ordered = upstream is not None and there is not None and same_order(upstream, there)
    return ordered and tuple(counts) == step.context.auto_increment


def has_rows(connection: Any, target: TableName, of: str = "", wanted: int = 1) -> bool:
    """Whether the table has as many rows of which that holds; the order of a single one tells nothing."""
    only = f" WHERE {of}" if of else ""
    return len(rows(connection, f"SELECT 1 FROM {target.quoted}{only} LIMIT {wanted}")) == wanted
