"""Checks of tables that merge into one: the same structure in every shard, keys that can't clash."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from unshard.checks.facts import SourceFacts, TaskFacts
from unshard.checks.result import Finding
from unshard.model.shape import misfits
from unshard.model.table import Column, Table, TableName, quote_name
from unshard.mysql.connection import session
from unshard.mysql.structure import create_statement
from unshard.transform.column_mapping import ColumnMapper

Group = Sequence[tuple[SourceFacts, TableName]]
_LINE = re.compile(r"^ +(`((?:[^`]|``)+)` .*?),?$", re.MULTILINE)


def shard_structures(task: TaskFacts, target: TableName, group: Group) -> Iterator[Finding]:
    """Each table against the most common structure of its group.

    A difference fails, for the shard that comes first would decide what the target's table is like; it is told only
    where the target has a table already that takes them all.
    """
    shapes = Counter(_shape(source.tables[name]) for source, name in group)
    if len(shapes) == 1:
        return
    (usual, _), *_ = shapes.most_common(1)
    model_source, model_name = next((s, n) for s, n in group if _shape(s.tables[n]) == usual)
    model = model_source.tables[model_name]
    lines = _definitions(model_source, model_name)
    there = task.there.get(target)
    for source, name in group:
        table = source.tables[name]
        if _shape(table) == usual:
            continue
        faults, changes = _compared(table, model, lines)
        if faults:
            takes = there is not None and not misfits(table, there) and not misfits(model, there)
            yield Finding(
                "warn" if takes else "fail",
                f"{source.name} {name} differs from {model_source.name} {model_name}: {'; '.join(faults)}",
                f"ALTER TABLE {name.quoted} {', '.join(changes)};",
                f"{source.name} {name}",
                f"{model_source.name} {model_name}",
            )


def _shape(table: Table) -> tuple[tuple[object, ...], ...]:
    """What has to be alike, in any order of the columns: widths of integers are shown by old servers alone."""
    return tuple(sorted((column.name.lower(), *_type(column)) for column in table.columns))


def _type(column: Column) -> tuple[object, ...]:
    shown = re.sub(r"\b((?:tiny|small|medium|big)?int|year)\(\d+\)", r"\1", column.definition)
    return shown, column.charset or "", column.nullable, column.generated, column.auto_increment


def _definitions(source: SourceFacts, name: TableName) -> Mapping[str, str]:
    """By column in lower case, its line of SHOW CREATE TABLE, with default and comment as they are written."""
    with session(source.end.endpoint, "source") as connection:
        found = _LINE.findall(create_statement(connection, name))
    return {column.replace("``", "`").lower(): line for line, column in found}


def _compared(table: Table, model: Table, lines: Mapping[str, str]) -> tuple[list[str], list[str]]:
    mine = {column.name.lower(): column for column in table.columns}
    wanted = {column.name.lower(): column for column in model.columns}
    faults, changes = [], []
    for key, column in wanted.items():
        line = lines.get(key, f"{quote_name(column.name)} {column.definition}")
        if key not in mine:
            faults.append(f"column {column.name} is missing")
            changes.append(f"ADD COLUMN {line}")
        elif _type(mine[key]) != _type(column):
            faults.append(f"column {column.name} is {_told(mine[key])}, there {_told(column)}")
            changes.append(f"MODIFY COLUMN {line}")
    for key, column in mine.items():
        if key not in wanted:
            faults.append(f"column {column.name} is in this table alone")
            changes.append(f"DROP COLUMN {quote_name(column.name)}")
    return faults, changes


def _told(column: Column) -> str:
    charset = f" {column.charset}" if column.charset else ""
    return f"{column.definition}{charset}{'' if column.nullable else ' NOT NULL'}"


def auto_increment(task: TaskFacts, target: TableName, group: Group) -> Iterator[Finding]:
    """Counted keys of shards clash, unless a column mapping gives each shard ids of its own or the target's keys tell.

    The target's keys do where none is over that column alone, as with a column that a route fills (`extract-…`).
    """
    there = task.there.get(target)
    seen: dict[int, str] = {}
    for source, name in group:
        table = source.tables[name]
        counter = next((column.name for column in table.columns if column.auto_increment), None)
        if counter is None:
            continue
        keys = (there or table).unique_keys
        if [counter.lower()] not in [[(part or "").lower() for part in key.columns] for key in keys]:
            continue
        mapping = ColumnMapper(source.config.column_mappings, source.config.case_sensitive).mapping_for(name)
        place = f"{source.name} {name}"
        if mapping is not None and mapping.target_column.lower() == counter.lower():
            other = seen.setdefault(mapping.source_bits, place)
            if other == place:
                continue
            fault = f"the column mapping gives ids of {place} and {other} the same part, so they may clash"
            mend = "give them different arguments under `column-mappings:`: instance, schema, table"
        else:
            fault = f"{place} has the auto-increment key {counter}: its numbers may clash with those of other shards"
            mend = _mapping(source, name, counter)
        yield Finding("warn", fault, mend, place, str(target))


def _mapping(source: SourceFacts, name: TableName, counter: str) -> str:
    """The rule to add, with this table's own names; its prefixes end where their number begins."""
    schema, table = (re.sub(r"\d+$", "", text) for text in (name.schema, name.table))
    arguments = ", ".join(
        f'"{part}"' for part in ("1", schema if schema != name.schema else "", table if table != name.table else "")
    )
    return (
        f'column-mappings: {{ids-of-{source.name}: {{schema-pattern: "{schema}*", table-pattern: "{table}*",'
        f" source-column: {counter}, target-column: {counter}, expression: partition id, arguments: [{arguments}]}}}},"
        f" named in column-mapping-rules of {source.name}, another first argument for each source; or leave it, if the"
        " shards share one sequence"
    )
