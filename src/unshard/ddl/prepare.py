"""Turns the operations of a statement into changes of the tracked structures and an intent for the target.

| operation | on the target | tracked |
|---|---|---|
| on tables that the block-allow list allows | run | yes |
| given to `binlog replace` or `binlog inject` | run | no |
| dropped by the event filter, whole or in parts | nothing, or the other parts | yes, whole |
| renames a table to a name that is not allowed | run, so that another table can get the old name | no longer |
| a RENAME within one target table | nothing | yes |
| a CREATE TABLE whose target has extracted columns | nothing: the target's table is made by hand | yes |
| ALTER DATABASE of a schema that the target lacks: nothing goes into it yet | nothing | yes |
| moves a table into a schema that the target lacks | CREATE DATABASE as upstream, then run | yes |
| a table is made with an engine without transactions | made with InnoDB (`engines.py`) | as it is |
| CREATE TABLE … LIKE a table that the target lacks, or has with other columns or keys | written out | yes |
| CREATE OR REPLACE TABLE, if the target is not MariaDB | DROP TABLE IF EXISTS, then CREATE TABLE | as it is |
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from unshard.ddl.alter_parts import alter_parts
from unshard.ddl.context import Context
from unshard.ddl.engines import with_transactions
from unshard.ddl.for_tidb import for_tidb, rows_passed_strict
from unshard.ddl.intent import Intent
from unshard.ddl.parse import classify_ddl
from unshard.ddl.partition_rows import check_partitions
from unshard.ddl.pieces import AlterOperation, StatementRules
from unshard.ddl.plan import plan_intent
from unshard.ddl.provenance import check_marks, check_moved_rows
from unshard.ddl.rewrite import routed, with_charset, without_or_replace
from unshard.ddl.sandbox import replaces_tables, show_create_database
from unshard.ddl.session import neutral_session
from unshard.ddl.statement import Ddl, StatementKind, TableRole
from unshard.ddl.tracker import NOT_FOLLOWED, Changes, SchemaTracker, schema_row
from unshard.errors import DdlError
from unshard.model.position import Position
from unshard.model.table import Table, TableName, quote_name
from unshard.mysql.flavour import Flavour, flavour_of
from unshard.mysql.structure import read_table
from unshard.mysql.tidb import is_tidb
from unshard.mysql.types import INTEGERS
from unshard.schema.lex import Token, tokens

_ON_TABLE = frozenset(
    {StatementKind.ALTER_TABLE, StatementKind.RENAME_TABLE, StatementKind.CREATE_INDEX, StatementKind.DROP_INDEX}
)
"""Kinds whose first table must exist."""


@dataclass(frozen=True, slots=True)
class UpstreamTable:
    """The source's structures before a statement, from which TiDB's form of it is made.

    They are the table (None where the statement makes it, or nobody knows it) and SHOW CREATE DATABASE of its schema.
    """

    table: Table | None = None
    create_schema: str | None = None


@dataclass(frozen=True, slots=True)
class RoutedDdl:
    """A statement in the target's names. One with `upstream` must still be translated for TiDB.

    `logged`: it is from the source's binlog, not given by a human.
    """

    ddl: Ddl
    upstream: UpstreamTable | None = None
    logged: bool = False


@dataclass(frozen=True, slots=True)
class PreparedDdl:
    """A prepared statement: the `changes` for the tracker and the `intent` for the target.

    `intent` is None if nothing is to be run.
    """

    changes: Changes
    intent: Intent | None


def prepare(
    connection: Any,
    found: Sequence[AlterOperation],
    tracker: SchemaTracker,
    rules: StatementRules,
    begin: Position,
    end: Position,
) -> PreparedDdl:
    """Prepare the operations of the statement between `begin` and `end` in the log.

    Raises as `for_target` and `check_partitions`, and DdlError DDL-005, DDL-012 as `plan_intent`.
    """
    check_partitions(connection, found, tracker.get, rules)
    changes, routed_ones = for_target(connection, found, tracker, rules)
    statements = in_targets_words(connection, routed_ones, rules, strict=True)
    if not statements:
        return PreparedDdl(changes, None)
    return PreparedDdl(changes, plan_intent(connection, tracker.place, statements, begin, end, upstream_names(found)))


def for_target(
    connection: Any, found: Sequence[AlterOperation], tracker: SchemaTracker, rules: StatementRules
) -> tuple[Changes, list[RoutedDdl]]:
    """Return the changes of the source's structures by the operations, and the statements for the target, in its names.

    Changes neither the tracker nor anything on the target but scratch schemas. Raises DdlError DDL-003, DDL-004 as
    `SchemaTracker.after`, what `check_marks` and `check_moved_rows` raise; MySQLdb.Error for a lost connection.
    """
    found = _known(found, tracker)
    tracked = [piece for piece in found if piece.tracked]
    changes = _changes(connection, tracked, tracker)
    followed = [piece.ddl for piece in tracked if piece.leaves is None]

    def before(name: TableName) -> Table | None:
        creates = any(ddl.kind is StatementKind.CREATE_TABLE for ddl in followed)
        return tracker.get(name) if tracker.knows(name) else None if creates else tracker.presume(name)

    check_marks(followed, changes, before, rules.marks, rules.allows)
    check_moved_rows((part for piece in found if not piece.given for part in piece.run), rules.marks)
    statements: list[RoutedDdl] = []
    for piece in found:
        for part in to_run((piece,), rules):
            if not piece.given and _alters_missing_schema(connection, part, rules):
                continue
            for schema in _schemas_made(connection, part, tracker, changes, rules):
                if schema.ddl.text not in {one.ddl.text for one in statements}:
                    statements.append(schema)
            upstream = None
            if is_tidb(connection) and not piece.given:
                upstream = _upstream(part, tracker, changes)
            for there in _for_target(connection, part, changes, rules):
                if not piece.given:
                    there = with_transactions(there, _before(part, tracker))
                one_change = alter_parts(there) if is_tidb(connection) and piece.given else (there,)
                statements += [RoutedDdl(ddl, upstream, not piece.given) for ddl in one_change]
    return {name: table for name, table in changes.items() if not name.table or rules.allows(name)}, statements


def in_targets_words(
    connection: Any, statements: Sequence[RoutedDdl], rules: StatementRules, *, strict: bool = False
) -> list[Ddl]:
    """Return the statements as the target takes them; for TiDB they depend on the structure that its table has now.

    A statement that a human gives stays as it was written. `strict` is that of `for_tidb`; an ALTER of a strict session
    is strict, too, on the other one of MySQL and MariaDB, which convert some values otherwise. Raises as `for_tidb`.
    """
    found: list[Ddl] = []
    for one in statements:
        if one.upstream is None:
            found.append(_strict(connection, one.ddl) if strict and one.logged else one.ddl)
        else:
            upstream = one.upstream
            found += for_tidb(
                connection, one.ddl, upstream.table, upstream.create_schema, rules.collations, strict=strict
            )
    return found


def _strict(connection: Any, ddl: Ddl) -> Ddl:
    """Return the statement, strict where the source's rows have passed it in a strict session of another product."""
    mariadb = flavour_of(connection.get_server_info()) is Flavour.MARIADB
    if is_tidb(connection) or mariadb is ddl.context.mariadb or not rows_passed_strict(ddl):
        return ddl
    return replace(ddl, context=replace(ddl.context, strict=True))


