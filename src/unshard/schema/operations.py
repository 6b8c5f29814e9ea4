"""The operations of ALTER TABLE, as values. `schema.statements` reads them, `schema.alter` applies them."""

from __future__ import annotations

from dataclasses import dataclass

from unshard.schema.definition import Check, ColumnDefinition, Default, ForeignKey, KeyDefinition

Position = str | None
"""A column's place: None for where it is, or the end for a new one; "" for the front; else the column that it follows.
"""

END: Position = None
FRONT: Position = ""


@dataclass(frozen=True, slots=True)
class ColumnClause:
    """A column as a statement defines it, with the keys and constraints in its definition."""

    column: ColumnDefinition
    keys: tuple[KeyDefinition, ...] = ()
    foreign_keys: tuple[ForeignKey, ...] = ()


@dataclass(frozen=True, slots=True)
class AddColumn:
    """ADD COLUMN."""

    written: ColumnClause
    position: Position = END
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True)
class ChangeColumn:
    """CHANGE COLUMN, or MODIFY COLUMN, for which the old and the new name are equal."""

    old: str
    written: ColumnClause
    position: Position = END
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class DropColumn:
    """DROP COLUMN."""

    name: str
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class RenameColumn:
    """RENAME COLUMN."""

    old: str
    new: str
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class SetDefault:
    """ALTER COLUMN … SET DEFAULT. If `default` is None: DROP DEFAULT."""

    name: str
    default: Default | None
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class SetVisibility:
    """ALTER COLUMN … SET VISIBLE or INVISIBLE."""

    name: str
    invisible: bool


@dataclass(frozen=True, slots=True)
class AddKey:
    """ADD of a primary key, a unique key or an index."""

    key: KeyDefinition
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True)
class AddForeignKey:
    """ADD FOREIGN KEY."""

    foreign_key: ForeignKey
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True)
class AddCheck:
    """ADD CHECK."""

    check: Check
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True)
class DropKey:
    """DROP KEY, DROP INDEX or DROP PRIMARY KEY; the primary key's name is PRIMARY."""

    name: str
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class DropForeignKey:
    """DROP FOREIGN KEY."""

    name: str
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class DropConstraint:
    """DROP CHECK or DROP CONSTRAINT. The constraint is a check, a foreign key or a key."""

    name: str
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class RenameKey:
    """RENAME INDEX."""

    old: str
    new: str
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class AlterKey:
    """ALTER INDEX … VISIBLE, INVISIBLE, IGNORED or NOT IGNORED."""

    name: str
    invisible: bool
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class AlterCheck:
    """ALTER CHECK or ALTER CONSTRAINT with ENFORCED or NOT ENFORCED."""

    name: str
    enforced: bool


@dataclass(frozen=True, slots=True)
class ConvertCharset:
    """CONVERT TO CHARACTER SET; an empty `charset` means DEFAULT."""

    charset: str
    collation: str = ""


@dataclass(frozen=True, slots=True)
class SetOptions:
    """Table options in the form of `TableDefinition`. `counter` is the AUTO_INCREMENT value."""

    charset: str = ""
    collation: str = ""
    options: tuple[tuple[str, str], ...] = ()
    counter: str = ""


@dataclass(frozen=True, slots=True)
class Partitioning:
    """An operation on partitions. `text` is the whole operation, `words` are its first two words in capitals."""

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
