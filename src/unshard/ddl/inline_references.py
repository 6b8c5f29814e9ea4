"""REFERENCES in the definition of a column: some servers make a foreign key of it, others read over it.

MariaDB makes one from 10.5 on, MySQL from 9.0 on. A target may do otherwise than the source, so the clause is taken out
of a statement whose source has read over it.
"""

from __future__ import annotations

from collections.abc import Sequence

from unshard.schema.columns import read_references
from unshard.schema.lex import Token
from unshard.schema.words import StatementWords


def without_references(text: str, tokens: Sequence[Token]) -> str:
    """Return a CREATE TABLE or ALTER TABLE without the REFERENCES in its columns' definitions.

    `tokens` are those of `text`. The clauses of FOREIGN KEY stay. Raises NotUnderstoodError for a broken clause.
    """
    at = StatementWords(tokens, text)
    kept, copied = [], 0
    while at.place < len(tokens):
        if at.word() == "REFERENCES" and not _of_foreign_key(tokens[: at.place]):
            start = at.place
            read_references(at)
            kept.append(text[copied : tokens[start].start].rstrip())
            copied = tokens[at.place - 1].end
        else:
            at.place += 1
    return "".join((*kept, text[copied:]))


def _of_foreign_key(before: Sequence[Token]) -> bool:
    """Return whether the tokens end with FOREIGN KEY, maybe a name, and columns in brackets; or with a point."""
    place, depth = len(before), 0
    while place > 0:
        place -= 1
        token = before[place]
        depth += token.is_symbol(")") - token.is_symbol("(")
        if depth < 0 or (depth == 0 and token.is_symbol(",")):
            return False
        if depth == 0 and token.word == "FOREIGN" and before[place + 1].word == "KEY":
            return True
        if place == len(before) - 1 and not token.is_symbol(")"):
            return token.is_symbol(".")
    return False
