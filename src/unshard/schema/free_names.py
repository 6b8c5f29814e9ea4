"""Rearranges an ALTER TABLE in which columns or keys take over each other's names.

MySQL and MariaDB assign all new names of a statement at once. TiDB checks each change against the table from before the
statement, and refuses a name that is taken there (errors 1060 and 1061). So a name that passes to another column or
key is freed first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

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


def with_free_names(operations: Sequence[Operation], before: TableDefinition) -> list[Operation]:
    """Return the operations so arranged that no column or key gets a name before its last bearer is renamed or dropped.

    A column or key whose name passes to another is renamed twice, first to a name that nothing else has. A dropped
    column whose name passes to another column is dropped first. An operation that its IF EXISTS or IF NOT EXISTS makes
    void is left out.
    """
    first: list[Operation] = []
    rest: list[Operation] = []
    wanted = [operation for operation in operations if not _is_void(operation, before)]
    columns, keys = _new_names(wanted)
    for operation in wanted:
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
