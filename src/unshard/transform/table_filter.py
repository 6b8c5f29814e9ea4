"""The table filter of `--filter`: the matching side of `unshard.config.table_filter_syntax`."""

from __future__ import annotations

import re
from collections.abc import Sequence

from unshard.config.table_filter_syntax import parse_rule
from unshard.model.table import TableName


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
