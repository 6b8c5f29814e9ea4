"""`unshard cutover`: ends a migration step by step, and proves that the target has all rows of the sources.

| step | it is complete when |
|---|---|
| catch up | the target has all that the sources had a moment ago |
| writers | the user says that nobody writes to the sources any more, or they are read-only |
| rest | the sources' binlogs got nothing of the task's for some seconds, and no XA transaction is prepared |
| arrive | the checkpoint of each source is at its end position; the target's counters are raised (`compare.counters`) |
| compare | all rows are equal, the binlogs got nothing of the task's since, and no XA transaction is prepared |

New binlog files, and rows of tables that the task does not take, are nothing of the task's: the ends move on with them.

The state that outlasts the process is in a file (`CutoverRecord`). It has the values of `read_only` in the sources,
written before they are changed. It also has the end positions, so that an interrupted comparison resumes after its last
range. Each step may run again.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import MySQLdb

from unshard.compare.places import LogPlace, SourceWatch, newest_places, wait_until_passed
from unshard.compare.result import ComparisonOutcome
from unshard.crash_point import reach
from unshard.errors import CompareError, Where
from unshard.model.position import Location, Position
from unshard.mysql.connection import rows, session
from unshard.mysql.flavour import current_location, identify
from unshard.source.prepared_transactions import prepared_xids
from unshard.source.read_only import read_only_settings, set_read_only, statements_to_restore, told_read_only

VERSION = 1
SHORT_LAG_SECONDS = 40.0
"""A wait that is as short shows that the task keeps up: it saves its checkpoint every 30 s where it changes no row."""

_LOOK_SECONDS = 0.5
_MOST_XIDS = 20
"""Prepared transactions that an error names."""


@dataclass(frozen=True, slots=True)
class CutoverEnd:
    """The end of a source's binlog, with the GTID set of all events before it."""

    server: str
    position: str
    gtid: str = ""

    def to_dict(self) -> dict[str, str]:
        """Return the JSON form, which `from_dict` reads."""
        return {"server": self.server, "position": self.position, "gtid": self.gtid}

    @classmethod
    def from_dict(cls, form: Mapping[str, str]) -> CutoverEnd:
        """Read the form of `to_dict`."""
        return cls(form["server"], form["position"], form["gtid"])

    @property
    def place(self) -> LogPlace:
        """Server and position together."""
        return LogPlace(self.server, Position.parse(self.position))


@dataclass(frozen=True, slots=True)
class CutoverRecord:
    """The state of a cut-over, which is stored in a file.

    `read_only` has, by source, the variables as they were before the cut-over changed them.
    """

    task: str
    target: str
    read_only: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    ends: Mapping[str, CutoverEnd] = field(default_factory=dict)

    def save(self, path: Path) -> None:
        """Write the record in place of the file. Raises CompareError COMPARE-018."""
        ends = {source: end.to_dict() for source, end in self.ends.items()}
        kept = {source: dict(settings) for source, settings in self.read_only.items()}
        form = {"version": VERSION, "task": self.task, "target": self.target, "read_only": kept, "ends": ends}
        beside = path.with_name(f"{path.name}.new")
        try:
            beside.write_text(json.dumps(form, indent=2) + "\n")
            beside.replace(path)
        except OSError as error:
            raise _unusable(path, str(error)) from None

    @classmethod
    def load(cls, path: Path, task: str, target: str) -> CutoverRecord:
        """Return the record of this task's cut-over; an empty one where there is no file.

        Raises CompareError COMPARE-018 for another task's record, and for a file that holds none.
        """
        try:
            form: dict[str, Any] = json.loads(path.read_text())
            if form["version"] != VERSION:
                raise _unusable(path, f"it is of version {form['version']}")
            ends = {source: CutoverEnd.from_dict(end) for source, end in form["ends"].items()}
            found = cls(form["task"], form["target"], form["read_only"], ends)
        except FileNotFoundError:
            return cls(task, target)
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise _unusable(path, f"it can't be read ({error})") from None
        if (found.task, found.target) != (task, target):
            raise _unusable(path, f"it is of task {found.task} into {found.target}")
        return found


def _unusable(path: Path, fault: str) -> CompareError:
    return CompareError("COMPARE-018", Where(file=str(path)), values={"file": str(path), "fault": fault})


