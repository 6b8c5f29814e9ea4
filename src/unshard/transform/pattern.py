"""Matches the names of schemas and tables against the patterns of rules.

The syntax of the patterns is in `unshard.config.patterns`. A rule with a table pattern takes precedence over the rules
for a whole schema. Two rules of the same level that match one table are an error.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol

from unshard.config.patterns import REGEX_MARK, OneOf, Token, fold, may_meet, parse_wildcard
from unshard.errors import ConfigError
from unshard.model.table import TableName


@dataclass(frozen=True, slots=True)
class Pattern:
    """A compiled pattern. Picklable. A wildcard has to match the whole name, `~regex` any part of it."""

    text: str
    case_sensitive: bool
    regex: re.Pattern[str]

    @classmethod
    def compile(cls, text: str, *, case_sensitive: bool = False, star_anywhere: bool = False) -> Pattern:
        """Return the compiled pattern.

        Raises ValueError for a malformed one; those of a loaded task are well formed.
        """
        if text.startswith(REGEX_MARK):
            return cls(text, case_sensitive, re.compile(text[1:], 0 if case_sensitive else re.IGNORECASE))
        tokens = parse_wildcard(fold(text, case_sensitive), star_anywhere=star_anywhere)
        # (?s): a name may hold a line break, and `.` has to stand for it too
        return cls(text, case_sensitive, re.compile("(?s)" + "".join(map(_expression, tokens)) + r"\Z"))

    def matches(self, name: str) -> bool:
        """Return whether the whole name matches; with a regular expression, whether a part of it does."""
        if self.text.startswith(REGEX_MARK):
            return self.regex.search(name) is not None
        return self.regex.match(name if self.case_sensitive else name.lower()) is not None

    def may_meet(self, other: Pattern | str) -> bool:
        """Return whether a name may match both; of a name, whether it matches. `*` stands at the end only."""
        if isinstance(other, str):
            return self.matches(other)
        return may_meet(self.text, other.text, case_sensitive=self.case_sensitive)


def _expression(token: Token) -> str:
    if token is None:
        return ".*"
    if not token.ranges:
        return "."
    return "[" + ("^" if token.outside else "") + _ranges(token) + "]"


def _ranges(token: OneOf) -> str:
    return "".join(f"{re.escape(low)}-{re.escape(high)}" for low, high in token.ranges)


class PatternRule(Protocol):
    """A rule of the task file with a schema pattern and a table pattern, as routes and column mappings have them."""

    @property
    def schema_pattern(self) -> str:
        """Pattern of schema names."""

    @property
    def table_pattern(self) -> str | None:
        """Pattern of table names; None for a rule on whole schemas."""


@dataclass(frozen=True, slots=True)
class Chosen:
    """The rule that applies to a table: one with a table pattern (`of_table`), or its schema's.

    `behind` are the schema rules that match too but have no effect.
    """

    rule: str
    of_table: bool
    behind: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RulePatterns:
    """The compiled patterns of one section's rules: (name, schema pattern, table pattern or None)."""

    section: str
    rules: tuple[tuple[str, Pattern, Pattern | None], ...]

    @classmethod
    def compile(cls, section: str, rules: Mapping[str, PatternRule], case_sensitive: bool) -> RulePatterns:
        """Return the compiled rules.

        Raises ValueError for a malformed pattern; those of a loaded task are well formed.
        """
        compiled = []
        for name, rule in rules.items():
            schema = Pattern.compile(rule.schema_pattern, case_sensitive=case_sensitive)
            table = rule.table_pattern
            compiled.append((name, schema, Pattern.compile(table, case_sensitive=case_sensitive) if table else None))
        return cls(section, tuple(compiled))

    def of_table(self, name: TableName) -> Chosen | None:
        """Return the table's rule, or None. Raises ConfigError CONFIG-006 where two of a level match."""
        level = [
            rule
            for rule, schema, table in self.rules
            if table is not None and schema.matches(name.schema) and table.matches(name.table)
        ]
        own = self._only(level, str(name))
        if own is not None:
            return Chosen(own, True, tuple(self._of_schema(name.schema)))
        found = self.of_schema(name.schema, str(name))
        return None if found is None else Chosen(found, False)

    def of_schema(self, schema: str, asked: str = "") -> str | None:
        """Return the name of the schema's own rule, or None; an error names `asked`. Raises CONFIG-006."""
        return self._only(self._of_schema(schema), asked or schema)

    def _of_schema(self, schema: str) -> Iterator[str]:
        return (rule for rule, pattern, table in self.rules if table is None and pattern.matches(schema))

    def _only(self, matching: Iterable[str], asked: str) -> str | None:
        names = list(matching)
        if len(names) > 1:
            values = {"name": asked, "section": self.section, "rules": ", ".join(names)}
            raise ConfigError("CONFIG-006", values=values)
        return names[0] if names else None
