"""Creates the source's schemas and tables in a target.

The CREATE statement depends on the target, and so does the way to a table's structure where a dump of another tool has
only the text of CREATE TABLE:

| target | CREATE statement | structure from the text |
|---|---|---|
| MySQL, MariaDB | the source's, with the name of the target table | read from an empty table in the meta-schema |
| TiDB | generated from the table's definition, by `schema.tidb` | parsed |

TiDB returns from a DDL statement when all servers of its cluster have applied it, so several run concurrently there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, suppress
from contextvars import copy_context
from dataclasses import dataclass, replace
from threading import Event
from typing import Any, Protocol, TypeVar

import MySQLdb

from unshard.ddl.evaluate import definition_of
from unshard.ddl.for_tidb import words_of
from unshard.errors import LoadError, Where
from unshard.load.contents import SourceTable
from unshard.load.create_statements import create_database, create_table, created_end
from unshard.load.widen import Side
from unshard.log import logger
from unshard.model.table import Table, TableName, quote_name
from unshard.mysql.collations import default_collation
from unshard.mysql.connection import rows
from unshard.mysql.defaults import column_lines
from unshard.mysql.failures import lacks_user_locks
from unshard.mysql.structure import read_table
from unshard.mysql.tidb import is_tidb
from unshard.retry import given_up
from unshard.schema import tidb
from unshard.schema.definition import Dialect, TableDefinition
from unshard.schema.text import column_text, schema_options, to_table
from unshard.schema.tidb import NotInTidbError, TidbWords
from unshard.schema.words import NotUnderstoodError

Route = Callable[[TableName], TableName]
OpenSession = Callable[[], AbstractContextManager[Any]]
Item = TypeVar("Item")
Made = TypeVar("Made")

_LOCK_SECONDS = 10
_KILLED_QUERY = 1317
_AS_WRITTEN, _ON_TIDB = 4, 8
"""The numbers of tables that are best created at a time, on MySQL or MariaDB and on TiDB."""

_WRITTEN = Dialect.MARIADB
"""The dialect that reads SHOW CREATE TABLE of any source: where MySQL would mean something else, its text says so."""


class Creation(Protocol):
    """The creation of schemas and tables on one kind of target.

    `at_once` is the number of tables that are best created at a time, `connected_at_once` the same of those that
    foreign keys connect.
    """

    @property
    def at_once(self) -> int:
        """Number of tables that are best created at a time."""

    @property
    def connected_at_once(self) -> int:
        """Number of tables in foreign keys that are best created at a time."""

    def database(self, statement: str, name: str) -> str:
        """Return the source's CREATE DATABASE for another name, with IF NOT EXISTS."""

    def table(self, table: SourceTable, target: TableName, route: Route, counter: int | None, where: Where) -> str:
        """Return CREATE TABLE, with IF NOT EXISTS; its foreign keys follow their tables' routes.

        `counter` is its next AUTO_INCREMENT value. Raises LoadError LOAD-023.
        """

    def structure(self, connection: Any, table: SourceTable) -> Table:
        """Return the structure of the source's table by its CREATE TABLE. Raises LoadError."""

    def sides(self, copy: Table, there: Table) -> tuple[Side, Side]:
        """Return a source's table as the target would have it, and the table that the target has, for `load.widen`."""


def creation_for(
    connection: Any, scratch_schema: str, source: str, wished: Mapping[str, str], most_connections: int
) -> Creation:
    """Return the `Creation` for this target. `wished` maps collations to those for a TiDB to have in their place."""
    if is_tidb(connection):
        at_once = min(_ON_TIDB, most_connections)
        return ForTidb(words_of(connection, wished), source, at_once, at_once)
    return AsWritten(scratch_schema, source, min(_AS_WRITTEN, most_connections))


@dataclass(frozen=True, slots=True)
class AsWritten:
    """The creation on MySQL and MariaDB, with the statements as the source's server wrote them."""

    scratch_schema: str
    source: str
    at_once: int = 1
    connected_at_once: int = 1
    """MySQL 8 also locks the tables that a foreign key refers to: several CREATEs at a time end in deadlocks."""

    def database(self, statement: str, name: str) -> str:
        """As `Creation`."""
        return create_database(statement, name)

    def table(self, table: SourceTable, target: TableName, route: Route, counter: int | None, where: Where) -> str:
        """As `Creation`."""
        return create_table(table.create_sql, table.name.schema, target, route)

    def structure(self, connection: Any, table: SourceTable) -> Table:
        """As `Creation`; makes the table in the scratch schema, reads it and drops it again, under a user lock."""
        copy = TableName(self.scratch_schema, f"unshard_shape_{self.source}"[:64])
        with named_lock(connection, f"unshard:{copy}"[:64]):
            rows(connection, f"USE {quote_name(copy.schema)}")
            rows(connection, f"DROP TABLE IF EXISTS {copy.quoted}")
            rows(connection, create_table(table.create_sql, table.name.schema, copy, lambda name: name))
            found = read_table(connection, copy)
            rows(connection, f"DROP TABLE {copy.quoted}")
        if found is None:
            place = Where(self.source, str(table.name))
            raise LoadError("LOAD-001", place, values={"fault": "its CREATE TABLE makes no table"})
        return Table(table.name, found.columns, found.indexes, table.create_sql, found.foreign_keys)

    def sides(self, copy: Table, there: Table) -> tuple[Side, Side]:
        """As `Creation`; the definitions are those of each table's CREATE TABLE."""
        return Side(copy, column_lines(copy.create_sql)), Side(there, column_lines(there.create_sql))


