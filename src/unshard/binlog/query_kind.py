"""The kind of a QUERY event, by the text of its statement."""

from __future__ import annotations

import re
from enum import Enum


class QueryKind(Enum):
    """The kind of a query, by its effect on the walk over the log."""

    BEGIN = "begin"
    COMMIT = "commit"
    ROLLBACK = "rollback"
    ROLLBACK_TO = "rollback to savepoint"
    SAVEPOINT = "savepoint"
    XA = "xa"
    CHANGE = "rows changed by a statement"
    NOISE = "nothing to do"
    STATEMENT = "statement"


_GAP = re.compile(
    r"""(?: \s+ | --(?=\s|\Z)[^\n]* | \#[^\n]* | /\*(?!M?!)(?:.|\n)*?\*/   # white space, comments
          | /\*M?!\d* | \*/                                              # the marks around text for some versions
          | \( )""",
    re.VERBOSE,
)
_WORD = re.compile(r"[A-Za-z_]+")
_CHANGES = frozenset({"INSERT", "UPDATE", "DELETE", "REPLACE", "LOAD", "SELECT", "WITH", "CALL", "DO", "HANDLER"})
_BOUNDS = {"BEGIN": QueryKind.BEGIN, "COMMIT": QueryKind.COMMIT, "SAVEPOINT": QueryKind.SAVEPOINT, "XA": QueryKind.XA}


def classify(sql: str) -> QueryKind:
    """Return the kind of a QUERY's statement. Comments before a word count as gaps, `/*! … */` as its content."""
    words = first_words(sql, 5)
    if not words:
        return QueryKind.STATEMENT if sql[_after_gaps(sql, 0) :] else QueryKind.NOISE
    if words[:3] == ["CREATE", "OR", "REPLACE"]:
        del words[1:3]
    first, second, third = (*words, "", "")[:3]
    if first == "ROLLBACK":
        return QueryKind.ROLLBACK_TO if "TO" in (second, third) else QueryKind.ROLLBACK
    if (first, second) == ("START", "TRANSACTION"):
        return QueryKind.BEGIN
    if (first, second) == ("RELEASE", "SAVEPOINT"):
        return QueryKind.SAVEPOINT
    if first in _CHANGES:
        return QueryKind.CHANGE
    # of a temporary table, which nobody but its own session sees, row format logs only that it is dropped
    if second == "TEMPORARY" and (first == "DROP" or (first == "CREATE" and third != "TABLE")):
        return QueryKind.NOISE
    return _BOUNDS.get(first, QueryKind.STATEMENT)


def first_words(sql: str, count: int) -> list[str]:
    """Return the first words of a statement in upper case; fewer where something follows that isn't a word."""
    words: list[str] = []
    at = _after_gaps(sql, 0)
    while len(words) < count and (word := _WORD.match(sql, at)):
        words.append(word.group().upper())
        at = _after_gaps(sql, word.end())
    return words


def _after_gaps(sql: str, at: int) -> int:
    while gap := _GAP.match(sql, at):
        at = gap.end()
    return at
