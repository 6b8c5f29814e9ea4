"""Splits SQL text into tokens with exact places, by the server's own lexical rules; reads tokens from left to right.

The server ran the contents of every version comment (`/*!50003 … */`) in a logged statement: in the log it blanks the
marks of the comments that it did not run. So this module skips the marks and reads the contents as part of the
statement.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
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
    """`text[start:end]` of the statement.

    `value` is the text itself; a quoted name is unquoted in it, a string keeps its quotes.
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


_ESCAPED = re.compile(r"''|\"\"|\\(.)", re.DOTALL)
_MEANING = {"0": "\0", "n": "\n", "r": "\r", "t": "\t", "b": "\b", "Z": "\x1a"}


class NotUnderstoodError(ValueError):
    """A statement has a clause that is not supported here. The text names it."""


class ContradictionError(NotUnderstoodError):
    """A statement changes something that its table lacks, or adds something that its table has already.

    The text names it.
    """


def unquoted(literal: str) -> str:
    """Return the value of a quoted text."""
    return _ESCAPED.sub(
        lambda found: found[0][0] if found[1] is None else _MEANING.get(found[1], found[1]), literal[1:-1]
    )


@dataclass(slots=True)
class StatementWords:
    """A reader of the tokens of one statement; `place` is the index of the next token."""

    tokens: Sequence[Token]
    text: str
    place: int = field(default=0)

    def word(self, ahead: int = 0) -> str:
        """Return the word `ahead` tokens after the place, in capitals; "" where there is none."""
        place = self.place + ahead
        return self.tokens[place].word if place < len(self.tokens) else ""

    def symbol(self, symbol: str, ahead: int = 0) -> bool:
        """Return whether the token `ahead` tokens after the place is that symbol."""
        place = self.place + ahead
        return place < len(self.tokens) and self.tokens[place].is_symbol(symbol)

    @property
    def ended(self) -> bool:
        """True if no token follows but a semicolon."""
        return self.place >= len(self.tokens) or self.symbol(";")

    def take(self, *words: str) -> bool:
        """Move past these words if all of them come next; return whether they did."""
        if all(self.word(ahead) == word for ahead, word in enumerate(words)):
            self.place += len(words)
            return True
        return False

    def take_symbol(self, symbol: str) -> bool:
        """Move past a symbol if it comes next; return whether it did."""
        if self.symbol(symbol):
            self.place += 1
            return True
        return False

    def fail(self, wanted: str) -> NotUnderstoodError:
        """Return the error that something else than `wanted` comes next."""
        here = self.sql(self.tokens[self.place : self.place + 4]) if not self.ended else "its end"
        return NotUnderstoodError(f"{wanted} is expected at: {here}")

    def need(self, *words: str) -> None:
        """Move past these words. Raises NotUnderstoodError where something else comes next."""
        if not self.take(*words):
            raise self.fail(" ".join(words))

    def need_symbol(self, symbol: str) -> None:
        """Move past a symbol. Raises NotUnderstoodError where something else comes next."""
        if not self.take_symbol(symbol):
            raise self.fail(symbol)

    def name(self) -> str:
        """Move past a name, bare or quoted, and return it.

        Raises NotUnderstoodError where something else comes next.
        """
        token = self.tokens[self.place] if self.place < len(self.tokens) else None
        if token is None or token.kind not in (TokenKind.WORD, TokenKind.NAME):
            raise self.fail("a name")
        self.place += 1
        return token.value

    def column_name(self) -> str:
        """Read a column's name, which the names of its table and schema may precede."""
        found = self.name()
        while self.take_symbol("."):
            found = self.name()
        return found

    def string(self) -> str:
        """Read a quoted text. Returns it with its quotes."""
        token = self.tokens[self.place] if self.place < len(self.tokens) else None
        if token is None or not (token.kind is TokenKind.STRING or token.value[:1] in "'\""):
            raise self.fail("a quoted text")
        self.place += 1
        return token.value

    def sql(self, tokens: Sequence[Token]) -> str:
        """Return the tokens as they were written; comments and line breaks between them become one blank."""
        written: list[str] = []
        for before, token in zip((None, *tokens), tokens, strict=False):
            gap = self.text[before.end : token.start] if before else ""
            written.append((" " if gap else "") + self.text[token.start : token.end])
        return "".join(written)

    def brackets(self) -> Sequence[Token]:
        """Read a pair of brackets. Returns the tokens inside; `place` is then after the closing bracket."""
        self.need_symbol("(")
        start, depth = self.place, 1
        while self.place < len(self.tokens):
            depth += self.symbol("(") - self.symbol(")")
            self.place += 1
            if not depth:
                return self.tokens[start : self.place - 1]
        raise self.fail(")")

    def listed(self, one: Callable[[], None]) -> None:
        """Read `(one, one, …)`, calling `one` for each entry."""
        self.need_symbol("(")
        one()
        while self.take_symbol(","):
            one()
        self.need_symbol(")")

    def rest(self) -> str:
        """Read everything up to the end of the statement, and return it."""
        start = self.place
        while not self.ended:
            self.place += 1
        return self.since(start)

    def since(self, start: int) -> str:
        """Return the text from token `start` up to the next token."""
        return self.sql(self.tokens[start : self.place])
