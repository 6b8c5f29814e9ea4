"""Checks that a partition has the same rows on both ends, which a DROP or TRUNCATE PARTITION needs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from unshard.checks.facts import SourceFacts, TaskFacts
from unshard.checks.result import Finding
from unshard.ddl.partition_rows import other_rows
from unshard.ddl.session import neutral_session
from unshard.model.table import TableName
from unshard.mysql.connection import rows, session
from unshard.mysql.structure import find_create_statement, read_table


def partitions(source: SourceFacts, task: TaskFacts) -> Iterator[Finding]:
    """Warn of tables whose partitions may have other rows on the target, or will have when the target is a TiDB."""
    if task.target is None or not source.follows:
        return
    with session(source.end.endpoint, "source") as connection:
        texts = {name: find_create_statement(connection, name) for name in _partitioned(connection, source.tables)}
    if not texts:
        return
    mariadb = "mariadb" in source.end.version.lower()
    with session(task.target.endpoint, "target") as connection, neutral_session(connection):
        for name, create_sql in texts.items():
            table = replace(source.tables[name], create_sql=create_sql or "")
            target = source.targets[name]
            there = read_table(connection, target) if target in task.there else replace(table, name=target)
            why = other_rows(connection, table, there, mariadb=mariadb) if there is not None else ""
            if why:
                yield Finding(
                    "warn",
                    f"a partition of table {name} may have other rows in {target}, so a DROP, TRUNCATE or EXCHANGE of"
                    f" it will stop the task: {why}",
                    "nothing, if no such statement comes; else give both tables equal partitions, by RANGE or LIST of"
                    " numbers or dates, before the start",
                    str(name),
                    str(target),
                )


def _partitioned(connection: Any, names: Iterable[TableName]) -> list[TableName]:
    """Return those of the tables that have partitions."""
    wanted = set(names)
    schemas = sorted({name.schema for name in wanted})
    if not schemas:
        return []
    listed = ", ".join(["%s"] * len(schemas))
    sql = (
        "SELECT TABLE_SCHEMA, TABLE_NAME FROM information_schema.TABLES"
        f" WHERE TABLE_SCHEMA IN ({listed}) AND CREATE_OPTIONS LIKE '%%partitioned%%'"
    )
    found = (TableName(str(schema), str(table)) for schema, table in rows(connection, sql, schemas))
    return sorted(name for name in found if name in wanted)
