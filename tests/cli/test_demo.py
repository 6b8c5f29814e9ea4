"""The demo as a user starts it: its verdict, its exit code, and that nothing of it is left behind."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from unshard.cli.demo.proof import Proof, Sum
from unshard.cli.demo.receipts import OpenBatch
from unshard.model.position import Position

COMMAND = [sys.executable, "-m", "unshard", "demo", "--rows", "200", "--seconds", "2"]
FOLDER = re.compile(r"/\S*unshard-demo-\w+")


def command_lines_with(text: str) -> list[str]:
    """The command lines and working folders of all processes that speak of `text`."""
    found = []
    for process in Path("/proc").iterdir():
        if process.name.isdigit():
            try:
                line = (process / "cmdline").read_text() + str((process / "cwd").readlink())
            except OSError:
                continue  # gone meanwhile
            if text in line:
                found.append(line)
    return found


@pytest.mark.server
@pytest.mark.spark
@pytest.mark.recovery
def test_the_demo_kills_goes_on_and_proves_it() -> None:
    done = subprocess.run(COMMAND, capture_output=True, timeout=480, check=False)
    text = done.stdout.decode("ascii")
    assert done.returncode == 0, text
    assert "SIGKILL to all" in text
    assert "EQUAL, ONCE" in text
    assert len(re.findall(r"\| equal +\|$", text, re.MULTILINE)) == 9
    open_batches = re.findall(r"batch (\d+) of (source-\d) open: (\d+) of its (\d+) chunks", text)
    assert any(int(applied) > 0 for _, _, applied, _ in open_batches), text
    chunks = re.search(r"([\d,]+) chunks with their receipt", text)
    assert chunks is not None
    assert int(chunks[1].replace(",", "")) >= sum(int(whole) for *_, whole in open_batches) > 0
    folder = FOLDER.search(text)
    assert folder is not None
    assert not Path(folder[0]).exists()
    assert command_lines_with(folder[0]) == []


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
    assert demo.wait(60) == 130, "".join(lines) + rest
    assert "Traceback" not in rest
    deadline = time.monotonic() + 60
    while (left := command_lines_with(folder)) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert folder
    assert left == []
    assert not Path(folder).exists()


def proof(**changed: object) -> Proof:
    values: dict[str, object] = {
        "shards": (),
        "merged": Sum(0, 0),
        "chunks": 2,
        "chunks_twice": 0,
        "versions": 2,
        "versions_twice": 0,
        "deletes": 1,
        "deletes_twice": 0,
        "chunks_of": {},
    }
    return Proof(**{**values, **changed})  # type: ignore[arg-type]


@pytest.mark.parametrize("figure", ["chunks_twice", "versions_twice", "deletes_twice"])
def test_anything_twice_is_not_once(figure: str) -> None:
    assert proof().once
    assert not proof(**{figure: 1}).once


def test_other_rows_in_the_target_are_not_equal() -> None:
    assert proof().equal
    assert not proof(merged=Sum(1, 5)).equal


@pytest.mark.parametrize(("chunks", "halfway"), [((0, 0), False), ((1, 0), True), ((1, 2), False), ((), False)])
def test_a_batch_is_halfway_when_a_partition_has_begun_and_another_has_not(
    chunks: tuple[int, ...], halfway: bool
) -> None:
    assert OpenBatch("s", 1, Position("b.1"), Position("b.1", 9), chunks).halfway is halfway
