"""Selects the column mapping of each table, and computes the high bits of `partition id` from the table's names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from unshard.config.rules import ColumnMappingRule
from unshard.errors import ConfigError, Where
from unshard.model.table import TableName
from unshard.transform.column_mapping import ColumnMapping
from unshard.transform.pattern import Chosen, RulePatterns

_TOP = 63  # the bit below which parts are laid, leaving the sign
_INSTANCE_BITS, _SCHEMA_BITS, _TABLE_BITS = 4, 7, 8


@dataclass(frozen=True, slots=True)
class SourcePart:
    """A part of the high bits of a `partition id`: `number` in `bits` bits, shifted left by `shift` in the id."""

    part: str
    bits: int
    number: int
    shift: int


class ColumnMapper:
    """The column mappings of one source. Pure and picklable. It caches no results; callers may."""

    __slots__ = ("_case_sensitive", "_choice", "_rules")

    def __init__(self, rules: Mapping[str, ColumnMappingRule], case_sensitive: bool = False) -> None:
        """Take `rules` by name, as `SubtaskConfig.column_mappings`."""
        self._rules = dict(rules)
        self._case_sensitive = case_sensitive
        self._choice = RulePatterns.compile("column-mappings", self._rules, case_sensitive)

    def mapping_for(self, name: TableName) -> ColumnMapping | None:
        """Return the mapping of a source table (its name before routing), or None.

        Raises ConfigError: CONFIG-006 where two rules match, CONFIG-007 where a name isn't prefix and number,
        CONFIG-008 where that number is too large for its bits.
        """
        found = self.choice(name)
        if found is None:
            return None
        chosen, rule = found.rule, self._rules[found.rule]
        columns = (rule.source_column, rule.target_column)
        if rule.expression != "partition id":
            (text,) = rule.arguments
            prefix, suffix = (text, "") if rule.expression == "add prefix" else ("", text)
            return ColumnMapping(chosen, name, *columns, prefix=prefix, suffix=suffix)
        source_bits = sum(part.number << part.shift for part in self.source_parts(chosen, name))
        return ColumnMapping(chosen, name, *columns, source_bits)

    def choice(self, name: TableName) -> Chosen | None:
        """Return the rule that `mapping_for` uses. Raises ConfigError CONFIG-006."""
        return self._choice.of_table(name)

    def source_parts(self, chosen: str, name: TableName) -> tuple[SourcePart, ...]:
        """Return the parts that a `partition id` rule makes of a table's names, from the highest bits down.

        Raises as `mapping_for`.
        """
        instance, schema, table, *rest = self._rules[chosen].arguments
        separator = rest[0] if rest else ""
        parts = (
            ("instance", _INSTANCE_BITS, int(instance) if instance else None),
            ("schema", _SCHEMA_BITS, self._number(chosen, name, "schema", schema, separator, _SCHEMA_BITS)),
            ("table", _TABLE_BITS, self._number(chosen, name, "table", table, separator, _TABLE_BITS)),
        )
        shift, found = _TOP, []
        for part, bits, number in parts:
            if number is not None:
                shift -= bits
                found.append(SourcePart(part, bits, number, shift))
        return tuple(found)

    def _number(self, rule: str, table: TableName, part: str, prefix: str, separator: str, bits: int) -> int | None:
        """Return the number after prefix and separator in the table's or schema's name; None for an empty prefix."""
        if not prefix:
            return None
        name = table.schema if part == "schema" else table.table
        start = prefix + separator
        if self._same(name, prefix):
            return 0
        head, tail = name[: len(start)], name[len(start) :]
        same = self._same(head, start)
        values = {"rule": rule, "part": part, "name": name, "prefix": start}
        if not same or not (tail.isascii() and tail.isdigit()):
            raise ConfigError("CONFIG-007", Where(table=str(table)), values=values)
        limit = (1 << bits) - 1
        if int(tail) > limit:
            raise ConfigError("CONFIG-008", Where(table=str(table)), values={**values, "number": tail, "limit": limit})
        return int(tail)

    def _same(self, one: str, other: str) -> bool:
        return one == other if self._case_sensitive else one.lower() == other.lower()
