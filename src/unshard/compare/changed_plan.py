"""Compares the plan of a comparison with one that is made after the last row was read.

The rows of a table were read and matched by the structures of the first plan, and from the source tables in it. If
these were others meanwhile, a row may have been compared under a key or without a column that it has, or not at all,
and the rows of a new source table look like extra ones. So such a table is neither equal nor different: it is unknown,
until it is compared again by the new plan.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace

from unshard.compare.executor.rows import asked_again
from unshard.compare.plan import ComparisonPlan, PlanFault
from unshard.compare.result import ComparisonOutcome, TableOutcome
from unshard.compare.tables import ComparedShard, ComparedTable
from unshard.errors import CompareError, UnshardError, Where
from unshard.model.table import TableName

_CHANGED = "COMPARE-024"


def planned_again(plan: Callable[[], ComparisonPlan], before: ComparisonPlan) -> ComparisonPlan:
    """Return the plan as it is now; an empty one with the error where it can't be made.

    A server that is away is asked again for a while.
    """
    known = _faults(before, None)

    def attempt() -> ComparisonPlan:
        made = plan()
        for fault in made.faults:
            if fault.table is None and fault.error.retryable and _form_of_fault(fault) not in known:
                raise fault.error
        return made

    try:
        return asked_again(attempt)
    except UnshardError:
        try:
            return plan()
        except UnshardError as error:
            return ComparisonPlan((), (PlanFault(None, error),))


def verified(found: ComparisonOutcome, before: ComparisonPlan, after: ComparisonPlan) -> ComparisonOutcome:
    """Return the outcome, with each table as unknown that is planned in another way than before, or is new."""
    earlier, later = ({one.name: one for one in plan.tables} for plan in (before, after))
    outcomes = {one.name: one for one in found.tables}
    for name, outcome in list(outcomes.items()):
        was = _form(earlier.get(name)), _faults(before, name)
        if was != (_form(later.get(name)), _faults(after, name)):
            outcomes[name] = _unknown(outcome)
    for new in {*later, *(fault.table for fault in after.faults if fault.table is not None)} - outcomes.keys():
        outcomes[new] = _unknown(TableOutcome(new))
    known = {str(error) for error in found.errors}
    more = [one.error for one in after.faults if one.table is None and str(one.error) not in known]
    tables = tuple(sorted(outcomes.values(), key=lambda one: str(one.name)))
    return replace(found, tables=tables, errors=(*found.errors, *more))


def changed_tables(found: ComparisonOutcome) -> frozenset[TableName]:
    """Return the tables that `verified` has made unknown."""
    return frozenset(one.name for one in found.tables if any(error.code == _CHANGED for error in one.errors))


def with_plans(plan: ComparisonPlan, again: ComparisonPlan, names: frozenset[TableName]) -> ComparisonPlan:
    """Return the plan with those of the tables `names` from a later one."""
    tables = (*(one for one in plan.tables if one.name not in names), *again.tables)
    return replace(plan, tables=tuple(sorted(tables, key=lambda one: str(one.name))))


def _unknown(outcome: TableOutcome) -> TableOutcome:
    error = CompareError(_CHANGED, Where(table=str(outcome.name)))
    errors: list[UnshardError] = [error, *outcome.errors]
    empty = replace(outcome, classes=Counter(), differences=[], errors=errors)
    return replace(empty, beyond=0, spelled=0, left_out=0, structure_differs=False)


def _form(table: ComparedTable | None) -> object:
    """Return what the comparison of a table's rows depends on."""
    if table is None:
        return None
    columns = table.read.columns, table.columns, table.generated
    return columns, table.key, table.range_key, frozenset(map(_form_of_shard, table.shards))


def _form_of_shard(shard: ComparedShard) -> object:
    return shard.name, shard.table.columns, shard.where, shard.rules


def _faults(plan: ComparisonPlan, name: TableName | None) -> frozenset[tuple[str, str]]:
    return frozenset(_form_of_fault(fault) for fault in plan.faults if fault.table == name)


def _form_of_fault(fault: PlanFault) -> tuple[str, str]:
    return fault.error.code, str(fault.error.where)
