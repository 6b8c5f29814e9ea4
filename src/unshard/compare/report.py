"""The outcome of a comparison for people, and as Parquet for further queries; the report of a cut-over.

The report says as text and as JSON what was compared, at which positions, and how to go back.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from unshard.compare.cutover import CutoverProof
from unshard.compare.result import CompareVerdict, ComparisonOutcome, RowClass, RowDifference, TableOutcome
from unshard.compare.sides import SourceSide
from unshard.crash_point import reach
from unshard.errors import CompareError, Where
from unshard.source.read_only import statements_to_restore

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


@dataclass(frozen=True, slots=True)
class NextCommands:
    """The words behind `unshard compare` (`compare`) and behind `unshard cutover` (`cutover`), as they were typed.

    The second has the file of the steps too where it was named: a cut-over is undone by what that file tells.
    """

    compare: str
    cutover: str


def next_steps(proof: CutoverProof, sides: Sequence[SourceSide], commands: NextCommands) -> Iterator[str]:
    """Yield the next steps, and those for going back."""
    if proof.outcome.verdict is CompareVerdict.EQUAL:
        yield "The target has all that the sources have. Now, in this order:"
        yield f"  1. stop the task ({proof.task}), for good"
        yield "  2. let the writers write to the target"
    else:
        yield "The cut-over is NOT done. Do not let anybody write to the target."
        yield f"  Repair what differs: unshard compare {commands.compare} --repair"
        yield f"  Then run the same command again: unshard cutover {commands.cutover}"
    yield "To go back, as long as nobody has written to the target:"
    undo = [line for side in sides for line in _undo(side, proof)]
    if undo:
        yield f"  1. let the sources be written to: unshard cutover {commands.cutover} --back, or by hand:"
        yield from (f"       {line}" for line in undo)
    yield f"  {'2' if undo else '1'}. let the writers write to the sources again; a task that runs carries that on"
    yield "What is written to the target is not carried back to the sources."


def _undo(side: SourceSide, proof: CutoverProof) -> Iterator[str]:
    end = side.endpoint
    for statement in statements_to_restore(proof.read_only.get(side.source, {})):
        yield shlex.join(["mysql", "-h", end.host, "-P", str(end.port), "-u", end.user, "-p", "-e", statement])


def report_lines(proof: CutoverProof, sides: Sequence[SourceSide], commands: NextCommands) -> Iterator[str]:
    """Yield the lines of the report as text."""
    yield f"cut-over of task {proof.task} into {proof.target}"
    for side in sides:
        end = proof.ends[side.source]
        gtid = f", GTIDs {end.gtid}" if end.gtid else ""
        yield f"{side.source} ({side.endpoint.host}:{side.endpoint.port}): compared at {end.position}{gtid}"
    yield ""
    yield from text_lines(proof.outcome)
    yield ""
    yield from next_steps(proof, sides, commands)


def report_form(proof: CutoverProof, sides: Sequence[SourceSide], commands: NextCommands) -> dict[str, Any]:
    """Return the JSON form of the report."""
    sources = []
    for side in sides:
        end = proof.ends[side.source]
        before = dict(proof.read_only.get(side.source, {}))
        server = f"{side.endpoint.host}:{side.endpoint.port}"
        form = {"source": side.source, "server": server, "position": end.position, "gtid": end.gtid}
        sources.append({**form, "read_only_before": before, "go_back": list(_undo(side, proof))})
    return {
        "task": proof.task,
        "target": proof.target,
        "time": f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S} UTC",
        "cut_over": proof.outcome.verdict is CompareVerdict.EQUAL,
        "sources": sources,
        "comparison": proof.outcome.to_dict(),
        "next": list(next_steps(proof, sides, commands)),
    }


def report_files(prefix: Path) -> tuple[Path, Path]:
    """Return the paths of a report's two files: text and JSON."""
    return prefix.with_name(f"{prefix.name}.txt"), prefix.with_name(f"{prefix.name}.json")


def write_report(
    prefix: Path, proof: CutoverProof, sides: Sequence[SourceSide], commands: NextCommands
) -> tuple[Path, Path]:
    """Write both files. Return their paths. Raises CompareError COMPARE-012."""
    text, form = report_files(prefix)
    try:
        reach("cutover-report-before")
        text.write_text("".join(f"{line}\n" for line in report_lines(proof, sides, commands)))
        form.write_text(json.dumps(report_form(proof, sides, commands), indent=2, ensure_ascii=False) + "\n")
    except OSError as error:
        raise CompareError("COMPARE-012", Where(file=str(prefix)), cause=str(error)[:300]) from None
    return text, form
