"""The columns to whose old values an ALTER TABLE gives another type on TiDB otherwise than on the source."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from unshard.ddl.evaluate import operations
from unshard.ddl.statement import Ddl
from unshard.schema.definition import ColumnDefinition, TableDefinition
from unshard.schema.operations import ChangeColumn, ConvertCharset, DropColumn, RenameColumn
from unshard.schema.tidb_conversions import converts_alike

PADS = "PAD_CHAR_TO_FULL_LENGTH"
"""The mode in which a CHAR that becomes another type gets its trailing blanks: TiDB does not heed it."""


def converted_unlike_upstream(
    statements: Iterable[Ddl], before: TableDefinition, after: TableDefinition | None
) -> tuple[str, ...]:
    """Return the columns whose old values TiDB converts to another type otherwise than the source has. Pure.

    They have their names after the statements, which are what the source's statement is on one table, or its form for
    TiDB. `before` and `after` are the source's table before and after them. A column is also returned where that is not
    known of it: `after` is None, or two of them convert it.
    """
    own = {column.name.lower(): column for column in before.columns if column.generated is None}
    times, blanks = Counter[str](), set[str]()
    for ddl in statements:
        renamed: dict[str, str] = {}
        converted, padded = set(), set[str]()
        for operation in operations(ddl):
            match operation:
                case ChangeColumn(old, written):
                    renamed[old.lower()] = written.column.name.lower()
                    converted.add(old.lower())
                    padded |= {old.lower()} if _is_padded(ddl, own.get(old.lower()), written.column) else set()
                case RenameColumn(old, new):
                    renamed[old.lower()] = new.lower()
                case DropColumn(name):
                    own.pop(name.lower(), None)
                case ConvertCharset():
                    converted |= {name for name, column in own.items() if column.type.is_text}
        times.update(own[name].name for name in converted & own.keys())
        blanks |= {own[name].name for name in padded}
        own = {renamed.get(name, name): column for name, column in own.items()}
    found = []
    for name, column in own.items():
        now = after.column(name) if after is not None else None
        alike = (
            now is not None and times[column.name] == 1 and column.name not in blanks and converts_alike(column, now)
        )
        if times[column.name] and not alike:
            found.append(now.name if now is not None else name)
    return tuple(found)


def _is_padded(ddl: Ddl, before: ColumnDefinition | None, after: ColumnDefinition) -> bool:
    """Return whether the source stored the blanks of a CHAR in another type: by PAD_CHAR_TO_FULL_LENGTH."""
    chars = before is not None and before.type.name == "char" and after.type.name != "char"
    return chars and PADS in ddl.context.modes
