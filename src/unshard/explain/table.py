"""Explains which rules decide about a table of one source, and shows how its rows would be written."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from unshard.config.subtask import SubtaskConfig
from unshard.errors import SyncError, UnshardError, Where
from unshard.explain import names
from unshard.explain.ends import Ends
from unshard.explain.examples import example_statements
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
from unshard.model.position import Position
from unshard.model.table import Table, TableName
from unshard.sync.batch.plan import BatchShape, TablePlan
from unshard.sync.planning.planner import in_log_order
from unshard.sync.planning.table_plans import TableRules
from unshard.sync.planning.target_tables import TargetTables
from unshard.transform.expressions.filter import ExpressionFilters, expressions_of
from unshard.transform.source_rules import SourceRules

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
    plan = _plan(config, rules, name, ends, upstream, target)
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


def _plan(
    config: SubtaskConfig, rules: SourceRules, name: TableName, ends: Ends, upstream: Table, target: Table | None
) -> TablePlan | None:
    """Return the plan by which a batch writes the table; None if no row change is taken.

    Raises as `TableRules.plans`.
    """
    targets = ends.targets
    if target is None:
        targets = TargetTables(lambda there: replace(upstream, name=there))
    every = ExpressionFilters(config.expression_filters, config.case_sensitive, ends.clock)
    own = rules.source, rules.allow, rules.router, rules.mapper
    planner = TableRules(*own, lambda _: upstream, targets, {}, rules.events, every.of_table)
    planner.zone = ends.traits.default_zone
    return next(iter(in_log_order(planner.plans([name], Position("", 0)))), None)


def _key(plan: TablePlan) -> Iterator[RuleFinding]:
    target = plan.target
    says = "ordered" if target.ordered else "tied" if target.ties else "free"
    by = "all columns" if target.keyless else ", ".join(target.key)
    facts = {"key": list(target.key), "keyless": target.keyless}
    yield RuleFinding("key", says, f"rows are found by {by}; {says}: {target.why}", facts=facts)
