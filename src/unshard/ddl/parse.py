"""Reads one SQL text: a `Ddl`, a `Skipped`, or an error that says what can't be carried out and what to do.

Only names are read. What else a statement says is left to the server that runs it, so an ALTER with options of a server
that is not out yet is taken as any other.
"""

from __future__ import annotations

from itertools import zip_longest

from unshard.ddl.context import Context
from unshard.ddl.cursor import Cursor, tokens_of
from unshard.ddl.inline_references import without_references
from unshard.ddl.names import alter_names, body_end, mentions, read_table, says_charset
from unshard.ddl.skipped_kinds import skip_reason
from unshard.ddl.statement import Ddl, NamePlace, Skipped, StatementKind, TableRole
from unshard.errors import DdlError
from unshard.schema.lex import Token
from unshard.schema.words import NotUnderstoodError


def classify(sql: str, context: Context) -> Ddl | Skipped:
    """Return the statement's kind and parts, or the reason to skip it. Pure.

    Raises DdlError DDL-001 where it can't be read and DDL-002 where it is of a kind that is not carried; both hold the
    text.
    """
    at = Cursor(sql, tokens_of(sql, context), context)
    at.skip_set_statement()
    reason = skip_reason(at.rest())
    if reason is not None:
        return Skipped(reason)
    statement = _statement(at)
    at.expect_end()
    if context.inline_references or statement.kind not in (StatementKind.CREATE_TABLE, StatementKind.ALTER_TABLE):
        return statement
    try:
        meant = without_references(sql, at.tokens)
    except NotUnderstoodError as error:
        raise at.refuse(str(error)) from error
    return statement if meant == sql else classify(meant, context)


def classify_ddl(sql: str, context: Context) -> Ddl:
    """Return `classify` of a text that must be a `Ddl`.

    Raises DdlError as it does, and DDL-002 for a skipped statement.
    """
    statement = classify(sql, context)
    if isinstance(statement, Skipped):
        raise DdlError("DDL-002", context.where, f"it is passed over: {statement.reason}", {"statement": sql})
    return statement


def _statement(at: Cursor) -> Ddl:
    verb = at.word()
    match verb:
        case "CREATE":
            return _create(at)
        case "ALTER":
            return _alter(at)
        case "DROP":
            return _drop(at)
        case "TRUNCATE":
            return _truncate(at)
        case "RENAME":
            return _rename(at)
    raise at.refuse("it is no statement on tables or schemas")


def _create(at: Cursor) -> Ddl:
    at.take("CREATE")
    or_replace = at.take("OR", "REPLACE")
    at.take("ONLINE") or at.take("OFFLINE")
    if at.take("DATABASE") or at.take("SCHEMA"):
        there = at.take("IF", "NOT", "EXISTS")
        return _on_schema(at, StatementKind.CREATE_DATABASE, if_not_exists=there, or_replace=or_replace)
    if at.take("TABLE"):
        return _create_table(at, or_replace)
    for modifier in ("UNIQUE", "FULLTEXT", "SPATIAL", "VECTOR"):
        at.take(modifier)
    if at.take("INDEX"):
        there = at.take("IF", "NOT", "EXISTS")
        at.skip_to("ON")
        table = read_table(at, TableRole.OBJECT)
        at.to_end()
        return at.ddl(StatementKind.CREATE_INDEX, (table,), if_not_exists=there, or_replace=or_replace)
    if at.take("SEQUENCE"):
        return _sequence(at, if_not_exists=at.take("IF", "NOT", "EXISTS"), or_replace=or_replace)
    if at.take("TEMPORARY", "TABLE"):
        at.take("IF", "NOT", "EXISTS")
        own = read_table(at, TableRole.OBJECT)
        at.to_end()
        return at.ddl(StatementKind.TEMPORARY_TABLE, (own,), or_replace=or_replace)
    raise at.refuse("only CREATE of TABLE, INDEX and DATABASE is carried")


def _create_table(at: Cursor, or_replace: bool) -> Ddl:
    there = at.take("IF", "NOT", "EXISTS")
    own = read_table(at, TableRole.OBJECT)
    model: tuple[NamePlace, ...] = ()
    if at.take("LIKE") or at.take_symbol_word("(", "LIKE"):
        model = (read_table(at, TableRole.MODEL),)
        at.take_symbol(")")
        body = None
    else:
        body = body_end(at.rest())
    rest = at.rest()
    if any(_begins_query(*pair) and not at.after_dot(pair[0]) for pair in zip_longest(rest, rest[1:])):
        raise at.refuse("CREATE TABLE … SELECT with its SELECT: its session did not log in ROW format")
    places = (own, *model, *mentions(at))
    return at.ddl(
        StatementKind.CREATE_TABLE,
        places,
        if_not_exists=there,
        or_replace=or_replace,
        cut=at.trailing("START", "TRANSACTION"),
        body=body,
        charset_given=body is not None and says_charset(rest, body),
    )


