"""SQL text to tokens with exact places, by the server's own lexical rules.

A logged statement's version comments (`/*!50003 … */`) were all run: the server blanks the mark of those that it
didn't. So their marks are skipped and what they hold is read as the rest.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from functools import cache

from unshard.errors import DdlError, Where


class TokenKind(Enum):
    WORD = auto()
    """A bare name, keyword or number: the server tells them apart only by where they stand (`1a`, `2024`)."""
    NAME = auto()
    """A quoted identifier."""
    STRING = auto()
    SYMBOL = auto()


@dataclass(frozen=True, slots=True)
class Token:
    """`text[start:end]` of the statement. `value` is the name, unquoted; strings keep their quotes."""

    kind: TokenKind
    value: str
    start: int
    end: int

    @property
    def word(self) -> str:
        """The keyword this may be, in capitals; "" for anything quoted and for symbols."""
        return self.value.upper() if self.kind is TokenKind.WORD else ""

    def is_symbol(self, symbol: str) -> bool:
        return self.kind is TokenKind.SYMBOL and self.value == symbol


_BLANK = r"[ \t\n\v\f\r]+"  # no others: a no-break space is part of a name
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
    """The tokens of a statement without comments and blanks. Raises DdlError DDL-001 for an open quote."""
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


# A place in the tokens of a statement, for what reads definitions from left to right.


_ESCAPED = re.compile(r"''|\"\"|\\(.)", re.DOTALL)
_MEANING = {"0": "\0", "n": "\n", "r": "\r", "t": "\t", "b": "\b", "Z": "\x1a"}


class NotUnderstoodError(ValueError):
    """A statement says something that is not read here; the text tells what."""


class ContradictionError(NotUnderstoodError):
    """A statement changes what its table has not, or makes what its table has; the text tells what."""


def unquoted(literal: str) -> str:
    """The value of a quoted text."""
    return _ESCAPED.sub(
        lambda found: found[0][0] if found[1] is None else _MEANING.get(found[1], found[1]), literal[1:-1]
    )


@dataclass(slots=True)
class StatementWords:
    """Lives for one statement; `place` moves on."""

    tokens: Sequence[Token]
    text: str
    place: int = field(default=0)

    def word(self, ahead: int = 0) -> str:
        place = self.place + ahead
        return self.tokens[place].word if place < len(self.tokens) else ""

    def symbol(self, symbol: str, ahead: int = 0) -> bool:
        place = self.place + ahead
        return place < len(self.tokens) and self.tokens[place].is_symbol(symbol)

    @property
    def ended(self) -> bool:
        return self.place >= len(self.tokens) or self.symbol(";")

    def take(self, *words: str) -> bool:
        if all(self.word(ahead) == word for ahead, word in enumerate(words)):
            self.place += len(words)
            return True
        return False

    def take_symbol(self, symbol: str) -> bool:
        if self.symbol(symbol):
            self.place += 1
            return True
        return False

    def fail(self, wanted: str) -> NotUnderstoodError:
        here = self.sql(self.tokens[self.place : self.place + 4]) if not self.ended else "its end"
        return NotUnderstoodError(f"{wanted} is expected at: {here}")

    def need(self, *words: str) -> None:
        if not self.take(*words):
            raise self.fail(" ".join(words))

    def need_symbol(self, symbol: str) -> None:
        if not self.take_symbol(symbol):
            raise self.fail(symbol)

    def name(self) -> str:
        token = self.tokens[self.place] if self.place < len(self.tokens) else None
        if token is None or token.kind not in (TokenKind.WORD, TokenKind.NAME):
            raise self.fail("a name")
        self.place += 1
        return token.value

    def column_name(self) -> str:
        """A column's name, perhaps behind those of its table and schema."""
        found = self.name()
        while self.take_symbol("."):
            found = self.name()
        return found

    def string(self) -> str:
        """A quoted text, with its quotes."""
        token = self.tokens[self.place] if self.place < len(self.tokens) else None
        if token is None or not (token.kind is TokenKind.STRING or token.value[:1] in "'\""):
            raise self.fail("a quoted text")
        self.place += 1
        return token.value

    def sql(self, tokens: Sequence[Token]) -> str:
        """What the tokens were written as; comments and line breaks between them become a blank."""
        written: list[str] = []
        for before, token in zip((None, *tokens), tokens, strict=False):
            gap = self.text[before.end : token.start] if before else ""
            written.append((" " if gap else "") + self.text[token.start : token.end])
        return "".join(written)

    def brackets(self) -> Sequence[Token]:
        """What stands in the brackets that open here; gone past."""
        self.need_symbol("(")
        start, depth = self.place, 1
        while self.place < len(self.tokens):
            depth += self.symbol("(") - self.symbol(")")
            self.place += 1
            if not depth:
                return self.tokens[start : self.place - 1]
        raise self.fail(")")

    def listed(self, one: Callable[[], None]) -> None:
        """Read `(one, one, …)`."""
        self.need_symbol("(")
        one()
        while self.take_symbol(","):
            one()
        self.need_symbol(")")

    def rest(self) -> str:
        """All up to the end of the statement; gone past."""
        start = self.place
        while not self.ended:
            self.place += 1
        return self.since(start)

    def since(self, start: int) -> str:
        """What has been read from token `start` on."""
        return self.sql(self.tokens[start : self.place])
