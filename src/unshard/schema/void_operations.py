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

    MariaDB looks for what an operation names in the table from before the statement, whatever other operations of it
    drop or rename; an ADD … IF NOT EXISTS finds an earlier ADD of the statement, too. Nothing is absent from a table
    without columns, which stands for one that is not known.
    """
    found, added = list[Operation](), set[tuple[str, str]]()
    for operation in operations:
        thing = _added(operation)
        if _is_void(operation, before) or (thing in added and _has_condition(operation)):
            continue
        found.append(operation)
        added |= {thing} if thing is not None else set()
    return found


def _added(operation: Operation) -> tuple[str, str] | None:
    """Return the kind and the name, in lower case, of what an operation adds by a name; None for any other."""
    match operation:
        case AddColumn(written):
            kind, name = "column", written.column.name
        case AddKey(key):
            kind, name = "key", key.name
        case AddForeignKey(foreign_key):
            kind, name = "foreign key", foreign_key.name
        case AddCheck(check):
            kind, name = "check", check.name
        case _:
            return None
    return (kind, name.lower()) if name else None


def _has_condition(operation: Operation) -> bool:
    return isinstance(operation, AddColumn | AddKey | AddForeignKey | AddCheck) and operation.if_not_exists


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
