"""The display of a running task: bars while it copies, then a status line for each source.

Without a terminal it has plain lines; with `--json-status` lines of JSON on stdout, of which the last one has the
outcome of the run.

The fields of the JSON are documented in docs/how-to/read-the-status-line.md. A field keeps its name and its meaning for
as long as `version` stays; fields may be added.
"""

from __future__ import annotations

import json
import os
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from threading import Event
from typing import Any, Literal, TextIO

from rich.console import Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from unshard.cli.printer import Level, Printer, utc_now, utc_text
from unshard.cli.process import BROKEN_OFF, FAILED
from unshard.errors import UnshardError
from unshard.model.progress import Progress, size_text
from unshard.sync.batch.row_counts import RowCounts
from unshard.sync.status import FailOver
from unshard.worker.status import SubtaskStatus, WaitingSubtask

REFRESH_SECONDS = 0.5
PLAIN_SECONDS = 5.0
MOST_TABLES = 3

Readings = Callable[[], Sequence[SubtaskStatus]]
Seen = Callable[[Sequence[SubtaskStatus]], None]
_Lasting = tuple[str, str | FailOver | datetime]


def show(printer: Printer, readings: Readings, ended: Event, seen: Seen | None = None) -> None:
    """Show the readings until `ended` is set. Runs in the main thread; a KeyboardInterrupt goes to the caller.

    Where `seen` is given, it gets each reading, and only the lines that stay are printed.
    """
    told: set[_Lasting] = set()
    if seen is not None:
        while not ended.wait(REFRESH_SECONDS):
            now = readings()
            _tell_once(printer, now, told)
            seen(now)
        return
    if printer.is_terminal:
        with Live(console=printer.console, auto_refresh=False, transient=True) as live:
            while not ended.wait(REFRESH_SECONDS):
                now = readings()
                _tell_once(printer, now, told)
                live.update(render(now), refresh=True)
        return
    last: list[str] = []
    due = 0.0
    while not ended.wait(REFRESH_SECONDS):
        now = readings()
        _tell_once(printer, now, told)
        lines = [line(reading) for reading in now]
        changed = [text.split("  ")[:2] for text in lines] != [text.split("  ")[:2] for text in last]
        if changed or time.monotonic() >= due:
            for text, reading in zip(lines, now, strict=True):
                printer.tell(text, "INFO" if reading.waits is None else "WARN")
            last, due = lines, time.monotonic() + PLAIN_SECONDS


def _tell_once(printer: Printer, readings: Sequence[SubtaskStatus], told: set[_Lasting]) -> None:
    """Print a permanent line for each finished copy, each fail-over and each wait that is not yet in `told`."""
    for what, level, text in _lasting(readings):
        if what not in told:
            told.add(what)
            printer.tell(text, level)


def _lasting(readings: Sequence[SubtaskStatus]) -> Iterator[tuple[_Lasting, Level, str]]:
    """Yield a key for each event that gets a permanent line, and the line with its level."""
    for reading in readings:
        for copy in reading.copied:
            earlier = copy.progress is not None and _is_of_earlier_runs(copy.progress)
            how = "done by an earlier run" if earlier else f"done in {copy.unit_seconds:,.1f} s"
            yield (copy.source, copy.unit), "INFO", f"{line(_without_estimate(copy))}  {how}"
        for over in reading.sync.failovers if reading.sync is not None else ():
            went = f"the source has failed over from server {over.before} to {over.now}, it goes on at {over.place}"
            yield (reading.source, over), "WARN", f"{reading.source}  {went}"
        if reading.waited is not None:
            text = f"{_waits(reading.source, reading.waited)}. It goes on by itself"
            yield (reading.source, reading.waited.since), "WARN", text


def _without_estimate(over: SubtaskStatus) -> SubtaskStatus:
    return over if over.progress is None else replace(over, progress=replace(over.progress, rows_total_estimate=0))


