"""The report of a cut-over, as text and as JSON: what was compared, at which positions, and how to go back."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from unshard.compare.cutover import CutoverProof
from unshard.compare.report import text_lines
from unshard.compare.result import CompareVerdict
from unshard.compare.sides import SourceSide
from unshard.crash_point import reach
from unshard.errors import CompareError, Where
from unshard.source.read_only import statements_to_restore, told_read_only


@dataclass(frozen=True, slots=True)
class NextCommands:
    """The command lines for what a user may do next: the arguments of `unshard compare` and of `unshard cutover`.

    They are as the user typed them. Those of `cutover` include the state file if it was named, because `--back` reads
    it.
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
    yield from _notes(proof)
    yield ""
    yield from text_lines(proof.outcome)
    yield ""
    yield from next_steps(proof, sides, commands)


def _notes(proof: CutoverProof) -> Iterator[str]:
    yield from proof.counters
    for source, settings in sorted(proof.read_only.items()):
        yield from told_read_only(source, settings)
    for source in proof.unasked:
        yield (
            f"{source}: its account may not ask for prepared XA transactions (XA_RECOVER_ADMIN), and one that is"
            " committed later changes the source: see that XA RECOVER shows none"
        )


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
        "notes": list(_notes(proof)),
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
