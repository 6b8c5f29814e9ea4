"""Compares two SHOW CREATE texts: they may mean the same although a server may write one structure in several ways.

| written | where it means nothing |
|---|---|
| AUTO_INCREMENT = n | everywhere: it is data |
| CHARACTER SET of a column | before its collation |
| COLLATE of a column | where it is that of the table; MySQL writes it if the statement that made the column did |
| DEFAULT NULL | everywhere: MySQL omits it after ALTER … DROP DEFAULT, and a copy made from that text has it |
| blanks, capitals of keywords, version marks | everywhere |
"""

from __future__ import annotations

from collections.abc import Sequence

from unshard.mysql.collations import default_collation
from unshard.schema.definition import INTEGER_TYPES
from unshard.schema.lex import TokenKind, tokens

_COUNTER, _NO_DEFAULT, _COLUMN_CHARSET = ["AUTO_INCREMENT", "="], ["DEFAULT", "NULL"], ["CHARACTER", "SET"]


def same(one: str | None, other: str | None) -> bool:
    """Return whether two SHOW CREATE texts of one server product mean the same.

    None: the table is missing.
    """
    return normal(one) == normal(other)


def alike(one: str | None, other: str | None) -> bool:
    """Return whether two texts are `same` apart from plain keys over exactly the columns of a foreign key.

    A server makes such a key for a foreign key, and renames or drops it with later statements. A key that was made by
    the text of SHOW CREATE, as on a copy, stays.
    """
    return _without_made_keys(normal(one)) == _without_made_keys(normal(other))


def without_widths(parts: Sequence[str]) -> tuple[str, ...]:
    """Return the parts of `normal` without the display widths of integers."""
    kept: list[str] = []
    at = 0
    while at < len(parts):
        kept.append(parts[at])
        shown = parts[at].lower() in INTEGER_TYPES and [*parts[at + 1 : at + 2], *parts[at + 3 : at + 4]] == ["(", ")"]
        at += 4 if shown else 1
    return tuple(kept)


def adds_only(found: str | None, wanted: str | None) -> bool:
    """Return whether a table has everything in `wanted`, in its order and wording, and maybe more columns and keys."""
    if found is None or wanted is None:
        return found is wanted
    there, asked = (_definitions(normal(text) or ()) for text in (found, wanted))
    rest = iter(there[1:-1])
    return (there[0], there[-1]) == (asked[0], asked[-1]) and all(one in rest for one in asked[1:-1])


def _definitions(parts: Sequence[str]) -> list[tuple[str, ...]]:
    """Return the words before the outer bracket, each definition in it, and the options after it."""
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
    """Return the bracket that begins at this index up to the first closing one; empty where none begins there."""
    return parts[at : parts.index(")", at) + 1] if parts[at : at + 1] == ("(",) else ()


def normal(text: str | None) -> tuple[str, ...] | None:
    """Return the text in a form that is equal for equal structures. Pure."""
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
    """Return the collation at this place, given by name or by its character set, and the index after it."""
    charset = ""
    if list(parts[at : at + 2]) == _COLUMN_CHARSET:
        charset, at = parts[at + 2], at + 3
    if list(parts[at : at + 1]) == ["COLLATE"]:
        return parts[at + 1].lower(), at + 2
    return default_collation(charset), at


def _of_table(parts: Sequence[str]) -> str:
    """Return the collation in a table's options; "" where they name none."""
    for at in range(len(parts) - 2):
        if parts[at] == "CHARSET" and parts[at + 1] == "=":
            if list(parts[at + 3 : at + 5]) == ["COLLATE", "="]:
                return parts[at + 5].lower()
            return default_collation(parts[at + 2])
    return ""
