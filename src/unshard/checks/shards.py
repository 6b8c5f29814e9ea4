"""Checks of merged tables: the shards have one structure, and their keys can't clash."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from unshard.checks.facts import SourceFacts, TaskFacts
from unshard.checks.result import Finding, Severity
from unshard.ddl.evaluate import definition_of, server_dialect
from unshard.model.shape import misfits
from unshard.model.table import Column, TableName
from unshard.mysql.connection import session
from unshard.mysql.flavour import Flavour
from unshard.mysql.structure import find_create_statement
from unshard.mysql.types import CHARACTERS, INTEGERS
from unshard.schema.definition import TableDefinition
from unshard.schema.words import NotUnderstoodError
from unshard.shard.join import IncompatibleError, unjoined_parts
from unshard.shard.merged_parts import ShardId
from unshard.shard.merged_table import MergedTable
from unshard.transform.column_mapper import ColumnMapper

Place = tuple[SourceFacts, TableName]
Group = Sequence[Place]
_LINE = re.compile(r"^ +(`((?:[^`]|``)+)` .*?),?$", re.MULTILINE)


def shard_structures(task: TaskFacts, target: TableName, group: Group) -> Iterator[Finding]:
    """Compare each shard with a table that takes the rows of all shards.

    That table has every column that any shard has, as wide as the widest.

    A difference is a failure, because the shard that is copied first would decide the structure of the target's table.
    It is a warning if the target already has a table that takes the rows of all. With pessimistic `shard-mode` that is
    not enough, because coordinated DDL needs equal tables to begin with; there it is a warning once the copy has begun,
    which then handles the difference itself. The command that fixes a difference never removes anything. In optimistic
    mode the target's table becomes the join of all shards: the check reports the join, or that there is none.
    """
    if any(source.config.optimistic for source, _ in group):
        yield from _joined(target, group)
        return
    wanted = _widest(group)
    there = task.there.get(target)
    alike = any(source.config.pessimistic for source, _ in group)
    takes = not alike and there is not None and not any(misfits(source.tables[name], there) for source, name in group)
    bearable = takes or any(source.copying for source, _ in group)
    lines: dict[tuple[str, TableName], Mapping[str, str]] = {}
    for source, name in group:
        mine = {column.name.lower(): column for column in source.tables[name].columns}
        faults, changes = [], []
        for key, (column, (other, other_name)) in wanted.items():
            if key in mine and _type(mine[key]) == _type(column):
                continue
            if (other.name, other_name) not in lines:
                lines[other.name, other_name] = _definitions(other, other_name)
            written = lines[other.name, other_name].get(key)
            if written is None:
                continue
            had = f"is {_told(mine[key])}" if key in mine else "is missing"
            faults.append(f"column {column.name} {had}, in {other.name} {other_name} it is {_told(column)}")
            counted = " UNIQUE" if column.auto_increment and key not in mine else ""
            changes.append(f"{'MODIFY' if key in mine else 'ADD'} COLUMN {written}{counted}")
        if faults:
            yield Finding(
                "warn" if bearable else "fail",
                f"{source.name} {name} differs: {'; '.join(faults)}",
                f"ALTER TABLE {name.quoted} {', '.join(changes)};",
                f"{source.name} {name}",
                str(target),
            )


def _joined(target: TableName, group: Group) -> Iterator[Finding]:
    """Report the join of shards that differ, or the shards that have none. Only one table of each structure is read."""
    kinds: dict[tuple[object, ...], Place] = {}
    for source, name in group:
        table = source.tables[name]
        kinds.setdefault((source.end.server.flavour, table.columns, table.indexes), (source, name))
    if len(kinds) == 1:
        return
    known: dict[ShardId, TableDefinition] = {}
    merged = MergedTable(target)
    for source, name in kinds.values():
        shard = ShardId(source.name, name)
        severity: Severity = "warn" if source.copying else "fail"
        try:
            definition = _definition(source, name)
            if definition is None:
                continue
            known[shard] = definition
            merged = merged.joined(shard, known[shard])
        except NotUnderstoodError as error:
            why, mend = f"its structure is not understood: {error}", "use `shard-mode: pessimistic` for the task"
            yield Finding(severity, f"{shard}: {why}", mend, f"{source.name} {name}", str(target))
        except IncompatibleError as error:
            others = [one for one in known if one != shard and not _join(target, known[one], known[shard])]
            fault = f"no structure takes the rows of {shard} and of {', '.join(map(str, others[:3])) or 'all others'}"
            mend = "alter one of them, so that both columns have a common type and value, or route this table elsewhere"
            yield Finding(severity, f"{fault}: {error}", mend, f"{source.name} {name}", str(target))
            del known[shard]
    if merged.after is not None and not merged.has_equal_shards:
        told = [f"rows of tables without {name} get {value}" for name, value in sorted(merged.rules.items())]
        if parts := unjoined_parts(list(known.values())):
            told.append(f"its {', '.join(parts)} are those of the table that is read first")
        text = f"the tables that merge into {target} differ; it gets a structure that takes the rows of all"
        yield Finding("warn", "; ".join([text, *told]), "", ", ".join(map(str, list(known)[:3])), str(target))


def _join(target: TableName, one: TableDefinition, other: TableDefinition) -> bool:
    try:
        first = MergedTable(target).joined(ShardId("", target), one)
        first.joined(ShardId("other", target), other)
    except IncompatibleError:
        return False
    return True


def _definition(source: SourceFacts, name: TableName) -> TableDefinition | None:
    """Return the table's definition; None if the table is gone since the facts were read."""
    create_sql = _create_sql(source, name)
    if create_sql is None:
        return None
    table = replace(source.tables[name], create_sql=create_sql)
    server = source.end.server
    dialect = server_dialect(mariadb=server.flavour is Flavour.MARIADB, version=server.version)
    return definition_of(table, dialect)


