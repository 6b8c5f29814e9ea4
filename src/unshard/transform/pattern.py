"""Names against patterns: the matching side of `unshard.config.pattern_syntax`."""

from __future__ import annotations

import re
from dataclasses import dataclass

from unshard.config.pattern_syntax import REGEX_MARK, OneOf, Token, fold, parse_wildcard


@dataclass(frozen=True, slots=True)
class Pattern:
    """A compiled pattern. Pickles. A wildcard has to match the whole name, `~regex` any part of it."""

    text: str
    case_sensitive: bool
    regex: re.Pattern[str]

    @classmethod
    def compile(cls, text: str, *, case_sensitive: bool = False, star_anywhere: bool = False) -> Pattern:
        """Raises ValueError on a malformed pattern; those of a loaded task are well formed."""
        if text.startswith(REGEX_MARK):
            return cls(text, case_sensitive, re.compile(text[1:], 0 if case_sensitive else re.IGNORECASE))
        tokens = parse_wildcard(fold(text, case_sensitive), star_anywhere=star_anywhere)
        # (?s): a name may hold a line break, and `.` has to stand for it too
        return cls(text, case_sensitive, re.compile("(?s)" + "".join(map(_expression, tokens)) + r"\Z"))

    def matches(self, name: str) -> bool:
        if self.text.startswith(REGEX_MARK):
            return self.regex.search(name) is not None
        return self.regex.match(name if self.case_sensitive else name.lower()) is not None


def _expression(token: Token) -> str:
    if token is None:
        return ".*"
    if not token.ranges:
        return "."
    return "[" + ("^" if token.outside else "") + _ranges(token) + "]"


def _ranges(token: OneOf) -> str:
    return "".join(f"{re.escape(low)}-{re.escape(high)}" for low, high in token.ranges)