def render(readings: Sequence[SubtaskStatus]) -> RenderableType:
    """Return one row for each source: a bar for dump and load, figures for sync."""
    table = Table.grid(padding=(0, 2))
    for reading in readings:
        progress = reading.progress
        if progress is None or not progress.rows_total_estimate:
            table.add_row(Text(line(reading)))
            continue
        bar = ProgressBar(total=progress.rows_total_estimate, completed=progress.rows_done, width=30)
        table.add_row(Group(Text(line(reading)), bar))
    return table


def line(reading: SubtaskStatus) -> str:
    """Return a reading as one line; its first parts change least."""
    if reading.waits is not None:
        return f"{_waits(reading.source, reading.waits)}, next try at {_clock(reading.waits.until)}"
    head = f"{reading.source}  {reading.unit}"
    if reading.progress is not None:
        return f"{head}  {_copying(reading.progress, reading.unit_seconds)}"
    sync = reading.sync
    if sync is None or sync.location is None:
        return f"{head}  {reading.note}".rstrip()
    lag = "unknown" if sync.lag_seconds is None else f"{sync.lag_seconds:.1f} s"
    backlog = "unknown" if reading.backlog_bytes is None else size_text(reading.backlog_bytes)
    parts = [
        f"{sync.rows_per_second:,.0f} rows/s",
        f"lag {lag}",
        f"backlog {backlog}",
        f"at {sync.location.position}",
        f"{sync.rows:,} rows in {sync.batches:,} batches",
    ]
    if sync.missing:
        parts.append(f"{sync.missing:,} rows were not found in the target ({_missing_by_table(sync.tables)})")
    if filtered := sum(entry.filtered for entry in sync.tables.values()):
        parts.append(f"{filtered:,} filtered ({_filtered_by_rule(sync.tables)})")
    if sync.safe_mode:
        parts.append(f"safe mode ({sync.safe_mode})")
    for group in sync.groups:
        long = " too long" if group.overdue else ""
        parts.append(f"{group.target} waits{long} for its DDL ({group.waits_for or 'other tables'})")
    if reading.note:
        parts.append(reading.note)
    return f"{head}  {'  '.join(parts)}"


def _waits(source: str, wait: WaitingSubtask) -> str:
    return f"{source}  waits  since {_clock(wait.since)} for this to pass: {wait.error}"


def _clock(time_: datetime) -> str:
    return f"{time_:%H:%M:%S} UTC"


def _missing_by_table(tables: Mapping[str, RowCounts]) -> str:
    """Return the tables with the most missing rows."""
    counts = sorted(((entry.missing, name) for name, entry in tables.items() if entry.missing), reverse=True)
    named = [f"{name} {count:,}" for count, name in counts[:MOST_TABLES]]
    return ", ".join(named + ["…"] * (len(counts) > MOST_TABLES))


def _filtered_by_rule(tables: Mapping[str, RowCounts]) -> str:
    """Return the rules that excluded the most changes."""
    by_rule: Counter[str] = Counter()
    for entry in tables.values():
        by_rule.update(entry.rules)
    named = [f"{rule} {count:,}" for rule, count in by_rule.most_common(MOST_TABLES)]
    return ", ".join(named + ["…"] * (len(by_rule) > MOST_TABLES))


def _copying(progress: Progress, seconds: float) -> str:
    rows = progress.rows_done
    rate = (rows - progress.rows_before) / seconds if seconds > 0 else 0.0
    pace = "" if _is_of_earlier_runs(progress) else f"{rate:,.0f} rows/s  "
    left = max(0, progress.rows_total_estimate - rows)
    eta = f"ETA {left / rate:,.0f} s" if rate and left else ""
    total = f" of about {progress.rows_total_estimate:,}" if progress.rows_total_estimate else ""
    return (
        f"{rows:,}{total} rows  {size_text(progress.bytes_done)}  {pace}"
        f"{progress.tables_done}/{progress.tables_total} tables  {eta}"
    ).rstrip()


