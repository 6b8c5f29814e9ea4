"""Name patterns: their meaning, their validation, and whether one covers or meets another.

========== ====================================================
``*``      any number of characters
``?``      one character
``[a-z]``  one character of a set; ``[!a-z]`` one outside of it
``~regex`` a regular expression, not anchored
========== ====================================================

In routes, filters and column mappings ``*`` is allowed only at the end, as in DM; in block-allow lists anywhere.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Annotated

from pydantic import AfterValidator

REGEX_MARK = "~"
LONGEST_NAME = 64


@dataclass(frozen=True, slots=True)
class OneOf:
    """A part of a pattern that matches one character: one within `ranges`, or with `outside` one outside all of them.

    `?` is outside of no range.
    """

    ranges: tuple[tuple[str, str], ...]
    outside: bool = False

    def has(self, character: str) -> bool:
        """Return whether the character is in the class."""
        return any(low <= character <= high for low, high in self.ranges) != self.outside

    def within(self, other: OneOf) -> bool:
        """Return whether `other` has every character that this token has."""
        return all(other.has(character) for character in self._samples(other) if self.has(character))

    def meets(self, other: OneOf) -> bool:
        """Return whether a character is in both."""
        return any(other.has(character) for character in self._samples(other) if self.has(character))

    def _samples(self, other: OneOf) -> set[str]:
        """Return characters that represent all: membership only changes at the edges of ranges."""
        edges = {edge for low, high in self.ranges + other.ranges for edge in (low, high)}
        near = {chr(ord(edge) + step) for edge in edges for step in (-1, 0, 1) if 0 <= ord(edge) + step < 0x110000}
        return {*near, "\0", "\U0010ffff"}


ANY_RUN = None
Token = OneOf | None  # None is `*`


def parse_wildcard(text: str, *, star_anywhere: bool = False) -> tuple[Token, ...]:
    """Return the tokens of a wildcard pattern. Raises ValueError that says what to write instead."""
    tokens: list[Token] = []
    rest = text
    while rest:
        head, rest = rest[0], rest[1:]
        if head == "*":
            if rest and not star_anywhere:
                raise ValueError("`*` may only be the last character; write a regular expression: ~^a.*b$")
            tokens.append(ANY_RUN)
        elif head == "?":
            tokens.append(OneOf((), outside=True))
        elif head == "[":
            inside, closed, rest = rest.partition("]")
            if not closed:
                raise ValueError("`[` has no `]`; close the set: [a-z]")
            tokens.append(_parse_set(inside))
        else:
            tokens.append(OneOf(((head, head),)))
    return tuple(tokens)


def _parse_set(inside: str) -> OneOf:
    members = inside.removeprefix("!")
    ranges = []
    while members:
        low, high = (members[0], members[2]) if members[1:2] == "-" and members[2:] else (members[0], members[0])
        if low > high:
            raise ValueError(f"the range {low}-{high} runs backwards; write {high}-{low}")
        ranges.append((low, high))
        members = members[3:] if members[1:2] == "-" and members[2:] else members[1:]
    if not ranges:
        raise ValueError("an empty set; write the characters inside: [a-z]")
    return OneOf(tuple(ranges), outside=inside.startswith("!"))


def fold(pattern: str, case_sensitive: bool) -> str:
    """Return the pattern in the case in which names are compared.

    A regular expression is unchanged; it is compiled to ignore case.
    """
    return pattern if case_sensitive or pattern.startswith(REGEX_MARK) else pattern.lower()


def covers(wide: str, narrow: str, *, case_sensitive: bool) -> bool:
    """Return whether `wide` certainly matches every name that `narrow` matches; False if that can't be decided."""
    wide, narrow = fold(wide, case_sensitive), fold(narrow, case_sensitive)
    if wide in (narrow, "*"):
        return True
    if narrow.startswith(REGEX_MARK):
        return False
    inner = parse_wildcard(narrow)
    if wide.startswith(REGEX_MARK):
        flags = 0 if case_sensitive else re.IGNORECASE
        return not set(narrow) & set("*?[") and re.search(wide[1:], narrow, flags) is not None
    outer = parse_wildcard(wide)
    fixed_outer = [token for token in outer if token is not ANY_RUN]
    fixed_inner = [token for token in inner if token is not ANY_RUN]
    if len(fixed_outer) == len(outer) and (len(fixed_inner) < len(inner) or len(fixed_inner) != len(outer)):
        return False
    if len(fixed_inner) < len(fixed_outer):
        return False
    return all(a.within(b) for a, b in zip(fixed_inner, fixed_outer, strict=False))


def may_meet(one: str, other: str, *, case_sensitive: bool) -> bool:
    """Return whether a name may match both; True if that can't be decided."""
    if one.startswith(REGEX_MARK) or other.startswith(REGEX_MARK):
        return True
    first, second = (parse_wildcard(fold(pattern, case_sensitive)) for pattern in (one, other))
    starts = [[token for token in tokens if token is not ANY_RUN] for tokens in (first, second)]
    most = min(LONGEST_NAME if ANY_RUN in tokens else len(tokens) for tokens in (first, second))
    pairs = zip(*starts, strict=False)
    return max(map(len, starts)) <= most and all(ours.meets(theirs) for ours, theirs in pairs)


def _check(pattern: str, star_anywhere: bool) -> str:
    if not pattern:
        raise ValueError("an empty pattern; write a name or `*`")
    if pattern.startswith(REGEX_MARK):
        _compile(pattern[1:])
        return pattern
    if len([token for token in parse_wildcard(pattern, star_anywhere=star_anywhere) if token]) > LONGEST_NAME:
        raise ValueError(f"no name has more than {LONGEST_NAME} characters, so it can never match")
    return pattern


def _check_sql(pattern: str) -> str:
    if not pattern:
        raise ValueError("an empty pattern is found in every statement; write a regular expression")
    if "[[:" in pattern:
        raise ValueError(r"classes such as [[:space:]] are not known here; write \s, \d or the characters")
    _compile(pattern)
    return pattern


def _compile(expression: str) -> None:
    try:
        re.compile(expression)
    except re.error as error:
        raise ValueError(f"not a regular expression: {error}") from None


def _check_tail(pattern: str) -> str:
    return _check(pattern, star_anywhere=False)


def _check_free(pattern: str) -> str:
    return _check(pattern, star_anywhere=True)


def _check_extraction(expression: str) -> str:
    try:
        groups = re.compile(expression).groups
    except re.error as error:
        raise ValueError(f"not a regular expression: {error}") from None
    if not groups:
        raise ValueError("no capture group, so the value would be empty; put what is wanted in brackets: order_(.*)")
    return expression


NamePattern = Annotated[str, AfterValidator(_check_tail)]
"""A pattern with `*` at the end only."""

FreePattern = Annotated[str, AfterValidator(_check_free)]
"""A pattern with `*` anywhere."""

Extraction = Annotated[str, AfterValidator(_check_extraction)]
"""A regular expression whose capture groups are the text to take."""

SqlPattern = Annotated[str, AfterValidator(_check_sql)]
"""A regular expression over a statement."""
