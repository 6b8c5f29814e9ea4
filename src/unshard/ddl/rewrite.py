"""Steps *route* and *split* for statements: put new names into the old text, cut statements into operations.

`alter_parts` cuts an ALTER TABLE into statements of one operation each, for the event filter:

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

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

from unshard.ddl.cursor import tokens_of
from unshard.ddl.parse import classify_ddl
from unshard.ddl.schema_equality import own_names
from unshard.ddl.statement import Ddl, StatementKind, TableRole
from unshard.model.table import TableName, quote_name
from unshard.schema.lex import Token, TokenKind

Route = Callable[[TableName], TableName]


def rewrite(ddl: Ddl, route: Route, route_schema: Callable[[str], str]) -> str:
    """Return the statement with each table name routed, in backticks and with its schema; all else stays byte for byte.

    `route_schema` is asked only for statements on a schema. Names that are only mentioned (REFERENCES) are routed too.
    Constraint names that a server made from the table's name (`own_names`) are made from its new name.
    """
    changes = [(place.start, place.end, route(place.name).quoted) for place in ddl.places]
    if ddl.schema_place is not None:
        start, end = ddl.schema_place
        name = quote_name(route_schema(ddl.schema))
        changes.append((start, end, f" {name}" if start == end else name))
    for own in own_names(ddl):
        new = route(ddl.tables[0]).table
        if new != ddl.tables[0].table:
            changes.append((own.start, own.end, quote_name(new + own.number)))
    if ddl.cut is not None:
        changes.append((*ddl.cut, ""))
    text = ddl.text
    for start, end, new in sorted(changes, reverse=True):
        text = text[:start] + new + text[end:]
    return text


def routed(ddl: Ddl, route: Route, route_schema: Callable[[str], str]) -> Ddl:
    """Return the rewritten statement, parsed again: its names are the target's."""
    schema = route_schema(ddl.schema) if ddl.kind.on_schema else ""
    return classify_ddl(rewrite(ddl, route, route_schema), replace(ddl.context, schema=schema))


def with_charset(ddl: Ddl, charset: str, collation: str | None) -> Ddl:
    """Return a CREATE TABLE that takes its character set from the schema with its upstream character set written out.

    So a schema with another default on the target changes no column. Other statements are returned unchanged.
    """
    if ddl.kind is not StatementKind.CREATE_TABLE or ddl.body is None or ddl.charset_given:
        return ddl
    options = f" CHARACTER SET {charset}" + (f" COLLATE {collation}" if collation else "")
    return classify_ddl(ddl.text[: ddl.body] + options + ddl.text[ddl.body :], ddl.context)


def without_or_replace(ddl: Ddl) -> Ddl:
    """Return a CREATE without its OR REPLACE."""
    if not ddl.or_replace:
        return ddl
    found = tokens_of(ddl.text, ddl.context)
    at = next(n for n, token in enumerate(found) if token.word == "OR")
    return classify_ddl(ddl.text[: found[at].start] + ddl.text[found[at + 1].end :], ddl.context)


def without_ignore(ddl: Ddl) -> Ddl:
    """Return an ALTER TABLE without MariaDB's IGNORE, which deletes rows that violate a new unique key."""
    if ddl.kind is not StatementKind.ALTER_TABLE:
        return ddl
    found = tokens_of(ddl.text, ddl.context)
    before = next(n for n, token in enumerate(found) if token.word == "TABLE")
    if found[before - 1].word != "IGNORE":
        return ddl
    return classify_ddl(ddl.text[: found[before - 1].start] + ddl.text[found[before].start :], ddl.context)


def split(ddl: Ddl) -> tuple[Ddl, ...]:
    """Return one statement per dropped table or renamed pair, in order, each parsed on its own; others unchanged.

    The text before the first name and after the last one is repeated in each. Raises DdlError where one can't be read.
    """
    size = {StatementKind.DROP_TABLE: 1, StatementKind.RENAME_TABLE: 2}.get(ddl.kind)
    if size is None or len(ddl.places) <= size:
        return (ddl,)
    before, behind = ddl.text[: ddl.places[0].start], ddl.text[ddl.places[-1].end :]
    pieces = [ddl.places[n : n + size] for n in range(0, len(ddl.places), size)]
    return tuple(
        classify_ddl(before + ddl.text[piece[0].start : piece[-1].end] + behind, ddl.context) for piece in pieces
    )


def renames(ddl: Ddl) -> tuple[tuple[TableName, TableName], ...]:
    """Return the (old, new) pairs of RENAME TABLE and of ALTER TABLE … RENAME TO, in order."""
    if ddl.kind is StatementKind.RENAME_TABLE:
        return tuple(zip(ddl.tables[::2], ddl.tables[1::2], strict=True))
    if ddl.kind is StatementKind.ALTER_TABLE and any(action.startswith("RENAME") for action in ddl.actions):
        new = [place.name for place in ddl.places if place.role is TableRole.NEW]
        return ((ddl.tables[0], new[0]),) if new else ()
    return ()


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
