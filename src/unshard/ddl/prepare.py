"""All that comes before a statement is run: which parts of it concern us, what they change, what is to be run.

| statement | on the target | tracked |
|---|---|---|
| all of its tables are let through | run | yes |
| none of them is | nothing | no |
| some pairs or tables of a RENAME or DROP list are | those, one by one | those |
| a table leaves by RENAME to a name that is not let through | nothing | it is gone |
| a table enters by RENAME from such a name, or swaps rows with one | DdlError DDL-011 | |
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from unshard.ddl.context import Context
from unshard.ddl.intent import Intent
from unshard.ddl.lex import Token, tokens
from unshard.ddl.parse import classify_ddl
from unshard.ddl.plan import plan_intent
from unshard.ddl.rewrite import Route, renames, routed, split, with_charset
from unshard.ddl.scratch import show_create_database
from unshard.ddl.session import neutral_session
from unshard.ddl.statement import Ddl, Kind
from unshard.ddl.tracker import Changes, SchemaTracker
from unshard.errors import DdlError
from unshard.model.position import Position
from unshard.model.table import Table, TableName
from unshard.mysql.structure import read_table


@dataclass(frozen=True, slots=True)
class Rules:
    """A source's rules for names, as functions."""

    allows: Callable[[TableName], bool]
    allows_schema: Callable[[str], bool]
    route: Route
    route_schema: Callable[[str], str]


@dataclass(frozen=True, slots=True)
class Prepared:
    """`changes` for the tracker; `intent` for the target, None where nothing is to be run."""

    changes: Changes
    intent: Intent | None


def prepare(
    connection: Any, ddl: Ddl, tracker: SchemaTracker, rules: Rules, begin: Position, end: Position
) -> Prepared:
    """What becomes of a statement between `begin` and `end` of the log.

    Changes neither the tracker nor anything on the target but scratch schemas. Raises DdlError DDL-003, DDL-004,
    DDL-005 (see `SchemaTracker.after`, `plan_intent`) and DDL-011; MySQLdb.Error for a lost connection.
    """
    if tracker.without_effect(ddl):
        return Prepared({}, None)
    kept, gone = _kept(ddl, rules)
    changes = tracker.after(connection, *kept) | dict.fromkeys(gone)
    if not kept:
        return Prepared(changes, None)
    statements = [_for_target(connection, piece, changes, rules) for piece in kept]
    return Prepared(changes, plan_intent(connection, tracker.place, statements, begin, end))


def _kept(ddl: Ddl, rules: Rules) -> tuple[list[Ddl], list[TableName]]:
    """The pieces to run, and the tables that leave without one."""
    if ddl.kind.on_schema:
        return ([ddl] if rules.allows_schema(ddl.schema) else []), []
    kept: list[Ddl] = []
    gone: list[TableName] = []
    for piece in split(ddl):
        shut = [name for name in piece.tables if not rules.allows(name)]
        if not shut:
            kept.append(piece)
        elif len(shut) < len(set(piece.tables)):
            gone.append(_leaver(piece, shut))
    return kept, gone


def _leaver(ddl: Ddl, shut: list[TableName]) -> TableName:
    for old, new in renames(ddl):
        if shut == [new]:
            return old
    values = {"table": ", ".join(map(str, shut)), "statement": ddl.text}
    raise DdlError("DDL-011", replace(ddl.context.where, table=str(ddl.tables[0])), values=values)


def _for_target(connection: Any, ddl: Ddl, changes: Changes, rules: Rules) -> Ddl:
    """The piece in the target's names; a CREATE TABLE says all that depends on its surroundings upstream."""
    created = changes.get(ddl.tables[0]) if ddl.kind is Kind.CREATE_TABLE else None
    if created is not None and ddl.like is not None and not _is_there(connection, rules.route(ddl.like)):
        context = Context(ddl.schema, where=ddl.context.where, mariadb=ddl.context.mariadb)
        ddl = classify_ddl(created.create_sql, context)
    elif created is not None:
        ddl = _with_upstream_charset(connection, ddl, created, rules)
    return routed(ddl, rules.route, rules.route_schema)


def _is_there(connection: Any, name: TableName) -> bool:
    with neutral_session(connection):
        return read_table(connection, name) is not None


def _with_upstream_charset(connection: Any, ddl: Ddl, created: Table, rules: Rules) -> Ddl:
    target = show_create_database(connection, rules.route(ddl.tables[0]).schema)
    upstream = classify_ddl(created.create_sql, Context(ddl.schema))
    charset = default_charset(tokens(created.create_sql[upstream.body or 0 :]))
    if charset is None or target is None or default_charset(tokens(target)) == charset:
        return ddl
    return with_charset(ddl, *charset)


def default_charset(options: tuple[Token, ...]) -> tuple[str, str | None] | None:
    """Character set and collation in a SHOW CREATE's options; the collation is None where it is the set's default."""
    parts = [token.value for token in options if not token.is_symbol("=")]
    words = [part.upper() for part in parts]
    for at, word in enumerate(words[:-1]):
        if word == "CHARSET" or (word == "SET" and words[at - 1] == "CHARACTER"):
            named = at + 3 < len(words) and words[at + 2] == "COLLATE"
            return parts[at + 1], parts[at + 3] if named else None
    return None
