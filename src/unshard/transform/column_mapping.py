"""The column mapping of one table: a column's values rewritten so that those of merged tables don't clash.

`partition id` puts the source of a row in the high bits of its id:

==============  ====  ==========================================================
part            bits  value
==============  ====  ==========================================================
sign               1  0
instance           4  the first argument
schema             7  the number after the schema prefix, the second argument
table              8  the number after the table prefix, the third argument
id                44  the column's value
==============  ====  ==========================================================

A part whose argument is empty takes no bits: the parts below it move up, and the id is below 2**44 all the same. A name
that is the prefix itself has number 0.

`add prefix` and `add suffix` put a text before or after the text of a CHAR, VARCHAR or TEXT column. NULL stays NULL.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc

from unshard.errors import ConfigError, Where
from unshard.model.table import Column, Table, TableName
from unshard.mysql.types import CHARACTERS, INTEGERS

ID_LIMIT = (1 << 44) - 1
_COUNTED = frozenset({"char", "varchar"})
"""Types whose length counts characters; that of the others counts bytes."""


@dataclass(frozen=True, slots=True)
class ColumnMapping:
    """The mapping of one table: `rule` computes the value of `target_column` from that of `source_column`.

    The result is `source_bits` combined with the value, or `prefix`, the value and `suffix` joined. `limit` is how many
    characters (bytes, where `in_bytes`) the target's column can store, 0 where the server checks it.
    """

    rule: str
    table: TableName
    source_column: str
    target_column: str
    source_bits: int = 0
    prefix: str = ""
    suffix: str = ""
    limit: int = 0
    in_bytes: bool = False

    @property
    def of_text(self) -> bool:
        """True if the mapping makes text, by a prefix or a suffix; else it makes numbers."""
        return bool(self.prefix or self.suffix)

    @property
    def mark(self) -> tuple[str, str, int, str, str]:
        """The marks of their origin that the rows of a table carry."""
        return self.source_column.lower(), self.target_column.lower(), self.source_bits, self.prefix, self.suffix

    def settled(self, upstream: Table, target: Table) -> ColumnMapping:
        """Return the mapping with the limit of the target's column.

        Raises ConfigError CONFIG-010 where a column is missing, or has a type that the expression is not for.
        """
        kinds, wanted = (CHARACTERS, "text") if self.of_text else (INTEGERS, "integers")
        for name in (self.source_column, self.target_column):
            column = _column(upstream, name)
            if column is None:
                raise self.misplaced(name, "is not in the table")
            if column.type not in kinds or column.charset == "binary" or column.generated:
                raise self.misplaced(name, f"is not of {wanted} (it is {column.definition})")
        there = _column(target, self.target_column)
        if there is None:
            raise self.misplaced(self.target_column, "is not in the target's table")
        if not self.of_text:
            if self.source_bits and there.type != "bigint":
                raise self.misplaced(self.target_column, f"is {there.definition} in the target; make it BIGINT there")
            return self
        in_bytes = there.type not in _COUNTED
        if in_bytes and not (there.charset or "").startswith("utf8"):
            return self
        return replace(self, limit=there.length, in_bytes=in_bytes)

    def misplaced(self, column: str, fault: str) -> ConfigError:
        """Return the error for a column that the expression is not for."""
        wanted = "a text column" if self.of_text else "an integer column"
        values = {"rule": self.rule, "column": column, "fault": fault, "wanted": wanted}
        return ConfigError("CONFIG-010", Where(table=str(self.table)), values=values)


def apply_mapping(batch: pa.RecordBatch, mapping: ColumnMapping) -> pa.RecordBatch:
    """Return the batch with the mapping's target column rewritten, its type kept; NULL stays NULL.

    Column names are found without regard to case. Raises ConfigError CONFIG-009 with the first value that is below
    0 or over 2**44 - 1, CONFIG-018 with the first text that gets too long, CONFIG-010 where a column is missing or
    isn't of integers (of text).
    """
    first = first_unmappable(batch, mapping)
    values = batch.column(_position(batch, mapping, mapping.source_column))
    if first is not None:
        raise _unmappable(mapping, values[first].as_py())
    position = _position(batch, mapping, mapping.target_column)
    field = batch.schema.field(position)
    if mapping.of_text:
        mapped = _joined(values, mapping)
    else:
        mapped = pc.bit_wise_or(values, pa.scalar(mapping.source_bits, values.type)).cast(field.type)
    return batch.set_column(position, field, mapped)


def first_unmappable(batch: pa.RecordBatch, mapping: ColumnMapping) -> int | None:
    """Return the number of the first row that `apply_mapping` refuses for its value, or None. Raises CONFIG-010."""
    values = batch.column(_position(batch, mapping, mapping.source_column))
    if mapping.of_text:
        if not mapping.limit:
            return None
        size = (pc.binary_length if mapping.in_bytes else pc.utf8_length)(values)
        added = mapping.prefix + mapping.suffix
        room = mapping.limit - (len(added.encode()) if mapping.in_bytes else len(added))
        outside = pc.greater(size, room)
    else:
        below, above = pa.scalar(0, values.type), pa.scalar(ID_LIMIT, values.type)
        outside = pc.or_(pc.less(values, below), pc.greater(values, above))
    first = int(pc.index(outside, True).as_py())
    return first if first >= 0 else None


def _joined(values: pa.Array, mapping: ColumnMapping) -> pa.Array:
    return pc.binary_join_element_wise(mapping.prefix, values, mapping.suffix, "")


def _unmappable(mapping: ColumnMapping, value: int | str) -> ConfigError:
    code, limit = "CONFIG-009", str(ID_LIMIT)
    if mapping.of_text:
        code, limit = "CONFIG-018", f"{mapping.limit} {'bytes' if mapping.in_bytes else 'characters'}"
    values = {"rule": mapping.rule, "column": mapping.source_column, "limit": limit, "value": value}
    return ConfigError(code, Where(table=str(mapping.table)), values={**values, "target": mapping.target_column})


def _position(batch: pa.RecordBatch, mapping: ColumnMapping, column: str) -> int:
    names = [name.lower() for name in batch.schema.names]
    # the table's own columns come after `op` and `seq`, so a clash of names is settled from the end
    found = len(names) - 1 - names[::-1].index(column.lower()) if column.lower() in names else None
    if found is None:
        raise mapping.misplaced(column, "is not in the table")
    kind = batch.schema.field(found).type
    if mapping.of_text and not pa.types.is_string(kind):
        raise mapping.misplaced(column, f"is not of text (it is {kind} here)")
    if not mapping.of_text and kind not in (pa.int64(), pa.uint64()):
        raise mapping.misplaced(column, f"is not of integers (it is {kind} here)")
    return found


def _column(table: Table, name: str) -> Column | None:
    return next((column for column in table.columns if column.name.lower() == name.lower()), None)
