"""Tells whether statements of several shards are the same DDL."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from unshard.schema.lex import Token, TokenKind, tokens

_LEAVES_COLUMN_OUT = frozenset({"ADD", "ALTER", "CHANGE", "DROP", "MODIFY"})
_MANNERS = {
    "ALGORITHM": frozenset({"COPY", "DEFAULT", "INPLACE", "INSTANT", "NOCOPY"}),
    "LOCK": frozenset({"DEFAULT", "EXCLUSIVE", "NONE", "SHARED"}),
}
_NAMES_BEFORE_TYPE = {"ADD": 1, "CHANGE": 2, "MODIFY": 1}
"""Operations that define a column: how many names stand before its type."""

_SAME_WORDS = {"key": "index", "integer": "int"}


def normalised(statement: str) -> str:
    """Return a statement's text in a form that is equal for statements which do the same.

    It leaves out comments, blanks, quotes of names, the case of words, how a statement is run (`ALGORITHM=…`,
    `LOCK=…`), and a COLUMN that may be omitted; synonyms become one word.
    """
    return " ".join(map(_normal, _telling(tokens(statement))))


def _normal(token: Token) -> str:
    if token.kind in (TokenKind.STRING, TokenKind.SYMBOL):
        return token.value
    text = token.value.lower()
    return _SAME_WORDS.get(text, text) if token.kind is TokenKind.WORD else text


def _telling(found: Sequence[Token]) -> list[Token]:
    """Return the tokens that say what a statement does. In brackets `algorithm` is a column's name."""
    kept: list[Token] = []
    at = depth = 0
    while at < len(found):
        depth += found[at].is_symbol("(") - found[at].is_symbol(")")
        if depth == 0 and (length := _manner(found[at : at + 3], kept)):
            at += length
            if kept and kept[-1].is_symbol(","):
                kept.pop()
            elif at < len(found) and found[at].is_symbol(","):
                at += 1
            continue
        if found[at].word != "COLUMN" or not kept or kept[-1].word not in _LEAVES_COLUMN_OUT:
            kept.append(found[at])
        at += 1
    while kept and kept[-1].is_symbol(";"):
        kept.pop()
    return kept


def _manner(found: Sequence[Token], before: Sequence[Token]) -> int:
    """Return how many tokens at the beginning say how the statement is run; 0 if they don't.

    Without `=` they do so only where no name is possible.
    """
    if len(found) == 3 and found[0].word in _MANNERS and found[1].is_symbol("="):
        return 3
    begins = bool(before) and (before[-1].is_symbol(",") or before[-1].is_symbol(")"))
    return 2 if begins and len(found) > 1 and found[1].word in _MANNERS.get(found[0].word, ()) else 0


def same(one: Sequence[str], other: Sequence[str]) -> bool:
    """Return whether two lists of statements are the same DDL."""
    return len(one) == len(other) and all(map(_equal, one, other))


def _equal(one: str, other: str) -> bool:
    return one == other or normalised(one) == normalised(other)


def same_but_for_places(one: Sequence[str], other: Sequence[str]) -> bool:
    """Return whether two lists of statements are the same DDL, apart from where it puts columns (FIRST, AFTER)."""
    return but_for_places(one) == but_for_places(other)


def but_for_places(statements: Sequence[str]) -> tuple[str, ...]:
    """Return a form of the statements that is equal for those that are the same DDL but for its columns' places."""
    return tuple(map(_placeless, statements))


@lru_cache(maxsize=1 << 14)
def _placeless(statement: str) -> str:
    """Return a statement's normal form without the places of its columns.

    A place ends an operation that defines a column, behind the column's name and type.
    """
    operations: list[list[Token]] = [[]]
    depth = 0
    for token in _telling(tokens(statement)):
        depth += token.is_symbol("(") - token.is_symbol(")")
        if depth == 0 and token.is_symbol(","):
            operations.append([])
        operations[-1].append(token)
    return " ".join(_normal(token) for operation in operations for token in _without_place(operation))


def _without_place(operation: Sequence[Token]) -> Sequence[Token]:
    begins = next((at for at, token in enumerate(operation) if token.word in _NAMES_BEFORE_TYPE), None)
    if begins is None:
        return operation
    name = begins + 1
    if name < len(operation) and operation[name].word == "IF":
        name = next((at for at, token in enumerate(operation) if at > name and token.word == "EXISTS"), name) + 1
    behind_type = name + _NAMES_BEFORE_TYPE[operation[begins].word] + 1  # in `CHANGE a after INT` it is a name
    rest = operation[behind_type:]
    if len(rest) >= 2 and rest[-2].word == "AFTER":
        return operation[:-2]
    return operation[:-1] if rest and rest[-1].word == "FIRST" else operation
