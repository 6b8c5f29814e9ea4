"""Copies column values that a DDL generated in the source to the rows of the target, or refuses the DDL.

`ADD COLUMN made DATETIME DEFAULT CURRENT_TIMESTAMP` fills existing rows with the time of its run, and DEFAULT UUID()
with random values. A run on the target gives other values, and one run for several shards gives all of them the same.
So once the target has the column, and before later changes of the table are applied, each source sets the column by key
to what its own rows hold now:

| the row since the DDL | what is set | result |
|---|---|---|
| was not changed | the value of the source | right |
| was changed | a later value | its row event, which has the column, is applied afterwards |
| was inserted, or its key was changed | nothing: the target has no such key yet | its row event has the value |
| was deleted | nothing | its row event deletes it |

This works where row events have all columns and a key identifies a row. Elsewhere the DDL is refused, and the
user decides. The values may be written again from the first row until the batch is closed, so a crash of the process
costs only time.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import MySQLdb
import pyarrow as pa

from unshard.crash_point import reach
from unshard.ddl.backfill import filled_unlike_upstream, numbered, same_order
from unshard.ddl.conversions import converted_unlike_upstream
from unshard.ddl.evaluate import definition_of, dialect_of, tidb_definition
from unshard.ddl.intent import Intent, Step
from unshard.ddl.parse import classify_ddl
from unshard.ddl.session import neutral_session
from unshard.ddl.statement import StatementKind
from unshard.ddl.tracker import Changes
from unshard.dump.read import dumped_columns, read_rows
from unshard.errors import DdlError, UnshardError, Where
from unshard.log import logger
from unshard.model.table import Column, Index, Table, TableName, quote_name
from unshard.mysql.connection import Endpoint, rows, server_error, session
from unshard.mysql.defaults import column_lines
from unshard.mysql.structure import read_table
from unshard.mysql.tidb import is_tidb
from unshard.retry import retrying
from unshard.source.snapshot import open_reader
from unshard.sync.checkpoint.store import CheckpointStore
from unshard.sync.planning.table_plans import TableRules
from unshard.sync.statements.plan_record import ColumnBackfill, StatementPlan
from unshard.transform.column_mapping import ColumnMapping, apply_mapping
from unshard.transform.extract import Constant, append_constants, constants
from unshard.transform.sql_literals import sql_literals

_NO_KEY = frozenset({"float", "double", "json"})
_ATTEMPTS = 10
_MATCHED = re.compile(r"matched: (\d+)")
NUMBERED = "numbers by the order of rows can't be brought: setting them one by one would double others"


@dataclass(frozen=True, slots=True)
class _Reading:
    """The plan for reading the values of a backfill from a source table.

    `read`: the table with the columns to read. `key`: the target's key by which its rows are found. `mapping`, `added`:
    the column mapping and the extracted columns.
    """

    read: Table
    key: tuple[str, ...]
    mapping: ColumnMapping | None
    added: tuple[Constant, ...]


class _HinderedError(Exception):
    """Raised where values can't be copied; the text says why."""