def upstream_names(found: Sequence[AlterOperation]) -> frozenset[str]:
    """Return the names, without schemas, of the tables that the operations are on."""
    return frozenset(name.table for piece in found for name in piece.ddl.tables)


def to_run(found: Sequence[AlterOperation], rules: StatementRules) -> list[Ddl]:
    """Return the statements of the operations that run on the target, in the source's names and in order."""
    return [part for piece in found for part in piece.run if not _made_by_hand(part, rules)]


def _known(found: Sequence[AlterOperation], tracker: SchemaTracker) -> list[AlterOperation]:
    """Leave out operations that run nothing, on a table whose structure nobody knows: it stays unknown."""
    kept: list[AlterOperation] = []
    named: set[TableName] = set()
    for piece in found:
        table = piece.ddl.tables[0] if piece.ddl.kind in _ON_TABLE and not piece.run else None
        if table is None or table in named or tracker.get(table) is not None:
            kept.append(piece)
            named.update(piece.ddl.tables)
    return kept


def _changes(connection: Any, found: Sequence[AlterOperation], tracker: SchemaTracker) -> Changes:
    """Return the tracker's changes. A CREATE that a filter leaves out need not be one that the target understands."""
    try:
        return tracker.after(connection, *(piece.ddl for piece in found))
    except DdlError as error:
        creates = all(piece.ddl.kind in (StatementKind.CREATE_TABLE, StatementKind.CREATE_DATABASE) for piece in found)
        if error.code in NOT_FOLLOWED and creates and not any(piece.run for piece in found):
            made = [name for piece in found for name in piece.ddl.tables[:1]]
            return {name: None for name in made if tracker.knows(name)}  # OR REPLACE: its tracked structure is outdated
        raise


def _made_by_hand(ddl: Ddl, rules: StatementRules) -> bool:
    """Return whether a CREATE TABLE makes a table that has more columns on the target.

    The first row of such a table reports what is missing there.
    """
    return ddl.kind is StatementKind.CREATE_TABLE and not ddl.or_replace and rules.marks(ddl.tables[0]).more


def _alters_missing_schema(connection: Any, ddl: Ddl, rules: StatementRules) -> bool:
    if ddl.kind is not StatementKind.ALTER_DATABASE:
        return False
    return show_create_database(connection, rules.route_schema(ddl.schema)) is None


