"""Rewrites the text of DDL statements: replaces table names by their target's, and splits DROP and RENAME by table.

These are the steps *route* and *split* of DDL (`ddl.pieces`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from unshard.ddl.cursor import tokens_of
from unshard.ddl.own_names import own_names
from unshard.ddl.parse import classify_ddl
from unshard.ddl.statement import Ddl, StatementKind, TableRole
from unshard.model.table import TableName, quote_name

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