@dataclass(frozen=True, slots=True)
class CutoverProof:
    """The result of a cut-over: the comparison, and the ends of the sources' binlogs while it was made.

    `unasked` has the sources whose account may not ask for prepared XA transactions. `counters` tells of the target's
    AUTO_INCREMENT counters that were raised, or could not be.
    """

    task: str
    target: str
    ends: Mapping[str, CutoverEnd]
    read_only: Mapping[str, Mapping[str, str]]
    outcome: ComparisonOutcome
    unasked: tuple[str, ...] = ()
    counters: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class CutoverSettings:
    """The settings of a cut-over.

    `wait_seconds` bounds each wait for the task. `rest_seconds` is the time for which the binlogs must not grow.
    """

    read_only: bool = False
    wait_seconds: float = 3600.0
    rest_seconds: float = 5.0


@dataclass(slots=True)
class Cutover:
    """One cut-over; `run` takes it through its steps. `compare` compares all rows, with its progress in the given file.

    `raise_counters` raises the target's AUTO_INCREMENT counters and tells of it. `agreed` is asked whether nobody
    writes to these sources any more.
    """

    watches: Sequence[SourceWatch]
    settings: CutoverSettings
    file: Path
    record: CutoverRecord
    compare: Callable[[Path], ComparisonOutcome]
    raise_counters: Callable[[], Sequence[str]]
    agreed: Callable[[Sequence[str]], bool]
    tell: Callable[[str], None]
    stopped: Callable[[], bool]
    _unasked: set[str] = field(default_factory=set)

    @property
    def ranges(self) -> Path:
        """The file with the comparison's progress."""
        return self.file.with_name(f"{self.file.name}.ranges")

    def run(self) -> CutoverProof | None:
        """Run all steps. Return None where the user says no, or it is stopped.

        Raises CompareError, SourceError, TargetError.
        """
        for watch in self.watches:
            if not watch.followed:
                raise CompareError("COMPARE-019", Where(watch.side.source))
        self.tell("step 1 of 5: waiting until the target has what the sources have")
        self._catch_up()
        if self.stopped() or not self._quiet_writers():
            return None
        self.tell(f"step 3 of 5: looking whether the sources rest, for {self.settings.rest_seconds:g} s")
        ends = self._rest()
        if ends != self.record.ends:
            if not self._are_of_one_state(self.record.ends, ends):
                self.ranges.unlink(missing_ok=True)  # what was compared before that is not what there is now
            reach("cutover-ends-before")
            self._keep(replace(self.record, ends=ends))
            reach("cutover-ends-after")
        self.tell("step 4 of 5: waiting until the target is at their last positions")
        self._wait({source: end.place for source, end in ends.items()}, self.settings.wait_seconds)
        if self.stopped():
            return None
        counters = tuple(self.raise_counters())  # before the comparison, which knows an altered table as another one
        self.tell("step 5 of 5: comparing all rows")
        outcome = self.compare(self.ranges)
        ends = self._still(ends)
        unasked = tuple(sorted(self._unasked))
        record = self.record
        return CutoverProof(record.task, record.target, ends, record.read_only, outcome, unasked, counters)

    def _catch_up(self) -> None:
        """Wait until the task lags by less than SHORT_LAG_SECONDS."""
        deadline = time.monotonic() + self.settings.wait_seconds
        while not self.stopped():
            begun = time.monotonic()
            self._wait(newest_places(self.watches), deadline - begun)
            if time.monotonic() - begun <= SHORT_LAG_SECONDS:
                return

    def _wait(self, places: Mapping[str, LogPlace | None], seconds: float) -> None:
        passed = wait_until_passed(self.watches, places, time.monotonic() + seconds, self.stopped)
        for source, place in places.items():
            if source not in passed and not self.stopped():
                text = str(place.position) if place is not None else "the end"
                values = {"place": text, "seconds": self.settings.wait_seconds}
                raise CompareError("COMPARE-016", Where(source), values=values)

    def _quiet_writers(self) -> bool:
        names = [watch.side.source for watch in self.watches]
        if not self.settings.read_only:
            self.tell("step 2 of 5: the writers of the sources have to stop")
            return self.agreed(names)
        self.tell("step 2 of 5: making the sources read-only")
        for watch in self.watches:
            self._make_read_only(watch)
        return True

    def _make_read_only(self, watch: SourceWatch) -> None:
        source = watch.side.source
        with session(watch.side.endpoint, "source") as connection:
            if source not in self.record.read_only:
                before = read_only_settings(connection)
                for line in told_read_only(source, before):
                    self.tell(line)
                self._keep(replace(self.record, read_only={**self.record.read_only, source: before}))
            reach("cutover-read-only-before")
            try:
                set_read_only(connection)
            except MySQLdb.Error as error:
                cause = f"{error.args[0]}: {error.args[1]}" if len(error.args) > 1 else str(error)
                raise CompareError("COMPARE-017", Where(source), cause=cause) from error
            reach("cutover-read-only-after")

    def _keep(self, record: CutoverRecord) -> None:
        record.save(self.file)
        self.record = record

    def _rest(self) -> dict[str, CutoverEnd]:
        """Return the ends of the binlogs after `rest_seconds` without a write.

        Raises CompareError COMPARE-015, COMPARE-025.
        """
        self._check_prepared()
        ends = {watch.side.source: end_of(watch) for watch in self.watches}
        deadline = time.monotonic() + self.settings.rest_seconds
        while time.monotonic() < deadline and not self.stopped():
            time.sleep(_LOOK_SECONDS)
            ends = self._still(ends)
        return ends

    def _still(self, ends: Mapping[str, CutoverEnd]) -> dict[str, CutoverEnd]:
        """Return the ends as they are now. Only new files, and rows that the task does not take, may have moved them.

        Raises CompareError COMPARE-015, COMPARE-025.
        """
        self._check_prepared()  # before the positions: a commit in between moves them
        found = dict(ends)
        places = newest_places(self.watches)
        for watch in self.watches:
            source = watch.side.source
            if places[source] == ends[source].place:
                continue
            found[source] = end_of(watch)
            if not _is_one_state(watch, ends[source], found[source]):
                values = {"before": ends[source].position, "after": found[source].position}
                raise CompareError("COMPARE-015", Where(source), values=values)
        return found

    def _are_of_one_state(self, before: Mapping[str, CutoverEnd], after: Mapping[str, CutoverEnd]) -> bool:
        """Return whether the sources had the same rows at both ends, as far as the task takes them."""
        return before.keys() == after.keys() and all(
            _is_one_state(watch, before[watch.side.source], after[watch.side.source]) for watch in self.watches
        )

    def _check_prepared(self) -> None:
        """Raise CompareError COMPARE-025 where an XA transaction is prepared: anybody may commit it later."""
        for watch in self.watches:
            source = watch.side.source
            with session(watch.side.endpoint, "source") as connection:
                xids = prepared_xids(connection)
            if xids is None:
                self._unasked.add(source)
            elif xids:
                shown = ", ".join(xids[:_MOST_XIDS])
                more = f" and {len(xids) - _MOST_XIDS} more" if len(xids) > _MOST_XIDS else ""
                raise CompareError("COMPARE-025", Where(source), values={"xids": f"{shown}{more}"})


