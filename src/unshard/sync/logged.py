"""A statement as its event tells it: the session that it had."""

from __future__ import annotations

from dataclasses import dataclass

from unshard.binlog.extent import PlainStatement
from unshard.ddl.context import Context, mariadb_flags, mysql_flags
from unshard.errors import Where


@dataclass(frozen=True, slots=True)
class SourceTraits:
    """What a statement's meaning takes from its server. `time_zone` is what SYSTEM stands for there."""

    mariadb: bool
    lower_case_names: bool
    time_zone: str


def logged_context(statement: PlainStatement, traits: SourceTraits, where: Where) -> Context:
    """The session that a statement had on its source, as its event tells it."""
    query = statement.query
    zone = query.time_zone or ""
    return Context(
        schema=query.schema,
        sql_mode=query.sql_mode,
        timestamp=statement.timestamp + (query.microseconds or 0) / 1e6,
        time_zone=traits.time_zone if zone.upper() == "SYSTEM" else zone,
        collation_connection=query.connection_collation,
        collation_server=query.server_collation,
        mariadb=traits.mariadb,
        **(mariadb_flags(query) if traits.mariadb else mysql_flags(query)),
        auto_increment=query.auto_increment,
        lower_case_names=traits.lower_case_names,
        where=where,
    )
