"""The target's databases and tables: created after routing, or compared with the source where they exist."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import MySQLdb

from unshard.ddl.in_snapshot import DdlInSnapshot
from unshard.errors import LoadError, ShardError, Where
from unshard.load.contents import Contents, SourceTable
from unshard.load.creation import Creation, OpenSession, Route, each, named_lock
from unshard.load.deferred_keys import DeferredKeys, in_foreign_keys
from unshard.load.empty_tables import EmptyTables
from unshard.load.widen import take_all, widen
from unshard.model.shape import misfits
from unshard.model.table import Table, TableName, quote_name
from unshard.mysql.altered_values import passed_through, target_kind, times
from unshard.mysql.connection import rows
from unshard.mysql.structure import read_table
from unshard.schema.zoned import zone_faults
from unshard.target.filled import FilledTables
from unshard.transform.column_mapping import ColumnMapping
from unshard.transform.extract import Constant, Extracted, constants, with_constants

_SCHEMA = "SELECT 1 FROM information_schema.SCHEMATA WHERE SCHEMA_NAME = %s"
_TABLES = "SELECT TABLE_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA = %s"
_NOT_UNDERSTOOD = frozenset({1064, 1115, 1235, 1253, 1273, 1286, 1305, 1901, 4161})
"""Syntax, character set, not supported yet, collation and set, collation, engine, function, generated column, type."""
_THERE = frozenset({1007, 1050})
"""The notes of IF NOT EXISTS on a schema or table that the server has, maybe under a name of another case."""


@dataclass(frozen=True, slots=True)
class LoadRules:
    """A source's rules, as functions of a source table's name.

    Args:
        extracted: the extracted columns.
        alike: tables that merge must have equal columns, for their DDL is coordinated.
        copied: the sharding DDL that only some of the copies contain; their columns may differ by it.
        clamps: a TIME beyond the range of the target is clamped.
        zone: gives the time zone of the source's sessions.
    """

    route: Route
    mapping_for: Callable[[TableName], ColumnMapping | None]
    extracted: Callable[[TableName], tuple[Extracted, ...]]
    alike: bool = False
    copied: DdlInSnapshot = field(default_factory=DdlInSnapshot)
    clamps: bool = False
    zone: Callable[[], str] = lambda: ""


@dataclass(frozen=True, slots=True)
class Way:
    """The rules by which one source table's rows are written to the target. `source` is the table's structure.

    `constants` are the values of its extracted columns, `raw` the columns of text whose bytes the target takes,
    `clamped` the columns of TIME that are clamped, `unlike` the columns of text that have another character set in the
    target, each with that set.
    """

    source: Table
    target: TableName
    mapping: ColumnMapping | None = None
    constants: tuple[Constant, ...] = ()
    raw: frozenset[str] = frozenset()
    clamped: frozenset[str] = frozenset()
    unlike: tuple[tuple[str, str], ...] = ()

    def fingerprint(self, *, escaped: bool = True) -> str:
        """Return a digest of the rules: which table the rows go to, how they are changed, how their texts are read.

        `escaped`: backslashes begin escapes in the files.
        """
        written = [self.mapping.mark if self.mapping else None, [(c.column.name, c.value) for c in self.constants]]
        rules = (str(self.target), written) if escaped else (str(self.target), written, "no escapes")
        return hashlib.sha256(repr(rules).encode()).hexdigest()[:32]


@dataclass(frozen=True, slots=True)
class _Planned:
    """A table of the dump, with the rules that apply to it."""

    table: SourceTable
    target: TableName
    extracted: tuple[Extracted, ...]
    mapping: ColumnMapping | None
    where: Where


def prepare(
    open_session: OpenSession,
    contents: Contents,
    rules: LoadRules,
    creation: Creation,
    source: str,
    records: FilledTables,
    deferred: DeferredKeys | None = None,
) -> dict[TableName, Way]:
    """Create the tables that the target lacks, check those that it has; return, by source table, how rows are written.

    Each created table is recorded in `records`, the keys that a large one gets after its rows in `deferred`. A table
    that an earlier attempt of the task created with other columns, and that holds no row, is made anew.

    Safe to run again and from several sources at once. Raises LoadError LOAD-004 naming both sides where a target
    table doesn't fit, LOAD-011 and LOAD-023 where the target can't have what the source has; ConfigError CONFIG-010,
    CONFIG-017; ShardError SHARD-029 for tables that must be alike, and are not.
    """
    copied = rules.copied
    oldest_first = sorted(contents.tables, key=lambda table: copied.count(table.name))
    planned = [
        _Planned(
            table,
            rules.route(table.name),
            rules.extracted(table.name),
            rules.mapping_for(table.name),
            Where(source, str(table.name)),
        )
        for table in oldest_first
    ]
    with open_session() as connection:
        there_before = _Listing(connection)
        for one in planned:
            _make_schema(connection, there_before, contents, creation, one)
        structures = {
            one.table.name: one.table.structure or creation.structure(connection, one.table) for one in planned
        }
        if rules.alike:
            _refuse_unlike([one for one in planned if one.target not in copied.joined], structures, copied)
        empty = EmptyTables(records)
        empty.put_back(connection, (one.target for one in planned if not there_before.has(one.target)))
        connected = in_foreign_keys({one.table.name: one.table.create_sql for one in planned})
        earlier = deferred.recorded(connection) if deferred is not None else frozenset()
        defer = partial(_defer, deferred, earlier, connected) if deferred is not None else None
        make = partial(
            _make_tables,
            open_session,
            structures=structures,
            connected=connected,
            rules=rules,
            creation=creation,
            defer=defer,
        )
        known = make(planned, there_before=_listed(connection, planned), records=records)
        shared = frozenset(copied.joined) | copied.ahead

        def made_anew(targets: Collection[TableName]) -> bool:
            """Make tables anew that an earlier attempt has made and that hold no row; return whether there are any."""
            gone = {target for target in empty.among(connection, targets) if empty.take_away(connection, target)}
            anew = [one for one in planned if one.target in gone]
            known.update(make(anew, there_before=_listed(connection, anew), records=records))
            return bool(gone)

        made_anew(
            {
                one.target
                for one in planned
                if one.target not in shared and _is_unfit(structures[one.table.name], known[one.target], one)
            }
        )
        found: dict[TableName, Way] = {}
        # values beyond the range of a MySQL are of a MariaDB
        kind = target_kind(connection, from_mysql=False) if rules.clamps else None
        for one in planned:
            structure, target = structures[one.table.name], one.target
            there = known[target]
            added = constants(one.extracted, structure, target, there, one.where)
            copy = with_constants(structure, added)
            if there is not None and target in shared:
                # altered rather than made anew: other sources may have begun to load into it
                alter = partial(_altered, connection, target, copy, copied, creation, one.where)
                try:
                    there = alter()
                except ShardError:
                    if not made_anew({target}):
                        raise
                    there = alter()
                if there is not None and misfits(copy, there) and made_anew({target}):
                    there = alter()
                known[target] = there
            faults = misfits(copy, there) or zone_faults(copy, there, rules.zone) if there else ["it is gone again"]
            if faults or there is None:
                values = {"target": str(target), "faults": "; ".join(faults)}
                raise LoadError("LOAD-004", one.where, values=values)
            settled = one.mapping.settled(structure, there) if one.mapping is not None else None
            mapped = {settled.source_column, settled.target_column} if settled is not None else set()
            raw = passed_through(structure, there) - mapped
            clamped = frozenset(column.name for column in times(structure, there, kind)) if kind is not None else ()
            unlike = _unlike(structure, there)
            found[one.table.name] = Way(structure, target, settled, added, raw, frozenset(clamped), unlike)
    return found


def _unlike(structure: Table, there: Table) -> tuple[tuple[str, str], ...]:
    """Return the columns of text whose character sets differ, each with that of the target."""
    pairs = ((column, there.column(column.name).charset) for column in structure.columns if not column.generated)
    return tuple((one.name, kept) for one, kept in pairs if one.charset and kept and kept != one.charset)


def _make_schema(
    connection: Any, there_before: _Listing, contents: Contents, creation: Creation, one: _Planned
) -> None:
    if not there_before.has_schema(one.target.schema):
        statement = contents.databases.get(one.table.name.schema, "CREATE DATABASE `unnamed`")
        text = creation.database(statement, one.target.schema)
        _create(connection, text, f"database {one.target.schema}", one.where)


def _make_tables(
    open_session: OpenSession,
    planned: Sequence[_Planned],
    *,
    there_before: Collection[TableName],
    structures: Mapping[TableName, Table],
    connected: Collection[TableName],
    rules: LoadRules,
    creation: Creation,
    records: FilledTables,
    defer: Callable[[Any, Sequence[_Planned]], None] | None,
) -> dict[TableName, Table | None]:
    """Create the missing tables, several at once; return by name the tables that the target then has.

    `there_before`: those that exist, by their names. `connected`: the source's tables in foreign keys. `defer` is
    called for a table that was just created, with all that is loaded into it.
    """
    groups: dict[TableName, list[_Planned]] = {}
    for one in planned:
        groups.setdefault(one.target, []).append(one)

    def make(connection: Any, target: TableName) -> Table | None:
        first, *_ = group = groups[target]
        there = read_table(connection, target) if first.extracted or target in there_before else None
        if there is None:
            constants(first.extracted, structures[first.table.name], target, None, first.where)
            counter = max((one.table.counter or 0 for one in group), default=0)
            joined = rules.copied.joined.get(target)
            made = replace(first.table, create_sql=joined.create_sql) if joined is not None else first.table
            text = creation.table(made, target, rules.route, counter, first.where)
            rows(connection, f"USE {quote_name(target.schema)}")
            if _create(connection, text, f"table {target}", first.where):
                records.note_made(connection, target)
                if defer is not None:
                    defer(connection, group)
            there = read_table(connection, target)
        return there

    in_keys = {target for target, group in groups.items() if any(one.table.name in connected for one in group)}
    others = [target for target in groups if target not in in_keys]
    made = dict(zip(others, each(open_session, make, others, creation.at_once), strict=True))
    connected_ones = sorted(in_keys)
    return made | dict(
        zip(connected_ones, each(open_session, make, connected_ones, creation.connected_at_once), strict=True)
    )


def _defer(
    deferred: DeferredKeys,
    earlier: Collection[TableName],
    connected: Collection[TableName],
    connection: Any,
    group: Sequence[_Planned],
) -> None:
    """Defer the keys of a target table that was just created, unless it is in a foreign key.

    `earlier`: tables of which keys are on record.
    """
    target = group[0].target
    if target in earlier:
        deferred.forget(connection, target)
    if not any(one.table.name in connected for one in group):
        deferred.defer(connection, target, sum(file.size for one in group for file in one.table.files))


def _is_unfit(structure: Table, there: Table | None, one: _Planned) -> bool:
    """Return whether the target's table lacks columns of the copy or has others.

    False for a table with extracted columns.
    """
    return there is not None and not one.extracted and bool(misfits(structure, there))


def _refuse_unlike(planned: Sequence[_Planned], structures: Mapping[TableName, Table], copied: DdlInSnapshot) -> None:
    """Raise ShardError SHARD-029 where columns differ; their order may."""
    firsts: dict[tuple[TableName, int], Table] = {}
    for one in planned:
        other = structures[one.table.name]
        first = firsts.setdefault((one.target, copied.count(other.name)), other)
        mine, its = ({(c.name.lower(), c.definition, c.nullable) for c in table.columns} for table in (first, other))
        if mine != its:
            names = ", ".join(sorted({name for name, *_ in mine ^ its}))
            why = f"the copy of {first.name} differs in {names}, and no DDL that the log tells of made it so"
            raise ShardError("SHARD-029", one.where, values={"target": str(one.target), "why": why})


def _altered(
    connection: Any, target: TableName, copy: Table, copied: DdlInSnapshot, creation: Creation, where: Where
) -> Table | None:
    """Return the target's table, altered to take what all tables that merge into it have."""
    if target in copied.joined:
        return _joined(connection, copied.joined[target], creation, where)
    return _widened(connection, target, copy, copied, creation, where)


