"""One task's hard life: its target dies under the load and under batches, the task itself at any moment, and then the
target stays away for longer than the task waits. Every change arrives once.

UNSHARD_KILLS is the number of deaths while rows come, 4 if it is not set. Of each five, the last two are the target's.
UNSHARD_AWAY is for how many transactions of the source the target stays away in the load and in the first batches, 40
if it is not set.
UNSHARD_TARGET_ENDS is how the target ends: `kill`, if it is not set, or `stop`.
UNSHARD_FUZZ_SEED is the seed of how much happens between the deaths. `tools/try-kills` sets all of them.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from random import Random

import pytest

from support.exactly_once import assert_exactly_once
from support.seeds import seeds
from support.task_runs import Command, TaskFiles, at_work, commit_more, newest
from support.waiting import wait_until
from unshard.testing.hold import row_held, stands_still
from unshard.testing.shapes import SHAPES
from unshard.testing.throwaway_server import ThrowawayServer
from unshard.testing.workload import Workload, WorkPlan

pytestmark = [pytest.mark.server, pytest.mark.spark, pytest.mark.recovery, pytest.mark.faults]
KILLS = int(os.environ.get("UNSHARD_KILLS", "4"))
AWAY = int(os.environ.get("UNSHARD_AWAY", "40"))
SEEDS = (1,)
TARGET_ENDS = os.environ.get("UNSHARD_TARGET_ENDS", "kill")


def end(server: ThrowawayServer) -> None:
    {"kill": server.kill, "stop": server.stop}[TARGET_ENDS]()


def restart(server: ThrowawayServer, works: Sequence[Workload], transactions: int) -> None:
    """The server is away while the workloads commit so many more."""
    end(server)
    commit_more(*works, transactions=transactions)
    server.start()


def moves(files: TaskFiles) -> None:
    """Wait until the checkpoint moves: a batch was applied just now, and the next is under way."""
    seen = files.applied("s1")
    wait_until(lambda: files.applied("s1") not in (None, seen), "a batch applied")


def test_every_change_arrives_once(source: ThrowawayServer, target: ThrowawayServer, tmp_path: Path) -> None:
    works = [
        Workload(source, WorkPlan("hard", SHAPES["sysbench"], threads=1, large_rows=90)),
        Workload(source, WorkPlan("knot", SHAPES["several_unique"], threads=1, tables=1, large_rows=20)),
    ]
    for work in works:
        work.create()
        work.fill(400)
    names = [name for work in works for name in work.plan.names]
    syncer = {"compact": False, "batch": 10, "worker-count": 3}
    files = TaskFiles(tmp_path, "hard", {"s1": source}, target, ("hard_1", "knot_1"), syncer=syncer).write()
    (seed,) = seeds(SEEDS)
    random = Random(seed)

    first = names[0]
    target.run(f"CREATE DATABASE {first.schema}")
    ((_, create),) = source.query(f"SHOW CREATE TABLE {first.quoted}")
    target.run(create, database=first.schema)
    held = target.connection()
    held.autocommit(False)
    held.query(f"INSERT INTO {first.quoted} (id) VALUES (1)")
    with Command(files) as command:
        command.shows("s1  load")
        wait_until(lambda: stands_still(target), "in the middle of the load")
        with at_work(*works, share=0.05):
            restart(target, works, AWAY)
            command.shows("s1  sync")
            for _ in range(2):
                moves(files)
                commit_more(*works, transactions=random.randint(0, 20))
                restart(target, works, AWAY)
            moves(files)
            commit_more(*works, transactions=random.randint(0, 20))
            command.kill()
    with at_work(*works, share=0.05):
        for number in range(1, KILLS):
            with Command(files) as command:
                moves(files)
                commit_more(*works, transactions=random.randint(0, 30))
                if number % 5 > 2:
                    restart(target, works, random.randint(0, 60))
                    moves(files)
                command.kill()
    with Command(files, "", ":", "--no-auto-resume") as command:
        command.catch_up()
        with row_held(target, first.quoted):
            source.run(f"UPDATE {first.quoted} SET k = k + 1")
            wait_until(lambda: stands_still(target), "in the middle of a batch")
            end(target)
            assert command.wait() == 1, command.text
    assert "SYNC-005 [source s1" in command.text, command.text
    assert "what to do: " in command.text
    assert "Traceback" not in command.text
    assert "not put on record where it stopped" in command.log.read_text(), "tried once: the target has been waited for"
    target.start()
    with Command(files) as command:
        command.catch_up()
        command.interrupt()
        assert command.wait() == 0, command.text
    assert files.applied("s1") == newest(source)
    assert_exactly_once(source, target, names)
