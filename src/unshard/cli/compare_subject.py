"""The sources and the target of a comparison, from a task's files or a sync-diff-inspector config file."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from threading import Event

from unshard.compare.changed_plan import changed_tables, planned_again, verified, with_plans
from unshard.compare.last_change import with_last_changes
from unshard.compare.lock_patience import LockPatience
from unshard.compare.places import SourceWatch, loaded_tables, newest_places, recorded_tables, wait_until_passed
from unshard.compare.plan import NO_TABLE, ComparisonPlan, plan_comparison
from unshard.compare.repair import repairs, write_sql
from unshard.compare.repairer import Repairer, not_repaired
from unshard.compare.result import ComparisonOutcome, TableOutcome
from unshard.compare.run import CompareSettings, TableComparison
from unshard.compare.sides import SourceSide, TableWish, sides_of
from unshard.compare.sync_diff_file import DiffFile
from unshard.config.files import TaskFiles
from unshard.config.task import SparkConfig
from unshard.errors import UnshardError
from unshard.model.table import TableName
from unshard.mysql.connection import Endpoint
from unshard.mysql.endpoint import to_endpoint
from unshard.run_tasks import RunTasks
from unshard.source.local_time import utc_of
from unshard.source.read_only import held_sources
from unshard.spark.jobs import run_tasks
from unshard.spark.session import Session, slots
from unshard.target.meta import MetaTables
from unshard.transform.source_rules import TableFilter

_TIMES = 3
"""Comparisons of a table that changes meanwhile, for example by a statement that comes to the target."""


@dataclass(frozen=True, slots=True)
class CompareWish:
    """The options of `unshard compare`. `tables` are rules of a table filter over names of the target.

    `repair` is asked whether the rows that differ may be repaired; None: they may not.
    """

    tables: Sequence[str] = ()
    where: str = ""
    ignored: Sequence[str] = ()
    settings: CompareSettings = field(default_factory=CompareSettings)
    parquet: Path | None = None
    sql: Path | None = None
    repair: Callable[[str], bool] | None = None
    as_json: bool = False
    log: Path = Path("unshard-compare.log")
    quiet: bool = False


@dataclass(frozen=True, slots=True)
class CompareSubject:
    """The subject of a comparison: the sources, the target, and the task's meta tables, None if it has none.

    `sql` is the file that the configuration itself names for statements that repair the target.
    """

    sides: tuple[SourceSide, ...]
    target: Endpoint
    meta: MetaTables | None
    wanted: Callable[[TableName], bool]
    wish_for: Callable[[TableName], TableWish]
    spark: SparkConfig
    skips_missing: bool = False
    sql: Path | None = None
    notices: tuple[str, ...] = ()

    def plan(self) -> ComparisonPlan:
        """Return the plan. Raises TargetError where the target can't be asked, CompareError COMPARE-007."""
        meta = self.meta
        recorded = {
            side.source: (recorded_tables if side.follows else loaded_tables)(self.target, meta, side.source)
            for side in self.sides
            if meta is not None
        }
        plan = plan_comparison(self.sides, self.target, recorded, self.wanted, self.wish_for)
        faults = (one for one in plan.faults if not (self.skips_missing and one.error.code == NO_TABLE))
        return replace(plan, faults=tuple(faults))

    def compare(
        self,
        settings: CompareSettings,
        spark: Session,
        tell: Callable[[str], None],
        stop: Event,
        sql: Path | None = None,
    ) -> ComparisonOutcome:
        """Plan, and compare what is planned. Raises as `plan` and `TableComparison.compare`.

        It is planned once more at the end. Tables that have changed meanwhile are compared again, `_TIMES` times at
        most and not while the sources are held; then they are unknown.

        `sql` is a file for the statements that mend the target; the outcome's notes describe it.
        """
        found, plan = self._compared(settings, spark, tell, stop)
        relays = {side.source: side.relay for side in self.sides if side.relay is not None}
        found = with_last_changes(found, {str(one.name): one for one in plan.tables}, relays)
        sql = sql or self.sql
        if sql is None or stop.is_set():
            return found
        return self._with_statements(found, plan, sql, LockPatience(partial(run_tasks, spark), tell, stop.is_set))

    def _compared(
        self,
        settings: CompareSettings,
        spark: Session,
        tell: Callable[[str], None],
        stop: Event,
        times: int = _TIMES,
    ) -> tuple[ComparisonOutcome, ComparisonPlan]:
        """Return the outcome, and the plan by which each table was compared last."""
        plan = self.plan()
        gone = {fault.error.where.source for fault in plan.faults if fault.table is None}
        watches = [SourceWatch(side, self.target, self.meta) for side in self.sides if side.source not in gone]
        plan = self._arrived(plan, watches, settings, stop)
        tell(f"comparing {len(plan.tables)} tables of {len(self.sides)} sources")
        run = LockPatience(partial(run_tasks, spark), tell, stop.is_set)
        work = TableComparison(plan, settings, watches, run, slots(spark), tell, stop)
        found = self._held(work, tell) if settings.hold_seconds else work.compare()
        if stop.is_set():
            return found, plan
        after = planned_again(self.plan, plan)
        errors, found = found.errors, verified(found, plan, after)
        changed = changed_tables(found)
        if not changed or times == 1 or settings.hold_seconds or found.errors != errors:
            return found, plan
        tell(f"{len(changed):,} tables have changed since the comparison began; comparing them again")
        narrow, again = replace(self, wanted=changed.__contains__), replace(settings, state=None)
        try:
            later, its = narrow._compared(again, spark, tell, stop, times - 1)
        except UnshardError as error:
            return replace(found, errors=(*found.errors, error)), plan
        return found.with_tables(later, changed), with_plans(plan, its, changed)

    def _held(self, work: TableComparison, tell: Callable[[str], None]) -> ComparisonOutcome:
        """Compare while nobody writes to the sources. Raises SourceError where they can't be locked."""
        seconds, watches = work.settings.hold_seconds, work.watches
        begun = time.monotonic()
        wait_until_passed(watches, newest_places(watches), begun + work.settings.patience_seconds, work.stop.is_set)
        with held_sources([watch.side.endpoint for watch in watches], seconds) as released:
            tell(f"the sources are locked, for {seconds:g} s at most")
            wait_until_passed(watches, newest_places(watches), time.monotonic() + seconds, work.stop.is_set)
            found = work.compare()
            ended = released.is_set()
        note = f"the sources were locked for {seconds:g} s, and not until the end: give a longer --hold"
        return replace(found, notes=(*found.notes, note)) if ended else found

    def repair(
        self,
        found: ComparisonOutcome,
        settings: CompareSettings,
        spark: Session,
        tell: Callable[[str], None],
        stop: Event,
    ) -> ComparisonOutcome:
        """Repair the rows that differ, and compare their tables again, as long as that helps; what differs then.

        Raises as `compare`.
        """
        assert self.meta is not None, "rows are repaired by a task's records"
        watches = [SourceWatch(side, self.target, self.meta) for side in self.sides]
        repairer = Repairer(self.target, self.meta, watches, settings.patience_seconds, tell, stop.is_set)
        told: list[str] = []
        while True:
            whole = {str(one.name): one for one in self.plan().tables if not self.wish_for(one.name).ignored}
            done = repairer.repair(found, whole)
            told += [line for one in done for line in one.lines()]
            differing = {one.name for one in found.tables if one.classes.total()}
            reasons = [line for one in found.tables for line in not_repaired(one, whole.get(str(one.name)))]
            if not any(one.written for one in done) or stop.is_set():
                return replace(found, notes=(*found.notes, *told, *reasons))
            tell("comparing the repaired tables again")
            narrow = replace(self, wanted=differing.__contains__, sql=None)
            again = narrow.compare(replace(settings, state=None, hold_seconds=0.0), spark, tell, stop)
            before = count_differing(found.tables)
            found = found.with_tables(again, {one.name for one in again.tables})
            after = count_differing(found.tables)
            if not after or after >= before:
                return replace(found, notes=(*found.notes, *told))

    def _with_statements(
        self, found: ComparisonOutcome, plan: ComparisonPlan, path: Path, run: RunTasks
    ) -> ComparisonOutcome:
        whole = {str(one.name): one for one in plan.tables if not self.wish_for(one.name).ignored}
        mended = repairs(found, whole, run)
        count = write_sql(path, mended, found.places)
        notes = [f"{one.table}: {note}" for one in mended for note in one.notes]
        told = f"{path} has {count:,} statements" if mended else f"no rows differ: {path} was not written"
        return replace(found, notes=(*found.notes, *notes, told))

    def _arrived(
        self, plan: ComparisonPlan, watches: Sequence[SourceWatch], settings: CompareSettings, stop: Event
    ) -> ComparisonPlan:
        """Return the plan, made anew once the statements that may still correct its structures are in the target.

        While such a statement may be under way, structures that differ do not count as a difference.
        """
        if not any(fault.different for fault in plan.faults) or not any(watch.followed for watch in watches):
            return plan
        deadline = time.monotonic() + settings.patience_seconds
        passed = wait_until_passed(watches, newest_places(watches), deadline, stop.is_set)
        again = self.plan()
        known = {str(fault.error) for fault in plan.faults if fault.different}
        sure = len(passed) == len(watches)
        faults = (replace(one, different=one.different and sure and str(one.error) in known) for one in again.faults)
        return replace(again, faults=tuple(faults))


