"""A whole comparison, on the driver: ranges in waves of Spark tasks, the next wave cut while one is compared."""

from __future__ import annotations

import pickle
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event

from unshard.compare.chase import MOST_PENDING, ChasedTable, KeyChase, RunTasks
from unshard.compare.chunks import CutChunk, TableCutter
from unshard.compare.executor.chunk import ChunkFinding, ChunkOrder, compare_chunk
from unshard.compare.places import LogPlace, SourceWatch
from unshard.compare.plan import ComparisonPlan
from unshard.compare.progress_file import ProgressFile, fingerprint_of
from unshard.compare.result import ComparisonOutcome, SourcePlace, TableOutcome
from unshard.dump.outcome import disclose
from unshard.errors import UnshardError

TELL_SECONDS = 5.0
WAVES_A_SLOT = 2


@dataclass(frozen=True, slots=True)
class CompareSettings:
    """What the user may set. `patience_seconds`: how long to look again at keys that differ.

    `connections` and `rows_per_second` bound what the sources are asked for, over all tasks; 0: no bound.
    `chunk_rows` 0: by the time that ranges take. `limit`: differences that are kept of a table, with their rows.
    """

    sample: int = 100
    chunk_rows: int = 0
    connections: int = 0
    rows_per_second: int = 0
    patience_seconds: float = 300.0
    limit: int = 100
    state: Path | None = None