def _joined(connection: Any, joined: Table, creation: Creation, where: Where) -> Table | None:
    """Return the target's table, altered to take what the joined one does; sources run this one after the other."""
    with named_lock(connection, f"unshard:{joined.name}"[:64]):
        there = read_table(connection, joined.name)
        if there is None:
            return None
        mine, its = creation.sides(joined, there)
        return read_table(connection, joined.name) if take_all(connection, its, mine, where) else there


def _widened(
    connection: Any, target: TableName, copy: Table, copied: DdlInSnapshot, creation: Creation, where: Where
) -> Table | None:
    """Return the target's table, altered to take the copy's rows; sources run this one after the other."""
    with named_lock(connection, f"unshard:{target}"[:64]):
        there = read_table(connection, target)
        if there is None:
            return None
        mine, its = creation.sides(copy, there)
        if not widen(connection, its, mine, *copied.columns(copy.name), where):
            return there
        return read_table(connection, target)


def _listed(connection: Any, planned: Sequence[_Planned]) -> frozenset[TableName]:
    """Return the target tables that exist now."""
    now = _Listing(connection)
    return frozenset(one.target for one in planned if now.has(one.target))


class _Listing:
    """The names of the target's tables before the load.

    They are read once for each schema, so that ten thousand tables are not asked for one by one.
    """

    def __init__(self, connection: Any) -> None:
        self._connection = connection
        self._tables: dict[str, set[str]] = {}

    def has_schema(self, schema: str) -> bool:
        """Return whether the schema exists; later calls return True."""
        known = schema in self._tables
        self._of(schema)
        return known or bool(rows(self._connection, _SCHEMA, (schema,)))

    def has(self, table: TableName) -> bool:
        """Return whether the table existed.

        A name that differs in case may be the same table, which its creation shows.
        """
        return table.table in self._of(table.schema)

    def _of(self, schema: str) -> set[str]:
        if schema not in self._tables:
            self._tables[schema] = {str(name) for (name,) in rows(self._connection, _TABLES, (schema,))}
        return self._tables[schema]


def _create(connection: Any, statement: str, what: str, where: Where) -> bool:
    """Run a CREATE … IF NOT EXISTS of the source; return whether it made something.

    Raises LoadError LOAD-011 where a target of another flavour or version does not understand it.
    """
    try:
        rows(connection, statement)
    except MySQLdb.Error as error:
        if error.args[0] not in _NOT_UNDERSTOOD:
            raise
        cause = f"{error.args[0]}: {error.args[1]}"
        raise LoadError("LOAD-011", where, cause, {"what": what, "statement": statement}) from error
    return not any(number in _THERE for _, number, _ in rows(connection, "SHOW WARNINGS"))
