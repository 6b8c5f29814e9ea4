"""Empty copies of tables in scratch schemas on the target, on which the server itself shows what a statement does.

A copy keeps its table's name and is in a schema that replaces the real one, so names that a server makes up
(`orders_ibfk_1`) come out as they will on the real table. See docs/adr/0004-structures-by-running-them.md.

A trial of a statement is not run a second time (`trials.py`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from typing import Any
from weakref import WeakKeyDictionary

import MySQLdb

from unshard.ddl.context import Context
from unshard.ddl.parse import classify_ddl
from unshard.ddl.rewrite import routed, without_or_replace
from unshard.ddl.session import deciding, event_session, neutral_session, plain_tables
from unshard.ddl.statement import Ddl, StatementKind
from unshard.ddl.trials import Sent, Trials
from unshard.errors import DdlError, Where
from unshard.model.table import Table, TableName, quote_name
from unshard.mysql.connection import rows
from unshard.mysql.failures import ends_connection, is_transient
from unshard.mysql.structure import read_table

_STEM_LENGTH = 30
UNKNOWN_SCHEMA = 1049


@dataclass(frozen=True, slots=True)
class ScratchPlace:
    """The owner of scratch schemas: a task's meta schema, the task and a source. No two owners share a schema.

    `trials` are the latest ones of the source.
    """

    meta_schema: str
    task: str
    source: str
    trials: Trials = field(default_factory=Trials, compare=False, repr=False)

    @property
    def stem(self) -> str:
        """The prefix of all their names; at most 40 characters of the 64."""
        digest = hashlib.blake2s("\0".join((self.meta_schema, self.task, self.source)).encode(), digest_size=4)
        return f"{f'{self.meta_schema}_{self.task}'[:_STEM_LENGTH]}_{digest.hexdigest()}_"


@dataclass(slots=True)
class Scratch:
    """The scratch schemas of one use, made by `open_scratch`.

    `schemas` maps each real schema to its stand-in; the names of all stand-ins begin with `stem`. Statements are sent
    to the server when a result is read that `trials` does not have: errors are raised then. The caller closes
    `session`, which sets the connection's session as it was before.
    """

    connection: Any
    stem: str
    trials: Trials
    session: ExitStack
    schemas: dict[str, str] = field(default_factory=dict)
    _made: set[str] = field(default_factory=set)
    _loaded: set[TableName] = field(default_factory=set)
    _sent: tuple[Sent, ...] = ()
    _waiting: list[Callable[[], None]] = field(default_factory=list)
    _changed: bool = False
    _begun: bool = False

    def stand_in(self, name: TableName) -> TableName:
        """Return the name that the copy of a table has, or would have."""
        return TableName(self.stand_in_schema(name.schema), name.table)

    def stand_in_schema(self, schema: str) -> str:
        """Return the stand-in of a schema, named anew where it is the first use. Nothing is sent to the server."""
        if schema not in self.schemas:
            self.schemas[schema] = f"{self.stem}{len(self.schemas)}"
        return self.schemas[schema]

    def make_schema(self, schema: str, create_sql: str | None, statement: Ddl) -> None:
        """Make the stand-in of a schema by its SHOW CREATE DATABASE, or, without one, as the statement's session would.

        Does nothing the second time. The server may refuse it (DdlError DDL-003 of the statement that needs it): a
        MariaDB has not all collations of a MySQL.
        """
        inner = self.stand_in_schema(schema)
        if inner in self._made:
            return
        self._made.add(inner)
        if create_sql is None:
            text = f"CREATE DATABASE {quote_name(inner)}"
            self._do(text, statement.context, StatementKind.CREATE_DATABASE, text, statement)
        else:
            ddl = classify_ddl(create_sql, Context())
            self._do(routed(ddl, self.stand_in, self.stand_in_schema).text, ddl=statement)

    def load(self, table: Table) -> None:
        """Make an empty copy of a table. The server may refuse it (DdlError DDL-003)."""
        ddl = classify_ddl(table.create_sql, Context(table.name.schema))
        self._loaded.add(table.name)
        self._do(routed(ddl, self.stand_in, self.stand_in_schema).text, ddl=ddl)

    def run(self, ddl: Ddl) -> None:
        """Run a statement on the copies, in its event's session. The server may refuse it (DdlError DDL-003).

        The table that a CREATE OR REPLACE TABLE makes has no copy, so a server that lacks OR REPLACE
        (`replaces_tables`) runs the statement without it.
        """
        plain = (
            without_or_replace(ddl)
            if ddl.kind is StatementKind.CREATE_TABLE and not replaces_tables(self.connection)
            else ddl
        )
        inner = routed(plain, self.stand_in, self.stand_in_schema)
        if ddl.kind in (StatementKind.CREATE_DATABASE, StatementKind.DROP_DATABASE):
            self._made.add(self.stand_in_schema(ddl.schema))
        self._changed = True
        self._do(inner.text, ddl.context, ddl.kind, ddl.text, ddl)

    def has(self, name: TableName) -> bool:
        """Return whether the table has a copy now."""
        return self.read(name) is not None if self._changed else name in self._loaded

    def read(self, name: TableName) -> Table | None:
        """Return the copy's structure with the real names; None where the table does not exist now.

        Raises DdlError DDL-003 where the server refused a statement of the trial.
        """
        copy = self.stand_in(name)
        known, found = self.trials.table(self._sent, copy)
        if not known:
            self._catch_up()
            with neutral_session(self.connection):
                found = read_table(self.connection, copy)
            self.trials.keep_table(self._sent, copy, found)
        return None if found is None else replace(found, name=name, create_sql=self._real(found.create_sql))

    def read_schema(self, schema: str) -> str | None:
        """Return the stand-in's SHOW CREATE DATABASE with the real name in it. Raises as `read`."""
        inner = self.stand_in_schema(schema)
        known, found = self.trials.schema(self._sent, inner)
        if not known:
            self._catch_up()
            found = show_create_database(self.connection, inner)
            self.trials.keep_schema(self._sent, inner, found)
        return None if found is None else self._real(found)

    def drop(self) -> None:
        """Drop the schemas that were made, if any."""
        if self._begun:
            for inner in sorted(self._made):
                self._execute(f"DROP DATABASE IF EXISTS {quote_name(inner)}")

    def _real(self, text: str) -> str:
        for schema, inner in self.schemas.items():
            text = text.replace(quote_name(inner), quote_name(schema))
        return text

    def _do(
        self,
        text: str,
        context: Context | None = None,
        kind: StatementKind | None = None,
        written: str = "",
        ddl: Ddl | None = None,
    ) -> None:
        """Add a statement to the trial, in the session of an event or, without one, in a neutral one.

        `written` is its text in the names that it has in the log; `ddl` is named in an error.
        """

        def send() -> None:
            with _told(ddl) if ddl is not None else nullcontext():
                if context is None or kind is None:
                    with neutral_session(self.connection):
                        self._execute(text)
                else:
                    named = context if ddl is None else replace(context, where=_place(ddl))
                    with event_session(self.connection, named, kind, written):
                        self._execute(text)

        session = (kind, deciding(context, written)) if context is not None else None
        self._sent += ((text, session),)
        self._waiting.append(send)

    def _catch_up(self) -> None:
        if not self._begun:
            self.session.enter_context(neutral_session(self.connection))
            self.session.enter_context(plain_tables(self.connection))
            self._begun = True
        while self._waiting:
            self._waiting.pop(0)()

    def _execute(self, statement: str) -> None:
        with connection_cursor(self.connection) as cursor:
            cursor.execute(statement)


