"""The sources of a comparison, and the options for each table, from a task's files or from another tool's files."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from unshard.config.subtask import SubtaskConfig
from unshard.errors import UnshardError
from unshard.model.table import Table, TableName
from unshard.mysql.connection import Endpoint
from unshard.mysql.endpoint import to_endpoint
from unshard.transform.column_mapping import ColumnMapping
from unshard.transform.expressions.filter import ExpressionFilters
from unshard.transform.extract import Extracted
from unshard.transform.row_filter import RowFilter
from unshard.transform.source_rules import SourceRules, taken

Clock = Callable[[Endpoint, str], str | None]
"""Converts a local time of a source to UTC."""


def _no_mapping(name: TableName) -> ColumnMapping | None:
    del name
    return None


def _nothing_extracted(name: TableName) -> tuple[Extracted, ...]:
    del name
    return ()


def _no_filters(table: Table) -> tuple[RowFilter, ...]:
    del table
    return ()


def _nothing_kept(name: TableName) -> tuple[str, ...]:
    del name
    return ()


def _no_rules(table: Table) -> tuple[str, ...]:
    del table
    return ()


@dataclass(frozen=True, slots=True)
class SourceSide:
    """A source to compare: its address, and its rules as functions of a source table's name.

    `where` is the SQL condition that limited the copy. `follows`: its changes are replicated to the target, which
    records how far. `rules_for` names the rules that apply to a table's name and rows. `relay` is the folder that its
    relay log would have on this machine. `clamps`: the task clamps a TIME beyond the target's range. `kept_by` names
    the event filters by which a target table may keep rows that a statement, such as TRUNCATE, takes from the source.
    """

    source: str
    endpoint: Endpoint
    takes: Callable[[TableName], bool]
    route: Callable[[TableName], TableName]
    mapping_for: Callable[[TableName], ColumnMapping | None] = _no_mapping
    extracted: Callable[[TableName], tuple[Extracted, ...]] = _nothing_extracted
    filters_for: Callable[[Table], tuple[RowFilter, ...]] = _no_filters
    where: str = ""
    follows: bool = False
    rules_for: Callable[[Table], tuple[str, ...]] = _no_rules
    relay: Path | None = None
    clamps: bool = False
    kept_by: Callable[[TableName], tuple[str, ...]] = _nothing_kept


@dataclass(frozen=True, slots=True)
class TableWish:
    """The options for one target table: an SQL condition for both sides, and columns to ignore, in lower case."""

    condition: str = ""
    ignored: frozenset[str] = field(default_factory=frozenset)


def sides_of(configs: tuple[SubtaskConfig, ...], clock: Clock) -> tuple[SourceSide, ...]:
    """Return the sources of a task. Raises ConfigError for an expression filter that is refused, or a password."""
    return tuple(_side(config, clock) for config in configs)


def _side(config: SubtaskConfig, clock: Clock) -> SourceSide:
    rules = SourceRules.of(config)
    endpoint = to_endpoint(config.source.database)
    follows = config.mode in ("incremental", "all")
    try:
        expressions = ExpressionFilters(config.expression_filters, config.case_sensitive, partial(clock, endpoint))
    except UnshardError as error:
        raise error.at(source=config.source_id) from None

    def filters_for(table: Table) -> tuple[RowFilter, ...]:
        return (*rules.events.row_filters(table.name), *expressions.of_table(table)) if follows else ()

    def kept_by(target: TableName) -> tuple[str, ...]:
        return rules.events.keeping(rules.router.origins(target)) if follows else ()

    def rules_for(table: Table) -> tuple[str, ...]:
        route, mapping = rules.router.choice(table.name), rules.mapper.mapping_for(table.name)
        named = (
            f"routes.{route.rule}" if route is not None else "",
            f"column-mappings.{mapping.rule}" if mapping is not None else "",
            *(one.rule for one in filters_for(table)),
            "mydumpers.where" if config.dumper.where else "",
        )
        return tuple(dict.fromkeys(name for name in named if name))

    return SourceSide(
        config.source_id,
        endpoint,
        taken(config),
        rules.router.route,
        rules.mapper.mapping_for,
        partial(rules.router.extracted, source=config.source_id),
        filters_for,
        config.dumper.where if config.mode in ("full", "all", "dump") else "",
        follows,
        rules_for,
        Path(config.source.relay_dir).absolute() / config.source_id,
        config.time_values == "clamp",
        kept_by,
    )
