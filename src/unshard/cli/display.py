"""The display of a running task: bars while it copies, then a status line for each source.

Without a terminal it has plain lines.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from threading import Event

from rich.console import Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from unshard.cli.printer import Level, Printer
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
        return f"{head}  {_copying(reading.progress, reading.unit_seconds)}  {reading.note}".rstrip()
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
