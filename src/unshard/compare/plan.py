"""Plans a comparison from the structures of both ends. A table that can't be compared is reported and left out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import MySQLdb

from unshard.compare.executor.canonical import ValueForm, form_of, members_known
from unshard.compare.executor.row_digest import server_side
from unshard.compare.executor.rows import asked_again, limit_lock_waits
from unshard.compare.ranges import in_order, is_text_mapped
from unshard.compare.sides import SourceSide, TableWish
from unshard.compare.tables import ComparedColumn, ComparedShard, ComparedTable
from unshard.dump.plan import list_tables
from unshard.errors import CompareError, UnshardError, Where
from unshard.model.shape import WITHOUT, without_made_up_key
from unshard.model.table import Column, Table, TableName, quote_name
from unshard.mysql.altered_values import target_kind, times
from unshard.mysql.connection import Endpoint, rows, server_error, session
from unshard.mysql.flavour import Flavour, flavour_of
from unshard.mysql.structure import read_table, without_hashes
from unshard.mysql.tidb import is_tidb
from unshard.mysql.types import BYTES, CHARACTERS, GEOMETRIES, MEMBERS
from unshard.transform.column_mapping import ID_LIMIT
from unshard.transform.extract import constants

NO_TABLE = "COMPARE-001"
_ABSENT, _DENIED = frozenset({1049, 1146}), frozenset({1044, 1142, 1143})
_NO_KEY = frozenset({"float", "double", "json", "bit", "vector"}) | GEOMETRIES | (BYTES - {"binary", "varbinary"})
_ROWS = "SELECT COALESCE(TABLE_ROWS, 0) FROM information_schema.TABLES WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s"


@dataclass(frozen=True, slots=True)
class PlanFault:
    """The reason why a table can't be compared, or, if `different`, a difference of structures.

    `table` is the target table; None: the fault concerns all tables.
    """

    table: TableName | None
    error: UnshardError
    different: bool = False


@dataclass(frozen=True, slots=True)
class ComparisonPlan:
    """The tables to compare, and the faults found. A table with a fault may still be among `tables`."""

    tables: tuple[ComparedTable, ...]
    faults: tuple[PlanFault, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Found:
    side: SourceSide
    table: Table
    rows: int


@dataclass(slots=True)
class _Listing:
    """The source tables by the target table that they go to, and the faults found while they were listed."""

    groups: dict[TableName, list[_Found]] = field(default_factory=dict)
    faults: list[PlanFault] = field(default_factory=list)
    broken: set[TableName] = field(default_factory=set)
    all_broken: bool = False


def plan_comparison(
    sides: Sequence[SourceSide],
    target: Endpoint,
    recorded: Mapping[str, frozenset[TableName] | None],
    wanted: Callable[[TableName], bool],
    wish_for: Callable[[TableName], TableWish],
) -> ComparisonPlan:
    """Ask both ends. `recorded` are the tables of each source on record in the target; None: there is no record.

    Raises TargetError where the target can't be asked, CompareError COMPARE-007 where no table is left at all.
    """
    listing = _Listing()
    for side in sides:
        _list_source(side, recorded.get(side.source), listing)
    made: list[ComparedTable] = []
    notes: list[str] = []
    with session(target, "target") as connection:
        for name in sorted(name for name in listing.groups if wanted(name)):
            if listing.all_broken or name in listing.broken:
                continue
            try:
                maker = _Maker(connection, target, name, wish_for(name), listing.groups[name])
                kept_by = next((rule for side in sides for rule in side.kept_by(name)), "")
                made.append(replace(maker.make(), kept_by=kept_by))
            except UnshardError as error:
                absent = error.code == NO_TABLE
                listing.faults.append(PlanFault(name, error, absent))
            else:
                listing.faults += maker.faults
                notes += maker.notes
    faults = [fault for fault in listing.faults if fault.table is None or wanted(fault.table)]
    if not made and not faults:
        raise CompareError("COMPARE-007")
    return ComparisonPlan(tuple(made), tuple(faults), tuple(notes))


def _list_source(side: SourceSide, recorded: frozenset[TableName] | None, listing: _Listing) -> None:
    try:
        if side.follows and recorded is None:
            raise CompareError("COMPARE-006", Where(side.source))
        with session(side.endpoint, "source") as connection:
            listed = list_tables(connection, side.takes)
            for one in listed:
                _list_table(side, connection, one.name, one.rows, listing)
    except UnshardError as error:
        listing.faults.append(PlanFault(None, error.at(source=side.source)))
        _break(side, recorded, listing)
        return
    unseen = (recorded or frozenset()) - {one.name for one in listed}
    for name in sorted(unseen):
        if side.takes(name):
            routed = side.route(name)
            listing.broken.add(routed)
            listing.faults.append(PlanFault(routed, CompareError("COMPARE-005", Where(side.source, str(name)))))


def _list_table(side: SourceSide, connection: Any, name: TableName, count: int, listing: _Listing) -> None:
    try:
        table = read_table(connection, name)
        if table is not None:
            lean = replace(without_hashes(table), create_sql="")  # it goes to every task, of a merged table many times
            listing.groups.setdefault(side.route(name), []).append(_Found(side, lean, count))
    except MySQLdb.Error as error:
        listing.broken.add(side.route(name))
        told = server_error(error, side.endpoint, "source").at(source=side.source, table=str(name))
        listing.faults.append(PlanFault(side.route(name), told))


def _break(side: SourceSide, recorded: frozenset[TableName] | None, listing: _Listing) -> None:
    """Mark the tables that a source which could not be read may have rows of.

    They are the tables that it has on record; all tables where it has no record.
    """
    if recorded is None:
        listing.all_broken = True
        return
    for name in {side.route(name) for name in recorded if side.takes(name)}:
        listing.broken.add(name)
        error = CompareError("COMPARE-004", Where(side.source, str(name)), values={"source": side.source})
        listing.faults.append(PlanFault(name, error))


@dataclass(slots=True)
class _Maker:
    """The planning of one target table's comparison."""

    connection: Any
    endpoint: Endpoint
    name: TableName
    wish: TableWish
    found: Sequence[_Found]
    faults: list[PlanFault] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    generated: list[ComparedColumn] = field(default_factory=list)
    own: list[Column] = field(default_factory=list)

    def make(self) -> ComparedTable:
        there = read_table(self.connection, self.name)
        if there is None:
            raise self._absent()
        tidb = is_tidb(self.connection)
        target = without_made_up_key(without_hashes(there), self.found[0].table)
        if tidb:
            target = replace(target, columns=tuple(map(_as_tidb_sends, target.columns)))
        shards = [self._shard(one, target) for one in self.found]
        columns = tuple(self._columns(target, shards))
        names = [column.name for column in columns]
        key = self._key(target, names)
        read = [*names, *(column.name for column in self.generated)]
        if self.wish.condition and any(shard.mapping for shard in shards):
            raise CompareError("COMPARE-009", Where(table=str(self.name)))
        ((estimate,),) = rows(self.connection, _ROWS, (self.name.schema, self.name.table))
        table = ComparedTable(
            self.name,
            self.endpoint,
            replace(_only(_readable(target), read), create_sql=""),
            tidb,
            columns,
            key,
            tuple(self._range_key(target, key, shards)),
            tuple(_narrowed(shard, read) for shard in shards),
            self.wish.condition,
            max(int(estimate), sum(one.rows for one in self.found)),
            tuple(self.generated),
            tuple(self.own),
            WITHOUT.search(there.create_sql) is None,
        )
        for shard in shards:
            _refuse_ids(shard)
        return table

    def _absent(self) -> UnshardError:
        """Return why the target shows no table: there is none, or the account may not read it."""
        code = NO_TABLE
        try:
            rows(self.connection, f"SELECT 1 FROM {self.name.quoted} LIMIT 0")
        except MySQLdb.Error as error:
            if error.args[0] in _DENIED:
                code = "COMPARE-022"
            elif error.args[0] not in _ABSENT:
                return server_error(error, self.endpoint, "target").at(table=str(self.name))
        where = Where(self.found[0].side.source, str(self.found[0].table.name))
        return CompareError(code, where, values={"target": str(self.name)})

    def _shard(self, one: _Found, target: Table) -> ComparedShard:
        side, table = one.side, one.table
        where = Where(side.source, str(table.name))
        try:
            added = constants(side.extracted(table.name), table, self.name, target, where)
            mapping = side.mapping_for(table.name)
            settled = mapping.settled(table, target) if mapping is not None else None
            filters = side.filters_for(table)
        except UnshardError as error:
            raise error.at(source=side.source, table=str(table.name)) from None
        rules = side.rules_for(table)
        return ComparedShard(side.source, side.endpoint, table, table, settled, added, side.where, filters, rules)

    def _columns(self, target: Table, shards: Sequence[ComparedShard]) -> Iterator[ComparedColumn]:
        """Yield the columns that all sides have. A column of only one side is reported.

        Columns that every end generates go to `generated`.
        """
        ignored = self.wish.ignored
        known = {column.name.lower() for column in target.columns}
        for shard in shards:
            for column in shard.table.columns:
                if column.name.lower() in known | ignored or column.period:
                    continue
                if column.generated:
                    self._note(column, f"is generated in {shard.name} and not in the target, and is not compared")
                else:
                    values = {"column": column.name, "target": str(self.name)}
                    self._fault(CompareError("COMPARE-002", _place(shard), values=values), different=True)
        for column in target.columns:
            sources = [_source_column(shard, column.name) for shard in shards]
            if column.name.lower() in ignored or (column.generated and not any(sources)):
                continue
            lacking = [shard for shard, one in zip(shards, sources, strict=True) if one is None]
            if column.generated and all(one is None or one.generated for one in sources):
                self._add_generated(column, [one for one in sources if one is not None], lacking)
            elif column.generated:
                values = {"column": column.name, "here": "a plain column", "there": "a generated one"}
                self._fault(CompareError("COMPARE-003", _place(shards[0]), values=values))
            elif len(lacking) == len(shards):
                self._note(column, "is only in the target, and is not compared")
                self.own += [column] * (not column.period)
            elif lacking:
                values = {"column": column.name, "here": "missing", "there": column.definition}
                self._fault(CompareError("COMPARE-003", _place(lacking[0]), values=values))
            else:
                compared = self._column(column, [one for one in sources if one is not None], shards)
                if compared is not None and column.type == "time" and self._clamps(target, column):
                    compared = replace(compared, form=replace(compared.form, clamped=True))
                if compared is not None:
                    yield compared

    def _column(
        self, column: Column, sources: Sequence[Column], shards: Sequence[ComparedShard]
    ) -> ComparedColumn | None:
        every = [column, *sources]
        form = form_of(every)
        if form is None or not members_known(every):
            other = next(one for one in [*sources, column] if form_of([column, one]) is None or one is column)
            place = _place(shards[sources.index(other)]) if other in sources else _place(shards[0])
            values = {"column": column.name, "here": other.definition, "there": column.definition}
            self._fault(CompareError("COMPARE-003", place, values=values))
            return None
        return self._in_form(column, sources, form)

    def _in_form(self, column: Column, sources: Sequence[Column], form: ValueForm) -> ComparedColumn:
        if form.kind in ("float", "double") and not _has_negative_zeros(self.connection):
            form = replace(form, one_zero=True)
        return ComparedColumn(column.name, form, server_side([column, *sources]))

    def _add_generated(self, column: Column, sources: Sequence[Column], lacking: Sequence[ComparedShard]) -> None:
        """Add a column that the target generates, and every source table that has it."""
        form = form_of([column, *sources])
        if lacking:
            self._note(column, f"is generated in the target and not in {lacking[0].name}, and is not compared")
        elif form is None or not members_known([column, *sources]):
            types = f"{sources[0].definition} in the source and {column.definition} in the target"
            self._note(column, f"is generated on both ends, as {types}, and is not compared")
        else:
            self.generated.append(replace(self._in_form(column, sources, form), generated=True))

    def _note(self, column: Column, text: str) -> None:
        self.notes.append(f"{self.name}: column {column.name} {text}")

    def _clamps(self, target: Table, column: Column) -> bool:
        """Return whether the task clamps the values of this TIME column of a shard to the target's range."""
        clamping = [one.table for one in self.found if one.side.clamps]
        kind = target_kind(self.connection, from_mysql=False) if clamping else None
        return kind is not None and any(
            one.name.lower() == column.name.lower() for table in clamping for one in times(table, target, kind)
        )

    def _key(self, target: Table, names: Sequence[str]) -> tuple[str, ...]:
        """Return the first key of the target whose columns are all compared and never NULL.

        (): the rows are a multiset.
        """
        there = {name.lower() for name in names}
        for index in sorted(target.unique_keys, key=lambda index: (not index.primary, index.name)):
            parts = [column for column in target.columns if column.name in index.columns]
            whole = len(parts) == len(index.columns) and not any(index.prefixes)
            if whole and all(_names_rows(column) and column.name.lower() in there for column in parts):
                return index.columns
        return ()

    def _range_key(self, target: Table, key: Sequence[str], shards: Sequence[ComparedShard]) -> Iterator[str]:
        for name in key:
            column = target.column(name)
            sources = [one for shard in shards if (one := _source_column(shard, name)) is not None]
            # a NULL would be in no range
            if any(one.nullable for one in (column, *sources)) or not in_order(column, sources):
                return
            if any(is_text_mapped(shard, name) for shard in shards):
                return
            yield name

    def _fault(self, error: UnshardError, *, different: bool = False) -> None:
        self.faults.append(PlanFault(self.name, error, different))


