"""A cursor over the tokens of a statement; the reading of names at it, and of names and ends inside a table's body."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from unshard.ddl.statement import Context, Ddl, NamePlace, StatementKind, TableRole
from unshard.errors import DdlError
from unshard.model.table import TableName
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
    """Reads a statement from left to right; used for one `classify`.

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


def read_table(at: Cursor, role: TableRole) -> NamePlace:
    """Read a table name: `t`, `s.t` or `.t`, with blanks and comments around the dot. Raises DdlError DDL-002."""
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


_TWO_WORDS = frozenset({"RENAME", "ADD", "DROP", "ALTER", "DEFAULT", "CONVERT"})


def mentions(at: Cursor) -> tuple[NamePlace, ...]:
    """Read the names after REFERENCES and in UNION = (…), up to the end of the statement."""
    found: list[NamePlace] = []
    while at.at < len(at.tokens) and not at.tokens[at.at].is_symbol(";"):
        _step(at, found)
    return tuple(found)


def alter_names(at: Cursor) -> tuple[tuple[NamePlace, ...], frozenset[str]]:
    """Read every further name of an ALTER TABLE, in order, and the first words of its parts, up to its end."""
    found: list[NamePlace] = []
    actions: set[str] = set()
    depth = 0
    begins = True
    while at.at < len(at.tokens) and not at.tokens[at.at].is_symbol(";"):
        token = at.tokens[at.at]
        if begins:
            actions.add(f"{token.word} {at.word(1)}" if token.word in _TWO_WORDS else token.word)
        here, begins = begins, False
        if depth == 0 and (place := _named_table(at, first_of_part=here)) is not None:
            found.append(place)
            continue
        if token.is_symbol("("):
            depth += 1
        elif token.is_symbol(")"):
            depth -= 1
        elif token.is_symbol(",") and depth == 0:
            begins = True
        _step(at, found)
    return tuple(found), frozenset(actions)


def body_end(statement: Sequence[Token]) -> int | None:
    """Return the end in the text of a CREATE TABLE's first bracket, that of its columns; None without one."""
    depth = 0
    for token in statement:
        if token.is_symbol("("):
            depth += 1
        elif token.is_symbol(")"):
            depth -= 1
            if depth == 0:
                return token.end
    return None


def says_charset(statement: Sequence[Token], body: int) -> bool:
    """Return whether a CREATE TABLE names a character set or collation after its columns.

    Those of columns don't count.
    """
    depth = 0
    for before, token in zip((None, *statement), statement, strict=False):
        if token.end <= body:
            continue
        depth += token.is_symbol("(") - token.is_symbol(")")
        if depth == 0 and token.word in ("CHARSET", "COLLATE"):
            return True
        if depth == 0 and token.word == "SET" and before is not None and before.word in ("CHARACTER", "CHAR"):
            return True
    return False


def _named_table(at: Cursor, *, first_of_part: bool) -> NamePlace | None:
    """Read the table named by RENAME TO, EXCHANGE … WITH TABLE or CONVERT … here.

    None where there is none; the cursor stays.
    """
    if first_of_part and at.word() == "RENAME" and at.word(1) not in ("COLUMN", "INDEX", "KEY", "CONSTRAINT"):
        at.take("RENAME")
        at.take("TO") or at.take("AS") or at.take_symbol("=")
        return read_table(at, TableRole.NEW)
    if at.take("WITH", "TABLE"):
        return read_table(at, TableRole.OBJECT)
    if first_of_part and at.take("CONVERT", "TABLE"):
        return read_table(at, TableRole.OBJECT)
    if at.take("TO", "TABLE"):
        return read_table(at, TableRole.NEW)
    return None


def _step(at: Cursor, found: list[NamePlace]) -> None:
    """Move past one token and the names that follow it."""
    previous = at.tokens[at.at - 1]
    token = at.tokens[at.at]
    at.at += 1
    if previous.is_symbol("."):
        return
    if token.word == "REFERENCES":
        found.append(read_table(at, TableRole.MENTION))
    elif token.word == "UNION":
        at.take_symbol("=")
        if at.take_symbol("("):
            found.append(read_table(at, TableRole.MENTION))
            while at.take_symbol(","):
                found.append(read_table(at, TableRole.MENTION))
