"""A place in a statement's tokens, and the names that are read there."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from unshard.ddl.context import Context
from unshard.ddl.statement import Ddl, NamePlace, StatementKind, TableRole
from unshard.errors import DdlError
from unshard.model.table import TableName
from unshard.schema.lex import Token, TokenKind, tokens

_SCHEMA_OPTIONS = frozenset({"CHARACTER", "CHARSET", "COLLATE", "DEFAULT", "COMMENT", "ENCRYPTION", "READ"})


def tokens_of(sql: str, context: Context) -> tuple[Token, ...]:
    """The tokens of a statement of that session. Raises DdlError DDL-001 for an open quote."""
    return tokens(
        sql,
        ansi_quotes=context.ansi_quotes,
        backslash_escapes=context.backslash_escapes,
        mariadb=context.mariadb,
        where=context.where,
    )


@dataclass(slots=True)
class Cursor:
    """Reads a statement from left to right; lives for one `classify`."""

    text: str
    tokens: tuple[Token, ...]
    context: Context
    at: int = field(default=0)

    def word(self, ahead: int = 0) -> str:
        """The keyword `ahead` tokens from here, in capitals; "" where there is none."""
        place = self.at + ahead
        return self.tokens[place].word if place < len(self.tokens) else ""

    def take(self, *words: str) -> bool:
        """Go past these words if all of them stand here."""
        if all(self.word(ahead) == word for ahead, word in enumerate(words)):
            self.at += len(words)
            return True
        return False

    def take_symbol(self, symbol: str) -> bool:
        if self.at < len(self.tokens) and self.tokens[self.at].is_symbol(symbol):
            self.at += 1
            return True
        return False

    def take_symbol_word(self, symbol: str, word: str) -> bool:
        """Go past a symbol and a word if both stand here."""
        if self.at < len(self.tokens) and self.tokens[self.at].is_symbol(symbol) and self.word(1) == word:
            self.at += 2
            return True
        return False

    def rest(self) -> tuple[Token, ...]:
        return self.tokens[self.at :]

    def to_end(self) -> None:
        """Go to the end of the statement, or to the semicolon that ends it."""
        while self.at < len(self.tokens) and not self.tokens[self.at].is_symbol(";"):
            self.at += 1

    def skip_to(self, word: str) -> None:
        """Go past the next such word."""
        while self.at < len(self.tokens):
            self.at += 1
            if self.tokens[self.at - 1].word == word:
                return
        raise self.refuse(f"{word} is missing")

    def skip_set_statement(self) -> None:
        """Go past MariaDB's SET STATEMENT variable = value, … FOR."""
        if self.take("SET", "STATEMENT"):
            self.skip_to("FOR")

    def skip_wait(self) -> None:
        """Go past MariaDB's WAIT n or NOWAIT."""
        if self.take("WAIT"):
            self.at += 1
        else:
            self.take("NOWAIT")

    def after_dot(self, token: Token) -> bool:
        place = self.tokens.index(token)
        return place > 0 and self.tokens[place - 1].is_symbol(".")

    def identifier(self) -> Token | None:
        """The name here, bare or quoted, gone past; None where there is none."""
        if self.at < len(self.tokens) and self.tokens[self.at].kind in (TokenKind.WORD, TokenKind.NAME):
            self.at += 1
            return self.tokens[self.at - 1]
        return None

    def folded(self, name: str) -> str:
        """A schema's or table's name as the source keeps it."""
        return name.lower() if self.context.lower_case_names else name

    def schema_name(self, *, may_be_missing: bool) -> tuple[str, tuple[int, int]]:
        """The schema named here and its place; the default schema and an empty place where none is named."""
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
        """The place of these words where the statement ends with them."""
        last = self.tokens[-len(words) :]
        if tuple(token.word for token in last) == words:
            return last[0].start, last[-1].end
        return None

    def expect_end(self) -> None:
        """Raises DdlError DDL-002 where the statement goes on with something that was not read."""
        while self.take_symbol(";"):
            pass
        if self.at < len(self.tokens):
            raise self.refuse("what follows there is not understood")

    def refuse(self, why: str) -> DdlError:
        """The error for this statement, with the place in it."""
        place = self.tokens[self.at].start + 1 if self.at < len(self.tokens) else len(self.text) + 1
        return DdlError("DDL-002", self.context.where, f"{why} (character {place})", {"statement": self.text})

    def ddl(self, kind: StatementKind, places: tuple[NamePlace, ...], **more: Any) -> Ddl:
        return Ddl(kind, self.text, self.context, places[0].name.schema, places=places, **more)


def read_table(at: Cursor, role: TableRole) -> NamePlace:
    """The table name here: `t`, `s.t` or `.t`, with blanks and comments around the dot. Raises DdlError DDL-002."""
    start = at.tokens[at.at].start if at.at < len(at.tokens) else 0
    leading_dot = at.take_symbol(".")
    first = at.identifier()
    if first is None:
        raise at.refuse("a table's name is missing")
    if not leading_dot and at.take_symbol("."):
        second = at.identifier()
        if second is None:
            raise at.refuse("a table's name is missing")
        return NamePlace(TableName(at.folded(first.value), at.folded(second.value)), role, start, second.end)
    if not at.context.schema:
        raise at.refuse(f"table {first.value} has no schema, and the statement no default one")
    return NamePlace(TableName(at.context.schema, at.folded(first.value)), role, start, first.end)
