"""One task, killed at each durable write in turn and started again: every change arrives once.

A start of the command takes seconds, so one long life of a task serves all places: it dies at a place, is started
again to die at the next, and at the end the two servers' binlogs tell about all of its deaths together.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import unshard
from support.exactly_once import assert_exactly_once
from support.shard_runs import ends_at
from support.task_runs import Command, TaskFiles, at_work
from unshard.testing.mariadb_server import MariadbServer
from unshard.testing.shapes import SHAPES
from unshard.testing.workload import Workload, WorkPlan

pytestmark = [pytest.mark.server, pytest.mark.spark, pytest.mark.recovery]

COPY_PLACES = (
    "dump-file-after",
    "dump-table-after",
    "dump-rename-after",
    "load-piece-before",
    "load-piece-commit",
    "load-piece-after",
    "subtask-loaded",
)
SYNC_PLACES = (
    "sync-claim-before",
    "sync-claim-after",
    "sync-move-before",
    "sync-move-after",
    "sync-open-before",
    "sync-open-after",
    "sync-chunk-before:3",
    "sync-chunk-commit:2",
    "sync-chunk-after:4",
    "sync-close-before",
    "sync-close-after",
)
STATEMENT_PLACES = (
    "ddl-execute-before",
    "ddl-execute-after",
    "ddl-noted",
)
XA_PLACES = (
    "sync-prepare-before",
    "sync-prepare-after",
)
ELSEWHERE = {  # the units' own tests die there, each place in a run of its own
    "compare-range-after",
    "cutover-back-after",
    "cutover-ends-after",
    "cutover-ends-before",
    "cutover-read-only-after",
    "cutover-read-only-before",
    "cutover-report-before",
    "ddl-backfill-rows",
    "merged-ask-after",
    "merged-ask-before",
    "merged-begin-after",
    "merged-begin-before",
    "merged-end-after",
    "merged-end-before",
    "merged-give-up-after",
    "merged-give-up-before",
    "merged-note-after",
    "merged-note-before",
    "merged-operate-after",
    "merged-operate-before",
    "merged-register-after",
    "merged-register-before",
    "relay-file-purged",
    "repair-commit-after",
    "repair-commit-before",
    "dump-header-before",
    "dump-header-after",
    "dump-file-before",
    "dump-table-before",
    "dump-rename-before",
    "load-finish-before",
    "load-finish-after",
    "load-keys-added",
    "load-keys-recorded",
    "sync-cross-before",
    "sync-cross-after",
    "sync-piece-commit",
    "sync-piece-after",
    "shard-report-before",
    "shard-report-after",
}


def test_no_place_is_forgotten() -> None:
    files = Path(unshard.__file__).parent.rglob("*.py")
    places = {place for file in files for place in re.findall(r'^\s+reach\("([^"]+)"\)', file.read_text(), re.M)}
    tested = {re.sub(r":\d+$", "", place) for place in (*COPY_PLACES, *SYNC_PLACES, *STATEMENT_PLACES, *XA_PLACES)}
    assert places == tested | ELSEWHERE


def die_at(files: TaskFiles, place: str) -> None:
    with Command(files, crash_at=place) as command:
        command.dies(place)


@pytest.mark.faults
def test_every_death_leaves_every_change_applied_once(
    source: MariadbServer, target: MariadbServer, schema: str, tmp_path: Path
) -> None:
    life = Life.begin(source, target, tmp_path, schema)
    life.die_in_turn(partial(die_at, life.files), COPY_PLACES, SYNC_PLACES, STATEMENT_PLACES, XA_PLACES)
    life.end()


def test_a_death_in_the_copy_in_sync_and_in_a_statement(
    source: MariadbServer, target: MariadbServer, schema: str, tmp_path: Path
) -> None:
    """The quick form of the test above: one SIGKILL of each kind."""
    life = Life.begin(source, target, tmp_path, schema)
    die = partial(die_at, life.files)
    life.die_in_turn(die, ["load-piece-commit"], ["sync-chunk-commit:2"], ["ddl-execute-after"], xa=())
    life.end()


def test_every_end_within_the_process_leaves_every_change_applied_once(
    source: MariadbServer,
    target: MariadbServer,
    schema: str,
    tmp_path: Path,
    spark: SparkSession,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """All places of the driver and of small batches, which run in its process: an error there costs no new JVM."""
    life = Life.begin(source, target, tmp_path, schema)

    def end_at(place: str) -> None:
        assert ends_at(place, life.files, spark, monkeypatch), place

    life.die_in_turn(end_at, ["subtask-loaded"], SYNC_PLACES, STATEMENT_PLACES, XA_PLACES)
    life.end()


@dataclass(frozen=True, slots=True)
class Life:
    """One task over tables of three shapes, which dies again and again."""

    source: MariadbServer
    target: MariadbServer
    files: TaskFiles
    works: tuple[Workload, ...]
    altered: list[str] = field(default_factory=list)

    @classmethod
    def begin(cls, source: MariadbServer, target: MariadbServer, folder: Path, name: str) -> Life:
        """Make and fill the tables, in schemas that begin with the name."""
        works = (
            Workload(source, WorkPlan(f"{name}_life", SHAPES["sysbench"], threads=1, large_rows=90)),
            Workload(source, WorkPlan(f"{name}_tied", SHAPES["several_unique"], threads=1, tables=1, large_rows=20)),
            Workload(source, WorkPlan(f"{name}_bare", SHAPES["no_key"], threads=1, tables=1, large_rows=20)),
        )
        for work in works:
            work.create()
            work.fill(400)
        schemas = tuple(sorted({table.schema for work in works for table in work.plan.names}))
        syncer = {"compact": False, "batch": 10, "worker-count": 3}
        files = TaskFiles(folder, name, {"s1": source}, target, schemas, syncer=syncer).write()
        return cls(source, target, files, works)

    @property
    def table(self) -> str:
        """The table that is altered."""
        return self.works[0].plan.names[0].quoted

    def die_in_turn(
        self,
        die: Callable[[str], None],
        copy: Sequence[str],
        sync: Sequence[str],
        statements: Sequence[str],
        xa: Sequence[str],
    ) -> None:
        """Let the task die at each of these crash points and start it again, while the source is written to."""
        for place in copy:
            die(place)
        with at_work(*self.works, share=0.05):
            for place in sync:
                die(place)
            for place in statements:
                name = f"later_{len(self.altered)}"
                self.altered.append(name)
                self.source.run(f"ALTER TABLE {self.table} ADD {name} INT")
                self.source.run(f"UPDATE {self.table} SET {name} = 1 ORDER BY id LIMIT 5")
                die(place)
            for number, place in enumerate(xa):
                self.source.run(
                    f"XA START '{number}'",
                    # none of the ids that the work goes on to give
                    f"INSERT INTO {self.table} (id, k, c, pad) VALUES ({-1 - number}, {number}, 'xa', 'xa')",
                    f"XA END '{number}'",
                    f"XA PREPARE '{number}'",
                )
                die(place)
            for number in range(len(xa)):
                self.source.run(f"XA COMMIT '{number}'")

    def end(self) -> None:
        """Run the task to the end of the log; then every change is there once."""
        with Command(self.files) as command:
            command.catch_up()
            command.interrupt()
            assert command.wait() == 0, command.text
        assert_exactly_once(self.source, self.target, [name for work in self.works for name in work.plan.names])
        columns = [name for (name, *_) in self.target.query(f"SHOW COLUMNS FROM {self.table} LIKE 'later%'")]
        assert columns == self.altered
