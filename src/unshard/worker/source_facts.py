"""Facts of a source before anything is done: the effect of its rules on the present tables, and its clock.

The source's own clock converts a local time of its time zone to UTC. Statements of a source depend on further settings
of its server (`read_traits`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from functools import partial
from typing import Any, TypeVar

from unshard.ddl.online import Kept, OnlineDdl
from unshard.ddl.pieces import StatementRules
from unshard.ddl.provenance import Marks
from unshard.errors import ConfigError, UnshardError, Where
from unshard.log import logger
from unshard.model.table import Table, TableName
from unshard.mysql.connection import Endpoint, rows, session
from unshard.mysql.flavour import Flavour, identify
from unshard.mysql.structure import read_table, table_names
from unshard.retry import retrying
from unshard.sync.statements.reader import SourceTraits
from unshard.transform.column_mapper import ColumnMapper
from unshard.transform.expressions.filter import ExpressionFilters
from unshard.transform.extract import constants
from unshard.transform.route import Router
from unshard.transform.source_rules import SourceRules

Answer = TypeVar("Answer")


def upstream_tables(endpoint: Endpoint) -> frozenset[TableName]:
    """Return the tables that the source has now. Raises SourceError."""
    with session(endpoint, "source") as connection:
        return frozenset(table_names(connection))


def answer_of(endpoint: Endpoint, question: Callable[[Any], Answer]) -> Answer:
    """Return the source's answer in the middle of a run, under the retry policy. Raises SourceError."""

    def attempt() -> Answer:
        with session(endpoint, "source") as connection:
            return question(connection)

    return retrying(attempt)


def check_rules(
    names: Iterable[TableName],
    router: Router,
    mapper: ColumnMapper,
    source: str,
    target: Callable[[TableName], Table | None] | None = None,
) -> None:
    """Ask every rule about every table that is accepted, and with `target` its tables for what is extracted.

    Raises ConfigError: CONFIG-006 two rules, CONFIG-007 and CONFIG-008 a name, CONFIG-016 and CONFIG-017 an extraction.
    """
    for name in sorted(names):
        try:
            routed = router.route(name)
            extracted = router.extracted(name, source)
            mapper.mapping_for(name)
            if extracted and target is not None:
                constants(extracted, None, routed, target(routed), Where(source, str(name)))
        except UnshardError as error:
            raise error.at(source=source, table=str(name)) from None


def check_filters(
    filters: ExpressionFilters, allows: Callable[[TableName], bool], endpoint: Endpoint, source: str, *, now: bool
) -> None:
    """Ask the expression filters about their tables; `now` says that the present structures are where the task begins.

    Raises ConfigError: CONFIG-020 and CONFIG-021 as `ExpressionFilters.of_table`, CONFIG-022 for a table that isn't
    migrated.
    """
    for rule, name in filters.tables():
        if not allows(name):
            raise ConfigError("CONFIG-022", Where(source, str(name)), values={"rule": rule})
    if not now or not filters.tables():
        return
    with session(endpoint, "source") as connection:
        found = [read_table(connection, name) for _, name in filters.tables()]
    for table in found:
        if table is not None:
            try:
                filters.of_table(table)
            except UnshardError as error:
                raise error.at(source=source) from None


def statement_rules(own: SourceRules, records: Mapping[TableName, tuple[Kept, ...]] | None = None) -> StatementRules:
    """Return a source's rules for statements; `records` are the statements that wait for its ghost tables."""
    return StatementRules(
        own.allow.allows,
        own.allow.allows_schema,
        own.router.route,
        own.router.route_schema,
        marks=lambda table: marks_of(table, own.router, own.mapper, own.source),
        online=OnlineDdl(own.online, dict(records or {})),
        collations=own.collations,
    )


def marks_of(name: TableName, router: Router, mapper: ColumnMapper, source: str) -> Marks:
    """Return the marks of their origin that the rows of a source table carry on the target."""
    mapping = mapper.mapping_for(name)
    extracted = tuple((one.column.lower(), one.value) for one in router.extracted(name, source))
    if mapping is None:
        return Marks((), extracted, bool(extracted))
    return Marks((mapping.source_column, mapping.target_column), (mapping.mark, *extracted), bool(extracted))


_SHIFTS = (0, 1800, -1800, 3600, -3600, 7200, -7200)
"""By how many seconds clocks are set forth and back: another moment of the same local time is so far away."""


def utc_of(endpoint: Endpoint, local: str) -> str | None:
    """Return `YYYY-MM-DD HH:MM:SS` of the source's global time zone in UTC; None where it is no moment or several.

    Raises SourceError.
    """
    with session(endpoint, "source") as connection:
        rows(connection, "SET SESSION time_zone = @@global.time_zone")
        ((seconds,),) = rows(connection, f"SELECT UNIX_TIMESTAMP('{local}')")
        if not seconds:
            return None
        begin = int(seconds)
        asked = ", ".join(f"CAST(FROM_UNIXTIME({max(begin + shift, 1)}) AS CHAR)" for shift in _SHIFTS)
        ((first, *others),) = rows(connection, f"SELECT {asked}")
    if _text(first) != local or local in map(_text, others):
        return None
    return datetime.fromtimestamp(begin, UTC).strftime("%Y-%m-%d %H:%M:%S")


def _text(found: object) -> str:
    return found.decode() if isinstance(found, bytes) else str(found)


_OFFSET_OF_SYSTEM = """
SELECT CAST(TIME_TO_SEC(TIMEDIFF(CONVERT_TZ(UTC_TIMESTAMP(), '+00:00', 'SYSTEM'), UTC_TIMESTAMP())) AS SIGNED)
"""


def read_traits(endpoint: Endpoint) -> SourceTraits:
    """Return its flavour, how it folds names, and what SYSTEM is as a time zone there. Raises SourceError."""
    with session(endpoint, "source") as connection:
        server = identify(connection)
        ((names, zone),) = rows(connection, "SELECT @@lower_case_table_names, @@global.time_zone")
        if str(zone).upper() == "SYSTEM":
            ((seconds,),) = rows(connection, _OFFSET_OF_SYSTEM)
            sign, minutes = "-" if int(seconds) < 0 else "+", abs(int(seconds)) // 60
            zone = f"{sign}{minutes // 60:02}:{minutes % 60:02}"
        return SourceTraits(
            server.flavour is Flavour.MARIADB, int(names) == 1, str(zone), partial(_keeps_name, endpoint)
        )


_CLOCKS_SECONDS = 300
"""By how much the clocks of servers may differ that a statement has come through."""
_DEFINED = """
SELECT UNIX_TIMESTAMP(CREATE_TIME) FROM information_schema.TABLES WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s
"""


def _keeps_name(endpoint: Endpoint, old: TableName, new: TableName, before: float) -> bool:
    """Return whether a MariaDB has the table `old`, last defined or renamed before that time, and no table `new`.

    False, too, where it can't be asked now.
    """
    try:
        with session(endpoint, "source") as connection:
            there = rows(connection, _DEFINED, (old.schema, old.table))
            if not there or there[0][0] is None or int(there[0][0]) >= before - _CLOCKS_SECONDS:
                return False
            return not rows(connection, _DEFINED, (new.schema, new.table))
    except UnshardError as error:
        words = {"table": str(old), "error": str(error)}
        logger("sync").warning("the source can't be asked whether a RENAME was of a temporary table", **words)
        return False
