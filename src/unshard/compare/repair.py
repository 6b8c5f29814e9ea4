"""`unshard compare --sql FILE`: statements that correct the rows that differ, for a user to read and run.

Only rows are in the file whose difference is settled: missing, extra or changed, in tables with a key. What can't be in
it is reported. Nothing is written to a server.
"""

from __future__ import annotations

import pickle
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from unshard.compare.executor.repair import repair_statements
from unshard.compare.executor.repair_rows import RepairOrder
from unshard.compare.executor.rows import LOCKED
from unshard.compare.executor.unique_values import UniqueValues, read_unique_values
from unshard.compare.repair_steps import MENDED, orders_in_steps
from unshard.compare.result import DIFFERENT, ComparisonOutcome, RowClass, SourcePlace, TableOutcome
from unshard.compare.tables import ComparedTable
from unshard.errors import CompareError, Where, disclose
from unshard.run_tasks import RunTasks

KEYS_A_TASK = 200
ROWS_A_TRANSACTION = 1_000
UNSURE = "extra rows may be a source's in another spelling: it does not know the collation of the target's key"

_PROLOGUE = (
    "SET NAMES utf8mb4;",
    "SET SESSION sql_mode = 'NO_AUTO_VALUE_ON_ZERO,ALLOW_INVALID_DATES';",
    "SET SESSION time_zone = '+00:00';",
    "SET SESSION foreign_key_checks = 0;",
)


@dataclass(slots=True)
class RepairedTable:
    """The repair statements for one table, the number of rows that they repair, and notes on rows that have none.

    The statements are in the order to run them; those of a part go into one transaction.
    """

    table: str
    parts: list[list[str]] = field(default_factory=list)
    rows: Counter[RowClass] = field(default_factory=Counter)
    notes: list[str] = field(default_factory=list)

    @property
    def count(self) -> int:
        """Count of all statements."""
        return sum(map(len, self.parts))

    def transactions(self) -> Iterator[list[str]]:
        """Yield the statements of each transaction: about `ROWS_A_TRANSACTION`, and more only in one part."""
        texts: list[str] = []
        for part in self.parts:
            if texts and len(texts) + len(part) > ROWS_A_TRANSACTION:
                yield texts
                texts = []
            texts += part
        if texts:
            yield texts


def repairs(
    outcome: ComparisonOutcome,
    tables: Mapping[str, ComparedTable],
    run: RunTasks,
) -> list[RepairedTable]:
    """Read the rows that differ once more, and give the statements for each table that has any.

    `tables` are by name those of which all columns are compared. Raises SourceError, TargetError, EngineError.
    """
    return [_of_table(one, tables.get(str(one.name)), run) for one in outcome.tables if _differs(one)]


def _differs(one: TableOutcome) -> bool:
    return any(one.classes[kind] for kind in DIFFERENT) or bool(one.beyond)


def _of_table(
    one: TableOutcome,
    table: ComparedTable | None,
    run: RunTasks,
) -> RepairedTable:
    found = RepairedTable(str(one.name))
    if one.errors or table is None:
        found.notes.append("not all of its columns and rows were compared: no statements")
        return found
    if not one.key:
        found.notes.append("the table has no key that names a row: no statements")
        return found
    rows = tuple((diff.literals, diff.kind) for diff in one.differences if diff.kind in MENDED)
    moved = unsure = 0
    try:
        orders = orders_in_steps(table, rows, KEYS_A_TASK, partial(_values, run))
        outcomes = run([pickle.dumps(order) for order in orders], repair_statements)
        answers = [disclose(outcome) for outcome in outcomes]
    except CompareError as error:
        if error.code != LOCKED:
            raise
        found.notes.append(f"no statements: {error.message}")
        return found
    for told in answers:
        moved += told["moved"]
        unsure += told["unsure"]
        found.parts.append(told["statements"])
        found.rows.update(map(RowClass, told["rows"]))
    found.notes.extend(_left_out(one, len(rows), moved))
    if unsure:
        found.notes.append(f"{unsure:,} {UNSURE}: no statements for them")
    return found


def _values(run: RunTasks, orders: Sequence[RepairOrder]) -> Iterator[list[UniqueValues]]:
    for outcome in run([pickle.dumps(order) for order in orders], read_unique_values):
        yield [UniqueValues.from_dict(form) for form in disclose(outcome)]


def _left_out(one: TableOutcome, taken: int, moved: int) -> Iterator[str]:
    if moved:
        yield f"{moved:,} rows have changed since they were compared: no statements for them"
    more = sum(one.classes[kind] for kind in MENDED) - taken + one.beyond
    if more:
        yield f"{more:,} more rows differ, and their statements are not in the file: give a higher --limit"
    if one.classes[RowClass.COLLISION]:
        yield f"{one.classes[RowClass.COLLISION]:,} keys have two source rows: no statement can hold both"
    open_rows = one.classes[RowClass.IN_FLIGHT] + one.classes[RowClass.UNCLEAR]
    if open_rows:
        yield f"{open_rows:,} rows are in flight or unclear: no statements for them"


def write_sql(path: Path, found: Sequence[RepairedTable], places: Sequence[SourcePlace]) -> int:
    """Write the file in place of an earlier one, or remove that where nothing differs; how many statements it has.

    Raises CompareError COMPARE-012.
    """
    try:
        if not found:
            path.unlink(missing_ok=True)
            return 0
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("w", encoding="utf-8") as file:
            file.writelines(f"{line}\n" for line in _lines(found, places))
    except OSError as error:
        raise CompareError("COMPARE-012", Where(file=str(path)), cause=str(error)[:300]) from None
    return sum(one.count for one in found)


def _lines(found: Sequence[RepairedTable], places: Sequence[SourcePlace]) -> Iterator[str]:
    yield "-- Statements for the target, written by `unshard compare --sql`. They make its rows what the sources held."
    yield "-- Before you run them, stop the task and the writers of these rows: later changes would be overwritten."
    yield "-- Then compare again."
    for place in places:
        yield f"-- source {place.source}: binlog at {place.end or 'unknown'}, target has {place.applied or 'unknown'}"
    yield from _PROLOGUE
    for one in found:
        yield ""
        yield f"-- {one.table}: " + ", ".join(f"{one.rows[kind]:,} {kind.value}" for kind in MENDED)
        for note in one.notes:
            yield f"-- {one.table}: {note}"
        for texts in one.transactions():
            yield "BEGIN;"
            yield from texts
            yield "COMMIT;"
