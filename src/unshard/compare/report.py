"""The outcome of a comparison for people, and as Parquet for further queries."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from unshard.compare.result import CompareVerdict, ComparisonOutcome, RowClass, RowDifference, TableOutcome
from unshard.errors import CompareError, Where

_HEAD = ("table", "verdict", "source rows", "target rows", "missing", "extra", "changed", "collision", "in flight")
_CLASSES = (RowClass.MISSING, RowClass.EXTRA, RowClass.CHANGED, RowClass.COLLISION, RowClass.IN_FLIGHT)
_WORDS = {
    CompareVerdict.EQUAL: "equal",
    CompareVerdict.DIFFERENT: "DIFFERENT",
    CompareVerdict.UNKNOWN: "can't tell",
}
_SCHEMA = pa.schema(
    [
        pa.field("table", pa.string()),
        pa.field("class", pa.string()),
        pa.field("key", pa.string()),
        pa.field("columns", pa.list_(pa.string())),
        pa.field("source_tables", pa.list_(pa.string())),
        pa.field("source_rows", pa.list_(pa.string())),
        pa.field("target_row", pa.string()),
        pa.field("source_count", pa.int64()),
        pa.field("target_count", pa.int64()),
        pa.field("rule", pa.string()),
        pa.field("shaped_by", pa.list_(pa.string())),
        pa.field("last_change_source", pa.string()),
        pa.field("last_change_position", pa.string()),
        pa.field("last_change_gtid", pa.string()),
    ]
)


def text_lines(outcome: ComparisonOutcome) -> Iterator[str]:
    """Yield a line for each table, its differences below it, and the verdict."""
    rows = [_HEAD, *(_cells(table) for table in outcome.tables)]
    widths = [max(len(row[place]) for row in rows) for place in range(len(_HEAD))]
    for number, row in enumerate(rows):
        cells = [
            cell.ljust(w) if at < 2 else cell.rjust(w) for at, (cell, w) in enumerate(zip(row, widths, strict=True))
        ]
        yield "  ".join(cells).rstrip()
        if number:
            yield from _below(outcome.tables[number - 1])
    for error in outcome.errors:
        yield str(error)
    for note in outcome.notes:
        yield f"note: {note}"
    yield from _places(outcome)
    sample = f" in a sample of {outcome.sample} % of the ranges" if outcome.sample < 100 else ""
    told = {
        CompareVerdict.EQUAL: "the source's rows and the target's are equal",
        CompareVerdict.DIFFERENT: "the source's rows and the target's are DIFFERENT",
        CompareVerdict.UNKNOWN: "it can't be told whether the source's rows and the target's are equal",
    }
    yield f"{told[outcome.verdict]}{sample} ({outcome.seconds:.1f} s)"


def write_parquet(outcome: ComparisonOutcome, path: Path) -> None:
    """Write the recorded differences to a file, a row for each. Raises CompareError COMPARE-012."""
    rows = [_parquet_row(str(table.name), one) for table in outcome.tables for one in table.differences]
    try:
        pq.write_table(pa.Table.from_pylist(rows, schema=_SCHEMA), path)
    except OSError as error:
        raise CompareError("COMPARE-012", Where(file=str(path)), cause=str(error)[:300]) from None


def _cells(table: TableOutcome) -> tuple[str, ...]:
    counts = [f"{table.classes[kind]:,}" for kind in _CLASSES]
    return (str(table.name), _WORDS[table.verdict], f"{table.source_rows:,}", f"{table.target_rows:,}", *counts)


def _below(table: TableOutcome) -> Iterator[str]:
    for one in table.differences:
        yield from (f"    {line}" for line in _difference(one))
    more = table.classes.total() - len(table.differences)
    if more > 0:
        yield f"    … and {more:,} more keys; --limit shows more of them"
    if table.beyond:
        yield f"    up to {table.beyond:,} more rows differ at the first look; they were too many to look at again"
    if table.classes[RowClass.UNCLEAR]:
        yield f"    {table.classes[RowClass.UNCLEAR]:,} keys may differ by a rule of the task: that can't be told"
    if table.spelled:
        yield f"    {table.spelled:,} keys are spelled otherwise, and equal in the target's collation"
    if table.left_out:
        yield f"    {table.left_out:,} rows are not in the target, as the task's rules say"
    if table.skipped:
        yield f"    {table.skipped:,} ranges are not in the sample"
    for error in table.errors:
        yield from (f"    {line}" for line in str(error).splitlines())


def _difference(one: RowDifference) -> Iterator[str]:
    times = f", {one.times[0]} times in the source and {one.times[1]} in the target" if one.times != (1, 1) else ""
    rule = f", perhaps by {one.rule}" if one.rule else ""
    yield f"{one.kind}: {one.key or 'a row of a table without a key'}{times}{rule}"
    for name, row in one.source:
        yield f"  source {name}: {_row(row, one.columns)}"
    if one.target is not None:
        yield f"  target: {_row(one.target, one.columns)}"
    if one.shaped_by:
        yield f"  rules: {', '.join(one.shaped_by)}"
    if one.last_change is not None:
        yield f"  last change: {one.last_change}"
    elif one.change_note:
        yield f"  last change: {one.change_note}"


def _row(row: dict[str, str | None], marked: tuple[str, ...]) -> str:
    """Return the row's values as text; those of columns that differ are between asterisks."""
    parts = []
    for name, value in row.items():
        text = f"{name}={'NULL' if value is None else value}"
        parts.append(f"*{text}*" if name in marked else text)
    return ", ".join(parts)


def _places(outcome: ComparisonOutcome) -> Iterator[str]:
    for place in outcome.places:
        if place.to_dict()["exact"]:
            yield f"{place.source}: all of it as of {place.end}"
        elif place.begin:
            applied = f", the target is at {place.applied}" if place.applied else ""
            yield f"{place.source}: read from {place.begin} to {place.end}{applied}"


def _parquet_row(table: str, one: RowDifference) -> dict[str, object]:
    change = one.last_change
    return {
        "table": table,
        "class": one.kind.value,
        "key": one.key,
        "columns": list(one.columns),
        "source_tables": [name for name, _ in one.source],
        "source_rows": [json.dumps(row, ensure_ascii=False) for _, row in one.source],
        "target_row": json.dumps(one.target, ensure_ascii=False) if one.target is not None else None,
        "source_count": one.times[0] if one.source else 0,
        "target_count": one.times[1] if one.target is not None else 0,
        "rule": one.rule,
        "shaped_by": list(one.shaped_by),
        "last_change_source": change.source if change is not None else None,
        "last_change_position": change.position if change is not None else None,
        "last_change_gtid": change.gtid if change is not None else None,
    }
