"""A table's partitions after an ALTER TABLE. They are the text from PARTITION BY on."""

from __future__ import annotations

import re
from collections.abc import Sequence

from unshard.schema.lex import Token, TokenKind, tokens
from unshard.schema.operations import Partitioning
from unshard.schema.words import NotUnderstoodError

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
    head, listed, rest = partition_definitions(partitions)
    if verb == "ADD":
        _, added, _ = partition_definitions(operation.text)
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
    _, made, _ = partition_definitions(operation.text[found[into].end :])
    place = next((number for number, one in enumerate(listed) if _name(one) in gone), len(listed))
    return [*listed[:place], *made, *(one for one in listed[place:] if _name(one) not in gone)]


def partition_definitions(text: str) -> tuple[str, list[str], str]:
    """Return the text before the list of partitions, the definitions in the list, and the text after it.

    Raises NotUnderstoodError where the text has no such list.
    """
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
