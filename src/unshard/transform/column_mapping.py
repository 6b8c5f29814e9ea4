"""`partition id`: the source of a row in the high bits of its id, so that ids of merged tables don't clash.

==============  ====  ==========================================================
part            bits  value
==============  ====  ==========================================================
sign               1  0
instance           4  the first argument
schema             7  the number behind the schema prefix, the second argument
table              8  the number behind the table prefix, the third argument
id                44  the column's value
==============  ====  ==========================================================

A part whose argument is empty takes no bits: those behind it move up, and the id is below 2**44 all the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from unshard.config.rules import ColumnMappingRule
from unshard.errors import ConfigError, Where
from unshard.model.table import TableName
from unshard.transform.choice import Choice

_TOP = 63  # the bit below which parts are laid, leaving the sign
_INSTANCE_BITS, _SCHEMA_BITS, _TABLE_BITS = 4, 7, 8
ID_LIMIT = (1 << 44) - 1


@dataclass(frozen=True, slots=True)
class ColumnMapping:
    """What happens to one table: `target_column` becomes `source_bits` + the value of `source_column`."""

    rule: str
    table: TableName
    source_column: str
    target_column: str
    source_bits: int


class ColumnMapper:
    """The column mappings of one source. Pure and picklable; callers keep answers, it doesn't."""

    __slots__ = ("_case_sensitive", "_choice", "_rules")

    def __init__(self, rules: Mapping[str, ColumnMappingRule], case_sensitive: bool = False) -> None:
        """`rules` by name, as `SubtaskConfig.column_mappings`."""
        self._rules = dict(rules)
        self._case_sensitive = case_sensitive
        self._choice = Choice.compile("column-mappings", self._rules, case_sensitive)

    def mapping_for(self, name: TableName) -> ColumnMapping | None:
        """The mapping of a source table (its name before routing), or None.

        Raises ConfigError: CONFIG-006 where two rules match, CONFIG-007 where a name isn't prefix and number,
        CONFIG-008 where that number is too large for its bits.
        """
        chosen = self._choice.of_table(name)
        if chosen is None:
            return None
        rule = self._rules[chosen]
        instance, schema, table, *rest = rule.arguments
        separator = rest[0] if rest else ""
        parts = (
            (_INSTANCE_BITS, int(instance) if instance else None),
            (_SCHEMA_BITS, self._number(chosen, name, "schema", schema, separator, _SCHEMA_BITS)),
            (_TABLE_BITS, self._number(chosen, name, "table", table, separator, _TABLE_BITS)),
        )
        shift, source_bits = _TOP, 0
        for bits, number in parts:
            if number is not None:
                shift -= bits
                source_bits |= number << shift
        return ColumnMapping(chosen, name, rule.source_column, rule.target_column, source_bits)

    def _number(self, rule: str, table: TableName, part: str, prefix: str, separator: str, bits: int) -> int | None:
        """The number behind prefix and separator in the table's or schema's name; None where the prefix is empty."""
        if not prefix:
            return None
        name = table.schema if part == "schema" else table.table
        start = prefix + separator
        head, tail = name[: len(start)], name[len(start) :]
        same = head == start if self._case_sensitive else head.lower() == start.lower()
        values = {"rule": rule, "part": part, "name": name, "prefix": start}
        if not same or not (tail.isascii() and tail.isdigit()):
            raise ConfigError("CONFIG-007", Where(table=str(table)), values=values)
        limit = (1 << bits) - 1
        if int(tail) > limit:
            raise ConfigError("CONFIG-008", Where(table=str(table)), values={**values, "number": tail, "limit": limit})
        return int(tail)


def apply_mapping(batch: pa.RecordBatch, mapping: ColumnMapping) -> pa.RecordBatch:
    """The batch with the mapping's target column rewritten, its type kept; NULL stays NULL.

    Column names are found without regard to case. Raises ConfigError CONFIG-009 with the first value that is below
    0 or over 2**44 - 1, CONFIG-010 where a column isn't there or isn't of integers.
    """
    source = batch.column(_position(batch, mapping, mapping.source_column))
    position = _position(batch, mapping, mapping.target_column)
    field = batch.schema.field(position)
    outside = pc.or_(pc.less(source, pa.scalar(0, source.type)), pc.greater(source, pa.scalar(ID_LIMIT, source.type)))
    first = pc.index(outside, True).as_py()
    if first >= 0:
        values = {"rule": mapping.rule, "column": mapping.source_column, "limit": ID_LIMIT}
        where = Where(table=str(mapping.table))
        raise ConfigError("CONFIG-009", where, values={**values, "value": source[first].as_py()})
    mapped = pc.bit_wise_or(source, pa.scalar(mapping.source_bits, source.type))
    return batch.set_column(position, field, mapped.cast(field.type))


def _position(batch: pa.RecordBatch, mapping: ColumnMapping, column: str) -> int:
    names = [name.lower() for name in batch.schema.names]
    # the table's own columns stand behind `op` and `seq`, so a clash of names is settled from the end
    found = len(names) - 1 - names[::-1].index(column.lower()) if column.lower() in names else None
    fault = "is not in the table"
    if found is not None:
        if pa.types.is_int64(batch.schema.field(found).type) or pa.types.is_uint64(batch.schema.field(found).type):
            return found
        fault = f"is not of integers (it is {batch.schema.field(found).type} here)"
    values = {"rule": mapping.rule, "column": column, "fault": fault}
    raise ConfigError("CONFIG-010", Where(table=str(mapping.table)), values=values)
