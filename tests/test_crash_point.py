"""Crash points: silent unless asked for, and then they end the process at the named place, once."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from unshard.crash_point import AT, BY, MARKER, ORDER, PID

WALK = """
from unshard.crash_point import reach
for step in range(3):
    print(step, flush=True)
    reach("planned")
    reach("applied")
print("end")
"""


def walk(**environment: str) -> tuple[int, list[str]]:
    done = subprocess.run(
        [sys.executable, "-c", WALK], capture_output=True, text=True, env={**os.environ, **environment}, check=False
    )
    return done.returncode, done.stdout.split()


@pytest.mark.parametrize(
    ("at", "code", "steps"),
    [
        ("", 0, ["0", "1", "2", "end"]),
        ("elsewhere", 0, ["0", "1", "2", "end"]),
        ("applied:4", 0, ["0", "1", "2", "end"]),
        ("planned", -signal.SIGKILL, ["0"]),
        ("applied:2", -signal.SIGKILL, ["0", "1"]),
    ],
)
def test_dies_at_the_named_place_and_count(at: str, code: int, steps: list[str]) -> None:
    assert walk(**{AT: at}) == (code, steps)


def test_only_the_first_process_dies_when_they_share_a_marker(tmp_path: Path) -> None:
    environment = {AT: "planned", MARKER: str(tmp_path / "fired")}
    assert walk(**environment) == (-signal.SIGKILL, ["0"])
    assert walk(**environment) == (0, ["0", "1", "2", "end"])


def test_who_comes_to_a_place_that_is_ordered_takes_the_order(tmp_path: Path) -> None:
    environment = {ORDER: str(tmp_path / "order")}
    assert walk(**environment) == (0, ["0", "1", "2", "end"])
    (tmp_path / "order").write_text("elsewhere")
    assert walk(**environment) == (0, ["0", "1", "2", "end"])
    (tmp_path / "order").write_text("applied")
    assert walk(**environment) == (-signal.SIGKILL, ["0"])
    assert [one.name.partition(".")[0] for one in tmp_path.iterdir()] == ["order"]
    assert walk(**environment) == (0, ["0", "1", "2", "end"])


def test_takes_the_named_process_along() -> None:
    driver = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    assert walk(**{AT: "planned", PID: str(driver.pid)}) == (-signal.SIGKILL, ["0"])
    assert driver.wait(60) == -signal.SIGKILL


def test_takes_along_who_stands_between() -> None:
    """As a JVM does between the driver and a worker: it would have the work done again by another worker."""
    between = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {WALK!r}]); print('again')"
    driver = subprocess.Popen(
        ["/bin/sh", "-c", f'{PID}=$$ "$@"; echo outlived', "sh", sys.executable, "-c", between],
        env={**os.environ, AT: "applied:2"},
        stdout=subprocess.PIPE,
        text=True,
    )
    printed, _ = driver.communicate(timeout=60)  # the last who holds the pipe has ended
    assert printed.split() == ["0", "1"]
    assert driver.returncode == -signal.SIGKILL


def test_dies_also_when_the_named_process_is_gone() -> None:
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    assert walk(**{AT: "planned", PID: str(gone.pid)})[0] == -signal.SIGKILL


def test_a_thread_that_is_frozen_runs_no_step_further(tmp_path: Path) -> None:
    """It is the process that stands still, and this thread of it just there."""
    thread = f"from threading import Thread\nThread(target=exec, args=({WALK!r}, {{}})).start()"
    output = tmp_path / "output"
    for _ in range(5):
        with output.open("wb") as file:
            frozen = subprocess.Popen(
                [sys.executable, "-c", thread], stdout=file, env={**os.environ, AT: "applied:2", BY: "SIGSTOP"}
            )
        assert os.WIFSTOPPED(os.waitpid(frozen.pid, os.WUNTRACED)[1])
        assert output.read_text().split() == ["0", "1"]
        frozen.send_signal(signal.SIGCONT)
        assert frozen.wait(60) == 0
        assert output.read_text().split() == ["0", "1", "2", "end"]
