"""The demo as a user starts it, small, and what it must have come to."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

COMMAND = [sys.executable, "-m", "unshard", "demo", "--rows", "200", "--seconds", "2"]
FOLDER = re.compile(r"/\S*unshard-demo-\w+")


def assert_demo_proves(*arguments: str) -> str:
    """Run it to its end: a kill halfway, equal rows, nothing twice, nothing left behind. Returns what it printed."""
    done = subprocess.run([*COMMAND, *arguments], capture_output=True, check=False)
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
    return text


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
