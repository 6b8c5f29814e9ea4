"""The command `unshard` as a child process of the demo."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from threading import Thread

_PROC = Path("/proc")
_SESSION_FIELD = 3  # of /proc/PID/stat, counted behind the program's name
_STATE_FIELD = 0
_CHILD_LOOK_SECONDS = 0.02

# prctl(PR_SET_PDEATHSIG, SIGKILL) outlives exec: the command dies with us however we die, and its JVM with it
_TIED = """
import ctypes, os, sys
ctypes.CDLL(None).prctl(1, 9)
os.execv(sys.executable, [sys.executable, "-m", "unshard", *sys.argv[1:]])
"""


class Child:
    """A child process that runs `unshard ARGUMENTS` in a process session of its own.

    The JVM and the Python workers belong to the session, too. The child is killed when the thread that created it ends,
    so the main thread creates it.

    Args:
        arguments: those after `unshard`.
        folder: where it runs; relative paths of its files begin there.
        tell: gets each line that it prints, on a thread of its own.
    """

    def __init__(self, arguments: Sequence[str], folder: Path, tell: Callable[[str], None]) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", _TIED, *arguments],
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            errors="replace",
            start_new_session=True,  # Ctrl-C is for the demo; the child ends when the demo ends it
            env={**os.environ, "PYTHONUNBUFFERED": "1"},
        )
        self._reader = Thread(target=self._read, args=(tell,), name="child's lines", daemon=True)
        self._reader.start()

    @property
    def exit_code(self) -> int | None:
        """Exit code of the command; None while it runs."""
        return self._process.poll()

    def freeze(self) -> None:
        """Stop every process of the session with SIGSTOP; a statement that the server has goes on there."""
        self._signal_all(signal.SIGSTOP, settled="T")

    def thaw(self) -> None:
        """Let a frozen session run on."""
        for pid, _ in self._processes():
            _send(pid, signal.SIGCONT)

    def kill(self) -> int:
        """Send SIGKILL to every process of the session; return their number. Blocks until all have ended."""
        killed = self._signal_all(signal.SIGKILL, settled="Z")
        self._process.wait()
        self._reader.join(timeout=5)
        return killed

    def interrupt(self, within_seconds: float) -> int:
        """Send SIGINT to the command, as Ctrl-C does; return its exit code. Raises subprocess.TimeoutExpired."""
        self._process.send_signal(signal.SIGINT)
        code = self._process.wait(within_seconds)
        self._reader.join(timeout=5)
        return code

    def _signal_all(self, number: signal.Signals, settled: str) -> int:
        """Signal until every process of the session is in the state `settled`: some may be born meanwhile."""
        reached: set[int] = set()
        while left := [pid for pid, state in self._processes() if state not in (settled, "Z")]:
            for pid in left:
                _send(pid, number)
            reached.update(left)
            time.sleep(_CHILD_LOOK_SECONDS)
        return len(reached)

    def _processes(self) -> list[tuple[int, str]]:
        """Process ids and states of the session."""
        found = []
        for entry in _PROC.iterdir():
            if not entry.name.isdigit():
                continue
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:  # gone since it was listed
                continue
            if int(fields[_SESSION_FIELD]) == self._process.pid:
                found.append((int(entry.name), fields[_STATE_FIELD]))
        return found

    def _read(self, tell: Callable[[str], None]) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as lines:
            for line in lines:
                tell(line.rstrip("\n"))


def _send(pid: int, number: signal.Signals) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return
