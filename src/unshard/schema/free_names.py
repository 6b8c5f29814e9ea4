"""Rearranges an ALTER TABLE in which columns or keys take over each other's names.

MySQL and MariaDB assign all new names of a statement at once. TiDB checks each change against the table from before the
statement, and refuses a name that is taken there (errors 1060 and 1061). So a name that passes to another column or
key is freed first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from unshard.schema.operations import AddColumn, AddKey, ChangeColumn, DropColumn, Operation, RenameColumn, RenameKey


def with_free_names(operations: Sequence[Operation]) -> list[Operation]:
    """Return the operations so arranged that no column or key gets a name before its last bearer is renamed or dropped.

    A column or key whose name passes to another is renamed twice, first to a name that nothing else has. A dropped
    column whose name passes to another column is dropped first.
    """
    first: list[Operation] = []
    rest: list[Operation] = []
    columns, keys = _new_names(operations)
    for operation in operations:
        spare = f"_renamed_{len(first)}"
        match operation:
            case RenameColumn(old, new) if old.lower() in columns and old.lower() != new.lower():
                first.append(RenameColumn(old, spare))
                operation = replace(operation, old=spare)
            case ChangeColumn(old=old) if old.lower() in columns and old.lower() != _new_name(operation):
                first.append(RenameColumn(old, spare))
                operation = replace(operation, old=spare)
            case RenameKey(old, new) if old.lower() in keys and old.lower() != new.lower():
                first.append(RenameKey(old, spare))
                operation = replace(operation, old=spare)
            case DropColumn(name) if name.lower() in columns:
                first.append(operation)
                continue
        rest.append(operation)
    return [*first, *rest]


def _new_names(operations: Sequence[Operation]) -> tuple[set[str], set[str]]:
    """Return the names that a statement gives to columns and to keys, in lower case."""
    columns: set[str] = set()
    keys: set[str] = set()
    for operation in operations:
        match operation:
            case RenameColumn(_, new):
                columns.add(new.lower())
            case AddColumn() | ChangeColumn():
                columns.add(_new_name(operation))
            case RenameKey(_, new):
                keys.add(new.lower())
            case AddKey(key):
                keys.add(key.name.lower())
    return columns, keys


def _new_name(operation: AddColumn | ChangeColumn) -> str:
    return operation.written.column.name.lower()
