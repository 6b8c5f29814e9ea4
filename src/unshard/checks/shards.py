"""Checks of tables that merge into one: the same structure in every shard, keys that can't clash."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from unshard.checks.facts import SourceFacts, TaskFacts
from unshard.checks.result import Finding
from unshard.model.shape import misfits
from unshard.model.table import Column, TableName
from unshard.mysql.connection import session
from unshard.mysql.structure import create_statement
from unshard.mysql.types import CHARACTERS, INTEGERS
from unshard.transform.column_mapping import ColumnMapper

Place = tuple[SourceFacts, TableName]
Group = Sequence[Place]
_LINE = re.compile(r"^ +(`((?:[^`]|``)+)` .*?),?$", re.MULTILINE)


def shard_structures(task: TaskFacts, target: TableName, group: Group) -> Iterator[Finding]:
    """Each table against what takes the rows of all: every column that one of them has, as wide as the widest.

    A difference fails, for the shard that comes first would decide what the target's table is like; it is told only
    where the target has a table already that takes them all, unless their DDL is to be brought together: that needs
    equal tables to begin with, and once the copy has begun it looks after that itself. No mending command takes
    anything away.
    """
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
            written = lines[other.name, other_name][key]
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


def _widest(group: Group) -> Mapping[str, tuple[Column, Place]]:
    """By column in lower case, the widest of the kind that most of the tables have it of, and one table that has it."""
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
    """Types of which the wider holds what the narrower does."""
    if column.type in INTEGERS:
        return "integer"
    return "text" if column.type in CHARACTERS else column.type


def _type(column: Column) -> tuple[object, ...]:
    """What has to be alike. Widths of integers are shown by old servers alone, and say nothing."""
    shown = re.sub(r"\b((?:tiny|small|medium|big)?int|year)\(\d+\)", r"\1", column.definition)
    return shown, column.charset or "", column.nullable, column.generated, column.auto_increment


def _definitions(source: SourceFacts, name: TableName) -> Mapping[str, str]:
    """By column in lower case, its line of SHOW CREATE TABLE, with default and comment as they are written."""
    with session(source.end.endpoint, "source") as connection:
        found = _LINE.findall(create_statement(connection, name))
    return {column.replace("``", "`").lower(): line for line, column in found}


def _told(column: Column) -> str:
    charset = f" {column.charset}" if column.charset else ""
    return f"{column.definition}{charset}{'' if column.nullable else ' NOT NULL'}"


def auto_increment(task: TaskFacts, target: TableName, group: Group) -> Iterator[Finding]:
    """Counted keys of shards clash, unless a column mapping gives each shard ids of its own or the target's keys tell.

    The target's keys do where none is over that column alone, as with a column that a route fills (`extract-…`).
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
    """The rule to add, with this table's own names; its prefixes end where their number begins. `number` counts the
    task's sources from 1."""
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
