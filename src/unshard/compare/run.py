"""Runs a whole comparison on the driver: waves of Spark tasks compare ranges, while the next ranges are determined."""

from __future__ import annotations

import pickle
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event
from typing import Any

from unshard.compare.chase import MOST_PENDING, ChasedTable, KeyChase
from unshard.compare.executor.chunk import ChunkFinding, ChunkOrder, compare_chunk
from unshard.compare.executor.counted import CountOrder, count_ranges
from unshard.compare.executor.rows import LOCKED
from unshard.compare.executor.silent import SILENT
from unshard.compare.lock_patience import LockPatience
from unshard.compare.moments import SourceMoment
from unshard.compare.pace import FEWEST_ROWS, SECONDS, CutChunk, TableCutter, WayOfTable
from unshard.compare.places import SourceWatch
from unshard.compare.plan import ComparisonPlan
from unshard.compare.progress_file import EarlierChunk, ProgressFile, fingerprint_of
from unshard.compare.result import CompareVerdict, ComparisonOutcome, TableOutcome
from unshard.compare.source_load import DEFAULT_PERCENT, LIMITED_SECONDS, SourceLoad
from unshard.compare.tables import ComparedTable
from unshard.compare.target_state import target_states
from unshard.errors import CompareError, UnshardError, Where, disclose

TELL_SECONDS = 5.0
WAVES_A_SLOT = 2
_COUNTED = 32
"""Ranges of an earlier process that one Spark task counts."""


@dataclass(frozen=True, slots=True)
class CompareSettings:
    """The settings of a comparison. `patience_seconds` bounds the time for looking again at keys that differ.

    `connections` and `rows_per_second` limit the load on the sources, over all Spark tasks; 0: no limit. `source_load`
    is the share of the time in percent that a source may be busy with the comparison; 0: no limit. With a limit one
    range is compared at a time.

    `hold_seconds`: how long the sources' tables may be locked, so that all is compared at one position; 0: not at all.
    `chunk_rows`: the size of the ranges; 0: it follows the time that ranges take. `limit`: the differences of a table
    that are kept with their rows. `rests`: nobody writes to the sources, so the log of different positions is read to
    see that it has nothing of the task's.
    """

    sample: int = 100
    chunk_rows: int = 0
    connections: int = 0
    rows_per_second: int = 0
    patience_seconds: float = 300.0
    limit: int = 100
    state: Path | None = None
    hold_seconds: float = 0.0
    source_load: int = DEFAULT_PERCENT
    rests: bool = False


