"""Tells which operations of an ALTER TABLE do nothing, by their IF EXISTS or IF NOT EXISTS.

MariaDB has these words for most operations, and TiDB for a few.
"""

from __future__ import annotations

from collections.abc import Sequence

from unshard.schema.definition import Check, ForeignKey, KeyDefinition, TableDefinition
from unshard.schema.operations import (
    AddCheck,
    AddColumn,
    AddForeignKey,
    AddKey,
    AlterKey,
    ChangeColumn,
    DropColumn,
    DropConstraint,
    DropForeignKey,
    DropKey,
    Operation,
    RenameColumn,
    RenameKey,
    SetDefault,
)


def without_void(operations: Sequence[Operation], before: TableDefinition) -> list[Operation]:
    """Return the operations that do something to the table `before`.

    Nothing is absent from a table without columns, which stands for one that is not known.
    """
    return [operation for operation in operations if not _is_void(operation, before)]


def _is_void(operation: Operation, before: TableDefinition) -> bool:
    """Return whether an operation does nothing.

    An ADD … IF NOT EXISTS finds something of its name, or an operation with IF EXISTS finds nothing.
    """
    match operation:
        case AddColumn(written, if_not_exists=True):
            return before.column(written.column.name) is not None
        case AddKey(key, if_not_exists=True):
            return bool(key.name) and before.key(key.name) is not None
        case AddForeignKey(key, if_not_exists=True):
            return key.name.lower() in _names(before.foreign_keys)
        case AddCheck(check, if_not_exists=True):
            return check.name.lower() in _names(before.checks)
    return bool(before.columns) and _finds_nothing(operation, before)


def _finds_nothing(operation: Operation, before: TableDefinition) -> bool:
    match operation:
        case DropColumn(name, True) | SetDefault(name, if_exists=True):
            return before.column(name) is None
        case RenameColumn(old, if_exists=True) | ChangeColumn(old, if_exists=True):
            return before.column(old) is None
        case DropKey(name, True) | RenameKey(name, if_exists=True) | AlterKey(name, if_exists=True):
            return before.key(name) is None
        case DropForeignKey(name, True):
            return name.lower() not in _names(before.foreign_keys)
        case DropConstraint(name, True):
            return name.lower() not in _names((*before.checks, *before.foreign_keys, *before.keys))
    return False


def _names(found: Sequence[Check | ForeignKey | KeyDefinition]) -> set[str]:
    return {one.name.lower() for one in found if one.name}
