"""Statements that a human gives for an operator: whole texts, with every name qualified."""

from __future__ import annotations

from dataclasses import replace

from unshard.ddl.context import Context
from unshard.ddl.online import OnlineDdl
from unshard.ddl.parse import classify_ddl
from unshard.ddl.pieces import AlterOperation, StatementRules, StructureOf, all_pieces
from unshard.ddl.statement import Ddl
from unshard.errors import DdlError
from unshard.schema.lex import tokens


def parse_given(text: str, context: Context) -> Ddl:
    """One statement; `context` has no schema. Raises DdlError DDL-026 where it is no DDL, or a name has no schema."""
    try:
        return classify_ddl(text, context)
    except DdlError as error:
        raise DdlError("DDL-026", context.where, error.cause, {"statement": text}) from error


def given_pieces(ddl: Ddl, rules: StatementRules, structure: StructureOf) -> tuple[AlterOperation, ...]:
    """What is run of one, by the lists and routes alone. Raises DdlError DDL-033 where they leave something of it out.

    Raises as `ddl.pieces.all_pieces` too.
    """
    found = all_pieces(ddl, replace(rules, online=OnlineDdl()), structure)
    for piece in found:
        if piece.dropped:
            raise DdlError("DDL-033", ddl.context.where, piece.notes[-1].why, {"statement": ddl.text})
    return tuple(replace(piece, given=True) for piece in found)


def split_given(text: str) -> tuple[str, ...]:
    """The statements of a text, parted by semicolons outside of strings and comments. Raises ValueError: unreadable."""
    found, start = [], 0
    ends = [(token.start, token.end) for token in tokens(text) if token.is_symbol(";")]
    for end, after in [*ends, (len(text), len(text))]:
        if one := text[start:end].strip():
            found.append(one)
        start = after
    return tuple(found)
