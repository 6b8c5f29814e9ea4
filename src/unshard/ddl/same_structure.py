"""Whether two SHOW CREATE texts say the same, although a server may write one structure in several ways.

| written | where it says nothing |
|---|---|
| AUTO_INCREMENT = n | everywhere: it is data |
| CHARACTER SET of a column | before its collation |
| COLLATE of a column | where it is that of the table; MySQL writes it if the statement that made the column did |
| DEFAULT NULL | everywhere: MySQL leaves it out behind ALTER … DROP DEFAULT, and a copy made from that text has it |
| blanks, capitals of keywords, version marks | everywhere |
"""

from __future__ import annotations

from collections.abc import Sequence

from unshard.mysql.collations import default_collation
from unshard.schema.lex import TokenKind, tokens

_COUNTER, _NO_DEFAULT, _COLUMN_CHARSET = ["AUTO_INCREMENT", "="], ["DEFAULT", "NULL"], ["CHARACTER", "SET"]


def same(one: str | None, other: str | None) -> bool:
    """Whether two SHOW CREATE texts, of one server product, say the same; None stands for what isn't there."""
    return normal(one) == normal(other)


def alike(one: str | None, other: str | None) -> bool:
    """Whether they are `same` but for plain keys over just the columns of a foreign key.

    A server makes such a key for a foreign key, and renames or drops it with later statements; one that was made by
    the text of SHOW CREATE, as on a copy, stays.
    """
    return _without_made_keys(normal(one)) == _without_made_keys(normal(other))


def adds_only(found: str | None, wanted: str | None) -> bool:
    """Whether a table has all that `wanted` says, in its order and as it says it, and maybe more columns and keys."""
    if found is None or wanted is None:
        return found is wanted
    there, asked = (_definitions(normal(text) or ()) for text in (found, wanted))
    rest = iter(there[1:-1])
    return (there[0], there[-1]) == (asked[0], asked[-1]) and all(one in rest for one in asked[1:-1])


def _definitions(parts: Sequence[str]) -> list[tuple[str, ...]]:
    """What stands before the outer bracket, each definition in it, and the options behind it."""
    found: list[list[str]] = [[]]
    depth = 0
    for at, part in enumerate(parts):
        depth += (part == "(") - (part == ")")
        if (part == "(" and depth == 1) or (part == "," and depth == 1):
            found.append([])
        elif part == ")" and depth == 0:
            found.append(list(parts[at:]))
            break
        else:
            found[-1].append(part)
    return [tuple(one) for one in found]


def _without_made_keys(parts: tuple[str, ...] | None) -> tuple[str, ...] | None:
    if parts is None:
        return None
    listed = [_bracket(parts, at + 2) for at in range(len(parts)) if parts[at : at + 2] == ("FOREIGN", "KEY")]
    kept: list[str] = []
    at = 0
    while at < len(parts):
        columns = _bracket(parts, at + 3) if parts[at : at + 2] == (",", "KEY") else ()
        behind = at + 3 + len(columns)
        if columns in listed and parts[behind : behind + 1] in ((",",), (")",)):
            at = behind
        else:
            kept.append(parts[at])
            at += 1
    return tuple(kept)


def _bracket(parts: tuple[str, ...], at: int) -> tuple[str, ...]:
    """The bracket that begins there and whatever stands in it, up to the first that closes; empty where none begins."""
    return parts[at : parts.index(")", at) + 1] if parts[at : at + 1] == ("(",) else ()


def normal(text: str | None) -> tuple[str, ...] | None:
    """The text in a form that is equal for equal structures. Pure."""
    if text is None:
        return None
    parts = [
        f"`{token.value}`" if token.kind is TokenKind.NAME else token.word or token.value for token in tokens(text)
    ]
    own = _of_table(parts)
    kept: list[str] = []
    at = 0
    while at < len(parts):
        if parts[at : at + 2] == _COUNTER:
            at += 3
        elif parts[at : at + 2] == _NO_DEFAULT:
            at += 2
        elif parts[at : at + 2] == _COLUMN_CHARSET or (parts[at] == "COLLATE" and parts[at + 1 : at + 2] != ["="]):
            collation, at = _of_column(parts, at)
            kept.extend([] if collation == own else ["COLLATE", collation])
        else:
            kept.append(parts[at])
            at += 1
    return tuple(kept)


def _of_column(parts: Sequence[str], at: int) -> tuple[str, int]:
    """The collation said here, by itself or by its character set, and the place behind it."""
    charset = ""
    if list(parts[at : at + 2]) == _COLUMN_CHARSET:
        charset, at = parts[at + 2], at + 3
    if list(parts[at : at + 1]) == ["COLLATE"]:
        return parts[at + 1].lower(), at + 2
    return default_collation(charset), at


def _of_table(parts: Sequence[str]) -> str:
    """The collation in a table's options, "" where they say none."""
    for at in range(len(parts) - 2):
        if parts[at] == "CHARSET" and parts[at + 1] == "=":
            if list(parts[at + 3 : at + 5]) == ["COLLATE", "="]:
                return parts[at + 5].lower()
            return default_collation(parts[at + 2])
    return ""
