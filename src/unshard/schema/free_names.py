"""Rearranges an ALTER TABLE for TiDB in which a column or key gets the name of another one.

MySQL and MariaDB assign all new names of a statement at once. TiDB checks each change against the table from before the
statement, and refuses a name that is taken there (errors 1060 and 1061), so such names change in two turns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from unshard.schema.definition import TableDefinition
from unshard.schema.operations import AddColumn, AddKey, ChangeColumn, DropColumn, Operation, RenameColumn, RenameKey


def with_free_names(operations: Sequence[Operation], before: TableDefinition) -> list[Operation]:
    """Return the operations so arranged that no column or key gets a name before its last bearer is renamed or dropped.

    A column or key whose name passes to another is renamed twice, first to a name that nothing else has. A dropped
    column whose name passes to another column is dropped first. An ADD … IF NOT EXISTS whose name exists is left out.
    """
    first: list[Operation] = []
    rest: list[Operation] = []
    wanted = [operation for operation in operations if not _is_there(operation, before)]
    columns, keys = _new_names(wanted)
    for operation in wanted:
        spare = f"_renamed_{len(first)}"
        match operation:
            case RenameColumn(old, new) if old.lower() in columns and old.lower() != new.lower():
                first.append(RenameColumn(old, spare))
                operation = replace(operation, old=spare)
            case ChangeColumn(old=old) if old.lower() in columns and old.lower() != _new_name(operation):
                if not (operation.if_exists and before.column(old) is None):
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


def _is_there(operation: Operation, before: TableDefinition) -> bool:
    """Return whether an ADD … IF NOT EXISTS finds a column or key of its name, and so does nothing."""
    match operation:
        case AddColumn(written, _, True):
            return before.column(written.column.name) is not None
        case AddKey(key, True):
            return bool(key.name) and before.key(key.name) is not None
    return False


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
