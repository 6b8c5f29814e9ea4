"""A source table's name on the target, and its extracted columns."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from unshard.config.rules import RouteRule
from unshard.errors import ConfigError, Where
from unshard.model.table import TableName
from unshard.transform.extract import Extracted
from unshard.transform.pattern import Chosen, Pattern, RulePatterns


class Router:
    """The routes of one source. Pure and picklable. It caches no results; callers may."""

    __slots__ = ("_choice", "_rules")

    def __init__(self, rules: Mapping[str, RouteRule], case_sensitive: bool = False) -> None:
        """Take `rules` by name, as `SubtaskConfig.routes`."""
        self._rules = dict(rules)
        self._choice = RulePatterns.compile("routes", self._rules, case_sensitive)

    def route(self, name: TableName) -> TableName:
        """Return the target's name of a source table; the same name where no rule matches.

        Raises ConfigError CONFIG-006, with the rules' names, where two rules of one level match.
        """
        chosen = self.choice(name)
        if chosen is None:
            return name
        rule = self._rules[chosen.rule]
        return TableName(rule.target_schema, rule.target_table or name.table)

    def choice(self, name: TableName) -> Chosen | None:
        """Return the rule that `route` uses. Raises ConfigError CONFIG-006."""
        return self._choice.of_table(name)

    def origins(self, target: TableName) -> tuple[tuple[Pattern | str, Pattern | str], ...]:
        """Return the schemas and tables of a source, as names or patterns, that may be routed to that table."""
        found: list[tuple[Pattern | str, Pattern | str]] = []
        for name, schema, table in self._choice.rules:
            rule = self._rules[name]
            if (rule.target_schema, rule.target_table or target.table) == (target.schema, target.table):
                found.append((schema, table if table is not None and rule.target_table else target.table))
        try:
            if self.choice(target) is None:
                found.append((target.schema, target.table))
        except ConfigError:  # two rules match: a source table of that name is refused
            pass
        return tuple(found)

    def schema_rule(self, schema: str) -> str | None:
        """Return the rule that `route_schema` uses. Raises ConfigError CONFIG-006."""
        return self._choice.of_schema(schema)

    def route_schema(self, schema: str) -> str:
        """Return the target's schema for a statement on a schema itself: only schema rules count. Raises CONFIG-006."""
        chosen = self.schema_rule(schema)
        return schema if chosen is None else self._rules[chosen].target_schema

    def extracted(self, name: TableName, source: str) -> tuple[Extracted, ...]:
        """Return the values that the table's rule extracts: from the table's name, its schema's, the source's id.

        Expressions are not anchored and heed case, whatever `case-sensitive` says. Raises ConfigError CONFIG-006, and
        CONFIG-016 where an expression doesn't match: rows of several tables would get one empty value.
        """
        chosen = self.choice(name)
        return () if chosen is None else tuple(self._parts(chosen.rule, name, source))

    def _parts(self, chosen: str, name: TableName, source: str) -> Iterator[Extracted]:
        rule = self._rules[chosen]
        for part in (rule.extract_table, rule.extract_schema, rule.extract_source):
            if part is None:
                continue
            text = {"table": name.table, "schema": name.schema, "source": source}[part.of]
            found = re.search(part.regexp, text)
            if found is None:
                values = {"rule": chosen, "part": part.of, "name": text, "regexp": part.regexp}
                raise ConfigError("CONFIG-016", Where(source, str(name)), values=values)
            yield Extracted(chosen, part.target_column, "".join(group or "" for group in found.groups()))