@dataclass(frozen=True, slots=True)
class ForTidb:
    """The creation on TiDB, with statements in TiDB's words. It needs no query."""

    words: TidbWords
    source: str
    at_once: int = 1
    connected_at_once: int = 1

    def database(self, statement: str, name: str) -> str:
        """As `Creation`, with the charset's collation that TiDB has."""
        charset, collation = schema_options(statement[created_end(statement) :])
        if not charset:
            return create_database(statement, name)
        return tidb.create_database(name, collation or default_collation(charset), self.words, if_not_exists=True)

    def table(self, table: SourceTable, target: TableName, route: Route, counter: int | None, where: Where) -> str:
        """As `Creation`, in TiDB's words; logs what TiDB lacks and the statement therefore omits."""
        text = create_table(table.create_sql, table.name.schema, target, route)
        try:
            definition = replace(_definition(target, text), counter=str(counter or ""))
            made = tidb.create_table(definition, target, self.words, if_not_exists=True)
        except (NotInTidbError, NotUnderstoodError) as error:
            raise LoadError("LOAD-023", where, str(error), {"statement": text}) from error
        if made.left_out:
            told = {"table": str(target), "left_out": "; ".join(made.left_out)}
            logger("load", source=self.source).warning("TiDB has no such thing: left out", **told)
        (statement,) = made.statements
        return statement

    def structure(self, connection: Any, table: SourceTable) -> Table:
        """As `Creation`; reads the text without a server."""
        try:
            return to_table(_definition(table.name, table.create_sql), table.name, _WRITTEN)
        except NotUnderstoodError as error:
            place = Where(self.source, str(table.name))
            raise LoadError("LOAD-023", place, str(error), {"statement": table.create_sql}) from error

    def sides(self, copy: Table, there: Table) -> tuple[Side, Side]:
        """Return both in TiDB's words; the target's is written anew, for SHOW CREATE TABLE does not escape members."""
        made = tidb.tidb_table(_definition(copy.name, copy.create_sql), self.words, [])
        shown = to_table(made, copy.name, Dialect.TIDB)
        known = {column.name for column in made.columns}
        filled = tuple(column for column in copy.columns if column.name not in known and not column.period)
        whole = replace(shown, columns=(*shown.columns, *filled))
        return Side(whole, _lines(made)), Side(there, _lines(definition_of(there, Dialect.TIDB)))


def _lines(table: TableDefinition) -> Mapping[str, str]:
    """Return each column's definition with its own character set: that of the other table may differ."""
    bare = TableDefinition(())
    return {
        column.name: column_text(column, bare, Dialect.TIDB).removeprefix(quote_name(column.name)).lstrip()
        for column in table.columns
    }


def _definition(name: TableName, create_sql: str) -> TableDefinition:
    return definition_of(Table(name, (), create_sql=create_sql), _WRITTEN)


@contextmanager
def named_lock(connection: Any, name: str) -> Iterator[bool]:
    """Hold a named lock: sources of one target run the block one after the other.

    Waits as long as another session has the lock. Yields False where the server has no such locks (a Galera cluster):
    the block then runs without it. Two sources that change one table at the same moment may let each other fail, and
    are started again. Raises MySQLdb.Error, also once the thread has to give up (`retry.given_up`).
    """
    held = _locked(connection, name)
    try:
        yield held
    finally:
        if held:
            with suppress(MySQLdb.Error):  # a lost connection has lost its lock too
                rows(connection, "SELECT RELEASE_LOCK(%s)", (name,))


def _locked(connection: Any, name: str) -> bool:
    """Get the lock. Return False where the server has none."""
    try:
        while rows(connection, "SELECT GET_LOCK(%s, %s)", (name, _LOCK_SECONDS)) != [(1,)]:
            why = f"waits for another session of the target, which has the lock {name}"
            logger("load").warning("another source changes the same table", why=why, sampled=True)
            if given_up():
                raise MySQLdb.OperationalError(_KILLED_QUERY, why)
    except MySQLdb.Error as error:
        if not lacks_user_locks(error):
            raise
        why = "the target has no GET_LOCK; two sources that change one table at the same moment may fail"
        logger("load").warning("goes on without a lock", why=why, error=str(error), sampled=True)
        return False
    return True


def each(
    open_session: OpenSession, work: Callable[[Any, Item], Made], items: Sequence[Item], at_once: int
) -> list[Made]:
    """Return the result of `work` for each item, on `at_once` sessions at a time. The first error ends the others.

    Threads do the work, in the caller's context (`retry.given_up`).
    """
    ended = Event()
    made: list[list[Made]] = [[] for _ in range(min(at_once, len(items)))]

    def run(number: int) -> None:
        try:
            with open_session() as connection:
                for item in items[number :: len(made)]:
                    if ended.is_set():
                        return
                    made[number].append(work(connection, item))
        except BaseException:
            ended.set()
            raise

    with ThreadPoolExecutor(max(len(made), 1), "create") as pool:
        for one in [pool.submit(copy_context().run, run, number) for number in range(len(made))]:
            one.result()
    return [made[number % len(made)][number // len(made)] for number in range(len(items))]