def _widest(group: Group) -> Mapping[str, tuple[Column, Place]]:
    """Return, by column in lower case, the widest definition in the shards, with a shard that has it.

    Only definitions of the family that most shards have count.
    """
    seen: dict[str, dict[tuple[object, ...], list[tuple[Column, Place]]]] = {}
    for place in group:
        for column in place[0].tables[place[1]].columns:
            seen.setdefault(column.name.lower(), {}).setdefault(_type(column), []).append((column, place))
    found = {}
    for key, kinds in seen.items():
        families: Counter[str] = Counter()
        for columns in kinds.values():
            families[_family(columns[0][0])] += len(columns)
        ranks = [(families[_family(columns[0][0])], _width(columns[0][0]), len(columns)) for columns in kinds.values()]
        found[key] = list(kinds.values())[ranks.index(max(ranks))][0]
    return found


def _width(column: Column) -> tuple[int, ...]:
    return column.length, column.precision, column.scale, column.fsp, len(column.members), column.nullable


def _family(column: Column) -> str:
    """Return the family of a column's type. Within a family, the wider type holds all values of the narrower one."""
    if column.type in INTEGERS:
        return "integer"
    return "text" if column.type in CHARACTERS else column.type


def _type(column: Column) -> tuple[object, ...]:
    """Return the attributes that have to be equal.

    The display width of integers is ignored, as only old servers show it.
    """
    shown = re.sub(r"\b((?:tiny|small|medium|big)?int|year)\(\d+\)", r"\1", column.definition)
    return shown, column.charset or "", column.nullable, column.generated, column.auto_increment


def _definitions(source: SourceFacts, name: TableName) -> Mapping[str, str]:
    """Return, by column in lower case, its line of SHOW CREATE TABLE, with default and comment as they are written.

    Returns nothing for a table that is gone since the facts were read.
    """
    found = _LINE.findall(_create_sql(source, name) or "")
    return {column.replace("``", "`").lower(): line for line, column in found}


def _create_sql(source: SourceFacts, name: TableName) -> str | None:
    if copied := source.tables[name].create_sql:
        return copied
    with session(source.end.endpoint, "source") as connection:
        return find_create_statement(connection, name)


def _told(column: Column) -> str:
    charset = f" {column.charset}" if column.charset else ""
    return f"{column.definition}{charset}{'' if column.nullable else ' NOT NULL'}"


def auto_increment(task: TaskFacts, target: TableName, group: Group) -> Iterator[Finding]:
    """Warn of auto-increment keys that may clash between shards.

    They can't clash if a column mapping gives each shard its own ids, or if no unique key of the target is on that
    column alone, as with a column that a route fills (`extract-…`).
    """
    there = task.there.get(target)
    seen: dict[tuple[object, ...], str] = {}
    numbers = {s.name: number for number, s in enumerate(task.sources, 1)}
    mappers = {s.name: ColumnMapper(s.config.column_mappings, s.config.case_sensitive) for s, _ in group}
    for source, name in group:
        table = source.tables[name]
        counter = next((column.name for column in table.columns if column.auto_increment), None)
        if counter is None:
            continue
        keys = (there or table).unique_keys
        if [counter.lower()] not in [[(part or "").lower() for part in key.columns] for key in keys]:
            continue
        mapping = mappers[source.name].mapping_for(name)
        place = f"{source.name} {name}"
        if mapping is not None and mapping.target_column.lower() == counter.lower():
            other = seen.setdefault(mapping.mark, place)
            if other == place:
                continue
            fault = f"the column mapping gives ids of {place} and {other} the same part, so they may clash"
            mend = "give them different arguments under `column-mappings:`: instance, schema, table"
        else:
            fault = f"{place} has the auto-increment key {counter}: its numbers may clash with those of other shards"
            mend = _mapping(source, numbers[source.name], name, counter)
        yield Finding("warn", fault, mend, place, str(target))


def _mapping(source: SourceFacts, number: int, name: TableName, counter: str) -> str:
    """Return the column mapping to add, with this table's names. Its prefixes end where the names' numbers begin.

    `number` is the source's number within the task, from 1.
    """
    schema, table = (re.sub(r"\d+$", "", text) for text in (name.schema, name.table))
    arguments = ", ".join(
        f'"{part}"'
        for part in (str(number), schema if schema != name.schema else "", table if table != name.table else "")
    )
    return (
        f'column-mappings: {{ids-of-{source.name}: {{schema-pattern: "{schema}*", table-pattern: "{table}*",'
        f" source-column: {counter}, target-column: {counter}, expression: partition id, arguments: [{arguments}]}}}},"
        f" named in column-mapping-rules of {source.name}; each source has a first argument of its own; or leave it, if"
        " the shards share one sequence"
    )
