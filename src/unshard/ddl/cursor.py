"""A cursor over the tokens of a statement."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from unshard.ddl.context import Context
from unshard.ddl.statement import Ddl, NamePlace, StatementKind
from unshard.errors import DdlError
from unshard.schema.lex import Token, TokenKind, tokens

_SCHEMA_OPTIONS = frozenset({"CHARACTER", "CHARSET", "COLLATE", "DEFAULT", "COMMENT", "ENCRYPTION", "READ"})


def tokens_of(sql: str, context: Context) -> tuple[Token, ...]:
    """Return the tokens of a statement that was run in that session. Raises DdlError DDL-001 for an open quote."""
    return tokens(
        sql,
        ansi_quotes=context.ansi_quotes,
        backslash_escapes=context.backslash_escapes,
        mariadb=context.mariadb,
        where=context.where,
    )


@dataclass(slots=True)
class Cursor:
    """A cursor that reads a statement from left to right; used for one `classify`.

    `at` is the index of the next token in `tokens`, which are those of `text`; `context` is the statement's session.
    """

    text: str
    tokens: tuple[Token, ...]
    context: Context
    at: int = field(default=0)

    def word(self, ahead: int = 0) -> str:
        """Return the keyword `ahead` tokens after the cursor, in capitals; "" where there is none."""
        place = self.at + ahead
        return self.tokens[place].word if place < len(self.tokens) else ""

    def take(self, *words: str) -> bool:
        """Move past these words if all of them come next; return whether they did."""
        if all(self.word(ahead) == word for ahead, word in enumerate(words)):
            self.at += len(words)
            return True
        return False

    def take_symbol(self, symbol: str) -> bool:
        """Move past a symbol if it comes next; return whether it did."""
        if self.at < len(self.tokens) and self.tokens[self.at].is_symbol(symbol):
            self.at += 1
            return True
        return False

    def take_symbol_word(self, symbol: str, word: str) -> bool:
        """Move past a symbol and a word if both come next; return whether they did."""
        if self.at < len(self.tokens) and self.tokens[self.at].is_symbol(symbol) and self.word(1) == word:
            self.at += 2
            return True
        return False

    def rest(self) -> tuple[Token, ...]:
        """Return the tokens from the cursor to the end, and move nothing."""
        return self.tokens[self.at :]

    def to_end(self) -> None:
        """Move to the end of the statement, or to the semicolon that ends it."""
        while self.at < len(self.tokens) and not self.tokens[self.at].is_symbol(";"):
            self.at += 1

    def skip_to(self, word: str) -> None:
        """Move past the next occurrence of the word. Raises DdlError DDL-002 where there is none."""
        while self.at < len(self.tokens):
            self.at += 1
            if self.tokens[self.at - 1].word == word:
                return
        raise self.refuse(f"{word} is missing")

    def skip_set_statement(self) -> None:
        """Move past MariaDB's SET STATEMENT variable = value, … FOR."""
        if self.take("SET", "STATEMENT"):
            self.skip_to("FOR")

    def skip_wait(self) -> None:
        """Move past MariaDB's WAIT n or NOWAIT."""
        if self.take("WAIT"):
            self.at += 1
        else:
            self.take("NOWAIT")

    def after_dot(self, token: Token) -> bool:
        """Return whether a dot is before the token."""
        place = self.tokens.index(token)
        return place > 0 and self.tokens[place - 1].is_symbol(".")

    def identifier(self) -> Token | None:
        """Read the next token if it is a name, bare or quoted, and move past it; None otherwise."""
        if self.at < len(self.tokens) and self.tokens[self.at].kind in (TokenKind.WORD, TokenKind.NAME):
            self.at += 1
            return self.tokens[self.at - 1]
        return None

    def folded(self, name: str) -> str:
        """Return a schema's or table's name in the letter case in which the source stores it."""
        return name.lower() if self.context.lower_case_names else name

    def schema_name(self, *, may_be_missing: bool) -> tuple[str, tuple[int, int]]:
        """Read a schema's name; return it and its place in the text.

        With `may_be_missing`, where no schema is named, return the default schema and an empty place.
        """
        here = self.tokens[self.at] if self.at < len(self.tokens) else None
        if may_be_missing and here is not None and here.word in _SCHEMA_OPTIONS:
            behind = self.tokens[self.at - 1].end
            if not self.context.schema:
                raise self.refuse("it names no schema and has no default one")
            return self.context.schema, (behind, behind)
        name = self.identifier()
        if name is None:
            raise self.refuse("a schema's name is missing")
        return self.folded(name.value), (name.start, name.end)

    def trailing(self, *words: str) -> tuple[int, int] | None:
        """Return the place of these words in the text where the statement ends with them; None otherwise."""
        last = self.tokens[-len(words) :]
        if tuple(token.word for token in last) == words:
            return last[0].start, last[-1].end
        return None

    def expect_end(self) -> None:
        """Refuse what follows, except semicolons. Raises DdlError DDL-002."""
        while self.take_symbol(";"):
            pass
        if self.at < len(self.tokens):
            raise self.refuse("what follows there is not understood")

    def refuse(self, why: str) -> DdlError:
        """Return the error that refuses this statement, with the cursor's place in the text."""
        place = self.tokens[self.at].start + 1 if self.at < len(self.tokens) else len(self.text) + 1
        return DdlError("DDL-002", self.context.where, f"{why} (character {place})", {"statement": self.text})

    def ddl(self, kind: StatementKind, places: tuple[NamePlace, ...], **more: Any) -> Ddl:
        """Return a statement of this kind; the first of `places` gives its schema."""
        return Ddl(kind, self.text, self.context, places[0].name.schema, places=places, **more)