@dataclass(slots=True)
class Backfiller:
    """The copier of column values from one source to the target's rows. Used by the sync unit's thread."""

    source: Endpoint
    rules: TableRules

    def hindrance(self, fill: ColumnBackfill, after: Table | None, store: CheckpointStore) -> str:
        """Return why the values can't be written; "" if they can. `after`: the table's structure after the DDL."""
        there = store.on_target(lambda c: read_table(c, self.rules.router.route(fill.table)))
        try:
            self._reading(fill, there, after)
        except _HinderedError as error:
            return str(error)
        return ""

    def rewritten(self, table: TableName) -> frozenset[str]:
        """Return the column, in lower case, that a column mapping writes: the target's values are not the source's."""
        mapping = self.rules.mapper.mapping_for(table)
        return frozenset() if mapping is None else frozenset({mapping.target_column.lower()})

    def bring(self, fill: ColumnBackfill, store: CheckpointStore, refusal: Callable[[str], UnshardError]) -> None:
        """Set the columns in all rows of the target that the source table has. May run again.

        Raises SourceError, TargetError, and the error that `refusal` makes of the reason why the values can't be
        written now.
        """
        started, target = time.monotonic(), self.rules.router.route(fill.table)
        there = store.on_target(lambda c: read_table(c, target))
        if there is None or not _has(there, fill.columns):
            return
        try:
            reading = self._reading(fill, there, None)
        except _HinderedError as error:
            raise refusal(str(error)) from None
        count, found = retrying(partial(self._copy, fill, reading, there, store), attempts=_ATTEMPTS)
        words = {"table": str(fill.table), "columns": ", ".join(fill.columns), "rows": count, "found": found}
        seconds = round(time.monotonic() - started, 1)
        logger("sync", source=store.source).info("values that a DDL gave were brought", **words, seconds=seconds)

    def bring_planned(
        self, plan: StatementPlan, store: CheckpointStore, refusal: Callable[[ColumnBackfill, str], UnshardError]
    ) -> None:
        """Write all values that the open batch has planned, and note each table as done. All its steps are done."""
        plan = plan.with_done(len(plan.intent.steps))
        while plan.backfills:
            fill, *rest = plan.backfills
            self.bring(fill, store, partial(refusal, fill))
            plan = replace(plan, backfills=tuple(rest))
            store.note(plan.to_dict())

    def _copy(self, fill: ColumnBackfill, reading: _Reading, there: Table, store: CheckpointStore) -> tuple[int, int]:
        """Return how many rows were read, and how many of them the target has."""
        count = found = 0
        try:
            with closing(open_reader(self.source, text=False)) as connection:
                for batch in read_rows(connection, reading.read):
                    texts = _updates(batch, fill, reading, there)
                    found += store.in_one(partial(_run, texts))
                    count += len(batch)
                    reach("ddl-backfill-rows")
        except MySQLdb.Error as error:
            where = {"source": store.source, "table": str(fill.table)}
            raise server_error(error, self.source, "source", "reading a table").at(**where) from error
        return count, found

    def _reading(self, fill: ColumnBackfill, there: Table | None, after: Table | None) -> _Reading:
        """Plan the reading of the source table; `there` is the target's table before or after it has the columns.

        Raises _HinderedError.
        """
        with session(self.source, "source") as connection:
            now = read_table(connection, fill.table)
            images = dict(rows(connection, "SHOW GLOBAL VARIABLES LIKE 'binlog_row_image'"))
        if there is None:
            raise _HinderedError("the target has no such table")
        if now is None:
            raise _HinderedError("the source has no such table any more")
        if images.get("binlog_row_image", "FULL").upper() != "FULL":
            raise _HinderedError("binlog_row_image of the source is not FULL")
        own = {column.name.lower(): column for column in dumped_columns(now)}
        behind = {column.name.lower(): column for column in after.columns} if after is not None else own
        for name in map(str.lower, fill.columns):
            if name not in own or name not in behind or own[name].type != behind[name].type:
                raise _HinderedError(f"column {name} of the source has been changed or dropped since")
        if self.rules.row_filters(replace(now, create_sql="")):
            raise _HinderedError("an expression filter leaves out rows of the table")
        if self.rules.events.row_filters(fill.table):
            raise _HinderedError("an event filter leaves out changes of the table")
        added, mapping = self._shaped(now, there)
        filled = {name.lower() for name in fill.columns}
        if mapping is not None and mapping.target_column.lower() in filled:
            raise _HinderedError(f"column mapping {mapping.rule} changes the column")
        by_name = {one.column.name.lower() for one in added} | (own.keys() - filled)
        keys = sorted(there.unique_keys, key=lambda index: (not index.primary, index.columns != there.identity))
        key = next((index.columns for index in keys if _names_rows(index, there, by_name)), None)
        if key is None:
            raise _HinderedError("no unique key of the target, of NOT NULL columns, names its rows")
        wanted = filled | {name.lower() for name in key}
        if mapping is not None:
            wanted |= {mapping.source_column.lower(), mapping.target_column.lower()}
        columns = tuple(column for column in dumped_columns(now) if column.name.lower() in wanted)
        return _Reading(replace(now, columns=columns), key, mapping, added)

    def _shaped(self, now: Table, there: Table) -> tuple[tuple[Constant, ...], ColumnMapping | None]:
        source, name = self.rules.source, now.name
        where = Where(source=source, table=str(name))
        added = constants(self.rules.router.extracted(name, source), now, there.name, there, where)
        mapping = self.rules.mapper.mapping_for(name)
        return added, mapping.settled(now, there) if mapping is not None else None


