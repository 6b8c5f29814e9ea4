"""Checks of what depends on a session's time zone: the source's sessions have its own, those of Unshard UTC."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from unshard.checks.facts import SourceFacts, TaskFacts
from unshard.checks.result import Finding
from unshard.model.table import Table
from unshard.mysql.connection import session
from unshard.mysql.structure import find_create_statement, is_hash_column
from unshard.schema.zoned import condition_depends, is_utc, zone_faults
from unshard.source.system_zone import default_zone


def computed_by_zone(source: SourceFacts, task: TaskFacts) -> Iterator[Finding]:
    """Report generated columns and keys that get other values in UTC than in the source's time zone.

    A table that the target lacks is made with the source's expressions.
    """
    computing = [table for table in source.tables.values() if _computes(table)]
    if task.target is None or not computing:
        return
    with session(source.end.endpoint, "source") as here, session(task.target.endpoint, "target") as connection:
        for table in computing:
            create_sql = table.create_sql or find_create_statement(here, table.name)
            target = source.targets[table.name]
            own = replace(table, create_sql=create_sql or "")
            there = task.there.get(target)
            if there is not None:
                there = replace(there, create_sql=find_create_statement(connection, target) or "")
            for fault in zone_faults(own, there or own, lambda: default_zone(here)):
                made = "" if there is not None else f"make {target} before the start, with its CREATE TABLE; "
                yield Finding(
                    "fail",
                    f"table {table.name}: {fault}",
                    f"{made}give {target} that expression; after the task, give it the source's again",
                    str(table.name),
                    str(target),
                )


def where_by_zone(source: SourceFacts) -> Iterator[Finding]:
    """Report `where` under `mydumpers` with local times: Unshard reads in UTC, an expression filter in local time."""
    where = source.config.dumper.where
    found = [table for table in source.tables.values() if condition_depends(where, table)] if where else []
    if not found:
        return
    with session(source.end.endpoint, "source") as connection:
        zone = default_zone(connection)
    if is_utc(zone):
        return
    name = found[0].name
    more = f" and of {len(found) - 1:,} more tables" if len(found) > 1 else ""
    yield Finding(
        "fail",
        f"`where` under `mydumpers` has local times, by which it would take other rows of {name}{more} in UTC, in which"
        f" tables are read, than in the source's time zone, {zone}: {where}",
        f"write each moment as CONVERT_TZ('YYYY-MM-DD HH:MM:SS', '{zone}', '+00:00'), or compare UNIX_TIMESTAMP(column)"
        " with a number; an expression filter keeps its local time. If the times are meant in UTC, put `where_zone`"
        " under `ignore-checking-items`",
        str(name),
    )


def _computes(table: Table) -> bool:
    """Return whether a table has generated columns or keys over expressions, beside MariaDB's hidden columns."""
    generated = any(c.generated and not c.period and not is_hash_column(c) for c in table.columns)
    return generated or any(not name for index in table.indexes for name in index.columns)
