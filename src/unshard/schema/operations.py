"""The operations of ALTER TABLE, as values. `schema.statements` reads them, `schema.alter` applies them."""

from __future__ import annotations

from dataclasses import dataclass

from unshard.schema.definition import Check, ColumnDefinition, Default, ForeignKey, KeyDefinition

Position = str | None
"""Where a column goes: None for its place or the end, "" for the front, else the column that it stands behind."""

END: Position = None
FRONT: Position = ""


@dataclass(frozen=True, slots=True)
class ColumnClause:
    """A column as a statement defines it, with the keys and constraints that stand in its definition."""

    column: ColumnDefinition
    keys: tuple[KeyDefinition, ...] = ()
    foreign_keys: tuple[ForeignKey, ...] = ()


@dataclass(frozen=True, slots=True)
class AddColumn:
    written: ColumnClause
    position: Position = END
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True)
class ChangeColumn:
    """CHANGE, and MODIFY, where both names are one."""

    old: str
    written: ColumnClause
    position: Position = END
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class DropColumn:
    name: str
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class RenameColumn:
    old: str
    new: str
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class SetDefault:
    """ALTER COLUMN … SET DEFAULT, or DROP DEFAULT, where `default` is None."""

    name: str
    default: Default | None


@dataclass(frozen=True, slots=True)
class SetVisibility:
    """ALTER COLUMN … SET VISIBLE or INVISIBLE."""

    name: str
    invisible: bool


@dataclass(frozen=True, slots=True)
class AddKey:
    key: KeyDefinition
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True)
class AddForeignKey:
    foreign_key: ForeignKey
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True)
class AddCheck:
    check: Check
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True)
class DropKey:
    """DROP KEY, DROP INDEX and DROP PRIMARY KEY, whose name is PRIMARY."""

    name: str
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class DropForeignKey:
    name: str
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class DropConstraint:
    """DROP CHECK, or DROP CONSTRAINT: a check, a foreign key or a key."""

    name: str
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class RenameKey:
    old: str
    new: str


@dataclass(frozen=True, slots=True)
class AlterKey:
    """ALTER INDEX … VISIBLE, INVISIBLE, IGNORED or NOT IGNORED."""

    name: str
    invisible: bool


@dataclass(frozen=True, slots=True)
class AlterCheck:
    """ALTER CHECK or ALTER CONSTRAINT: `rest` is ENFORCED or NOT ENFORCED."""

    name: str
    enforced: bool


@dataclass(frozen=True, slots=True)
class ConvertCharset:
    """CONVERT TO CHARACTER SET; an empty `charset` stands for DEFAULT."""

    charset: str
    collation: str = ""


@dataclass(frozen=True, slots=True)
class SetOptions:
    """Table options, as `TableDefinition` has them. `counter`: AUTO_INCREMENT."""

    charset: str = ""
    collation: str = ""
    options: tuple[tuple[str, str], ...] = ()
    counter: str = ""


@dataclass(frozen=True, slots=True)
class Partitioning:
    """An operation on partitions. `text` is all of it, `words` its first two in capitals."""

    words: tuple[str, str]
    text: str


@dataclass(frozen=True, slots=True)
class SetVersioning:
    """MariaDB: ADD or DROP SYSTEM VERSIONING."""

    on: bool


@dataclass(frozen=True, slots=True)
class NoChange:
    """An operation that leaves the definition as it is: FORCE, ORDER BY, ENABLE KEYS, RENAME TO, ALGORITHM = x."""

    words: tuple[str, ...]


Operation = (
    AddColumn
    | ChangeColumn
    | DropColumn
    | RenameColumn
    | SetDefault
    | SetVisibility
    | AddKey
    | AddForeignKey
    | AddCheck
    | DropKey
    | DropForeignKey
    | DropConstraint
    | RenameKey
    | AlterKey
    | AlterCheck
    | ConvertCharset
    | SetOptions
    | Partitioning
    | SetVersioning
    | NoChange
)
