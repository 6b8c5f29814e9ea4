"""Explains which rules decide about a table of one source, and shows how its rows would be written.

The example statements come from made-up changes, which pass through the steps of a batch.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from unshard.config.subtask import SubtaskConfig
from unshard.errors import SyncError, UnshardError, Where
from unshard.explain import names
from unshard.explain.ends import Ends
from unshard.explain.finding import (
    LEFT_OUT,
    STOPS,
    TAKEN,
    Explained,
    OperationFindings,
    RuleFinding,
    TargetStatement,
    asked,
    stopped,
)
from unshard.model.change import IMAGE_FIELDS, Op
from unshard.model.position import Position
from unshard.model.table import Column, Table, TableName
from unshard.mysql.connection import Endpoint
from unshard.mysql.types import GEOMETRIES, arrow_type
from unshard.sync.batch.plan import BatchPlan, BatchShape, TablePlan
from unshard.sync.planning.planner import written_as
from unshard.sync.planning.table_plans import TableRules
from unshard.sync.planning.target_tables import TargetTables
from unshard.sync.steps.execute import lock_query
from unshard.sync.steps.map import map_columns
from unshard.sync.steps.merge import merge
from unshard.sync.steps.pipeline import arrange, encode_changes, tie_rows
from unshard.target.meta import MetaTables
from unshard.transform.expressions.filter import ExpressionFilters, expressions_of
from unshard.transform.source_rules import SourceRules

_CHANGES = {
    "INSERT": ((Op.INSERT, 0),),
    "UPDATE": ((Op.UPDATE_BEFORE, 0), (Op.UPDATE_AFTER, 1)),
    "DELETE": ((Op.DELETE, 0),),
}
_TEXTS = {
    "date": ("2026-01-31", "2026-02-01"),
    "time": ("09:00:00", "10:30:00"),
    "datetime": ("2026-01-31 09:00:00", "2026-02-01 10:30:00"),
    "timestamp": ("2026-01-31 09:00:00", "2026-02-01 10:30:00"),
    "decimal": ("1", "2"),
    "json": ('{"a": 1}', '{"a": 2}'),
    "uuid": ("123e4567-e89b-12d3-a456-426655440000", "123e4567-e89b-12d3-a456-426655440001"),
    "inet4": ("10.0.0.1", "10.0.0.2"),
    "inet6": ("::1", "::2"),
}


def example_statements(plan: TablePlan, shape: BatchShape, *, safe: bool) -> Iterator[TargetStatement]:
    """Yield the statements that a batch writes for an INSERT, an UPDATE and a DELETE of one row whose key stays. Pure.

    In safe mode, yields nothing for a table that stops the task there: one without a key, or one in a family of foreign
    keys.
    """
    if safe and (plan.target.keyless or plan.target.family is not None):
        return
    plan, mode = written_as(plan, shape, safe=safe), "safe" if safe else "normal"
    for change, images in _CHANGES.items():
        batch = BatchPlan(
            "", 0, 0, Position("", 0), Position("", 0), (), False, replace(shape, partitions=1), (plan,),
            MetaTables("", ""), Endpoint("", 0, ""), safe=safe,
        )  # fmt: skip
        mapped = map_columns(batch, [(plan, _images(plan, images))])
        changes, _ = encode_changes(batch, mapped, None, tie_rows(batch, mapped))
        ready = arrange(changes, compacted=shape.compact, safe=safe)
        for chunk in merge(ready, batch.targets(), batch.shape, safe=safe):
            for statement in chunk.statements:
                if statement.upsert and plan.target.locked_upserts and statement.keys is not None:
                    yield TargetStatement(_text(lock_query(statement.keys, 0, statement.rows)), change, mode)
                yield TargetStatement(_text(statement.sql), change, mode)


def _text(sql: bytes) -> str:
    return sql.decode("utf-8", "backslashreplace")


def _images(plan: TablePlan, images: Sequence[tuple[Op, int]]) -> pa.RecordBatch:
    table = plan.table
    key = {name.lower() for name in ([] if plan.target.keyless else plan.target.key)}
    columns = [pa.array([int(op) for op, _ in images], pa.int8()), pa.array([0] * len(images), pa.int64())]
    for column in table.columns:
        places = [0 if column.name.lower() in key else place for _, place in images]
        columns.append(pa.array([_values(column)[place] for place in places], arrow_type(column)))
    fields = [*IMAGE_FIELDS, *(pa.field(c.name, a.type) for c, a in zip(table.columns, columns[2:], strict=True))]
    return pa.RecordBatch.from_arrays(columns, schema=pa.schema(fields))


def _values(column: Column) -> Sequence[Any]:
    """Return two values of the column."""
    kind = arrow_type(column)
    if column.type in _TEXTS:
        return _TEXTS[column.type]
    if column.members:
        return column.members[0], column.members[-1]
    if column.type == "year":
        return 2025, 2026
    if pa.types.is_integer(kind):
        return 1, 2
    if pa.types.is_floating(kind):
        return 1.5, 2.5
    if column.type in GEOMETRIES:
        return tuple(struct.pack("<IBIdd", 0, 1, 1, float(n), float(n)) for n in (1, 2))
    if column.type == "vector":
        return tuple(struct.pack("<f", n) * max(column.length // 4, 1) for n in (1, 2))
    if column.type == "bit":
        return tuple(bytes([0] * ((column.precision + 7) // 8 - 1) + [n]) for n in (0, 1))
    return (b"a", b"b") if pa.types.is_binary(kind) else ("a", "b")


COPYING, FOLLOWING = ("full", "all", "dump", "load"), ("incremental", "all")


def explain_table(config: SubtaskConfig, rules: SourceRules, name: TableName, ends: Ends | None) -> Explained:
    """Explain the decisions about one table, in the order in which they are taken. Without `ends` it is pure."""
    passage = names.block_allow(rules, name)
    found = [names.online_ddl(rules, name), passage]
    if config.mode in ("full", "all", "dump") and _chooses(config):
        found.append(names.dumped(rules, name))
    if passage.says == LEFT_OUT:
        outcome = f"left out: block-allow-list, {passage.rule}" if passage.rule else "left out"
        if found[-1].kind == "dump" and found[-1].says == TAKEN:
            outcome += "; the dump takes it, and the load passes over its files"
        return Explained(rules.source, LEFT_OUT, outcome, (OperationFindings("", tuple(found)),))
    written: list[TargetStatement] = []
    errors: list[UnshardError] = []

    def add(findings: list[RuleFinding], error: UnshardError | None) -> None:
        found.extend(findings)
        errors.extend([error] if error is not None else [])

    if config.mode in FOLLOWING:
        found += names.row_events(rules, name)
        add(*asked("expression-filter", lambda: list(_expressions(config, name, ends))))
    add(*asked("route", lambda: [names.route(rules, name)]))
    add(*asked("extract", lambda: list(names.extracted(rules, name))))
    add(*asked("column-mapping", lambda: list(names.column_mapping(rules, name))))
    if ends is not None and not errors:
        add(*asked("structure", lambda: _structures(config, rules, name, ends, written)))
    return _explained(config, rules, name, found, written, errors)


def _explained(
    config: SubtaskConfig,
    rules: SourceRules,
    name: TableName,
    found: list[RuleFinding],
    written: list[TargetStatement],
    errors: list[UnshardError],
) -> Explained:
    group = (OperationFindings("", tuple(found)),)
    if errors:
        outcome = f"the task stops with {errors[0].code}"
        return Explained(rules.source, STOPS, outcome, group, tuple(written), error=errors[0])
    outcome = f"goes to {rules.router.route(name)}"
    events = [one for one in found if one.kind == "event-filter" and one.says in (LEFT_OUT, STOPS)]
    outcome += "".join(f"; {one.facts['event']} {one.says} by {one.rule}" for one in events)
    if any(one.kind == "expression-filter" for one in found):
        outcome += "; rows left out by their values"
    if any(one.kind == "dump" and one.says == LEFT_OUT for one in found):
        outcome += "; the dump leaves it out"
    return Explained(rules.source, TAKEN, outcome, group, tuple(written))


def _chooses(config: SubtaskConfig) -> bool:
    return bool(config.dumper.databases or config.dumper.tables or config.dumper.filters)


def _expressions(config: SubtaskConfig, name: TableName, ends: Ends | None) -> Iterator[RuleFinding]:
    """Yield findings on expression filters, and with `ends` whether they can be evaluated.

    Raises ConfigError CONFIG-020, -021.
    """
    every = ExpressionFilters(config.expression_filters, config.case_sensitive, ends.clock if ends else _no_clock)
    table = ends.table(name) if ends is not None else None
    if table is not None:
        every.of_table(table)
    for rule, found in every.matching(name):
        texts = {op.name.lower().replace("_", " "): text for op, text in expressions_of(found).items()}
        told = " and ".join(f"{kind}: {text}" for kind, text in texts.items())
        if ends is not None:
            told += "; it can be evaluated" if table is not None else "; the source has no such table now"
        facts = {"expressions": texts, "checked": table is not None}
        yield RuleFinding("expression-filter", LEFT_OUT, f"left out where {told}", f"expression-filter.{rule}", facts)


def _no_clock(_: str) -> str | None:
    return "2000-01-01 00:00:00"


def _structures(
    config: SubtaskConfig, rules: SourceRules, name: TableName, ends: Ends, written: list[TargetStatement]
) -> list[RuleFinding]:
    """Return findings on whether the rows fit into the target's table; adds the example statements to `written`.

    Raises SyncError SYNC-007 and the errors of the rules.
    """
    upstream = ends.table(name)
    if upstream is None:
        return [RuleFinding("structure", "unknown", "the source has no such table now")]
    there = rules.router.route(name)
    target = ends.targets.get(there)
    found = [RuleFinding("structure", "fits", f"{there} is there and takes its rows")]
    if target is None:
        if config.mode not in COPYING:
            return [stopped("structure", SyncError("SYNC-006", Where(rules.source, str(there))))]
        found = [RuleFinding("structure", "made", f"{there} is not there yet: the load makes it like the source's")]
    plan = _plan(rules, name, ends, upstream, target)
    if plan is None:
        return [*found, RuleFinding("key", LEFT_OUT, "no row change of it is taken, so its events are not decoded")]
    found += list(_key(plan))
    others = [f"{table} ({source})" for source, table in ends.landing(there) if (source, table) != (rules.source, name)]
    if others:
        listed = ", ".join(others[:5]) + (f" and {len(others) - 5} more" if len(others) > 5 else "")
        found.append(RuleFinding("merge", "merged", f"{listed} land there too", facts={"others": others}))
    settings = config.syncer
    shape = BatchShape(1, settings.batch_rows, compact=settings.compact, multiple_rows=settings.multiple_rows)
    for safe in (False, True):
        written += example_statements(plan, shape, safe=safe)
    return found


def _plan(rules: SourceRules, name: TableName, ends: Ends, upstream: Table, target: Table | None) -> TablePlan | None:
    """Return the plan by which a batch writes the table; None if no row change is taken.

    Raises as `TableRules.plans`.
    """
    targets = ends.targets
    if target is None:
        targets = TargetTables(lambda there: replace(upstream, name=there))
    planner = TableRules(
        rules.source, rules.allow, rules.router, rules.mapper, lambda _: upstream, targets, {}, rules.events
    )
    return next(iter(planner.plans([name], Position("", 0))), None)


def _key(plan: TablePlan) -> Iterator[RuleFinding]:
    target = plan.target
    says = "ordered" if target.ordered else "tied" if target.ties else "free"
    by = "all columns" if target.keyless else ", ".join(target.key)
    facts = {"key": list(target.key), "keyless": target.keyless}
    yield RuleFinding("key", says, f"rows are found by {by}; {says}: {target.why}", facts=facts)
