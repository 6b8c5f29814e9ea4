"""One task, killed at each durable write in turn and started again: every change arrives once.

A start of the command takes seconds, so one long life of a task serves all places: it dies at a place, is started
again to die at the next, and at the end the two servers' binlogs tell about all of its deaths together.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import pytest

import unshard
from support.exactly_once import assert_exactly_once
from support.task_runs import Command, TaskFiles, at_work
from unshard.testing.servers import MariadbServer
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
    source: MariadbServer, target: MariadbServer, tmp_path: Path
) -> None:
    live_and_die(source, target, tmp_path, COPY_PLACES, SYNC_PLACES, STATEMENT_PLACES, XA_PLACES)


def test_a_death_in_the_copy_in_sync_and_in_a_statement(
    source: MariadbServer, target: MariadbServer, tmp_path: Path
) -> None:
    """The quick form of the test above: one SIGKILL of each kind."""
    live_and_die(source, target, tmp_path, ["load-piece-commit"], ["sync-chunk-commit:2"], ["ddl-execute-after"], [])


def live_and_die(
    source: MariadbServer,
    target: MariadbServer,
    folder: Path,
    copy: Sequence[str],
    sync: Sequence[str],
    statements: Sequence[str],
    xa: Sequence[str],
) -> None:
    """Kill one task at each of these crash points in turn and start it again; then every change is there once."""
    works = [
        Workload(source, WorkPlan("life", SHAPES["sysbench"], threads=1, large_rows=90)),
        Workload(source, WorkPlan("tied", SHAPES["several_unique"], threads=1, tables=1, large_rows=20)),
        Workload(source, WorkPlan("bare", SHAPES["no_key"], threads=1, tables=1, large_rows=20)),
    ]
    for work in works:
        work.create()
        work.fill(400)
    names = [name for work in works for name in work.plan.names]
    files = TaskFiles(
        folder,
        "life",
        {"s1": source},
        target,
        ("life_1", "tied_1", "bare_1"),
        syncer={"compact": False, "batch": 10, "worker-count": 3},
    ).write()
    for place in copy:
        die_at(files, place)
    with at_work(*works, share=0.05):
        for place in sync:
            die_at(files, place)
        for number, place in enumerate(statements):
            source.run(f"ALTER TABLE life_1.table_1 ADD later_{number} INT")
            source.run(f"UPDATE life_1.table_1 SET later_{number} = {number} ORDER BY id LIMIT 5")
            die_at(files, place)
        for number, place in enumerate(xa):
            source.run(
                f"XA START '{number}'",
                # none of the ids that the work goes on to give
                f"INSERT INTO life_1.table_1 (id, k, c, pad) VALUES ({-1 - number}, {number}, 'xa', 'xa')",
                f"XA END '{number}'",
                f"XA PREPARE '{number}'",
            )
            die_at(files, place)
        for number in range(len(xa)):
            source.run(f"XA COMMIT '{number}'")
    with Command(files) as command:
        command.catch_up()
        command.interrupt()
        assert command.wait() == 0, command.text
    assert_exactly_once(source, target, names)
    later = (
        "SELECT COUNT(*) FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = 'life_1' AND COLUMN_NAME LIKE 'later%'"
    )
    assert target.query(later) == [(len(statements),)]
    for server in (source, target):
        server.run(*(f"DROP DATABASE {name}" for name in ("life_1", "tied_1", "bare_1")))
    target.run(f"DROP DATABASE {files.meta}")