@dataclass(slots=True)
class TableComparison:
    """The comparison of all tables of a plan.

    `run` runs Spark tasks, `slots` at once, and waits for tables that are locked; `tell` takes lines of progress.
    """

    plan: ComparisonPlan
    settings: CompareSettings
    watches: Sequence[SourceWatch]
    run: LockPatience
    slots: int
    tell: Callable[[str], None]
    stop: Event = field(default_factory=Event)
    _chased: dict[str, ChasedTable] = field(default_factory=dict)
    _ways: dict[str, WayOfTable] = field(default_factory=dict)
    _begun: float = field(default_factory=time.monotonic)
    _told: float = field(default_factory=time.monotonic)
    _load: SourceLoad = field(init=False)
    _rows: int = 0
    _whole: bool = True

    def __post_init__(self) -> None:
        self._load = SourceLoad(self.settings.source_load, self.stop, self.tell)

    def compare(self) -> ComparisonOutcome:
        """Compare all. What fails for a table is among its errors, and the others go on.

        Raises CompareError COMPARE-008; EngineError where Spark fails.
        """
        errors = [fault.error for fault in self.plan.faults if fault.table is None]
        tables = tuple(one.with_generated() for one in self.plan.tables)
        self._chased = {str(one.name): ChasedTable(one, TableOutcome.of(one)) for one in tables}
        outcomes = {name: one.outcome for name, one in self._chased.items()}
        for fault in self.plan.faults:
            if fault.table is not None:
                outcome = outcomes.setdefault(str(fault.table), TableOutcome(fault.table))
                outcome.errors.append(fault.error)
                outcome.structure_differs |= fault.different
        now = {watch.side.source: SourceMoment.of(watch, errors) for watch in self.watches}
        with self._progress_file(tables, now) as progress:
            self._recount(progress, now)
            seconds = LIMITED_SECONDS if self._load.limited else SECONDS
            most = self.slots * WAVES_A_SLOT
            cutter = TableCutter(tables, self.settings.chunk_rows, self.settings.sample, most, seconds, self.run)
            with cutter:
                self._waves(cutter, progress)
            for table, error in cutter.faults:
                self._chased[str(table.name)].outcome.add_error(error)
            self._chase(errors)
            if self._whole and all(one.outcome.complete for one in self._chased.values()):
                progress.remove()
            begun = _moments(progress.begun)
        ended = {watch.side.source: SourceMoment.of(watch, errors) for watch in self.watches}
        self._check_counts(begun, ended)
        places = tuple(begun.get(source, now[source]).until(source, its) for source, its in ended.items())
        seconds = time.monotonic() - self._begun
        ordered = tuple(outcomes[name] for name in sorted(outcomes))
        notes = (*self.plan.notes, *self._unlike_expressions())
        return ComparisonOutcome(ordered, tuple(errors), places, notes, self.settings.sample, seconds)

    def _progress_file(self, tables: Sequence[ComparedTable], now: Mapping[str, SourceMoment]) -> ProgressFile:
        """Return the file of the progress. Raises TargetError."""
        file = self.settings.state
        fingerprint = fingerprint_of(tables, sample=self.settings.sample, rows=self.settings.chunk_rows)
        states = target_states(tables, self.watches) if file is not None else {}
        return ProgressFile(file, fingerprint, {source: moment.to_dict() for source, moment in now.items()}, states)

    def _recount(self, progress: ProgressFile, now: Mapping[str, SourceMoment]) -> None:
        """Leave out the earlier ranges of tables whose rows in the target have changed since they were compared.

        The rows of these ranges are counted, where nobody has written to the sources since.
        """
        begun = _moments(progress.begun)
        rested = self._rested(begun, now)
        ranges: dict[str, list[EarlierChunk]] = {}
        for one in progress.earlier:
            if rested.issuperset(shard.source for shard in self._chased[one.table].table.shards):
                ranges.setdefault(one.table, []).append(one)
        parts = [
            (table, its[at : at + _COUNTED]) for table, its in ranges.items() for at in range(0, len(its), _COUNTED)
        ]
        changed = set()
        for at in range(0, len(parts), self.slots):
            wave = parts[at : at + self.slots]
            if self.stop.is_set():
                return
            orders = [CountOrder(self._chased[name].table, tuple(one.part for one in its)) for name, its in wave]
            outcomes = self.run([pickle.dumps(order) for order in orders], count_ranges)
            for (name, its), outcome in zip(wave, outcomes, strict=True):
                try:
                    counts = disclose(outcome)
                except UnshardError:  # its comparison tells of it
                    counts = []
                if counts != [one.finding.target_rows for one in its]:
                    changed.add(name)
        if changed:
            progress.leave_out(changed)
        if progress.outdated:
            names = ", ".join(sorted(progress.outdated))
            self.tell(f"changed in the target since ranges of them were compared, so compared from the begin: {names}")

    def _rested(self, begun: Mapping[str, SourceMoment], ended: Mapping[str, SourceMoment]) -> frozenset[str]:
        """Return the sources to which, as to the target by the task, nothing was written between the moments."""
        watches = {watch.side.source: watch for watch in self.watches}
        known = {one: watch for one, watch in watches.items() if one in begun}
        reads = self.settings.rests
        return frozenset(one for one, its in known.items() if begun[one].rested(its, ended, reads_log=reads))

    def _unlike_expressions(self) -> Iterator[str]:
        """Yield the tables with rows that differ only in columns that both ends compute."""
        for table in self.plan.tables:
            names = frozenset(column.name for column in table.generated)
            alone = self._chased[str(table.name)].outcome.computed_otherwise(names)
            if alone:
                yield (
                    f"{table.name}: rows differ only in generated columns ({', '.join(sorted(alone))}), which no repair"
                    " writes: give the target's columns the expressions of the source's. Leave those that convert from"
                    " UTC (CONVERT_TZ) as they are: both ends are read in UTC, and a VIRTUAL column differs then"
                )

    def _waves(self, cutter: TableCutter, progress: ProgressFile) -> None:
        skipped = self._resume(cutter, progress)
        chunks = (one for one in cutter.ranges() if str(one.table.name) not in skipped)
        width = min(self.slots * WAVES_A_SLOT, self.settings.connections or self.slots * WAVES_A_SLOT)
        with ThreadPoolExecutor(1, "cutter") as ahead:
            coming = ahead.submit(self._cut, chunks, width)
            while (wave := coming.result()) and not self.stop.is_set():
                sure = cutter.knows_size_after(wave[-1])
                if sure:
                    coming = ahead.submit(self._cut, chunks, width)
                busy = self._compare(wave, cutter, progress)
                if not sure:
                    coming = ahead.submit(self._cut, chunks, width)
                self._load.rest(busy + cutter.take_busy())
                self._progress()

    def _resume(self, cutter: TableCutter, progress: ProgressFile) -> frozenset[str]:
        """Load the ranges that an earlier process has compared. Return the tables that it had completed."""
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
        """Return the next ranges, with those between them that a sample leaves out."""
        wave: list[CutChunk] = []
        while len(wave) < width:
            found = next(chunks, None)
            if found is None:
                break
            wave.append(found)
            small = found.part.upper is None and found.table.rows_estimate <= FEWEST_ROWS
            if self._load.limited and found.sampled and not small:
                break
        return wave

    def _compare(self, wave: Sequence[CutChunk], cutter: TableCutter, progress: ProgressFile) -> float:
        """Compare the ranges. Return the seconds for which a source was busy with them."""
        busy = 0.0
        compared = [one for one in wave if one.sampled]
        tasks = min(self.slots, max(len(compared), 1))
        rate = self.settings.rows_per_second / tasks
        orders = [ChunkOrder(one.table, one.part, rate, self._reads(one)) for one in compared]
        outcomes = self.run([pickle.dumps(order) for order in orders], compare_chunk)
        found = dict(zip(map(id, compared), outcomes, strict=True))
        ways = {id(one): order.reads for one, order in zip(compared, orders, strict=True)}
        for one in wave:
            chased = self._chased[str(one.table.name)]
            if id(one) not in found:
                chased.outcome.skipped += 1
            else:
                try:
                    finding = ChunkFinding.from_dict(disclose(found[id(one)]))
                except UnshardError as error:
                    chased.outcome.add_error(error)
                    self._whole = False
                    if error.code in (LOCKED, SILENT):
                        cutter.leave(one.table)
                    continue
                busy += finding.source_seconds
                self._note(chased, finding)
                cutter.note(one.table, finding)
                self._way(one.table).note(finding, reads=ways[id(one)])
                if not chased.outcome.errors:
                    progress.add(one, finding)
            if one.part.upper is None:
                chased.outcome.complete = True
        return busy

    def _reads(self, one: CutChunk) -> bool:
        """Return whether to read the range's rows though the servers could compute checksums; not with a rate limit."""
        return not self.settings.rows_per_second and self._way(one.table).reads()

    def _way(self, table: ComparedTable) -> WayOfTable:
        return self._ways.setdefault(str(table.name), WayOfTable())

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
            self._load,
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

    def _check_counts(self, begun: Mapping[str, SourceMoment], ended: Mapping[str, SourceMoment]) -> None:
        """Look whether both sides of each table have as many rows, where nothing was written meanwhile.

        After a copy with a condition (`where`) the target may have more: rows that the copy left out and that changed
        later.
        """
        rested = self._rested(begun, ended)
        for one in self._chased.values():
            outcome = one.outcome
            counts = {"source_rows": outcome.source_rows - outcome.left_out, "target_rows": outcome.target_rows}
            surplus = counts["target_rows"] - counts["source_rows"]
            unlike = surplus < 0 if any(shard.where for shard in one.table.shards) else surplus != 0
            if (
                unlike
                and outcome.verdict is CompareVerdict.EQUAL
                and rested.issuperset(s.source for s in one.table.shards)
            ):
                outcome.errors.append(CompareError("COMPARE-023", Where(table=str(outcome.name)), values=counts))


def _moments(form: Mapping[str, Any]) -> dict[str, SourceMoment]:
    return {source: SourceMoment.from_dict(moment) for source, moment in form.items()}
