"""Which rule a table falls under: rules with a table pattern first, then schema rules, never two of one level."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol

from unshard.errors import ConfigError
from unshard.model.table import TableName
from unshard.transform.pattern import Pattern


class PatternRule(Protocol):
    """A rule of the task file with the two patterns that routes and column mappings share."""

    @property
    def schema_pattern(self) -> str: ...

    @property
    def table_pattern(self) -> str | None: ...


@dataclass(frozen=True, slots=True)
class Chosen:
    """The rule for a table: one with a table pattern (`of_table`), or its schema's; those `behind` came too late."""

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
        """Raises ValueError on a malformed pattern; those of a loaded task are well formed."""
        compiled = []
        for name, rule in rules.items():
            schema = Pattern.compile(rule.schema_pattern, case_sensitive=case_sensitive)
            table = rule.table_pattern
            compiled.append((name, schema, Pattern.compile(table, case_sensitive=case_sensitive) if table else None))
        return cls(section, tuple(compiled))

    def of_table(self, name: TableName) -> Chosen | None:
        """The table's rule, or None. Raises ConfigError CONFIG-006 where two of a level match."""
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
        """The name of the schema's own rule, or None; `asked` is what an error speaks of. Raises CONFIG-006."""
        return self._only(self._of_schema(schema), asked or schema)

    def _of_schema(self, schema: str) -> Iterator[str]:
        return (rule for rule, pattern, table in self.rules if table is None and pattern.matches(schema))

    def _only(self, matching: Iterable[str], asked: str) -> str | None:
        names = list(matching)
        if len(names) > 1:
            values = {"name": asked, "section": self.section, "rules": ", ".join(names)}
            raise ConfigError("CONFIG-006", values=values)
        return names[0] if names else None
