"""Where a table of a source lands on the target."""

from __future__ import annotations

from collections.abc import Mapping

from unshard.config.rules import RouteRule
from unshard.model.table import TableName
from unshard.transform.choice import Choice


class Router:
    """The routes of one source. Pure and picklable; callers keep answers, it doesn't."""

    __slots__ = ("_choice", "_rules")

    def __init__(self, rules: Mapping[str, RouteRule], case_sensitive: bool = False) -> None:
        """`rules` by name, as `SubtaskConfig.routes`."""
        self._rules = dict(rules)
        self._choice = Choice.compile("routes", self._rules, case_sensitive)

    def route(self, name: TableName) -> TableName:
        """The target's name of a source table; itself where no rule is for it.

        Raises ConfigError CONFIG-006, with the rules' names, where two rules of one level match.
        """
        chosen = self._choice.of_table(name)
        if chosen is None:
            return name
        rule = self._rules[chosen]
        return TableName(rule.target_schema, rule.target_table or name.table)

    def route_schema(self, schema: str) -> str:
        """The target's schema for a statement on a schema itself: only schema rules count. Raises CONFIG-006."""
        chosen = self._choice.of_schema(schema)
        return schema if chosen is None else self._rules[chosen].target_schema
