"""Run the checks of a task. Reads only; `check-task` and every start of a task call it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import partial

from unshard.checks.doubled import doubled
from unshard.checks.facts import TaskFacts, read_facts
from unshard.checks.items import ITEMS, Item
from unshard.checks.one_server import one_server_among
from unshard.checks.result import DEFAULT_LIMIT, CheckReport, Finding, LocatedFinding, Result, grouped
from unshard.config.subtask import SubtaskConfig
from unshard.config.task import TaskConfig
from unshard.errors import CheckError, UnshardError
from unshard.model.table import Table
from unshard.mysql.endpoint import to_endpoint
from unshard.transform.expressions.filter import ExpressionFilters

EVERYTHING = "all"


def check_task(
    task: TaskConfig,
    configs: Sequence[SubtaskConfig],
    also: Collection[str] = (),
    others: Sequence[SubtaskConfig] = (),
) -> CheckReport:
    """The report of a task's pre-checks, without the items that the task ignores; `also` names opt-in ones.

    `configs` are the subtasks that are to be started, `others` those of the same task that are not. Raises SourceError
    or TargetError where a server can't be asked at all, and ConfigError CONFIG-020 and CONFIG-021 for an expression
    filter, as the start of the task would.
    """
    filters = {config.source_id: _expressions(config) for config in configs}
    ignored = set(task.ignore_checking_items)
    if EVERYTHING in ignored:
        return CheckReport(())
    items = [item for item in ITEMS if item.ignored not in ignored and (not item.opt_in or item.ignored in also)]
    facts = read_facts(configs, others)
    for source in facts.sources:
        if source.fresh:
            _ask(source.name, filters[source.name], source.tables.values())
    return CheckReport.of([result for item in items for result in _results(item, facts, task)])


def check_moved(task: TaskConfig, config: SubtaskConfig, others: Sequence[SubtaskConfig]) -> CheckReport:
    """The report on a source that is led to another server, `config`: whether another one of the task is there too.

    A start may be long ago, which has asked that. `others` and errors as in `check_task`; their tables, and the target,
    are looked at only where it is so.
    """
    if config.mode in ("dump", "load") or EVERYTHING in task.ignore_checking_items:
        return CheckReport(())
    if not one_server_among({one.source_id: to_endpoint(one.source.database) for one in (config, *others)}):
        return CheckReport(())
    facts = read_facts([config], others)
    return CheckReport.of(
        [result for item in ITEMS if item.target is doubled for result in _results(item, facts, task)]
    )


def _expressions(config: SubtaskConfig) -> ExpressionFilters:
    try:
        return ExpressionFilters(config.expression_filters, config.case_sensitive, lambda local: local)
    except UnshardError as error:
        raise error.at(source=config.source_id) from None


def _ask(source: str, filters: ExpressionFilters, tables: Iterable[Table]) -> None:
    """Whether the expressions fit the tables as they are, where these are the ones that the task begins with."""
    for table in tables:
        try:
            filters.of_table(table)
        except UnshardError as error:
            raise error.at(source=source) from None


def require(report: CheckReport) -> None:
    """Raise CheckError CHECK-001 with every failure and what mends it; return where there is none."""
    failures = [group.line for group in grouped(found_of(*one) for one in report.findings("fail"))]
    if failures:
        more = [f"… and {len(failures) - DEFAULT_LIMIT} more"] if len(failures) > DEFAULT_LIMIT else []
        cause = "\n       ".join(failures[:DEFAULT_LIMIT] + more)
        raise CheckError("CHECK-001", cause=cause, values={"count": len(list(report.findings("fail")))})


def found_of(result: Result, finding: Finding) -> LocatedFinding:
    """A finding with its check, to be grouped."""
    texts = (finding.short_error, finding.instruction, finding.self)
    return LocatedFinding(finding.severity, result.name, result.extra, *texts)


def _results(item: Item, facts: TaskFacts, task: TaskConfig) -> Iterator[Result]:
    if item.on_tidb and not (facts.target is not None and facts.target.is_tidb):
        return
    if item.source is not None:
        for source in facts.sources:
            if item.when(source):
                yield Result(item.name, item.desc, _findings(partial(item.source, source, facts, task)), source.name)
    if item.target is not None and facts.target is not None:
        yield Result(item.name, item.desc, _findings(partial(item.target, facts)), "target")
    if item.merge is not None:
        for target, group in facts.merged.items():
            if all(item.when(source) for source, _ in group):
                findings = _findings(partial(item.merge, facts, target, group))
                yield Result(item.name.format(target=target), item.desc, findings, str(target))


def _findings(check: Callable[[], Iterable[Finding]]) -> tuple[Finding, ...]:
    """What a check says; an error that it meets on its way is a failure of its own."""
    try:
        return tuple(check())
    except UnshardError as error:
        return (Finding("fail", f"{error.code}: {error.message}", error.hint),)
