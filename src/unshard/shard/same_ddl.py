"""Tells whether statements of several shards are the same DDL."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache

from unshard.errors import DdlError
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
    `LOCK=…`), the counter of a shard (`AUTO_INCREMENT=…`), and a COLUMN that may be omitted; synonyms become one word.
    """
    return _written(_telling(statement))


def _tokens(statement: str) -> tuple[Token, ...]:
    """Return the tokens of a statement whose session is not known; a backslash may be a letter there."""
    try:
        return tokens(statement)
    except DdlError:
        return tokens(statement, backslash_escapes=False)


def _written(found: Sequence[Token]) -> str:
    return " ".join(map(_normal, found))


def _normal(token: Token) -> str:
    if token.kind in (TokenKind.STRING, TokenKind.SYMBOL):
        return token.value
    text = token.value.lower()
    return _SAME_WORDS.get(text, text) if token.kind is TokenKind.WORD else text


def _telling(statement: str) -> list[Token]:
    """Return the tokens that say what a statement does. In brackets `algorithm` is a column's name."""
    found = _tokens(statement)
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
    """Return how many tokens at the beginning say how the statement is run, or set a counter; 0 if they don't.

    Without `=` they say how only where no name is possible.
    """
    if found[0].word == "AUTO_INCREMENT":
        length = 3 if len(found) == 3 and found[1].is_symbol("=") else 2
        return length if len(found) >= length and found[length - 1].value.isdigit() else 0
    if len(found) == 3 and found[0].word in _MANNERS and found[1].is_symbol("="):
        return 3
    begins = bool(before) and (before[-1].is_symbol(",") or before[-1].is_symbol(")"))
    return 2 if begins and len(found) > 1 and found[1].word in _MANNERS.get(found[0].word, ()) else 0


def same(one: Sequence[str], other: Sequence[str]) -> bool:
    """Return whether two lists of statements are the same DDL.

    A statement that only sets a counter does not count: gh-ost runs one with the counter that the shard has.
    """
    return list(one) == list(other) or _forms(one, normalised) == _forms(other, normalised)


def _forms(statements: Sequence[str], form: Callable[[str], str]) -> tuple[str, ...]:
    return tuple(form(statement) for statement in statements if not only_sets_counter(statement))


@lru_cache(maxsize=1 << 14)
def only_sets_counter(statement: str) -> bool:
    """Return whether nothing but the table's name is left of an ALTER TABLE."""
    found = _telling(statement)
    name = 3 if any(token.is_symbol(".") for token in found[3:4]) else 1
    return [token.word for token in found[:2]] == ["ALTER", "TABLE"] and len(found) == 2 + name


def same_but_for_places(one: Sequence[str], other: Sequence[str]) -> bool:
    """Return whether two lists of statements are the same DDL, apart from where it puts columns (FIRST, AFTER)."""
    return but_for_places(one) == but_for_places(other)


def but_for_places(statements: Sequence[str]) -> tuple[str, ...]:
    """Return a form of the statements that is equal for those that are the same DDL but for its columns' places."""
    return _forms(statements, _placeless)


@lru_cache(maxsize=1 << 14)
def _placeless(statement: str) -> str:
    """Return a statement's normal form without the places of its columns.

    A place ends an operation that defines a column, behind the column's name and type.
    """
    operations: list[list[Token]] = [[]]
    depth = 0
    for token in _telling(statement):
        depth += token.is_symbol("(") - token.is_symbol(")")
        if depth == 0 and token.is_symbol(","):
            operations.append([])
        operations[-1].append(token)
    return _written([token for operation in operations for token in _without_place(operation)])


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