def _is_one_state(watch: SourceWatch, before: CutoverEnd, after: CutoverEnd) -> bool:
    """Return whether the source had the same rows at both ends: by the GTID sets, else by the events between."""
    if before.server == after.server and before.gtid and before.gtid == after.gtid:
        return True
    return watch.unchanged(before.place, after.place)


def end_of(watch: SourceWatch) -> CutoverEnd:
    """Return the end of the source's binlog now. Raises SourceError; CompareError COMPARE-019 where it has none."""
    with session(watch.side.endpoint, "source") as connection:
        server = identify(connection)
        found: Location | None = current_location(connection, server)
    if found is None:
        raise CompareError("COMPARE-019", Where(watch.side.source))
    return CutoverEnd(server.uuid, str(found.position), found.gtid)


def go_back(watches: Sequence[SourceWatch], record: CutoverRecord) -> list[str]:
    """Give the sources the `read_only` that they had. Return the statements that were run.

    Raises SourceError; CompareError COMPARE-017.
    """
    done = []
    for watch in watches:
        source = watch.side.source
        for statement in statements_to_restore(record.read_only.get(source, {})):
            with session(watch.side.endpoint, "source") as connection:
                try:
                    rows(connection, statement)
                except MySQLdb.Error as error:
                    raise CompareError("COMPARE-017", Where(source), cause=str(error.args[-1])) from error
            reach("cutover-back-after")
            done.append(f"{source}: {statement}")
    return done
