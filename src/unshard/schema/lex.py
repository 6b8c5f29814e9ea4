"""Splits SQL text into tokens with exact places, by the server's own lexical rules.

The server ran the contents of every version comment (`/*!50003 … */`) in a logged statement: in the log it blanks the
marks of the comments that it did not run. So this module skips the marks and reads the contents as part of the
statement.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum, auto
from functools import cache

from unshard.errors import DdlError, Where


class TokenKind(Enum):
    """The kinds of a token."""

    WORD = auto()
    """An unquoted name, keyword or number: the server tells them apart only by where they stand (`1a`, `2024`)."""
    NAME = auto()
    """A quoted identifier."""
    STRING = auto()
    SYMBOL = auto()


@dataclass(frozen=True, slots=True)
class Token:
    """A token of a statement: its kind, its text, and the offsets `start` and `end` of the text in the statement.

    `value` is the text itself, but without the quotes of a quoted name; a string keeps its quotes.
    """

    kind: TokenKind
    value: str
    start: int
    end: int

    @property
    def word(self) -> str:
        """The word in capitals, to compare with keywords; "" for anything quoted and for symbols."""
        return self.value.upper() if self.kind is TokenKind.WORD else ""

    def is_symbol(self, symbol: str) -> bool:
        """Return whether the token is that symbol."""
        return self.kind is TokenKind.SYMBOL and self.value == symbol


_BLANK = r"[ \t\n\v\f\r]+"  # no other blanks: a no-break space is part of a name
_WORD = r"[0-9A-Za-z$_\u0080-\U0010ffff]+"
_COMMENT = r"/\*.*?\*/|--(?=[\x00-\x20]|$)[^\n]*|\#[^\n]*"


@cache
def _scanner(ansi_quotes: bool, backslash_escapes: bool, mariadb: bool) -> re.Pattern[str]:
    mark = r"/\*M?!" if mariadb else r"/\*!"
    escape = r"\\.|" if backslash_escapes else ""
    plain = r"\\" if backslash_escapes else ""
    single = rf"'(?:{escape}''|[^'{plain}])*'"
    double = r'"(?:""|[^"])*"' if ansi_quotes else rf'"(?:{escape}""|[^"{plain}])*"'
    return re.compile(
        rf"(?P<blank>{_BLANK})|(?P<open>{mark}(?:[0-9]{{5,6}})?)|(?P<comment>{_COMMENT})|(?P<close>\*/)"
        rf"|(?P<word>{_WORD})|(?P<backtick>`(?:``|[^`])*`)|(?P<single>{single})|(?P<double>{double})"
        r"|(?P<symbol>[^`'\"])",
        re.DOTALL,
    )


def tokens(
    text: str,
    *,
    ansi_quotes: bool = False,
    backslash_escapes: bool = True,
    mariadb: bool = True,
    where: Where | None = None,
) -> tuple[Token, ...]:
    """Return the tokens of a statement without comments and blanks. Raises DdlError DDL-001 for an open quote."""
    scanner = _scanner(ansi_quotes, backslash_escapes, mariadb)
    found: list[Token] = []
    at = 0
    depth = 0
    while at < len(text):
        match = scanner.match(text, at)
        if match is None:
            raise DdlError("DDL-001", where or Where(), f"a quote is open at character {at + 1}", {"statement": text})
        start, at = at, match.end()
        part = match[0]
        match match.lastgroup:
            case "open":
                depth += 1
            case "close" if depth:
                depth -= 1
            case "close":
                found.extend(Token(TokenKind.SYMBOL, sign, start + n, start + n + 1) for n, sign in enumerate(part))
            case "word":
                found.append(Token(TokenKind.WORD, part, start, at))
            case "backtick":
                found.append(Token(TokenKind.NAME, part[1:-1].replace("``", "`"), start, at))
            case "double" if ansi_quotes:
                found.append(Token(TokenKind.NAME, part[1:-1].replace('""', '"'), start, at))
            case "single" | "double":
                found.append(Token(TokenKind.STRING, part, start, at))
            case "symbol":
                found.append(Token(TokenKind.SYMBOL, part, start, at))
    return tuple(found)
