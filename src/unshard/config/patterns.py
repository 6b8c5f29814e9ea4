"""Name patterns: their meaning, their validation, and whether one covers another.

========== ====================================================
``*``      any number of characters
``?``      one character
``[a-z]``  one character of a set; ``[!a-z]`` one outside of it
``~regex`` a regular expression, not anchored
========== ====================================================

In routes, filters and column mappings ``*`` is allowed only at the end, as in DM; in block-allow lists anywhere.

Rules of dumpling's `--filter` are `shop.order_*`, `!shop.tmp_*`, `/^shop_[0-9]+$/.*`, `"a.b"."c"`, `@file`:

| in a name | meaning |
|---|---|
| letters, digits, `_`, `$`, anything beyond ASCII | itself |
| `*`, `?` | any number of characters; one |
| `[a-z]`, `[!a-z]` | one of a set; one outside of it |
| backslash and a sign | that sign |
| "…" or `…` | the whole name, with quotes doubled |
| /…/ | a regular expression that is found in the name |

A rule is schema, dot, table; `!` before it leaves out what it matches. The last rule that matches a table decides;
a table that none matches is left out. `@FILE` stands for the lines of a file, where `#` begins a comment. Rules in
one value are separated by commas.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator

REGEX_MARK = "~"
LONGEST_NAME = 64


@dataclass(frozen=True, slots=True)
class OneOf:
    """A token for one character: one within `ranges`, or with `outside` one outside all of them.

    `?` is outside of no range.
    """

    ranges: tuple[tuple[str, str], ...]
    outside: bool = False

    def has(self, character: str) -> bool:
        """Return whether the character is in the class."""
        return any(low <= character <= high for low, high in self.ranges) != self.outside

    def within(self, other: OneOf) -> bool:
        """Return whether `other` has every character that this token has."""
        edges = {edge for low, high in self.ranges + other.ranges for edge in (low, high)}
        near = {chr(ord(edge) + step) for edge in edges for step in (-1, 0, 1) if 0 <= ord(edge) + step < 0x110000}
        # membership only changes at the edges of ranges, so these represent all characters
        return all(other.has(character) for character in {*near, "\0", "\U0010ffff"} if self.has(character))


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


_PIECE = re.compile(
    r"""/(?P<regex>(?:\\.|[^/\\])+)/|"(?P<double>(?:""|[^"])+)"|`(?P<back>(?:``|[^`])+)`"""
    r"""|(?P<wild>(?:\[!?(?:\\[^0-9A-Za-z]|[^\\\]])+\]|\\[^0-9A-Za-z]|[*?$\w])+)""",
    re.DOTALL,
)
_WILD = re.compile(r"\[(?P<outside>!?)(?P<set>(?:\\.|[^\\\]])+)\]|\\(?P<escaped>.)|(?P<plain>.)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class TableRule:
    """One rule, as regular expressions that are searched in the names. `taken` is False for a rule with `!`."""

    taken: bool
    schema: str
    table: str


def parse_rule(text: str) -> TableRule:
    """Parse one rule. Raises ValueError that says what is wrong with it."""
    body = text.removeprefix("!")
    schema, at = _name(body, 0)
    if body[at : at + 1] != ".":
        raise ValueError("--filter needs schema.table in each rule, such as shop.*; quote a name with other signs")
    table, end = _name(body, at + 1)
    if end < len(body):
        raise ValueError("--filter has signs behind a table; quote a name with signs beyond letters and digits")
    return TableRule(not text.startswith("!"), schema, table)


def read_rules(value: str) -> tuple[str, ...]:
    """Return the rules of one `--filter`, with files read and each rule checked. Raises ValueError."""
    found: list[str] = []
    for text in _between_commas(value):
        found += _lines(text[1:]) if text.startswith("@") else [text]
    for rule in found:
        parse_rule(rule)
    if not found:
        raise ValueError("--filter has no rule; write schema.table")
    return tuple(found)


def _lines(file: str) -> list[str]:
    try:
        lines = [line.strip(" \t") for line in Path(file).read_text(encoding="utf-8").splitlines()]
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"--filter names a file that can't be read: {type(error).__name__}") from None
    if any(line.startswith("@") for line in lines):
        raise ValueError("--filter names a file that names another one with @; write its rules there")
    return [line for line in lines if line and not line.startswith("#")]


def _between_commas(value: str) -> Iterator[str]:
    """Yield the parts of a list. Commas in quotes, sets and regular expressions do not separate parts."""
    start = at = 0
    while at < len(value):
        piece = None if value[start] == "@" else _PIECE.match(value, at)
        if piece is not None:
            at = piece.end()
        else:
            if value[at] == ",":
                yield value[start:at].strip(" \t")
                start = at + 1
            at += 1
    yield value[start:].strip(" \t")


def _name(text: str, start: int) -> tuple[str, int]:
    piece = _PIECE.match(text, start)
    if piece is None:
        raise ValueError("--filter has a rule whose name is missing or not closed; write schema.table, such as shop.*")
    if piece["regex"]:
        try:
            re.compile(piece["regex"])
        except re.error as error:
            raise ValueError(f"--filter has no regular expression between its slashes: {error}") from None
        return piece["regex"], piece.end()
    if piece["wild"]:
        return rf"(?s)\A{''.join(map(_expression, _WILD.finditer(piece['wild'])))}\Z", piece.end()
    name = piece["double"].replace('""', '"') if piece["double"] else piece["back"].replace("``", "`")
    return rf"\A{re.escape(name)}\Z", piece.end()


def _expression(part: re.Match[str]) -> str:
    if part["set"]:
        inside = part["set"].replace("[", r"\[")
        inside = f"\\{inside}" if inside.startswith("^") else inside
        try:
            re.compile(f"[{inside}]")
        except re.error as error:
            raise ValueError(f"--filter has a set that can't be: {error}") from None
        return f"[{'^' if part['outside'] else ''}{inside}]"
    if part["escaped"]:
        return re.escape(part["escaped"])
    return {"*": ".*", "?": "."}.get(part["plain"], re.escape(part["plain"]))