def _place(shard: ComparedShard) -> Where:
    return Where(shard.source, str(shard.table.name))


def _names_rows(column: Column) -> bool:
    return not column.nullable and column.type not in _NO_KEY


def _as_tidb_sends(column: Column) -> Column:
    """Return the column with the connection's character set, in which TiDB sends all text but bytes."""
    text = (column.type in CHARACTERS or column.type in MEMBERS) and column.charset != "binary"
    return replace(column, charset="utf8mb4") if text else column


def _source_column(shard: ComparedShard, name: str) -> Column | None:
    """Return the source's column that has the values of that target column."""
    own = (column for column in shard.table.columns if not column.period)
    added = (one.column for one in shard.constants)
    return next((column for column in (*own, *added) if column.name.lower() == name.lower()), None)


def _only(table: Table, names: Sequence[str]) -> Table:
    wanted = {name.lower() for name in names}
    return replace(table, columns=tuple(column for column in table.columns if column.name.lower() in wanted))


def _narrowed(shard: ComparedShard, names: Sequence[str]) -> ComparedShard:
    """Return the shard with the columns to read: the compared ones, and those that a mapping uses."""
    more = (shard.mapping.source_column, shard.mapping.target_column) if shard.mapping is not None else ()
    return replace(shard, read=_only(_readable(shard.table), [*names, *more]))


def _readable(table: Table) -> Table:
    """Return the table with its generated columns as plain ones, which are read."""
    return replace(table, columns=tuple(replace(one, generated=False) for one in table.columns if not one.period))


def _refuse_ids(shard: ComparedShard) -> None:
    """Raise CompareError COMPARE-011 where an id of the source is none that `partition id` takes."""
    mapping = shard.mapping
    if mapping is None or mapping.of_text:
        return
    name = quote_name(mapping.source_column)
    beyond = f"SELECT {name} FROM {shard.table.name.quoted} WHERE {name} < 0 OR {name} > {ID_LIMIT} LIMIT 1"

    def ask() -> list[tuple[Any, ...]]:
        with session(shard.endpoint, "source") as connection:
            limit_lock_waits(connection)
            return rows(connection, beyond)

    found = asked_again(ask)
    if found:
        values = {"column": mapping.source_column, "rule": mapping.rule, "value": found[0][0]}
        raise CompareError("COMPARE-011", _place(shard), values=values)


def _has_negative_zeros(target: Any) -> bool:
    """Return whether the server stores a -0: only MySQL does."""
    return not is_tidb(target) and flavour_of(target.get_server_info()) is Flavour.MYSQL
