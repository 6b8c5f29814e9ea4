"""At least once: killed by SIGKILL in the middle of batches, it applies changes again and ends with equal rows."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from support.task_runs import Command, TaskFiles, at_work
from unshard.testing.binlog_count import row_events
from unshard.testing.compare import assert_equal
from unshard.testing.mariadb_server import MariadbServer
from unshard.testing.shapes import SHAPES
from unshard.testing.workload import Workload, WorkPlan

pytestmark = [pytest.mark.server, pytest.mark.spark, pytest.mark.recovery, pytest.mark.faults]
PLACES = ("sync-chunk-after:6", "sync-chunk-commit:4")
NEVER = 3600
"""Seconds between two checkpoints: none comes before the kill."""


def test_killed_in_the_middle_it_applies_again_what_was_not_durable(
    source: MariadbServer, target: MariadbServer, tmp_path: Path
) -> None:
    works = [
        Workload(source, WorkPlan("plain", SHAPES["sysbench"], threads=1, tables=1, large_rows=90)),
        Workload(source, WorkPlan("unique", SHAPES["several_unique"], threads=1, tables=1, large_rows=20)),
    ]
    for work in works:
        work.create()
        work.fill(400)
    names = [name for work in works for name in work.plan.names]
    files = TaskFiles(
        tmp_path,
        "again",
        {"s1": source},
        target,
        ("plain_1", "unique_1"),
        keys={"delivery": "at-least-once"},
        syncer={"batch": 10, "worker-count": 3, "checkpoint-flush-interval": NEVER, "safe-mode-duration": "60s"},
    ).write()
    with at_work(*works, share=0.05):
        for place in PLACES:
            with Command(files, crash_at=place) as command:
                command.dies(place)
    with Command(replace(files, syncer={**files.syncer, "checkpoint-flush-interval": 1}).write()) as command:
        command.catch_up()
        command.interrupt()
        assert command.wait() == 0, command.text
    for name in names:
        assert_equal([(source, name)], (target, name))
    again = row_events(target, names) - row_events(source, names)
    assert again, "nothing was applied twice: the kills came too late to show anything"
