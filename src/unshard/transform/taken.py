"""The table filter of `--filter`: the matching side of `unshard.config.patterns`."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from unshard.config.patterns import parse_rule
from unshard.config.subtask import SubtaskConfig
from unshard.model.table import TableName
from unshard.transform.block_allow import BlockAllowList, Passage
from unshard.transform.online_tables import OnlineTables


class TableFilter:
    """Rules in order; the last that matches decides. Pure."""

    __slots__ = ("_rules",)

    def __init__(self, rules: Sequence[str], case_sensitive: bool = False) -> None:
        """Raises ValueError for a malformed rule; those of a loaded task are well formed."""
        flags = 0 if case_sensitive else re.IGNORECASE
        parsed = [parse_rule(text) for text in rules]
        self._rules = tuple(
            (text, rule.taken, re.compile(rule.schema, flags), re.compile(rule.table, flags))
            for text, rule in reversed(list(zip(rules, parsed, strict=True)))
        )

    def takes(self, name: TableName) -> bool:
        return self.judge(name)[0]

    def judge(self, name: TableName) -> tuple[bool, str]:
        """`takes`, and the rule that decides; empty where none matches."""
        for text, taken, schema, table in self._rules:
            if schema.search(name.schema) and table.search(name.table):
                return taken, text
        return False, ""


# Which tables of a source a subtask takes: the one answer for dump, load, sync and the checks before them.


def online_tables(config: SubtaskConfig) -> OnlineTables:
    """The helper tables of online DDL; none where `online-ddl` is false."""
    return OnlineTables.compile(config.shadow_table_rules, config.trash_table_rules)


def allow_list(config: SubtaskConfig) -> BlockAllowList:
    """The tables that are loaded and followed."""
    return BlockAllowList(config.block_allow, config.case_sensitive, online_tables(config))


def dumped(config: SubtaskConfig) -> Callable[[TableName], bool]:
    """The tables that are dumped: `-B`, `-T` and `-f` stand in for the block-allow list there."""
    judge = judge_dumped(config)
    return lambda name: judge(name).passes


def judge_dumped(config: SubtaskConfig) -> Callable[[TableName], Passage]:
    """`dumped`, with what decides: the flag that keeps the table out, else the last one that takes it."""
    databases, tables = set(config.dumper.databases), {TableName(*name) for name in config.dumper.tables}
    chosen = TableFilter(config.dumper.filters, config.case_sensitive) if config.dumper.filters else None
    if not databases and not tables and chosen is None:
        return allow_list(config).judge
    everything = BlockAllowList(online=online_tables(config))

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


def taken(config: SubtaskConfig) -> Callable[[TableName], bool]:
    """The tables that any unit of the subtask's mode takes from the source; a load takes none."""
    copied = dumped(config) if config.mode in ("full", "all", "dump") else None
    followed = allow_list(config).allows if config.mode in ("incremental", "all") else None
    return lambda name: any(takes(name) for takes in (copied, followed) if takes is not None)