def _names_rows(index: Index, there: Table, known: set[str]) -> bool:
    """Return whether the source knows this key of each of its rows, and an equal key means the same row."""
    columns = {column.name: column for column in there.columns}
    parts = [columns.get(name) for name in index.columns]
    return not any(index.prefixes) and all(
        part is not None and not part.nullable and part.type not in _NO_KEY and part.name.lower() in known
        for part in parts
    )


def _has(table: Table, columns: Sequence[str]) -> bool:
    own = {column.name.lower() for column in table.columns}
    return all(name.lower() in own for name in columns)


def _updates(batch: pa.RecordBatch, fill: ColumnBackfill, reading: _Reading, there: Table) -> list[str]:
    """Return the UPDATE statements for a batch of rows: one for all rows that get the same values."""
    mapped = apply_mapping(batch, reading.mapping) if reading.mapping is not None else batch
    mapped = append_constants(mapped, reading.added)
    names = [name.lower() for name in mapped.schema.names]
    columns = {column.name.lower(): column for column in (*reading.read.columns, *(a.column for a in reading.added))}

    def literals(wanted: Sequence[str], of: Callable[[pa.Array, Column], list[str]]) -> list[tuple[str, ...]]:
        places = [name.lower() for name in wanted]
        return list(zip(*(of(mapped.column(names.index(n)), columns[n]) for n in places), strict=True))

    keys_by_values: dict[tuple[str, ...], list[tuple[str, ...]]] = {}
    for key, values in zip(literals(reading.key, _compared), literals(fill.columns, sql_literals), strict=True):
        keys_by_values.setdefault(values, []).append(key)
    kept = [quote_name(name) for name in _renewed(there) if name.lower() not in map(str.lower, fill.columns)]
    return [
        _update(there.name, reading.key, keys, dict(zip(map(quote_name, fill.columns), values, strict=True)), kept)
        for values, keys in keys_by_values.items()
    ]


def _compared(array: pa.Array, column: Column) -> list[str]:
    """Return the literals that a column is compared with: a BIT with numbers, as MariaDB takes x'31' for the text 1."""
    if column.type == "bit":
        return [str(int.from_bytes(value)) for value in array.to_pylist()]
    return sql_literals(array, column)


def _update(
    name: TableName, key: Sequence[str], keys: Sequence[tuple[str, ...]], values: dict[str, str], kept: Sequence[str]
) -> str:
    sets = [f"{column} = {value}" for column, value in values.items()] + [f"{column} = {column}" for column in kept]
    if len(key) == 1:
        where = f"{quote_name(key[0])} IN ({', '.join(one for (one,) in keys)})"
    else:
        tuples = (f"({', '.join(one)})" for one in keys)
        where = f"({', '.join(map(quote_name, key))}) IN ({', '.join(tuples)})"
    return f"UPDATE {name.quoted} SET {', '.join(sets)} WHERE {where}"


def _renewed(table: Table) -> Iterator[str]:
    """Yield the columns that an UPDATE sets to its time unless it names them."""
    for name, line in column_lines(table.create_sql).items():
        if "ON UPDATE" in line.upper():
            yield name


def _run(texts: Sequence[str], cursor: Any) -> int:
    """Run UPDATE statements; return the number of rows that they found."""
    with neutral_session(cursor.connection):
        cursor.execute("; ".join(texts).encode())
        found = _matched(cursor)
        while cursor.nextset():
            found += _matched(cursor)
    return found


def _matched(cursor: Any) -> int:
    """Return the rows that the last UPDATE found, changed or not."""
    told = _MATCHED.search(cursor.connection.info() or "")
    return int(told[1]) if told else 0


