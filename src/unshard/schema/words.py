"""A reader of the tokens of one statement, from left to right."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from unshard.schema.lex import Token, TokenKind

_ESCAPED = re.compile(r"''|\"\"|\\(.)", re.DOTALL)
_MEANING = {"0": "\0", "n": "\n", "r": "\r", "t": "\t", "b": "\b", "Z": "\x1a"}


class NotUnderstoodError(ValueError):
    """Raised for a statement with a clause that is not supported here. The text names the clause."""


class ContradictionError(NotUnderstoodError):
    """Raised for a statement that changes something its table lacks, or adds something its table already has.

    The text names that thing.
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