def _begins_query(token: Token, following: Token | None) -> bool:
    """Return whether rows come from here: SELECT, TABLE t, VALUES of rows, which are not those of a partition."""
    of_partition = following is not None and following.word in ("LESS", "IN")
    return token.word in ("SELECT", "TABLE") or (token.word == "VALUES" and not of_partition)


def _alter(at: Cursor) -> Ddl:
    at.take("ALTER")
    if at.take("DATABASE") or at.take("SCHEMA"):
        if any(token.word == "UPGRADE" for token in at.rest()):
            raise at.refuse("UPGRADE DATA DIRECTORY NAME concerns the source's own files")
        return _on_schema(at, StatementKind.ALTER_DATABASE)
    if at.take("SEQUENCE"):
        return _sequence(at, if_exists=at.take("IF", "EXISTS"))
    at.take("ONLINE") or at.take("OFFLINE")
    at.take("IGNORE")
    if not at.take("TABLE"):
        raise at.refuse("only ALTER of TABLE and DATABASE is carried")
    there = at.take("IF", "EXISTS")
    own = read_table(at, TableRole.OBJECT)
    at.skip_wait()
    begin = at.rest()
    named, actions = alter_names(at)
    if {"DISCARD", "IMPORT"} & actions:
        return at.ddl(StatementKind.TABLE_FILES, (own,), if_exists=there)
    parts_at = begin[0].start if actions else None
    return at.ddl(StatementKind.ALTER_TABLE, (own, *named), if_exists=there, actions=actions, parts_at=parts_at)


def _drop(at: Cursor) -> Ddl:
    at.take("DROP")
    if at.take("DATABASE") or at.take("SCHEMA"):
        return _on_schema(at, StatementKind.DROP_DATABASE, if_exists=at.take("IF", "EXISTS"))
    if at.take("TABLE") or at.take("TABLES"):
        there = at.take("IF", "EXISTS")
        places = [read_table(at, TableRole.OBJECT)]
        while at.take_symbol(","):
            places.append(read_table(at, TableRole.OBJECT))
        at.skip_wait()
        at.take("RESTRICT") or at.take("CASCADE")
        return at.ddl(StatementKind.DROP_TABLE, tuple(places), if_exists=there)
    at.take("ONLINE") or at.take("OFFLINE")
    if at.take("SEQUENCE"):
        return _sequence(at, if_exists=at.take("IF", "EXISTS"))
    if at.take("INDEX"):
        there = at.take("IF", "EXISTS")
        at.skip_to("ON")
        table = read_table(at, TableRole.OBJECT)
        at.to_end()
        return at.ddl(StatementKind.DROP_INDEX, (table,), if_exists=there)
    raise at.refuse("only DROP of TABLE, INDEX and DATABASE is carried")


def _sequence(at: Cursor, **conditions: bool) -> Ddl:
    """Read any statement on sequences: DROP may name several; of the other statements only the name is read."""
    places = [read_table(at, TableRole.OBJECT)]
    while at.take_symbol(","):
        places.append(read_table(at, TableRole.OBJECT))
    at.to_end()
    return at.ddl(StatementKind.SEQUENCE, tuple(places), **conditions)


def _truncate(at: Cursor) -> Ddl:
    at.take("TRUNCATE")
    at.take("TABLE")
    table = read_table(at, TableRole.OBJECT)
    at.skip_wait()
    at.take("DROP", "STORAGE") or at.take("REUSE", "STORAGE")
    return at.ddl(StatementKind.TRUNCATE_TABLE, (table,))


def _rename(at: Cursor) -> Ddl:
    at.take("RENAME")
    if not (at.take("TABLE") or at.take("TABLES")):
        raise at.refuse("only RENAME of TABLE is carried")
    there = at.take("IF", "EXISTS")
    places: list[NamePlace] = []
    while True:
        places.append(read_table(at, TableRole.OBJECT))
        at.skip_wait()
        if not at.take("TO"):
            raise at.refuse("TO is missing")
        places.append(read_table(at, TableRole.NEW))
        if not at.take_symbol(","):
            return at.ddl(StatementKind.RENAME_TABLE, tuple(places), if_exists=there)


def _on_schema(
    at: Cursor, kind: StatementKind, *, if_exists: bool = False, if_not_exists: bool = False, or_replace: bool = False
) -> Ddl:
    name, place = at.schema_name(may_be_missing=kind is StatementKind.ALTER_DATABASE)
    at.to_end()
    return Ddl(
        kind,
        at.text,
        at.context,
        name,
        schema_place=place,
        if_exists=if_exists,
        if_not_exists=if_not_exists,
        or_replace=or_replace,
    )
