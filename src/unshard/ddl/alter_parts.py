"""An ALTER TABLE cut into statements of one operation each, for the event filter.

| in the statement | becomes |
|---|---|
| `ADD a INT, DROP b` | two statements, in this order |
| `ADD (a INT, b INT, KEY (a))` | one statement for each entry of the brackets |
| `RENAME TO u`, at any place | the last statement; those before it still use the old name |
| `PARTITION BY …`, `REMOVE PARTITIONING` after other parts | a statement of its own |
| `ALGORITHM`, `LOCK`, `WITH VALIDATION` beside other parts | left out: they say how, not what |
| `ENGINE = x COMMENT 'y'`, options without a comma | one statement, unchanged |
| `DROP PARTITION a, b` and similar lists, `ORDER BY a, b` | one statement, unchanged |
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from unshard.ddl.cursor import tokens_of
from unshard.ddl.parse import classify_ddl
from unshard.ddl.rewrite import renames
from unshard.ddl.statement import Ddl
from unshard.schema.lex import Token, TokenKind

_MANNERS = frozenset({"ALGORITHM", "LOCK"})
_KEYS = frozenset({"CONSTRAINT", "PRIMARY", "UNIQUE", "KEY", "INDEX", "FULLTEXT", "SPATIAL", "FOREIGN", "CHECK"})


def alter_parts(ddl: Ddl) -> tuple[Ddl, ...]:
    """Return the operations of an ALTER TABLE, each as a statement with the same names; other statements unchanged.

    Run one by one, in order, they have the effect of the whole statement if the server accepts each of them. It refuses
    an operation that is valid only together with another one (two columns that swap names, a primary key that moves off
    an AUTO_INCREMENT column). The text of an operation is the original's without comments. A statement of one operation
    is returned unchanged. Pure. Raises DdlError where a part can't be read.
    """
    if ddl.parts_at is None:
        return (ddl,)
    found = tokens_of(ddl.text, ddl.context)
    body = [token for token in found if token.start >= ddl.parts_at and not token.is_symbol(";")]
    single = [entry for part in _parts(body) if not _is_manner(part) for entry in _entries(part, ddl.text)]
    if len(single) < 2:
        return (ddl,)
    head = _text([token for token in found if token.start < ddl.parts_at], ddl.text)
    parts = [classify_ddl(f"{head} {entry}", ddl.context) for entry in single]
    return (*(part for part in parts if not renames(part)), *(part for part in parts if renames(part)))


def _parts(body: Sequence[Token]) -> Iterator[Sequence[Token]]:
    """Yield the operations between commas; a partitioning clause that follows one without a comma is yielded apart."""
    if len(body) > 1 and body[0].word != "ADD" and body[1].word == "PARTITION":
        yield body
        return
    part: list[Token] = []
    for segment in _between_commas(body):
        if part and part[0].word == "ORDER" and _is_column(segment):
            part = [*part, body[body.index(segment[0]) - 1], *segment]
            continue
        if part:
            yield part
        split_at = _partitioning(segment)
        if split_at:
            yield segment[:split_at]
        part = [*segment[split_at:]]
    yield part


def _between_commas(body: Sequence[Token]) -> Iterator[Sequence[Token]]:
    start = depth = 0
    for place, token in enumerate(body):
        depth += token.is_symbol("(") - token.is_symbol(")")
        if depth == 0 and token.is_symbol(","):
            yield body[start:place]
            start = place + 1
    yield body[start:]


def _is_column(segment: Sequence[Token]) -> bool:
    """Return whether this segment continues an ORDER BY.

    Such a segment is a column's name, perhaps with its table's name, ASC or DESC.
    """
    names = [token for token in segment if not token.is_symbol(".")]
    if names and names[-1].word in ("ASC", "DESC"):
        names = names[:-1]
    dots = sum(token.is_symbol(".") for token in segment)
    plain = all(token.kind in (TokenKind.WORD, TokenKind.NAME) for token in names)
    return plain and len(names) == dots + 1 and names[0].word != "FORCE"


def _partitioning(segment: Sequence[Token]) -> int:
    """Return the index at which PARTITION BY or REMOVE PARTITIONING begins after other words; 0 where neither does."""
    depth = 0
    for place, (token, following) in enumerate(pairwise(segment)):
        depth += token.is_symbol("(") - token.is_symbol(")")
        if depth == 0 and (token.word, following.word) in (("PARTITION", "BY"), ("REMOVE", "PARTITIONING")):
            return place
    return 0


def _is_manner(part: Sequence[Token]) -> bool:
    words = [token.word for token in part[:2]]
    return words[0] in _MANNERS or words in (["WITH", "VALIDATION"], ["WITHOUT", "VALIDATION"])


def _entries(part: Sequence[Token], text: str) -> Iterator[str]:
    """Yield the part's text; for ADD (…), one text for each entry of the brackets."""
    at = 1
    while at < len(part) and part[at].word in ("COLUMN", "IF", "NOT", "EXISTS"):
        at += 1
    if part[0].word != "ADD" or at >= len(part) or not part[at].is_symbol("("):
        yield _text(part, text)
        return
    condition = "IF NOT EXISTS " if part[at - 1].word == "EXISTS" else ""
    for entry in _between_commas(part[at + 1 : -1]):
        verb = "ADD " if _is_key(entry) else f"ADD COLUMN {condition}"
        yield verb + _text(entry, text)


def _is_key(entry: Sequence[Token]) -> bool:
    """Return whether an entry of ADD (…) is a key, a constraint or a period, not a column."""
    words = [token.word for token in entry[:2]]
    return words[0] in _KEYS or words in (["PERIOD", "FOR"], ["VECTOR", "INDEX"], ["VECTOR", "KEY"])


def _text(part: Sequence[Token], text: str) -> str:
    """Return the source text of the tokens; a comment or version mark between two of them becomes a blank."""
    written: list[str] = []
    for before, token in zip((None, *part), part, strict=False):
        gap = text[before.end : token.start] if before else ""
        written.append((gap if not gap.strip(" \t\n\v\f\r") else " ") + text[token.start : token.end])
    return "".join(written)