def count_differing(tables: Sequence[TableOutcome]) -> int:
    """Return how many rows differ, those beyond what is shown too."""
    return sum(one.classes.total() + one.beyond for one in tables)


def task_subject(files: TaskFiles, wish: CompareWish) -> CompareSubject:
    """Return the ends that a task's files name. Raises ConfigError."""
    configs = files.subtasks
    first = configs[0]
    chosen = TableFilter(tuple(wish.tables), first.case_sensitive) if wish.tables else None
    ignored = frozenset(name.lower() for name in wish.ignored)
    return CompareSubject(
        sides_of(configs, utc_of),
        to_endpoint(first.target),
        MetaTables(first.meta_schema, first.name),
        chosen.takes if chosen is not None else lambda name: True,
        lambda name: TableWish(wish.where, ignored),
        files.task.spark,
    )


def diff_subject(file: DiffFile, folder: Path | None = None) -> CompareSubject:
    """Return the ends that a file of sync-diff-inspector names, whose `output-dir` is `folder`.

    Raises ConfigError for a password that can't be read.
    """
    return CompareSubject(
        file.sides(),
        file.target,
        None,
        file.wanted,
        file.wish_for,
        SparkConfig(master=f"local[{file.check_thread_count}]"),
        file.skip_non_existing_table,
        folder / f"fix-on-{file.task.target_instance}.sql" if folder is not None and file.export_fix_sql else None,
        tuple(file.notices()),
    )
