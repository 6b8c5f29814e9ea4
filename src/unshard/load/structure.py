"""The target's databases and tables: created after routing, or held against the source where they exist."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import MySQLdb

from unshard.ddl.ahead import Copied
from unshard.errors import LoadError, ShardError, Where
from unshard.load.contents import Contents, SourceTable
from unshard.load.create_sql import create_database, create_table
from unshard.load.widen import widen
from unshard.model.shape import misfits
from unshard.model.table import Table, TableName, quote_name
from unshard.mysql.connection import rows
from unshard.mysql.structure import read_table
from unshard.source.snapshot import next_counter
from unshard.transform.column_mapping import ColumnMapping
from unshard.transform.extract import Constant, Extracted, constants, with_constants

Route = Callable[[TableName], TableName]
_LOCK_SECONDS = 60
_SCHEMA = "SELECT 1 FROM information_schema.SCHEMATA WHERE SCHEMA_NAME = %s"
_TABLES = "SELECT TABLE_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA = %s"
_NOT_UNDERSTOOD = frozenset({1064, 1115, 1235, 1253, 1273, 1286, 1305, 1901, 4161})
"""Syntax, character set, not supported yet, collation and set, collation, engine, function, generated column, type."""


@dataclass(frozen=True, slots=True)
class Rules:
    """A source's rules, as functions of a source table's name. `alike`: tables that merge must have equal columns,
    for their DDL is brought together; but for what `copied` tells that only some of the copies have."""

    route: Route
    mapping_for: Callable[[TableName], ColumnMapping | None]
    extracted: Callable[[TableName], tuple[Extracted, ...]]
    alike: bool = False
    copied: Copied = field(default_factory=Copied)


@dataclass(frozen=True, slots=True)
class Way:
    """How the rows of one source table, of structure `source`, get into the target."""

    source: Table
    target: TableName
    mapping: ColumnMapping | None = None
    constants: tuple[Constant, ...] = ()

    @property
    def fingerprint(self) -> str:
        """A digest of the rules: where the rows go, and what is made of them."""
        written = [self.mapping.mark if self.mapping else None, [(c.column.name, c.value) for c in self.constants]]
        return hashlib.sha256(repr((str(self.target), written)).encode()).hexdigest()[:32]


def prepare(
    connection: Any, contents: Contents, rules: Rules, scratch_schema: str, source: str
) -> dict[TableName, Way]:
    """Create what the target lacks and check what it has; by source table how its rows are written.

    Safe to run again and from several sources at once. Raises LoadError LOAD-004 naming both sides where a target
    table doesn't fit, LOAD-011 where the target can't create what the source has; ConfigError CONFIG-010, CONFIG-017;
    ShardError SHARD-029 for tables that are to be alike, and are not.
    """
    found: dict[TableName, Way] = {}
    there_before = _Listing(connection)
    used = ""
    firsts: dict[tuple[TableName, int], Table] = {}
    copied = rules.copied
    oldest_first = sorted(contents.tables, key=lambda table: copied.count(table.name))
    names = [table.name for table in oldest_first]
    asked = [(rules.route(name), rules.extracted(name), rules.mapping_for(name)) for name in names]
    for table, (target, extracted, mapping) in zip(oldest_first, asked, strict=True):
        where = Where(source, str(table.name))
        statement = contents.databases.get(table.name.schema, "CREATE DATABASE `unnamed`")
        if not there_before.has_schema(target.schema):
            _create(connection, create_database(statement, target.schema), f"database {target.schema}", where)
        if table.structure is None:
            used = ""  # its description uses the scratch schema
        structure = table.structure or _described(connection, table, scratch_schema, source)
        if rules.alike:
            first = firsts.setdefault((target, copied.count(table.name)), structure)
            _refuse_unlike(first, structure, target, where)
        if used != target.schema:
            rows(connection, f"USE {quote_name(target.schema)}")
            used = target.schema
        there = read_table(connection, target) if extracted or there_before.has(target) else None
        added = constants(extracted, structure, target, there, where)
        if there is None:
            text = create_table(table.create_sql, table.name.schema, target, rules.route)
            _create(connection, text, f"table {target}", where)
            there = read_table(connection, target)
        if there is not None and target in copied.ahead:
            there = _widened(connection, target, with_constants(structure, added), copied, where)
        faults = misfits(with_constants(structure, added), there) if there else ["it is gone again"]
        if faults or there is None:
            values = {"target": str(target), "faults": "; ".join(faults)}
            raise LoadError("LOAD-004", where, values=values)
        settled = mapping.settled(structure, there) if mapping is not None else None
        found[table.name] = Way(structure, target, settled, added)
    return found


def _refuse_unlike(one: Table, other: Table, target: TableName, where: Where) -> None:
    """Raises ShardError SHARD-029 where columns differ; their order may."""
    first, second = ({(c.name.lower(), c.definition, c.nullable) for c in table.columns} for table in (one, other))
    if first != second:
        names = ", ".join(sorted({name for name, *_ in first ^ second}))
        why = f"the copy of {one.name} differs in {names}, and no DDL that the log tells of made it so"
        raise ShardError("SHARD-029", where, values={"target": str(target), "why": why})


def _widened(connection: Any, target: TableName, copy: Table, copied: Copied, where: Where) -> Table | None:
    """The target's table, with what the copy needs; sources do so one after the other."""
    with _named_lock(connection, f"unshard:{target}"[:64]):
        there = read_table(connection, target)
        if there is None or not widen(connection, there, copy, *copied.columns(copy.name), where):
            return there
        return read_table(connection, target)


