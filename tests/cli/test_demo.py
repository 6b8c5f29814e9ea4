"""The demo as a user starts it: its verdict, its exit code, and that nothing of it is left behind."""

from __future__ import annotations

import os
import signal
import subprocess
from functools import partial
from pathlib import Path

import pytest

from support.demo_run import COMMAND, FOLDER, assert_demo_proves, command_lines_with
from support.waiting import PATIENCE_SECONDS, wait_until
from unshard.cli.demo.applied_counts import AppliedCounts
from unshard.cli.demo.open_batches import OpenBatchCount
from unshard.cli.demo.proof import Proof, Sum
from unshard.model.position import Position


@pytest.mark.docs
@pytest.mark.server
@pytest.mark.spark
@pytest.mark.recovery
def test_the_demo_kills_goes_on_and_proves_it() -> None:
    assert "Counted in the target's own binlog:" in assert_demo_proves()


@pytest.mark.docs
@pytest.mark.server
@pytest.mark.spark
@pytest.mark.recovery
def test_ctrl_c_ends_the_demo_and_all_that_it_started() -> None:
    demo = subprocess.Popen(
        COMMAND,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # a shell has it ignored in the background
    )
    assert demo.stdout is not None
    folder, lines = "", []
    for line in demo.stdout:
        lines.append(line)
        folder = folder or getattr(FOLDER.search(line), "group", lambda: "")()
        if line.startswith("  | "):  # the child lives and speaks
            break
    demo.send_signal(signal.SIGINT)
    rest = demo.stdout.read()
    assert demo.wait(PATIENCE_SECONDS) == 130, "".join(lines) + rest
    assert "Traceback" not in rest
    assert folder
    left = partial(command_lines_with, folder)
    wait_until(lambda: left() == [], "all that it started has ended", told=lambda: "\n".join(left()))
    assert not Path(folder).exists()


@pytest.mark.docs
@pytest.mark.server
def test_a_target_whose_program_is_missing_ends_the_demo_with_what_to_do(tmp_path: Path) -> None:
    environment = {**os.environ, "UNSHARD_TIDB_ROOT": str(tmp_path), "TMPDIR": str(tmp_path)}
    command = [*COMMAND, "--target", "tidb"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 1
    assert f"FAILED: TiDB's server is not there: {tmp_path}/tidb-server. `tools/test-servers tidb`" in done.stdout
    assert "UNSHARD_TIDB_ROOT" in done.stdout
    assert done.stderr == ""
    assert not list(tmp_path.glob("unshard-demo-*"))


def applied(**changed: int) -> AppliedCounts:
    counts = {"chunks": 2, "versions": 2, "deletes": 1}
    counts |= dict.fromkeys(("chunks_twice", "versions_twice", "deletes_twice", "without_receipt"), 0)
    return AppliedCounts("the record", **(counts | changed), chunks_of={})


@pytest.mark.parametrize("figure", ["chunks_twice", "versions_twice", "deletes_twice", "without_receipt"])
def test_anything_twice_is_not_once(figure: str) -> None:
    assert applied().once
    assert not applied(**{figure: 1}).once


def test_other_rows_in_the_target_are_not_equal() -> None:
    assert Proof((), Sum(0, 0), applied()).equal
    assert not Proof((), Sum(1, 5), applied()).equal


@pytest.mark.parametrize(("chunks", "halfway"), [((0, 0), False), ((1, 0), True), ((1, 2), False), ((), False)])
def test_a_batch_is_halfway_when_a_partition_has_begun_and_another_has_not(
    chunks: tuple[int, ...], halfway: bool
) -> None:
    assert OpenBatchCount("s", 1, Position("b.1"), Position("b.1", 9), chunks).halfway is halfway
