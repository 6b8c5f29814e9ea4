"""The partitions of a table as a value: two tables with equal ones have the same partitions, however they are written.

| written | where it means nothing |
|---|---|
| capitals of names and functions, quotes of names, blanks, version marks | everywhere |
| brackets around a whole expression, and around MAXVALUE | everywhere |
| ENGINE, COMMENT and other options of a partition | everywhere |
| PARTITIONS n | beside a list of the partitions |
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from unshard.schema.lex import Token, TokenKind, tokens
from unshard.schema.partitions import partition_definitions
from unshard.schema.words import NotUnderstoodError

_BY_NUMBER = frozenset({"HASH", "KEY"})
_METHODS = frozenset({"LINEAR", "RANGE", "LIST", "HASH", "KEY", "COLUMNS", "SYSTEM_TIME"})


@dataclass(frozen=True, slots=True)
class PartitionOptions:
    """The partitions of a table.

    Args:
        method: `RANGE`, `LIST COLUMNS`, `LINEAR HASH`, `KEY`, `KEY ALGORITHM = 1`, `SYSTEM_TIME …`.
        expression: the words of the expression or of the list of columns; empty for `KEY ()`.
        sub: the words of SUBPARTITION BY; empty without subpartitions.
        parts: by partition in order, its name in lower case and the words of its bounds.
        names: the words of both expressions that may be names of columns, in lower case.
    """

    method: str
    expression: tuple[str, ...]
    sub: tuple[str, ...]
    parts: tuple[tuple[str, tuple[str, ...]], ...]
    names: frozenset[str] = field(compare=False)

    @property
    def words(self) -> frozenset[str]:
        """The words of the method and of the subpartitions' method."""
        return _METHODS & {*self.method.split(), *self.sub}


def partition_options(create_sql: str) -> PartitionOptions | None:
    """Return the partitions of a table, read from its SHOW CREATE TABLE or CREATE TABLE; None without any."""
    found = tokens(create_sql)
    depths = list(_depths(found))
    for at in range(len(found) - 1):
        if depths[at] == 0 and (found[at].word, found[at + 1].word) == ("PARTITION", "BY"):
            return _read(create_sql[found[at + 1].end :])
    return None


def _read(text: str) -> PartitionOptions:
    try:
        start, listed, _ = partition_definitions(text)
    except NotUnderstoodError:
        start, listed = text, []
    head = tokens(start)
    by = next((at for at, token in enumerate(head) if token.word == "SUBPARTITION"), len(head))
    method, expression, count = _method(head[:by])
    sub: tuple[str, ...] = ()
    if by < len(head):
        kind, words, number = _method(head[by + 2 :])
        sub = (*kind.split(), "(", *words, ")", str(number))
    parts = tuple(_part(tokens(one)) for one in listed)
    if not parts and _BY_NUMBER & set(method.split()):
        parts = tuple((f"p{number}", ()) for number in range(count))
    return PartitionOptions(method, expression, sub, parts, frozenset(_names(head)))


def _method(head: Sequence[Token]) -> tuple[str, tuple[str, ...], int]:
    """Return the method, the expression's words, and the number of partitions, which is 1 where none is told."""
    start = next((at for at, token in enumerate(head) if token.is_symbol("(")), len(head))
    end = _closing(head, start)
    method = " ".join(_plain(token, names=False) for token in head[:start])
    behind = [token.word for token in head[end + 1 :]]
    counted = next((int(number) for number in behind if number.isdigit()), 1)
    return method, _unwrapped([_plain(token) for token in head[start + 1 : end]]), counted


def _part(definition: Sequence[Token]) -> tuple[str, tuple[str, ...]]:
    """Return the name of `PARTITION name …` and the words of its bounds; without bounds those that tell its kind."""
    name, rest = definition[1].value.lower(), definition[2:]
    words = [token.word for token in rest[:3]]
    if words[:1] == ["VALUES"]:
        start = next((at for at, token in enumerate(rest) if token.is_symbol("(")), len(rest))
        if words[1:3] == ["LESS", "THAN"] and start != 3:
            return name, ("LESS", "MAXVALUE")
        bounds = _unwrapped([_plain(token, names=False) for token in rest[start + 1 : _closing(rest, start)]])
        kind = words[1]
        return name, ("DEFAULT",) if bounds == ("DEFAULT",) else (kind, *bounds)
    subs = [rest[at + 1].value.lower() for at, token in enumerate(rest[:-1]) if token.word == "SUBPARTITION"]
    return name, (*(word for word in words[:1] if word in ("DEFAULT", "HISTORY", "CURRENT")), *subs)


def _names(head: Sequence[Token]) -> Iterator[str]:
    """Yield what may name a column: no word before a bracket, which is a function or a keyword."""
    for at, token in enumerate(head):
        called = at + 1 < len(head) and head[at + 1].is_symbol("(")
        if token.kind is TokenKind.NAME or (token.kind is TokenKind.WORD and not called):
            yield token.value.lower()


def _plain(token: Token, *, names: bool = True) -> str:
    """Return a token's text as it is compared: a name or function in lower case, a keyword in capitals."""
    if token.kind is TokenKind.STRING:
        quote = token.value[0]
        return repr(token.value[1:-1].replace(quote * 2, quote))
    return token.value.lower() if names else token.word or token.value


def _unwrapped(words: list[str]) -> tuple[str, ...]:
    """Return an expression without brackets around the whole of it."""
    while len(words) > 1 and words[0] == "(" and _pair(words) == len(words) - 1:
        words = words[1:-1]
    return tuple(words)


def _pair(words: Sequence[str]) -> int:
    """Return the index of the bracket that closes the first one."""
    depth = 0
    for at, word in enumerate(words):
        depth += (word == "(") - (word == ")")
        if depth == 0:
            return at
    return len(words)


def _closing(found: Sequence[Token], start: int) -> int:
    """Return the index of the bracket that closes the one at `start`; the end where there is none."""
    depth = 0
    for at in range(start, len(found)):
        depth += found[at].is_symbol("(") - found[at].is_symbol(")")
        if depth == 0:
            return at
    return len(found)


def _depths(found: Sequence[Token]) -> Iterator[int]:
    """Yield how many brackets are open before each token."""
    depth = 0
    for token in found:
        depth -= token.is_symbol(")")
        yield depth
        depth += token.is_symbol("(")