class _Listing:
    """What the target had before, read once a schema: ten thousand tables are not asked for one by one."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection
        self._tables: dict[str, set[str]] = {}

    def has_schema(self, schema: str) -> bool:
        """Whether the schema is there; from then on it is taken to be."""
        known = schema in self._tables
        if not known:
            self._tables[schema] = {str(name) for (name,) in rows(self._connection, _TABLES, (schema,))}
        return known or bool(rows(self._connection, _SCHEMA, (schema,)))

    def has(self, table: TableName) -> bool:
        """Whether it was there; a name that differs in case may be the same table and is found when it is created."""
        return table.table in self._tables[table.schema]


def _create(connection: Any, statement: str, what: str, where: Where) -> None:
    """Run a CREATE statement of the source, which a target of another flavour or version may not understand."""
    try:
        rows(connection, statement)
    except MySQLdb.Error as error:
        if error.args[0] not in _NOT_UNDERSTOOD:
            raise
        cause = f"{error.args[0]}: {error.args[1]}"
        raise LoadError("LOAD-011", where, cause, {"what": what, "statement": statement}) from error


def raise_counters(connection: Any, contents: Contents, route: Route) -> None:
    """Set each target's AUTO_INCREMENT counter to the largest of its sources, never lower than it is. Idempotent.

    A named lock keeps the sources of one target from setting it back between reading and writing.
    """
    wanted: dict[TableName, int] = {}
    for table in contents.tables:
        if table.counter:
            target = route(table.name)
            wanted[target] = max(wanted.get(target, 0), table.counter)
    for target, counter in wanted.items():
        if (next_counter(connection, target) or 0) >= counter:
            continue
        with _named_lock(connection, f"unshard:{target}"[:64]):
            if (next_counter(connection, target) or 0) < counter:
                rows(connection, f"ALTER TABLE {target.quoted} AUTO_INCREMENT = {counter}")


def _described(connection: Any, table: SourceTable, schema: str, source: str) -> Table:
    """The structure behind a CREATE TABLE text: the server makes an empty copy in the meta schema and tells."""
    copy = TableName(schema, f"unshard_shape_{source}"[:64])
    with _named_lock(connection, f"unshard:{copy}"[:64]):
        rows(connection, f"USE {quote_name(schema)}")
        rows(connection, f"DROP TABLE IF EXISTS {copy.quoted}")
        rows(connection, create_table(table.create_sql, table.name.schema, copy, lambda name: name))
        found = read_table(connection, copy)
        rows(connection, f"DROP TABLE {copy.quoted}")
    if found is None:
        raise LoadError("LOAD-001", Where(source, str(table.name)), values={"fault": "its CREATE TABLE makes no table"})
    return Table(table.name, found.columns, found.indexes, table.create_sql, found.foreign_keys)


@contextmanager
def _named_lock(connection: Any, name: str) -> Iterator[None]:
    rows(connection, "SELECT GET_LOCK(%s, %s)", (name, _LOCK_SECONDS))
    try:
        yield
    finally:
        rows(connection, "SELECT RELEASE_LOCK(%s)", (name,))