@contextmanager
def open_scratch(connection: Any, place: ScratchPlace) -> Iterator[Scratch]:
    """Open scratch schemas, which are dropped at the end unless the connection is lost; `drop_leftovers` drops those.

    Their names hold the connection's number, so an older process of the same source that has not ended yet can't use
    them.
    """
    if connection not in _numbers:
        ((_numbers[connection],),) = rows(connection, "SELECT CONNECTION_ID()")
    with ExitStack() as session:
        scratch = Scratch(connection, f"{place.stem}{int(_numbers[connection]):x}_", place.trials, session)
        try:
            yield scratch
        except MySQLdb.Error as error:
            if not ends_connection(error):
                scratch.drop()
            raise
        except BaseException:
            scratch.drop()
            raise
        scratch.drop()


_numbers: WeakKeyDictionary[Any, int] = WeakKeyDictionary()
"""The server's number of each connection."""


def drop_leftovers(connection: Any, place: ScratchPlace) -> None:
    """Drop the schemas that a killed process of this source left. Called once, when a source is claimed."""
    pattern = place.stem.replace("\\", "\\\\").replace("_", "\\_").replace("%", "\\%") + "%"
    statement = "SELECT SCHEMA_NAME FROM information_schema.SCHEMATA WHERE SCHEMA_NAME LIKE %s"
    for (name,) in rows(connection, statement, (pattern,)):
        with connection_cursor(connection) as cursor:
            cursor.execute(f"DROP DATABASE IF EXISTS {quote_name(name)}")


def replaces_tables(connection: Any) -> bool:
    """Return whether the server has CREATE OR REPLACE TABLE: only MariaDB has."""
    return "MariaDB" in connection.get_server_info()


def show_create_database(connection: Any, schema: str) -> str | None:
    """Return SHOW CREATE DATABASE of a schema, on either end; None where it does not exist."""
    try:
        with neutral_session(connection):
            return str(rows(connection, f"SHOW CREATE DATABASE {quote_name(schema)}")[0][1])
    except MySQLdb.Error as error:
        if error.args and error.args[0] == UNKNOWN_SCHEMA:
            return None
        raise


@contextmanager
def connection_cursor(connection: Any) -> Iterator[Any]:
    """Open a cursor that fetches all results at the end, so that an error after the first result is raised."""
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
        raise DdlError("DDL-003", _place(ddl), server_text(error), {"statement": ddl.text}) from error


def _place(ddl: Ddl) -> Where:
    """Return the statement's place in the log, with its table or schema."""
    return replace(ddl.context.where, table=str(ddl.tables[0]) if ddl.tables else ddl.schema)


def server_text(error: MySQLdb.Error) -> str:
    """Return the server's error text, with its number."""
    return ": ".join(str(part) for part in error.args)
