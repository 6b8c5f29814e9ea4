"""The binlog event filter, by which row changes and statements are left out or stop the task.

The rules for a table are ordered as in DM. Those without a table pattern come first. Of two patterns the first
character in which they differ decides: `*` comes before `?`, that before a set, that before the character itself; but a
name that ends comes before `*`. `~regex`, which DM does not have, comes last. The first rule that decides counts:

| action | decides where | as |
|---|---|---|
| Ignore, Error | `events` matches, or `sql-pattern` does | left out; the task stops |
| Do | `events` doesn't match, or `sql-pattern` is there and doesn't | left out |

`sql-pattern` is for statements only, and is tried on the text that the source logged.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from unshard.config.event_names import ROW_EVENTS, EventName, matches
from unshard.config.patterns import REGEX_MARK, fold, parse_wildcard
from unshard.config.rules import FilterRule
from unshard.model.table import TableName
from unshard.transform.pattern import Pattern
from unshard.transform.row_filter import EventRowFilter, RowFilter

_ROWS = tuple(EventName(name) for name in ROW_EVENTS)
_DROP_DATABASE = EventName("drop database")
_ROWS_GO = tuple(
    EventName(name)
    for name in (
        "truncate table",
        "drop table",
        "rename table",
        "truncate table partition",
        "drop table partition",
        "exchange table partition",
    )
)
"""Statements on a table after which it may lack rows that it had."""

_Key = tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Verdict:
    """The decision on an event that is ignored or is an error, with the rule that decides, such as `filters.no-delete`.

    `says` is the rule's own action, `by` the key of the rule that decides.
    """

    action: Literal["Ignore", "Error"]
    rule: str
    says: str = field(default="", compare=False)
    by: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class _Rule:
    label: str
    rule: FilterRule
    schema: Pattern
    table: Pattern | None
    expressions: tuple[re.Pattern[str], ...]

    @classmethod
    def compile(cls, label: str, rule: FilterRule, case_sensitive: bool) -> _Rule:
        table = rule.table_pattern
        return cls(
            label,
            rule,
            Pattern.compile(rule.schema_pattern, case_sensitive=case_sensitive),
            None if table is None else Pattern.compile(table, case_sensitive=case_sensitive),
            tuple(re.compile(text, re.IGNORECASE) for text in rule.sql_pattern),
        )

    def is_for(self, name: TableName) -> bool:
        return self.schema.matches(name.schema) and (self.table is None or self.table.matches(name.table))

    def may_keep_rows(self) -> bool:
        """Return whether it may leave out a statement that takes rows from a table."""
        events = (*_ROWS_GO, _DROP_DATABASE) if self.table is None or self.table.matches("") else _ROWS_GO
        said = (self.verdict(event, "") for event in events)
        by_text = self.rule.action != "Error" and bool(self.expressions)
        return by_text or any(verdict is not None and verdict.action == "Ignore" for verdict in said)

    def verdict(self, event: EventName | None, sql: str) -> Verdict | None:
        """Return the verdict of the rule, None where it doesn't decide. `Do` leaves out what doesn't match."""
        wanted = self.rule.action != "Do"
        if event is not None and matches(self.rule.events, event) == wanted:
            by = "events"
        elif sql and self.expressions and any(found.search(sql) for found in self.expressions) == wanted:
            by = "sql-pattern"
        else:
            return None
        return Verdict("Error" if self.rule.action == "Error" else "Ignore", self.label, self.rule.action, by)


class EventFilter:
    """The event filters of one source in one task. Pure and picklable. It caches no results; callers may."""

    __slots__ = ("_rules",)

    def __init__(
        self, rules: Mapping[str, FilterRule], of_source: Sequence[FilterRule] = (), case_sensitive: bool = False
    ) -> None:
        """Take `rules` by name, as `SubtaskConfig.filters`; `of_source` are those of the source file.

        A rule of the source with the same patterns as one of the task does not count, as in DM.
        """
        labelled = [(f"filters.{name}", rule) for name, rule in rules.items()]
        labelled += [(f"source filters[{place}]", rule) for place, rule in enumerate(of_source)]
        seen: dict[tuple[str, str], tuple[str, FilterRule]] = {}
        for label, rule in labelled:
            patterns = (fold(rule.schema_pattern, case_sensitive), fold(rule.table_pattern or "", case_sensitive))
            seen.setdefault(patterns, (label, rule))
        ranks: dict[object, int] = {}
        keys = {patterns: tuple(_rank(text, ranks) for text in patterns) for patterns in seen}
        ordered = sorted(seen, key=lambda patterns: (patterns[1] != "", *keys[patterns]))
        self._rules = tuple(_Rule.compile(*seen[patterns], case_sensitive) for patterns in ordered)

    def judge(self, name: TableName, event: EventName | None, sql: str = "") -> Verdict | None:
        """Return the rules' verdict on an event; None: it is taken.

        `name` has an empty table for a statement on a schema. `event` is None, and `name` empty, for a statement that
        can't be read: only patterns count then. `sql` is the statement as logged, "" for a row change.
        """
        said = (rule.verdict(event, sql) for rule in self._rules if rule.is_for(name))
        return next((verdict for verdict in said if verdict is not None), None)

    def concerning(self, name: TableName) -> tuple[str, ...]:
        """Return the rules for that table, or schema, in the order in which they are asked."""
        return tuple(rule.label for rule in self._rules if rule.is_for(name))

    def row_filters(self, name: TableName) -> tuple[RowFilter, ...]:
        """Return the filters that leave out rows of that table, one for each rule that does."""
        events: dict[str, list[str]] = {}
        for event, verdict in self.row_verdicts(name):
            if verdict.action == "Ignore":
                events.setdefault(verdict.rule, []).append(event)
        return tuple(EventRowFilter(rule, tuple(found)) for rule, found in events.items())

    def keeping(self, origins: Sequence[tuple[Pattern | str, Pattern | str]]) -> tuple[str, ...]:
        """Return the rules that may leave out a statement that takes rows from a table, such as TRUNCATE TABLE.

        `origins` are schemas and tables, as names or patterns; the table need not exist any more.
        """
        return tuple(
            rule.label
            for rule in self._rules
            if rule.may_keep_rows()
            and any(
                rule.schema.may_meet(schema) and (rule.table is None or rule.table.may_meet(table))
                for schema, table in origins
            )
        )

    def drops_all_rows(self, name: TableName) -> bool:
        """Return whether every row change of that table is excluded, so that its events need not be decoded."""
        return sum(verdict.action == "Ignore" for _, verdict in self.row_verdicts(name)) == len(_ROWS)

    def forbidden(self, name: TableName) -> dict[str, str]:
        """Return the row events of that table that stop the task, with the rule that decides so."""
        return {event: verdict.rule for event, verdict in self.row_verdicts(name) if verdict.action == "Error"}

    def row_verdicts(self, name: TableName) -> list[tuple[str, Verdict]]:
        """Return the row events that aren't simply taken, each with its verdict."""
        judged = ((event.name, self.judge(name, event)) for event in _ROWS)
        return [(event, verdict) for event, verdict in judged if verdict is not None]


def _rank(pattern: str, sets: dict[object, int]) -> _Key:
    """Return the sort key of a pattern among those that match one name.

    Two different sets at one place are ordered by their first rule.
    """
    if pattern.startswith(REGEX_MARK):
        return ((4, sets.setdefault(pattern, len(sets))),)
    found: list[tuple[int, int]] = []
    tokens = parse_wildcard(pattern)
    for place, token in enumerate(tokens):
        if token is None:
            found.append((0, 0))
        elif not token.ranges:
            found.append((1, 0))
        elif token.outside or len(token.ranges) > 1 or token.ranges[0][0] != token.ranges[0][1]:
            found.append((2, sets.setdefault(tokens[: place + 1], len(sets))))
        else:
            found.append((3, 0))
    return (*found, (-1, 0))
