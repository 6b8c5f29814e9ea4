"""Single changes of a table on TiDB, and which of them share an ALTER TABLE."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from unshard.schema.definition import ColumnDefinition, KeyDefinition
from unshard.schema.lex import TokenKind, tokens
from unshard.schema.operations import END, Position


@dataclass(frozen=True, slots=True)
class TidbChange:
    """One change of a table, as it is written in an ALTER TABLE for TiDB.

    Several changes share a statement, except a change that is `alone`, one that changes the same column or key as
    another change, and one that needs a column (`needed`) which another change makes. Names are in lower case.
    """

    text: str
    columns: frozenset[str] = frozenset()
    keys: frozenset[str] = frozenset()
    needed: frozenset[str] = frozenset()
    alone: bool = False

    def goes_with(self, others: Sequence[TidbChange]) -> bool:
        """Return whether the change can share a statement with the others, which are before it."""
        if self.alone or any(other.alone for other in others):
            return False
        return not any(
            self.columns & (other.columns | other.needed) or self.needed & other.columns or self.keys & other.keys
            for other in others
        )


def grouped(changes: Sequence[TidbChange]) -> list[list[TidbChange]]:
    """Return the changes of each statement, in order."""
    groups: list[list[TidbChange]] = []
    for change in changes:
        if groups and change.goes_with(groups[-1]):
            groups[-1].append(change)
        else:
            groups.append([change])
    return groups


def names_in(expression: str | None) -> frozenset[str]:
    """Return every word and name in an expression, in lower case: the columns that it reads are among them."""
    kinds = (TokenKind.WORD, TokenKind.NAME)
    return frozenset(token.value.lower() for token in tokens(expression or "") if token.kind in kinds)


def columns_of(key: KeyDefinition) -> frozenset[str]:
    """Return the columns of a key in lower case, and every name in its expressions."""
    return frozenset(filter(None, key.columns)).union(*(names_in(part.expression) for part in key.parts))


def needed_by(*columns: ColumnDefinition | None, after: Position = END) -> frozenset[str]:
    """Return the columns that must be there for others, in lower case.

    They are every name in the expressions of `columns`, and the column `after` which one is placed.
    """
    found = [names_in(column.generated) for column in columns if column is not None]
    return frozenset({after.lower()} if after else ()).union(*found)