def _is_of_earlier_runs(progress: Progress) -> bool:
    return 0 < progress.rows_done == progress.rows_before


# `unshard run --json-status`: how the run stands, as lines of JSON on stdout; the last line tells how it ended.


VERSION = 1
EVERY_SECONDS = 1.0
State = Literal["starting", "running", "stopping", "finished", "stopped", "failed"]


@dataclass(slots=True)
class JsonStatus:
    """Writes the lines of one run of `task`. `redact`: of an error only the code is written.

    `sources` is the reading that the last line repeats. A reader that closes its end stops the lines and not the run.
    """

    stream: TextIO
    task: str
    redact: bool = False
    sources: Sequence[SubtaskStatus] = ()
    _due: float = 0.0

    def look(self, stop: Event, sources: Sequence[SubtaskStatus]) -> None:
        """Write a line where the last one is a second old. `stop` is set when the run was asked to end."""
        self.sources = sources
        if time.monotonic() >= self._due:
            self._due = time.monotonic() + EVERY_SECONDS
            self._write("stopping" if stop.is_set() else "running")

    @contextmanager
    def over(self, stop: Event) -> Iterator[None]:
        """Write a first line at once, and a last one with the outcome of the run."""
        self._write("starting")
        try:
            yield
        except BaseException as error:
            self._write("failed", self._error(error), BROKEN_OFF if isinstance(error, KeyboardInterrupt) else FAILED)
            raise
        self._write("stopped" if stop.is_set() else "finished", exit_code=0)

    def _error(self, error: BaseException) -> dict[str, str]:
        if not isinstance(error, UnshardError):
            return {"code": "", "message": type(error).__name__}
        return {"code": error.code, "message": "" if self.redact else str(error)}

    def _write(self, state: State, error: dict[str, str] | None = None, exit_code: int | None = None) -> None:
        form = {
            "version": VERSION,
            "time": utc_text(utc_now()),
            "task": self.task,
            "state": state,
            "exit_code": exit_code,
            "error": error,
            "sources": [source_form(one) for one in self.sources],
        }
        try:
            self.stream.write(json.dumps(form) + "\n")
            self.stream.flush()
        except BrokenPipeError:  # what is left in the buffer has nowhere to go
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, self.stream.fileno())
            os.close(nowhere)


def source_form(reading: SubtaskStatus) -> dict[str, Any]:
    """Return one source's fields. All are always present; those that don't apply to the current unit are null."""
    progress, sync, waits = reading.progress, reading.sync, reading.waits
    location = sync.location if sync is not None else None
    return {
        "source": reading.source,
        "unit": reading.unit,
        "unit_seconds": round(reading.unit_seconds, 1),
        "copy_rows": progress.rows_done if progress else None,
        "copy_rows_estimate": progress.rows_total_estimate if progress else None,
        "copy_bytes": progress.bytes_done if progress else None,
        "copy_tables": progress.tables_done if progress else None,
        "copy_tables_total": progress.tables_total if progress else None,
        "lag_seconds": sync.lag_seconds if sync else None,
        "backlog_bytes": reading.backlog_bytes,
        "binlog_file": location.position.file if location else None,
        "binlog_position": location.position.offset if location else None,
        "gtid": location.gtid if location else None,
        "rows": sync.rows if sync else None,
        "rows_per_second": round(sync.rows_per_second, 1) if sync else None,
        "batches": sync.batches if sync else None,
        "rows_missing": sync.missing if sync else None,
        "rows_filtered": sum(entry.filtered for entry in sync.tables.values()) if sync else None,
        "safe_mode": sync.safe_mode or None if sync else None,
        "ddl_waits": [{"table": one.target, "for": one.waits_for} for one in sync.groups] if sync else None,
        "note": reading.note or None,
        "paused": _paused(waits) if waits else None,
    }


def _paused(waits: WaitingSubtask) -> dict[str, str]:
    return {"error": waits.error, "since": utc_text(waits.since), "next_try": utc_text(waits.until)}