def _schemas_made(
    connection: Any, ddl: Ddl, tracker: SchemaTracker, changes: Changes, rules: StatementRules
) -> Iterator[RoutedDdl]:
    """Yield CREATE DATABASE, as it is upstream, for each schema that a new table needs and the target lacks.

    The copy does not make a schema without tables.
    """
    for place in ddl.places:
        makes = place.role is TableRole.NEW or (
            place.role is TableRole.OBJECT and ddl.kind is StatementKind.CREATE_TABLE
        )
        upstream, target = place.name.schema, rules.route(place.name).schema
        if makes and show_create_database(connection, target) is None:
            row = changes.get(schema_row(upstream))
            create_sql = row.create_sql if row is not None else tracker.schema_sql(upstream)
            _, end = (classify_ddl(create_sql, Context()).schema_place if create_sql else None) or (0, 0)
            options = create_sql[end:] if create_sql else ""
            made = classify_ddl(f"CREATE DATABASE IF NOT EXISTS {quote_name(target)}{options}", ddl.context)
            yield RoutedDdl(made, UpstreamTable(None, create_sql) if is_tidb(connection) else None)


def _for_target(connection: Any, ddl: Ddl, changes: Changes, rules: StatementRules) -> tuple[Ddl, ...]:
    """Return the operation in the target's names; a CREATE TABLE names all that depends on its surroundings upstream.

    CREATE OR REPLACE TABLE becomes two statements for a server that lacks it.
    """
    replaces = ddl.kind is StatementKind.CREATE_TABLE and ddl.or_replace
    created = changes.get(ddl.tables[0]) if ddl.kind is StatementKind.CREATE_TABLE else None
    if created is not None and ddl.like is not None and not _is_model(connection, ddl.like, created, rules):
        context = Context(ddl.schema, where=ddl.context.where, mariadb=ddl.context.mariadb)
        ddl = classify_ddl(created.create_sql, context)
    elif created is not None and not is_tidb(connection):
        ddl = _with_upstream_charset(connection, ddl, created, rules)
    there = routed(ddl, rules.route, rules.route_schema)
    if not replaces or (there.or_replace and replaces_tables(connection)):
        return (there,)
    drop = classify_ddl(f"DROP TABLE IF EXISTS {there.tables[0].quoted}", there.context)
    return drop, without_or_replace(there)


def _before(ddl: Ddl, tracker: SchemaTracker) -> Table | None:
    """Return the source's table before a statement that alters it."""
    return tracker.get(ddl.tables[0]) if ddl.kind is StatementKind.ALTER_TABLE else None


def _upstream(ddl: Ddl, tracker: SchemaTracker, changes: Changes) -> UpstreamTable:
    """Return the upstream structures on which a statement in the source's names depends."""
    name = ddl.tables[0] if ddl.tables else schema_row(ddl.schema)
    depends = name.table and ddl.kind in _ON_TABLE
    table = tracker.get(name) or changes.get(name) if depends else None
    row = changes.get(schema_row(name.schema))
    return UpstreamTable(table, row.create_sql if row is not None else tracker.schema_sql(name.schema))


def _is_model(connection: Any, like: TableName, made: Table, rules: StatementRules) -> bool:
    """Return whether the target has the table that LIKE names, as another table than the one that is made, and like it.

    For two shards of one target they are the same. The target's has other columns or keys where a statement waits for
    other shards or was left out, and where a route fills columns.
    """
    if rules.route(like) == rules.route(made.name):
        return False
    with neutral_session(connection):
        there = read_table(connection, rules.route(like))
    if there is None or _columns(made, rules.marks(like).columns) != _columns(there, rules.marks(like).columns):
        return False
    own, others = _keys(made), _keys(there)
    return own <= others and not any(unique for unique, *_ in others - own)


def _columns(table: Table, mapped: Collection[str]) -> dict[str, tuple[object, ...]]:
    """Return what decides which values each column takes; a column of a column mapping may be wider on the target."""
    return {
        column.name.lower(): ()
        if column.name.lower() in map(str.lower, mapped)
        else (
            column.type if column.type in INTEGERS else column.definition,
            column.unsigned,
            column.nullable,
            (column.collation or "").replace("utf8_", "utf8mb3_"),
            column.generated,
            column.auto_increment,
        )
        for column in table.columns
    }


def _keys(table: Table) -> set[tuple[bool, tuple[str, ...], tuple[int, ...]]]:
    return {(key.unique, tuple((part or "").lower() for part in key.columns), key.prefixes) for key in table.indexes}


def _with_upstream_charset(connection: Any, ddl: Ddl, created: Table, rules: StatementRules) -> Ddl:
    target = show_create_database(connection, rules.route(ddl.tables[0]).schema)
    upstream = classify_ddl(created.create_sql, Context(ddl.schema))
    charset = default_charset(tokens(created.create_sql[upstream.body or 0 :]))
    if charset is None or target is None or default_charset(tokens(target)) == charset:
        return ddl
    return with_charset(ddl, *charset)


def default_charset(options: tuple[Token, ...]) -> tuple[str, str | None] | None:
    """Return character set and collation in a SHOW CREATE's options; the collation is None for the set's default."""
    parts = [token.value for token in options if not token.is_symbol("=")]
    words = [part.upper() for part in parts]
    for at, word in enumerate(words[:-1]):
        if word == "CHARSET" or (word == "SET" and words[at - 1] == "CHARACTER"):
            named = at + 3 < len(words) and words[at + 2] == "COLLATE"
            return parts[at + 1], parts[at + 3] if named else None
    return None
