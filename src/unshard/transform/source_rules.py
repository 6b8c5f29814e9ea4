"""Compiles the rules of a source that look at table names only: block-allow list, routes, table filters and others.

Dump, load, sync and explain take them from here, so that all of them decide alike about a table. `TableFilter` is
dumpling's `--filter`, parsed by `unshard.config.table_rules`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pydantic import TypeAdapter

from unshard.config.rules import BlockAllowRule
from unshard.config.subtask import SubtaskConfig
from unshard.config.table_rules import parse_rule
from unshard.model.table import TableName
from unshard.transform.block_allow import BlockAllowList, Passage
from unshard.transform.column_mapper import ColumnMapper
from unshard.transform.event_filter import EventFilter
from unshard.transform.online_tables import OnlineTables
from unshard.transform.route import Router


class TableFilter:
    """A table filter: rules in order, of which the last one that matches decides. Pure."""

    __slots__ = ("_rules",)

    def __init__(self, rules: Sequence[str], case_sensitive: bool = False) -> None:
        """Compile the rules. Raises ValueError for a malformed rule; those of a loaded task are well formed."""
        flags = 0 if case_sensitive else re.IGNORECASE
        parsed = [parse_rule(text) for text in rules]
        self._rules = tuple(
            (text, rule.taken, re.compile(rule.schema, flags), re.compile(rule.table, flags))
            for text, rule in reversed(list(zip(rules, parsed, strict=True)))
        )

    def takes(self, name: TableName) -> bool:
        """Return whether the rules take the table: the last one that matches decides, and none takes nothing."""
        return self.judge(name)[0]

    def judge(self, name: TableName) -> tuple[bool, str]:
        """As `takes`, with the rule that decides; "" where none matches."""
        for text, taken, schema, table in self._rules:
            if schema.search(name.schema) and table.search(name.table):
                return taken, text
        return False, ""


@dataclass(frozen=True, slots=True)
class TableSelection:
    """The rules that select the tables of a dump. Every table but the system's is selected without them.

    If one of `databases`, `tables` (schema, table) and `filters` is set, they replace the block-allow list, as in
    `DumperSettings`. Helper tables of online DDL, which `shadow` and `trash` recognize, are never selected.
    """

    block_allow: BlockAllowRule = field(default_factory=BlockAllowRule)
    case_sensitive: bool = False
    shadow: tuple[str, ...] = ()
    trash: tuple[str, ...] = ()
    databases: tuple[str, ...] = ()
    tables: tuple[tuple[str, str], ...] = ()
    filters: tuple[str, ...] = ()

    @classmethod
    def of(cls, config: SubtaskConfig) -> TableSelection:
        """Return the rules of a subtask."""
        dumper = config.dumper
        return cls(
            config.block_allow or BlockAllowRule(),
            config.case_sensitive,
            config.shadow_table_rules,
            config.trash_table_rules,
            dumper.databases,
            dumper.tables,
            dumper.filters,
        )

    def judge(self) -> Callable[[TableName], Passage]:
        """As `takes`, with what decides: the flag that keeps the table out, else the last one that takes it."""
        online = OnlineTables.compile(self.shadow, self.trash)
        databases, tables = set(self.databases), {TableName(*name) for name in self.tables}
        chosen = TableFilter(self.filters, self.case_sensitive) if self.filters else None
        if not databases and not tables and chosen is None:
            return BlockAllowList(self.block_allow, self.case_sensitive, online).judge
        everything = BlockAllowList(online=online)

        def judge(name: TableName) -> Passage:
            found = everything.judge(name)
            if found.passes and databases:
                found = Passage(name.schema in databases, "-B")
            if found.passes and tables:
                found = Passage(name in tables, "-T")
            if found.passes and chosen is not None:
                taken, rule = chosen.judge(name)
                found = Passage(taken, "--filter", rule)
            return found

        return judge

    def takes(self) -> Callable[[TableName], bool]:
        """Return the function that tells whether a table is selected."""
        judge = self.judge()
        return lambda name: judge(name).passes

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form, which `from_dict` reads; it is equal to the one that was written and read."""
        form: dict[str, Any] = _FORM.dump_python(self, mode="json")
        return form

    @classmethod
    def from_dict(cls, form: Mapping[str, Any]) -> TableSelection:
        """Read the form of `to_dict`."""
        return _FORM.validate_python(form)


_FORM = TypeAdapter(TableSelection)


def followed(config: SubtaskConfig) -> TableSelection:
    """Return the rules that select the tables of `allow_list`, which can be stored."""
    helpers = config.shadow_table_rules, config.trash_table_rules
    return TableSelection(config.block_allow or BlockAllowRule(), config.case_sensitive, *helpers)


def online_tables(config: SubtaskConfig) -> OnlineTables:
    """Return the helper tables of online DDL; none where `online-ddl` is false."""
    return OnlineTables.compile(config.shadow_table_rules, config.trash_table_rules)


def allow_list(config: SubtaskConfig) -> BlockAllowList:
    """Return the tables that are loaded and followed."""
    return BlockAllowList(config.block_allow, config.case_sensitive, online_tables(config))


def taken(config: SubtaskConfig) -> Callable[[TableName], bool]:
    """Return the tables that any unit of the subtask's mode takes from the source; a load takes none."""
    copied = TableSelection.of(config).takes() if config.mode in ("full", "all", "dump") else None
    followed = allow_list(config).allows if config.mode in ("incremental", "all") else None
    return lambda name: any(takes(name) for takes in (copied, followed) if takes is not None)


@dataclass(frozen=True, slots=True)
class SourceRules:
    """One source's rules. Pure. They cache no results; callers may.

    Args:
        online: recognizes the helper tables of online DDL.
        allow: selects the tables that are loaded and replicated.
        followed: the rules of `allow`, which can be stored.
        dumped: returns whether a table is dumped, with the rule that decides.
        router: the routes and extracted columns.
        mapper: the column mappings.
        events: the event filters.
        collations: by collation of the source, the collation that the user wants on a TiDB target in its place.
    """

    source: str
    online: OnlineTables
    allow: BlockAllowList
    followed: TableSelection
    dumped: Callable[[TableName], Passage]
    router: Router
    mapper: ColumnMapper
    events: EventFilter
    collations: Mapping[str, str]

    @classmethod
    def of(cls, config: SubtaskConfig) -> SourceRules:
        """Return the rules of a subtask.

        Raises ValueError for a malformed pattern; those of a loaded task are well formed.
        """
        return cls(
            config.source_id,
            online_tables(config),
            allow_list(config),
            followed(config),
            TableSelection.of(config).judge(),
            Router(config.routes, config.case_sensitive),
            ColumnMapper(config.column_mappings, config.case_sensitive),
            EventFilter(config.filters, config.source.filters, config.case_sensitive),
            config.collations,
        )