def planned_fills(
    intent: Intent,
    upstream: Callable[[TableName], Table | None],
    changes: Changes,
    backfiller: Backfiller,
    store: CheckpointStore,
) -> tuple[ColumnBackfill, ...]:
    """Plan the values to write after the intent, each of whose tables is the target of a single source table.

    `upstream` returns a source table as it was before the statement, by its name on the target; `changes` has it as it
    is after the statement, by its own name. Raises DdlError DDL-034 where the statement would give rows of the target
    other values than the source's rows have, and the source's can't be written.
    """
    found = []
    steps: dict[TableName, list[Step]] = {}
    for step in intent.steps:
        if step.kind is StatementKind.ALTER_TABLE:
            steps.setdefault(classify_ddl(step.statement, step.context).tables[0], []).append(step)
    for target, own in steps.items():
        before = upstream(target)
        after = _table_after(changes, before.name) if before is not None else None
        rewritten = backfiller.rewritten(before.name) if before is not None else frozenset()
        find = partial(unlike_fills, target=target, upstream=before, rewritten=rewritten)
        unlike = [store.on_target(partial(find, step=step)) for step in own]
        converted = store.on_target(partial(unlike_conversions, steps=own, target=target, upstream=before, after=after))
        computed = tuple(dict.fromkeys((*(name for names, _ in unlike for name in names), *converted)))
        counted = tuple(name for _, names in unlike for name in names)
        if not computed and not counted:
            continue
        why = NUMBERED if counted else "the source's table is not known"
        if before is not None and not counted:
            fill = ColumnBackfill(before.name, computed)
            why = backfiller.hindrance(fill, after, store)
            found.append(fill)
        if why:
            where = replace(intent.context.where, table=str(target))
            text = "; ".join(step.statement for step in own)
            raise refused_fill(where, (*computed, *counted), text, why)
    return tuple(found)


def _table_after(changes: Changes, name: TableName) -> Table | None:
    """Return a source table as it is after the statement that makes the changes and may rename it."""
    tables = [table for key, table in changes.items() if key.table and table is not None]
    return tables[0] if changes.get(name) is None and len(tables) == 1 else changes.get(name)


def refused_fill(where: Where, columns: Sequence[str], statement: str, why: str) -> UnshardError:
    """Return DdlError DDL-034."""
    return DdlError("DDL-034", where, values={"columns": ", ".join(columns), "statement": statement, "why": why})


def unlike_fills(
    connection: Any, step: Step, target: TableName, upstream: Table | None, rewritten: frozenset[str] = frozenset()
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the columns that the step would fill, in existing rows of the target, with other values than the source's.

    First those that get a computed default, then the one that gets numbers. `rewritten`: as `Backfiller.rewritten`.
    """
    computed = filled_unlike_upstream(step, upstream, rewritten)
    if computed and not has_rows(connection, target):
        computed = ()
    if (found := numbered(step)) is None:
        return computed, ()
    column, of = found
    if not step.context.by_tool and _numbers_alike(connection, step, upstream, read_table(connection, target)):
        return computed, ()
    return computed, (column,) if has_rows(connection, target, of, 1 if of else 2) else ()


def unlike_conversions(
    connection: Any, steps: Sequence[Step], target: TableName, upstream: Table | None, after: Table | None
) -> tuple[str, ...]:
    """Return the columns of existing rows that TiDB converts to another type otherwise than the source has.

    `steps` are those of one statement on the table, `upstream` and `after` the source's table before and after it.
    """
    if not is_tidb(connection):
        return ()
    if upstream is not None:
        dialect = dialect_of(steps[0].context)
        sides = [definition_of(table, dialect) if table is not None else None for table in (upstream, after)]
    else:  # the copy has the statement: what TiDB's table is tells whether there is anything to convert
        texts = [step.before.get(target.quoted) for step in steps[:1]] + [steps[-1].after.get(target.quoted)]
        sides = [tidb_definition(text, target) if text is not None else None for text in texts]
    before, now = sides
    statements = [classify_ddl(step.statement, step.context) for step in steps]
    columns = converted_unlike_upstream(statements, before, now) if before is not None else ()
    return columns if columns and has_rows(connection, target) else ()


def _numbers_alike(connection: Any, step: Step, upstream: Table | None, there: Table | None) -> bool:
    (counts,) = rows(connection, "SELECT @@auto_increment_increment, @@auto_increment_offset")
    ordered = upstream is not None and there is not None and same_order(upstream, there)
    return ordered and tuple(counts) == step.context.auto_increment


def has_rows(connection: Any, target: TableName, of: str = "", wanted: int = 1) -> bool:
    """Return whether the table has at least `wanted` rows for which the condition `of` is true.

    Callers ask for two rows where the order of rows matters: a single row has none.
    """
    only = f" WHERE {of}" if of else ""
    return len(rows(connection, f"SELECT 1 FROM {target.quoted}{only} LIMIT {wanted}")) == wanted
