"""The operations of ALTER TABLE, as values. `schema.statements` reads them, `schema.alter` applies them.

A table's partitions are the text from PARTITION BY on; `repartitioned` applies the operations that change them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from unshard.schema.definition import Check, ColumnDefinition, Default, ForeignKey, KeyDefinition
from unshard.schema.lex import NotUnderstoodError, Token, TokenKind, tokens

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
    """CHANGE, or MODIFY, where the old and the new name are the same."""

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


@dataclass(frozen=True, slots=True)
class AlterKey:
    """ALTER INDEX … VISIBLE, INVISIBLE, IGNORED or NOT IGNORED."""

    name: str
    invisible: bool


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


_ROWS_ONLY = frozenset(
    {"TRUNCATE", "ANALYZE", "CHECK", "OPTIMIZE", "REBUILD", "REPAIR", "EXCHANGE", "DISCARD", "IMPORT"}
)
"""Operations that leave the definition of the partitions unchanged."""

_COUNT = re.compile(r"\bPARTITIONS\s+(\d+)", re.IGNORECASE)


def repartitioned(partitions: str, operation: Partitioning) -> str:
    """Return the text of the partitions after the operation. Raises NotUnderstoodError."""
    verb = operation.words[0]
    if verb == "PARTITION":
        return operation.text
    if verb == "REMOVE":
        return ""
    if verb in _ROWS_ONLY:
        return partitions
    found = tokens(operation.text)
    if verb == "COALESCE":
        return _counted(partitions, -int(found[-1].value))
    if verb == "ADD" and any(token.word == "PARTITIONS" for token in found):
        return _counted(partitions, int(found[-1].value))
    head, listed, rest = _definitions(partitions)
    if verb == "ADD":
        _, added, _ = _definitions(operation.text)
        kept = listed + added
    elif verb == "DROP":
        gone = {_plain(token.value) for token in found[2:] if token.kind in (TokenKind.WORD, TokenKind.NAME)}
        kept = [one for one in listed if _name(one) not in gone]
    elif verb == "REORGANIZE":
        kept = _reorganized(listed, operation, found)
    else:
        raise NotUnderstoodError(f"{verb} of partitions")
    return f"{head}({', '.join(kept)}){rest}"


def _counted(partitions: str, more: int) -> str:
    found = _COUNT.search(partitions)
    if found is None:
        raise NotUnderstoodError("the number of partitions is not told")
    return f"{partitions[: found.start(1)]}{int(found[1]) + more}{partitions[found.end(1) :]}"


def _reorganized(listed: Sequence[str], operation: Partitioning, found: Sequence[Token]) -> list[str]:
    into = next((place for place, token in enumerate(found) if token.word == "INTO"), None)
    if into is None:
        return list(listed)
    gone = {_plain(token.value) for token in found[2:into] if token.kind in (TokenKind.WORD, TokenKind.NAME)}
    _, made, _ = _definitions(operation.text[found[into].end :])
    place = next((number for number, one in enumerate(listed) if _name(one) in gone), len(listed))
    return [*listed[:place], *made, *(one for one in listed[place:] if _name(one) not in gone)]


def _definitions(text: str) -> tuple[str, list[str], str]:
    """Return the text before the list of partitions, the definitions in the list, and the text after it."""
    found = tokens(text)
    depth, start, parts = 0, None, []
    opened = 0
    for place, token in enumerate(found):
        if token.is_symbol("("):
            depth += 1
            if depth == 1 and place + 1 < len(found) and found[place + 1].word == "PARTITION" and start is None:
                start, opened = token.end, token.start
        elif token.is_symbol(")"):
            depth -= 1
            if depth == 0 and start is not None:
                parts.append(text[start : token.start].strip())
                return text[:opened], parts, text[token.end :]
        elif token.is_symbol(",") and depth == 1 and start is not None:
            parts.append(text[start : token.start].strip())
            start = token.end
    raise NotUnderstoodError("the table's partitions are not listed")


def _name(definition: str) -> str:
    return _plain(tokens(definition)[1].value)


def _plain(name: str) -> str:
    return name.lower()
