"""Reads the tables that a source has when a task starts, and checks the task's rules against them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from unshard.ddl.online import Kept, OnlineDdl
from unshard.ddl.pieces import StatementRules
from unshard.ddl.provenance import Marks
from unshard.errors import ConfigError, UnshardError, Where
from unshard.model.position import Position
from unshard.model.table import Table, TableName, quote_name
from unshard.mysql.connection import Endpoint, rows, session
from unshard.mysql.structure import read_table, table_names
from unshard.retry import retrying
from unshard.source.snapshot import locate
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


def listing(endpoint: Endpoint) -> tuple[frozenset[TableName], frozenset[str], Position]:
    """Return the tables and schemas that the source has now, and then the end of its log.

    Tries again as `answer_of`: a source that restarts while a task goes on is no reason to stop. Raises SourceError.
    """

    def listed(connection: Any) -> tuple[frozenset[TableName], frozenset[str], Position]:
        tables = frozenset(table_names(connection))
        schemas = rows(connection, "SELECT SCHEMA_NAME FROM information_schema.SCHEMATA")
        return tables, frozenset(name for (name,) in schemas), locate(connection).position

    return answer_of(endpoint, listed)


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


def rules_of(name: TableName, own: SourceRules) -> str:
    """Return the rules by which the rows of a source table are written, as text that is stored and compared.

    It has the target's name, what a column mapping computes, and the extracted columns.
    """
    parts, mapping = [own.router.route(name).quoted], own.mapper.mapping_for(name)
    if mapping is not None:
        value = quote_name(mapping.source_column.lower())
        made = f"{value} | {mapping.source_bits}"
        if mapping.of_text:
            made = f"{_text(mapping.prefix)} {value} {_text(mapping.suffix)}"
        parts.append(f"{quote_name(mapping.target_column.lower())} = {made}")
    extracted = own.router.extracted(name, own.source)
    return "; ".join([*parts, *(f"{quote_name(one.column.lower())} = {_text(one.value)}" for one in extracted)])


def _text(value: str) -> str:
    return json.dumps(value, ensure_ascii=False)


def marks_of(name: TableName, router: Router, mapper: ColumnMapper, source: str) -> Marks:
    """Return the marks of their origin that the rows of a source table carry on the target."""
    mapping = mapper.mapping_for(name)
    extracted = tuple((one.column.lower(), one.value) for one in router.extracted(name, source))
    if mapping is None:
        return Marks((), extracted, bool(extracted))
    return Marks((mapping.source_column, mapping.target_column), (mapping.mark, *extracted), bool(extracted))