@dataclass(slots=True)
class TableComparison:
    """Compares the tables of a plan. `run` runs Spark tasks, `slots` at once; `tell` takes lines of progress."""

    plan: ComparisonPlan
    settings: CompareSettings
    watches: Sequence[SourceWatch]
    run: RunTasks
    slots: int
    tell: Callable[[str], None]
    stop: Event = field(default_factory=Event)
    _chased: dict[str, ChasedTable] = field(default_factory=dict)
    _begun: float = field(default_factory=time.monotonic)
    _told: float = field(default_factory=time.monotonic)
    _rows: int = 0
    _whole: bool = True

    def compare(self) -> ComparisonOutcome:
        """Compare all. What fails for a table is among its errors, and the others go on.

        Raises CompareError COMPARE-008; EngineError where Spark fails.
        """
        errors = [fault.error for fault in self.plan.faults if fault.table is None]
        self._chased = {str(one.name): ChasedTable(one, TableOutcome.of(one)) for one in self.plan.tables}
        outcomes = {name: one.outcome for name, one in self._chased.items()}
        for fault in self.plan.faults:
            if fault.table is not None:
                outcome = outcomes.setdefault(str(fault.table), TableOutcome(fault.table))
                outcome.errors.append(fault.error)
                outcome.structure_differs |= fault.different
        places = {watch.side.source: _place(watch.newest, errors) for watch in self.watches}
        fingerprint = fingerprint_of(self.plan.tables, sample=self.settings.sample, rows=self.settings.chunk_rows)
        with ProgressFile(self.settings.state, fingerprint) as progress:
            cutter = TableCutter(self.plan.tables, self.settings.chunk_rows, self.settings.sample)
            with cutter:
                self._waves(cutter, progress)
            for table, error in cutter.faults:
                self._chased[str(table.name)].outcome.errors.append(error)
            self._chase(errors)
            if self._whole and all(one.outcome.complete for one in self._chased.values()):
                progress.remove()
        ended = tuple(self._ended(watch, places[watch.side.source], errors) for watch in self.watches)
        seconds = time.monotonic() - self._begun
        ordered = tuple(outcomes[name] for name in sorted(outcomes))
        return ComparisonOutcome(ordered, tuple(errors), ended, self.plan.notes, self.settings.sample, seconds)

    def _waves(self, cutter: TableCutter, progress: ProgressFile) -> None:
        skipped = self._resume(cutter, progress)
        chunks = (one for one in cutter.ranges() if str(one.table.name) not in skipped)
        width = min(self.slots * WAVES_A_SLOT, self.settings.connections or self.slots * WAVES_A_SLOT)
        with ThreadPoolExecutor(1, "cutter") as ahead:
            coming = ahead.submit(self._cut, chunks, width)
            while (wave := coming.result()) and not self.stop.is_set():
                coming = ahead.submit(self._cut, chunks, width)
                self._compare(wave, cutter, progress)
                self._progress()

    def _resume(self, cutter: TableCutter, progress: ProgressFile) -> frozenset[str]:
        """Take over what an earlier process has compared; the tables that it was through with."""
        done = set()
        for one in progress.earlier:
            chased = self._chased[one.table]
            self._note(chased, one.finding)
            cutter.note(chased.table, one.finding)
            cutter.begun[one.table] = one.part.upper
            if one.part.upper is None:
                chased.outcome.complete = True
                done.add(one.table)
        cutter.tables = [table for table in cutter.tables if str(table.name) not in done]
        if progress.earlier:
            self.tell(f"going on behind {len(progress.earlier):,} ranges that were compared before")
        return frozenset(done)

    def _cut(self, chunks: Iterator[CutChunk], width: int) -> list[CutChunk]:
        """The next ranges that are to be compared; those that a sample leaves out are passed."""
        wave: list[CutChunk] = []
        while len(wave) < width:
            found = next(chunks, None)
            if found is None:
                break
            wave.append(found)
        return wave

    def _compare(self, wave: Sequence[CutChunk], cutter: TableCutter, progress: ProgressFile) -> None:
        compared = [one for one in wave if one.sampled]
        tasks = min(self.slots, max(len(compared), 1))
        rate = self.settings.rows_per_second / tasks
        outcomes = self.run([pickle.dumps(ChunkOrder(one.table, one.part, rate)) for one in compared], compare_chunk)
        found = dict(zip(map(id, compared), outcomes, strict=True))
        for one in wave:
            chased = self._chased[str(one.table.name)]
            if id(one) not in found:
                chased.outcome.skipped += 1
            else:
                try:
                    finding = ChunkFinding.from_dict(disclose(found[id(one)]))
                except UnshardError as error:
                    chased.outcome.errors.append(error)
                    self._whole = False
                    continue
                self._note(chased, finding)
                cutter.note(one.table, finding)
                if not chased.outcome.errors:
                    progress.add(one, finding)
            if one.part.upper is None:
                chased.outcome.complete = True

    def _note(self, chased: ChasedTable, finding: ChunkFinding) -> None:
        outcome = chased.outcome
        outcome.chunks += 1
        outcome.source_rows += finding.source_rows
        outcome.target_rows += finding.target_rows
        outcome.beyond += finding.beyond
        room = MOST_PENDING - sum(len(one.suspects) for one in self._chased.values())
        chased.add(finding.suspects, room)
        self._rows += max(finding.source_rows, finding.target_rows)

    def _chase(self, errors: list[UnshardError]) -> None:
        chased = tuple(self._chased.values())
        count = sum(len(one.suspects) for one in chased)
        if count:
            self.tell(f"{count:,} keys differ at the first look; looking at them again")
        settings = self.settings
        chase = KeyChase(
            self.run,
            self.watches,
            settings.patience_seconds,
            settings.limit,
            self.tell,
            self.stop.is_set,
            settings.connections,
        )
        try:
            chase.settle(chased)
        except UnshardError as error:
            errors.append(error)
            chase.give_up(chased)

    def _progress(self) -> None:
        now = time.monotonic()
        if now - self._told < TELL_SECONDS:
            return
        self._told = now
        total = sum(table.rows_estimate for table in self.plan.tables)
        rate = self._rows / max(now - self._begun, 0.001)
        left = max(total - self._rows, 0) / max(rate, 1.0)
        share = f"{min(100 * self._rows // total, 99)} % of about {total:,}" if total else "of an unknown number of"
        self.tell(f"{self._rows:,} rows compared, {share} rows; {rate:,.0f} rows/s, about {left:,.0f} s left")

    def _ended(self, watch: SourceWatch, begin: LogPlace | None, errors: list[UnshardError]) -> SourcePlace:
        end, applied = _place(watch.newest, errors), _place(watch.applied, errors)
        texts = [str(place.position) if place is not None else "" for place in (begin, end, applied)]
        return SourcePlace(watch.side.source, *texts)


def _place(ask: Callable[[], LogPlace | None], errors: list[UnshardError]) -> LogPlace | None:
    """A place, or None where a source that is gone can't tell it: that is an error of the whole comparison."""
    try:
        return ask()
    except UnshardError as error:
        if not any(str(known) == str(error) for known in errors):
            errors.append(error)
        return None
