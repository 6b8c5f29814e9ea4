"""Empty copies in schemas of our own on the target, to find out what a statement does: the server itself is asked.

A copy keeps its table's name and lives in a schema that stands for the real one, so names that a server makes up
(`orders_ibfk_1`) come out as they will on the real table. See docs/adr/0004-structures-by-running-them.md.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import MySQLdb

from unshard.ddl.context import Context
from unshard.ddl.parse import classify_ddl
from unshard.ddl.rewrite import routed, without_or_replace
from unshard.ddl.session import event_session, neutral_session, plain_tables
from unshard.ddl.statement import Ddl, StatementKind
from unshard.errors import DdlError
from unshard.model.table import Table, TableName, quote_name
from unshard.mysql.connection import rows
from unshard.mysql.failures import ends_connection, is_transient
from unshard.mysql.structure import read_table

_STEM_LENGTH = 30
UNKNOWN_SCHEMA = 1049


@dataclass(frozen=True, slots=True)
class ScratchPlace:
    """Whose scratch schemas these are; two sources of a task never share one."""

    meta_schema: str
    task: str
    source: str

    @property
    def stem(self) -> str:
        """What all of their names begin with; at most 40 characters of the 64."""
        digest = hashlib.blake2s("\0".join((self.meta_schema, self.task, self.source)).encode(), digest_size=4)
        return f"{f'{self.meta_schema}_{self.task}'[:_STEM_LENGTH]}_{digest.hexdigest()}_"


@dataclass(slots=True)
class Scratch:
    """The scratch schemas of one look; made by `open_scratch`. `schemas` holds the stand-in of each real schema."""

    connection: Any
    stem: str
    schemas: dict[str, str] = field(default_factory=dict)
    _made: set[str] = field(default_factory=set)

    def stand_in(self, name: TableName) -> TableName:
        """Where the copy of a table is, or would be."""
        return TableName(self.stand_in_schema(name.schema), name.table)

    def stand_in_schema(self, schema: str) -> str:
        if schema not in self.schemas:
            self.schemas[schema] = f"{self.stem}{len(self.schemas)}"
        return self.schemas[schema]

    def make_schema(self, schema: str, create_sql: str | None, context: Context) -> None:
        """Make the stand-in of a schema by its SHOW CREATE DATABASE, or without one as the statement's session would.

        Does nothing the second time.
        """
        inner = self.stand_in_schema(schema)
        if inner in self._made:
            return
        self._made.add(inner)
        if create_sql is None:
            statement = f"CREATE DATABASE {quote_name(inner)}"
            with event_session(self.connection, context, StatementKind.CREATE_DATABASE, statement):
                self._execute(statement)
        else:
            ddl = classify_ddl(create_sql, Context())
            with neutral_session(self.connection):
                self._execute(routed(ddl, self.stand_in, self.stand_in_schema).text)

    def load(self, table: Table) -> None:
        """Make an empty copy. Raises DdlError DDL-003 where the target's server can't have such a table."""
        ddl = classify_ddl(table.create_sql, Context(table.name.schema))
        with neutral_session(self.connection), _told(ddl):
            self._execute(routed(ddl, self.stand_in, self.stand_in_schema).text)

    def run(self, ddl: Ddl) -> None:
        """Run a statement on the copies, in its event's session. Raises DdlError DDL-003 where the server refuses.

        What CREATE OR REPLACE TABLE makes has no copy, so a server that lacks it (`replaces_tables`) does without.
        """
        plain = (
            without_or_replace(ddl)
            if ddl.kind is StatementKind.CREATE_TABLE and not replaces_tables(self.connection)
            else ddl
        )
        inner = routed(plain, self.stand_in, self.stand_in_schema)
        if ddl.kind in (StatementKind.CREATE_DATABASE, StatementKind.DROP_DATABASE):
            self._made.add(self.stand_in_schema(ddl.schema))
        with _told(ddl), event_session(self.connection, ddl.context, ddl.kind, ddl.text):
            self._execute(inner.text)

    def read(self, name: TableName) -> Table | None:
        """The copy's structure under the real names, None where there is none now."""
        with neutral_session(self.connection):
            found = read_table(self.connection, self.stand_in(name))
        return None if found is None else replace(found, name=name, create_sql=self._real(found.create_sql))

    def read_schema(self, schema: str) -> str | None:
        """The stand-in's SHOW CREATE DATABASE with the real name in it."""
        found = show_create_database(self.connection, self.stand_in_schema(schema))
        return None if found is None else self._real(found)

    def drop(self) -> None:
        for inner in sorted(self._made):
            self._execute(f"DROP DATABASE IF EXISTS {quote_name(inner)}")

    def _real(self, text: str) -> str:
        for schema, inner in self.schemas.items():
            text = text.replace(quote_name(inner), quote_name(schema))
        return text

    def _execute(self, statement: str) -> None:
        with connection_cursor(self.connection) as cursor:
            cursor.execute(statement)


@contextmanager
def open_scratch(connection: Any, place: ScratchPlace) -> Iterator[Scratch]:
    """Scratch schemas that are dropped at the end, unless the connection is lost; `drop_leftovers` finds those.

    Their names hold the connection's number, so an older process of the same source, not dead yet, can't mix in.
    """
    ((number,),) = rows(connection, "SELECT CONNECTION_ID()")
    scratch = Scratch(connection, f"{place.stem}{int(number):x}_")
    try:
        with neutral_session(connection), plain_tables(connection):
            yield scratch
    except MySQLdb.Error as error:
        if not ends_connection(error):
            scratch.drop()
        raise
    except BaseException:
        scratch.drop()
        raise
    scratch.drop()


def drop_leftovers(connection: Any, place: ScratchPlace) -> None:
    """Drop what a killed process of this source left. Called once, when a source is claimed."""
    pattern = place.stem.replace("\\", "\\\\").replace("_", "\\_").replace("%", "\\%") + "%"
    statement = "SELECT SCHEMA_NAME FROM information_schema.SCHEMATA WHERE SCHEMA_NAME LIKE %s"
    for (name,) in rows(connection, statement, (pattern,)):
        with connection_cursor(connection) as cursor:
            cursor.execute(f"DROP DATABASE IF EXISTS {quote_name(name)}")


def replaces_tables(connection: Any) -> bool:
    """Whether the server has CREATE OR REPLACE TABLE: MariaDB alone."""
    return "MariaDB" in connection.get_server_info()


def show_create_database(connection: Any, schema: str) -> str | None:
    """SHOW CREATE DATABASE of a schema, on either end; None where there is none."""
    try:
        with neutral_session(connection):
            return str(rows(connection, f"SHOW CREATE DATABASE {quote_name(schema)}")[0][1])
    except MySQLdb.Error as error:
        if error.args and error.args[0] == UNKNOWN_SCHEMA:
            return None
        raise


@contextmanager
def connection_cursor(connection: Any) -> Iterator[Any]:
    """A cursor whose results are all fetched at the end, so that an error behind the first result shows."""
    with connection.cursor() as cursor:
        yield cursor
        while cursor.nextset():
            pass


@contextmanager
def _told(ddl: Ddl) -> Iterator[None]:
    try:
        yield
    except MySQLdb.Error as error:
        if is_transient(error):
            raise
        where = replace(ddl.context.where, table=str(ddl.tables[0]) if ddl.tables else ddl.schema)
        raise DdlError("DDL-003", where, server_text(error), {"statement": ddl.text}) from error


def server_text(error: MySQLdb.Error) -> str:
    """What the server said, with its number."""
    return ": ".join(str(part) for part in error.args)
